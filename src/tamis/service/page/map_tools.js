// What mouse, touch and keys do on the map: move it, and draw a box, a circle or a polygon.

import { boxOf, circleOf, polygonOf } from "/page/map_shapes.js";

const DRAG_PX = 6; // less is a click
const NEAR_PX = 14; // so near is the first corner again
const STEP_PX = 10;
const FAR_PX = 60;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class MapTools {
  /** "move", "box", "circle" or "polygon". */
  tool = "move";
  /** Places that are set, while something is drawn. */
  places = [];
  /** The place under the pointer or the cursor, while something is drawn. */
  next = null;
  /** The pixel of the keyboard's cursor; null while the pointer is used. */
  cursor = null;
  #pointers = new Map();
  #pressed = null;
  #spread = 0;

  /** `on.drawn(shape)`, `on.change()`, `on.moved()` and `on.said(text)` are called. */
  constructor(canvas, view, on) {
    Object.assign(this, { canvas, view, on });
    const listen = (name, call) => canvas.addEventListener(name, call.bind(this), { passive: false });
    listen("pointerdown", this.#press);
    listen("pointermove", this.#drag);
    listen("pointerup", this.#release);
    listen("pointercancel", this.#cancelPointer);
    listen("wheel", this.#wheel);
    listen("keydown", this.#key);
    listen("blur", () => { this.cursor = null; on.change(); });
    listen("focus", () => {
      if (!canvas.matches(":focus-visible") || this.tool === "move") return;
      this.cursor = [view.width / 2, view.height / 2];
      on.change();
    });
  }

  use(tool) {
    this.tool = tool;
    this.cancel();
  }

  cancel() {
    [this.places, this.next] = [[], null];
    this.on.change();
  }

  /** The shape as it would be if the next place were set here. */
  get draft() {
    if (!this.places.length) return null;
    const places = this.next ? [...this.places, this.next] : this.places;
    const shape = places.length > 1 && this.tool !== "polygon" ? this.#shape(places) : null;
    return { shape, places: this.tool === "polygon" ? places : this.places };
  }

  get canClose() {
    return this.tool === "polygon" && this.places.length >= 3;
  }

  close() {
    if (!this.canClose) return;
    const shape = polygonOf(this.places, this.view.decimals);
    this.cancel();
    if (shape) this.on.drawn(shape);
    else this.on.said("A polygon cannot cross the line of 180°. A box or a circle can.");
  }

  #shape([from, to]) {
    const make = this.tool === "box" ? boxOf : circleOf;
    return make(from, to, this.view.decimals);
  }

  /** Set a place; the second one ends a box or a circle, the first one again a polygon. */
  #set(pixel) {
    if (this.tool === "move") return;
    if (this.tool === "polygon" && this.canClose && this.#isNear(pixel, this.places[0])) return this.close();
    this.places.push(this.view.toPlace(pixel));
    this.next = null;
    if (this.tool !== "polygon" && this.places.length === 2) {
      const shape = this.#shape(this.places);
      this.cancel();
      this.on.drawn(shape);
      return;
    }
    this.on.change();
  }

  #isNear([x, y], place) {
    const [px, py] = this.view.toExactPixel(place);
    return Math.hypot(x - px, y - py) <= NEAR_PX;
  }

  // -- pointers

  #at(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  #press(event) {
    if (event.button > 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.cursor = null;
    const pixel = this.#at(event);
    this.#pointers.set(event.pointerId, pixel);
    if (this.#pointers.size === 2) {
      this.#spread = this.#distance();
      if (this.#pressed?.isFirst) this.cancel(); // two fingers zoom, they do not draw
      this.#pressed = null;
      return;
    }
    const isFirst = this.tool !== "polygon" && this.tool !== "move" && this.places.length === 0;
    if (isFirst) this.#set(pixel);
    this.#pressed = { pixel, isFirst, isDrag: false };
  }

  #drag(event) {
    const pixel = this.#at(event);
    const before = this.#pointers.get(event.pointerId);
    if (before) this.#pointers.set(event.pointerId, pixel);
    if (this.#pointers.size === 2) return this.#pinch(before, pixel);
    if (this.places.length) {
      this.next = this.view.toPlace(pixel);
      this.on.change();
    }
    if (!this.#pressed) return;
    const [x, y] = this.#pressed.pixel;
    this.#pressed.isDrag ||= Math.hypot(pixel[0] - x, pixel[1] - y) > DRAG_PX;
    if (this.tool === "move" && before) {
      this.view.pan(pixel[0] - before[0], pixel[1] - before[1]);
      this.on.moved();
    }
  }

  #release(event) {
    const pressed = this.#pressed;
    this.#pointers.delete(event.pointerId);
    if (this.#pointers.size) return;
    this.#pressed = null;
    if (!pressed) return;
    if (!pressed.isFirst || pressed.isDrag) this.#set(this.#at(event));
  }

  #cancelPointer(event) {
    this.#pointers.delete(event.pointerId);
    this.#pressed = null;
    this.cancel();
  }

  #distance() {
    const [a, b] = [...this.#pointers.values()];
    return Math.hypot(a[0] - b[0], a[1] - b[1]);
  }

  #pinch(before, pixel) {
    const [a, b] = [...this.#pointers.values()];
    const middle = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    if (before) this.view.pan((pixel[0] - before[0]) / 2, (pixel[1] - before[1]) / 2);
    const spread = this.#distance();
    if (this.#spread > 0 && spread > 0) this.view.zoom(spread / this.#spread, middle);
    this.#spread = spread;
    this.on.moved();
  }

  /** Only a map that was clicked on, or with Ctrl: else who scrolls the page gets stuck here. */
  #wheel(event) {
    if (document.activeElement !== this.canvas && !event.ctrlKey) return;
    event.preventDefault();
    this.view.zoom(Math.exp(-Math.sign(event.deltaY) * 0.25), this.#at(event));
    this.on.moved();
  }

  // -- keys

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (this.#act(event)) event.preventDefault();
  }

  #act(event) {
    const { key } = event;
    if (ARROWS[key]) return this.#step(ARROWS[key], event.shiftKey ? FAR_PX : STEP_PX);
    if (key === "+" || key === "=" || key === "-") {
      this.view.zoom(key === "-" ? 1 / 1.5 : 1.5, this.cursor ?? undefined);
      this.on.moved();
      return true;
    }
    if (key === "Escape" && this.places.length) return this.cancel(), true;
    if (key === "Backspace" && this.places.length) {
      this.places.pop();
      this.on.change();
      return true;
    }
    if (this.tool === "move" || (key !== "Enter" && key !== " ")) return false;
    this.cursor ??= [this.view.width / 2, this.view.height / 2];
    this.#set(this.cursor);
    const [lon, lat] = this.view.toPlace(this.cursor);
    this.on.said(`Set at ${lon.toFixed(this.view.decimals)}, ${lat.toFixed(this.view.decimals)}`);
    return true;
  }

  #step([dx, dy], step) {
    if (this.tool === "move") {
      this.view.pan(-dx * step * 3, -dy * step * 3);
      this.on.moved();
      return true;
    }
    const [x, y] = this.cursor ?? [this.view.width / 2, this.view.height / 2];
    const wanted = [x + dx * step, y + dy * step];
    // At the rim the map moves instead.
    const { width, height } = this.view;
    this.cursor = [Math.max(0, Math.min(width, wanted[0])), Math.max(0, Math.min(height, wanted[1]))];
    const over = [wanted[0] - this.cursor[0], wanted[1] - this.cursor[1]];
    if (over[0] || over[1]) {
      this.view.pan(-over[0], -over[1]);
      this.on.moved();
    }
    if (this.places.length) this.next = this.view.toPlace(this.cursor);
    this.on.at(this.view.toPlace(this.cursor));
    this.on.change();
    return true;
  }
}
