// One event: what it is, and on request why a filter accepts it.

import { button, h, refill } from "/page/elements.js";
import { moment, valueText } from "/page/format.js";

const MOST_SHOWN = 12;

/** The attributes of an event, nested ones by their dotted names; its location is one of them. */
export function attributesOf(event) {
  const found = flat(event.attributes ?? {});
  if (event.location) found.push(["location", { type: "Point", coordinates: event.location }]);
  return found;
}

function flat(held, before = "") {
  return Object.entries(held).flatMap(([name, value]) => {
    const isNested = value !== null && typeof value === "object" && !Array.isArray(value)
      && !("type" in value && "coordinates" in value)
      && !Object.keys(value).some((key) => key.startsWith("$"));
    return isNested ? flat(value, `${before}${name}.`) : [[before + name, value]];
  });
}

/** An event as a list of its attributes; `ask` gives what POST /v1/explain says of it. */
export function eventCard(event, ask = null) {
  const attributes = attributesOf(event);
  const more = attributes.length - MOST_SHOWN;
  const list = h("dl", { class: "attributes" }, attributes.slice(0, MOST_SHOWN).map(pair));
  const rest = more > 0 && button(`${more} more`, () => {
    list.append(...attributes.slice(MOST_SHOWN).map(pair));
    rest.remove();
  }, { class: "quiet" });
  const why = ask && whyButton(ask, event.id);
  return h(
    "article", { class: "event" },
    h("div", { class: "row" },
      h("strong", { class: "mono" }, event.id),
      event.time && h("small", {}, h("time", { datetime: event.time }, moment(event.time))),
      why && h("span", { class: "end" }, why.button)),
    attributes.length ? list : h("p", { class: "soft" }, "no attributes"),
    rest, why && why.region,
  );
}

const pair = ([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, valueText(value)));

let numbered = 0;

/** A button that shows and hides an explanation, and the region it appears in. */
function whyButton(ask, id) {
  numbered += 1;
  const region = h("div", { class: "why", id: `why-${numbered}`, hidden: true });
  const made = button("Why?", async () => {
    const isOpen = made.getAttribute("aria-expanded") === "true";
    made.setAttribute("aria-expanded", String(!isOpen));
    region.hidden = isOpen;
    if (isOpen || region.childElementCount) return;
    refill(region, h("p", { class: "soft" }, "Asking…"));
    try {
      const { explained, note } = await ask();
      refill(region, h("ul", { class: "tree" }, branch(explained.tree)), note && h("small", {}, note));
    } catch (error) {
      refill(region, h("p", { class: "note bad", role: "alert" }, error.message));
    }
  }, { class: "quiet", "aria-expanded": "false", "aria-controls": region.id, "aria-label": `Why? ${id}` });
  return { button: made, region };
}

function branch(node) {
  const word = node.held ? "holds" : "does not hold";
  return h(
    "li", { class: node.held ? "held" : "failed" },
    h("span", { class: "mark", "aria-hidden": "true" }, node.held ? "✓" : "✗"),
    h("span", { class: "visually-hidden" }, `${word}: `),
    h("span", {}, node.reason),
    node.parts && node.parts.length ? h("ul", {}, node.parts.map(branch)) : null,
  );
}
