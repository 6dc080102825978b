// Lines over time, drawn as SVG, to be read with a pointer or with the arrow keys.

import { h, refill, svg } from "/page/elements.js";
import { moment } from "/page/format.js";

const [WIDTH, HEIGHT, TOP, BOTTOM] = [600, 150, 8, 4];

/** A round number not below the largest: the top of the scale. */
function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((one) => one * power).find((one) => one >= value * 0.999);
}

/** Lines that are broken where nothing is known. */
function pathOf(values, x, y) {
  let isDown = false;
  return values.map((value, n) => {
    if (!Number.isFinite(value)) {
      isDown = false;
      return "";
    }
    const step = `${isDown ? "L" : "M"}${x(n).toFixed(1)} ${y(value).toFixed(1)}`;
    isDown = true;
    return step;
  }).join("");
}

/**
 * A chart of `series`: `{name, field, kind}` each, `kind` being "first" or "second" (its colour).
 * `format` writes a value. `draw(history)` shows points that have `time` and the fields.
 */
export function chart(title, series, format) {
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", tabindex: 0,
  });
  const reading = h("p", { class: "reading" });
  const scale = h("span", { class: "scale soft", "aria-hidden": "true" });
  const ends = h("div", { class: "row chart-ends soft" });
  let history = [];
  let at = null; // the point that is read; null is the last

  const number = (value) => (typeof value === "number" ? value : NaN);
  const x = (n) => (history.length > 1 ? (n / (history.length - 1)) * WIDTH : WIDTH);

  function draw(points) {
    history = points;
    const all = series.flatMap(({ field }) => history.map((one) => number(one[field]))).filter(Number.isFinite);
    const top = roundUp(Math.max(0, ...all));
    const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
    const rule = (at, more = "") => svg("line", { class: `rule ${more}`, x1: 0, x2: WIDTH, y1: y(at), y2: y(at) });
    refill(picture,
      rule(top), rule(top / 2), rule(0, "base"),
      series.map(({ field, kind }) =>
        svg("path", { class: `line ${kind}`, d: pathOf(history.map((one) => number(one[field])), x, y) })),
      svg("line", { class: "reader", y1: 0, y2: HEIGHT }));
    scale.textContent = format(top);
    refill(ends, history.length
      ? [h("span", {}, moment(history[0].time)), h("span", { class: "end" }, moment(history.at(-1).time))] : null);
    read();
  }

  function read() {
    const n = at === null ? history.length - 1 : Math.min(at, history.length - 1);
    const point = history[n];
    const line = picture.querySelector(".reader");
    line?.setAttribute("visibility", at === null || !point ? "hidden" : "visible");
    line?.setAttribute("x1", x(n));
    line?.setAttribute("x2", x(n));
    refill(reading, series.map(({ name, field, kind }) => h("span", { class: `key ${kind}` },
      name, " ", h("strong", {}, format(point ? number(point[field]) : NaN)))),
    at !== null && point && h("small", {}, moment(point.time)));
    picture.setAttribute("aria-label", `${title}. ${reading.textContent}`);
  }

  picture.addEventListener("pointermove", (event) => {
    const { left, width } = picture.getBoundingClientRect();
    const last = history.length - 1;
    at = Math.max(0, Math.min(last, Math.round(((event.clientX - left) / width) * last)));
    read();
  });
  const last = () => { at = null; read(); };
  picture.addEventListener("pointerleave", last);
  picture.addEventListener("blur", last);
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !history.length) return;
    event.preventDefault();
    at = Math.max(0, Math.min(history.length - 1, (at ?? history.length - 1) + step));
    read();
  });

  return {
    element: h("figure", { class: "card chart" }, h("figcaption", {}, title), reading,
      h("div", { class: "plot" }, scale, picture), ends),
    draw,
  };
}
