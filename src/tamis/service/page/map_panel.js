// The map beside a filter: tools, recent events with a point, and the clause for what was drawn.

import { preview } from "/page/api.js";
import { announce, button, debounced, field, h, refill } from "/page/elements.js";
import { attributesOf } from "/page/event_card.js";
import { plural } from "/page/format.js";
import { MapCanvas } from "/page/map_canvas.js";
import { attributeIn, clauseOf, describe, outline, shapesIn, withClause } from "/page/map_shapes.js";
import { MapTools } from "/page/map_tools.js";
import { MapView, wrapped } from "/page/map_view.js";

const TOOLS = { move: "Move", box: "Box", circle: "Circle", polygon: "Polygon" };
const KEYS = "Keys: arrows move the cross, Enter sets";
const HELP = {
  move: "Drag to move; click and turn the wheel, or pinch, to zoom. Keys: arrows, + and −.",
  box: `Drag from corner to corner, or set both. ${KEYS}, Escape begins anew.`,
  circle: `Drag from the centre outwards, or set both. ${KEYS}, Escape begins anew.`,
  polygon: `Set corner after corner, and the first one again to close it. ${KEYS}, Backspace takes one back.`,
};
const N_EVENTS = 1_000;
const N_POINTS = 100;
const isPoint = (value) => value?.type === "Point" && Array.isArray(value.coordinates);

/** `filter` is what the clause goes into: `read()` gives text and spelling, `write(text)` puts it. */
export function mapPanel(filter) {
  const view = new MapView();
  const scene = { points: [], found: [], areas: [], shape: null };
  const canvas = h("canvas", {
    class: "map", tabindex: 0, role: "application", "aria-label": "Map", "aria-describedby": "map-help",
  });
  const help = h("p", { class: "soft", id: "map-help" });
  const said = h("p", { class: "map-said", role: "status" });
  const attribute = h("input", {
    value: "location", list: "point-attributes", autocomplete: "off", spellcheck: "false",
  });
  const known = h("datalist", { id: "point-attributes" });
  const add = button("Put into the filter", putIn, { class: "main", disabled: true });
  const clear = button("Clear", () => {
    scene.shape = null;
    tools.cancel();
    look();
  }, { disabled: true });
  const close = button("Close the polygon", () => tools.close(), { hidden: true });
  let former = null; // the clause that was put in last
  let isLearned = false;
  let looks = 0; // of several looks only the last one counts

  const drawing = new MapCanvas(canvas, view, () => ({ ...scene, draft: tools.draft, cursor: tools.cursor }));
  const tell = debounced(300, ([lon, lat]) =>
    announce(`${wrapped(lon).toFixed(view.decimals)}, ${lat.toFixed(view.decimals)}`));
  const tools = new MapTools(canvas, view, {
    change: update,
    moved() { drawing.draw(); lookSoon(); },
    said: (text) => { said.textContent = text; },
    at: tell,
    drawn(shape) {
      scene.shape = shape;
      update();
      look();
    },
  });
  const choices = Object.entries(TOOLS).map(([name, title]) =>
    button(title, () => choose(name), { "data-tool": name, "aria-pressed": "false" }));

  function choose(name) {
    tools.use(name);
    help.textContent = HELP[name];
    for (const choice of choices) choice.setAttribute("aria-pressed", String(choice.dataset.tool === name));
    canvas.classList.toggle("draws", name !== "move");
  }

  function update() {
    close.hidden = !tools.canClose;
    add.disabled = !scene.shape || !attribute.value.trim();
    clear.disabled = !scene.shape && !tools.draft;
    drawing.draw();
  }

  function putIn() {
    const { text, spelling } = filter.read();
    const clause = clauseOf(scene.shape, attribute.value.trim(), spelling);
    try {
      filter.write(withClause(text, spelling, clause, former));
      former = clause;
      said.textContent = "It stands in the filter now.";
    } catch {
      said.textContent = "The filter is no JSON yet, so nothing can be put into it.";
    }
  }

  const pointsOf = (told) => told.examples.flatMap((event) => attributesOf(event)
    .filter(([name]) => name === attribute.value.trim())
    .flatMap(([, value]) => [value].flat().filter(isPoint).map((one) => one.coordinates)));

  const asked = (shape) => preview({
    filter: clauseOf(shape, attribute.value.trim(), "json"), n_events: N_EVENTS, n_examples: N_POINTS,
  });

  /** Show the recent events of what is seen, and count those of what was drawn. */
  async function look() {
    if (!panel.open || !attribute.value.trim()) return;
    looks += 1;
    const turn = looks;
    try {
      const { west, south, east, north } = view.bounds;
      const isAll = east - west >= 360;
      const [from, to] = isAll ? [-180, 180] : [wrapped(west), wrapped(east)];
      const seen = { kind: "box", west: from, south, east: to, north };
      const drawn = scene.shape;
      const [all, inside] = await Promise.all([asked(seen), drawn && asked(drawn)]);
      if (turn !== looks) return;
      scene.points = pointsOf(all);
      scene.found = inside ? pointsOf(inside) : [];
      const told = inside ?? all;
      const counted = `${plural(told.n_matches, "event")} of the last ${plural(told.n_events, "event")}`;
      said.textContent = drawn ? `${describe(drawn)}: ${counted}.` : `${counted} in view.`;
    } catch (error) {
      if (turn !== looks) return;
      [scene.found, said.textContent] = [[], error.message];
    }
    drawing.draw();
  }
  const lookSoon = debounced(350, look);

  /** Which attributes hold points, and where they are: asked when the map is first opened. */
  async function learn() {
    const told = await preview({ filter: "TRUE", n_events: N_EVENTS, n_examples: N_POINTS });
    const held = told.examples.flatMap(attributesOf).filter(([, value]) => [value].flat().some(isPoint));
    const names = [...new Set(held.map(([name]) => name))];
    refill(known, names.map((value) => h("option", { value })));
    if (!scene.areas.length) {
      if (names.length && !names.includes(attribute.value)) attribute.value = names[0];
      view.fit(pointsOf(told));
    }
    isLearned = true;
  }

  const panel = h("details", { class: "map-panel", async ontoggle() {
    if (!panel.open) return;
    drawing.resize();
    if (!isLearned) await learn().catch(() => {});
    update();
    look();
  } },
  h("summary", {}, "Draw an area on the map"),
  h("div", { class: "stack" },
    h("div", { class: "row", role: "toolbar", "aria-label": "Map tools" }, choices, close,
      h("span", { class: "end row" },
        button("−", () => zoom(1 / 1.6), { "aria-label": "Zoom out" }),
        button("+", () => zoom(1.6), { "aria-label": "Zoom in" }))),
    h("div", {}, canvas, help),
    h("div", { class: "row map-foot" }, field("Attribute with the point", attribute), known,
      h("div", { class: "row" }, add, clear)),
    said));

  function zoom(factor) {
    view.zoom(factor);
    drawing.draw();
    lookSoon();
  }

  attribute.addEventListener("input", () => { update(); lookSoon(); });
  attribute.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.ctrlKey) event.preventDefault(); // it would save the filter
  });
  choose("move");
  return {
    element: panel,
    show: () => drawing.resize(),
    /** Show the areas that a filter speaks of, as the service wrote it in SQL. */
    showFilter(sql) {
      const before = JSON.stringify(scene.areas);
      scene.areas = sql === null ? [] : shapesIn(sql);
      if (scene.areas.length && JSON.stringify(scene.areas) !== before && !scene.shape) {
        attribute.value = attributeIn(sql);
        view.fit(scene.areas.flatMap(outline).flat());
        lookSoon();
      }
      drawing.draw();
    },
  };
}
