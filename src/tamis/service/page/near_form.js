// The form of a subscription's own place: only events near it count, in a circle or a square.

import { button, debounced, field, h } from "/page/elements.js";

const PLACE = /^\s*(-?\d+(?:\.\d+)?)\s*[,;\s]\s*(-?\d+(?:\.\d+)?)\s*$/;
const KEYS = ["location", "radius_m", "area"];
const RADIUS_M = 1000;

/** The form, what it says as fields of a subscription, and fields put into it. */
export function nearForm(onchange) {
  const oninput = debounced(250, onchange);
  const input = (attributes) => h("input", { autocomplete: "off", spellcheck: "false", oninput, ...attributes });
  const place = input({ placeholder: "13.405, 52.52", inputmode: "decimal" });
  const radius = input({ type: "number", min: 1, step: "any", placeholder: String(RADIUS_M) });
  const area = h("select", { onchange },
    h("option", { value: "circle" }, "circle"), h("option", { value: "square" }, "square around the circle"));
  const said = h("small", { role: "status" });
  // A browser tells where it is only over TLS, or on this machine.
  const here = window.isSecureContext && navigator.geolocation
    ? button("Where I am", findMe, { class: "here" }) : null;

  function findMe() {
    said.textContent = "Asking the browser where you are …";
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => {
        said.textContent = "";
        place.value = `${coords.longitude.toFixed(5)}, ${coords.latitude.toFixed(5)}`;
        onchange();
      },
      (error) => { said.textContent = `The browser does not say where you are: ${error.message}`; },
      { timeout: 10_000, maximumAge: 60_000 },
    );
  }

  /** The place as numbers; null if none is given, an error if it is none. */
  function coordinates() {
    if (!place.value.trim()) return null;
    const found = PLACE.exec(place.value);
    if (!found) throw new Error(`${place.value.trim()} is not a place: give longitude and latitude, as in 13.405, 52.52`);
    return [Number(found[1]), Number(found[2])];
  }

  return {
    element: h("details", { class: "near" },
      h("summary", {}, "Only near a place"),
      h("div", { class: "fields" },
        field("Longitude, latitude", place, "empty: wherever the event is"),
        field("Within, metres", radius), field("Shape", area)),
      h("div", { class: "row" }, here, said)),

    /** The fields it stands for: none without a place. */
    read() {
      const location = coordinates();
      if (location === null) return {};
      return { location, radius_m: Number(radius.value || RADIUS_M), area: area.value };
    },

    /** The fields as changes of a subscription: what is not there is taken away. */
    changes() {
      return { ...Object.fromEntries(KEYS.map((key) => [key, null])), ...this.read() };
    },

    write(saved) {
      place.value = saved?.location ? saved.location.join(", ") : "";
      radius.value = saved?.radius_m ?? "";
      area.value = saved?.area ?? "circle";
      said.textContent = "";
      this.element.open = Boolean(saved?.location);
    },
  };
}
