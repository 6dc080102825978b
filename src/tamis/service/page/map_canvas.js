// The map as it is drawn: a grid, cities to find one's way, events, areas, and what is being drawn.

import { outline } from "/page/map_shapes.js";
import { wrapped } from "/page/map_view.js";
import { PLACES } from "/page/places.js";

const BY_RANK = PLACES.toSorted((one, other) => one[3] - other[3]);
const STEPS = [60, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
const LINE_PX = 70; // at least so far from each other
const CORNER_PX = 40; // where labels of both kinds would meet

const degrees = (value, decimals, below, above) =>
  `${Math.abs(value).toFixed(decimals)}°${value < 0 ? below : value > 0 ? above : ""}`;

export class MapCanvas {
  /** `view` is what part is shown; `scene` gives points, found points, areas, draft and cursor. */
  constructor(canvas, view, scene) {
    Object.assign(this, { canvas, view, scene });
    this.pen = canvas.getContext("2d");
    this.asked = 0;
    new ResizeObserver(() => this.resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.view.resize(width, height);
    this.draw();
  }

  /** Draw once, however often it is asked for before the next frame. */
  draw() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.#drawNow();
    });
  }

  #colour(name) {
    return getComputedStyle(this.canvas).getPropertyValue(`--${name}`).trim();
  }

  #drawNow() {
    const { pen, view } = this;
    const { points, found, areas, shape, draft, cursor } = this.scene();
    this.ink = Object.fromEntries(["surface", "sunken", "line", "line-strong", "soft", "accent", "second", "text"]
      .map((name) => [name, this.#colour(name)]));
    pen.clearRect(0, 0, view.width, view.height);
    this.#drawGround();
    this.#drawGrid();
    for (const area of areas) {
      if (JSON.stringify(area) !== JSON.stringify(shape)) this.#drawShape(area, this.ink.second);
    }
    if (shape) this.#drawShape(shape, this.ink.accent);
    for (const at of points) this.#drawDot(at, 3, this.ink["line-strong"]);
    for (const at of found) this.#drawDot(at, 4.5, this.ink.accent);
    this.#drawPlaces();
    if (draft) this.#drawDraft(draft);
    if (cursor) this.#drawCursor(cursor);
  }

  #drawGround() {
    const [, top] = this.view.toExactPixel([0, 90]);
    const [, bottom] = this.view.toExactPixel([0, -90]);
    this.pen.fillStyle = this.ink.surface;
    this.pen.fillRect(0, top, this.view.width, bottom - top);
  }

  #drawGrid() {
    const { pen, view } = this;
    const step = STEPS.findLast((one) => one * view.scale >= LINE_PX) ?? STEPS[0];
    const decimals = Math.max(0, -Math.floor(Math.log10(step)));
    const { west, south, east, north } = view.bounds;
    pen.font = "11px system-ui, sans-serif";
    const [, top] = view.toExactPixel([0, 90]);
    const [, bottom] = view.toExactPixel([0, -90]);
    for (let n = Math.ceil(west / step); n * step <= east; n += 1) {
      const [x] = view.toExactPixel([n * step, 0]);
      const lon = wrapped(n * step);
      const isMain = n === 0 || Math.abs(Math.abs(lon) - 180) < step / 2;
      this.#line([x, Math.max(0, top)], [x, Math.min(view.height, bottom)], isMain);
      if (x > CORNER_PX) this.#label(degrees(lon, decimals, "W", "E"), x + 3, view.height - 5);
    }
    for (let n = Math.ceil(south / step); n * step <= north; n += 1) {
      const [, y] = view.toExactPixel([0, n * step]);
      this.#line([0, y], [view.width, y], n === 0);
      if (y < view.height - CORNER_PX / 2) this.#label(degrees(n * step, decimals, "S", "N"), 4, y - 3);
    }
  }

  #line([x1, y1], [x2, y2], isMain) {
    this.pen.strokeStyle = isMain ? this.ink["line-strong"] : this.ink.line;
    this.pen.lineWidth = 1;
    this.pen.beginPath();
    this.pen.moveTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
    this.pen.lineTo(Math.round(x2) + 0.5, Math.round(y2) + 0.5);
    this.pen.stroke();
  }

  #label(text, x, y) {
    this.pen.lineWidth = 3;
    this.pen.strokeStyle = this.ink.surface;
    this.pen.strokeText(text, x, y);
    this.pen.fillStyle = this.ink.soft;
    this.pen.fillText(text, x, y);
  }

  #drawPlaces() {
    const most = this.view.scale < 1.5 ? 1 : this.view.scale < 5 ? 2 : this.view.scale < 11 ? 3 : 4;
    this.pen.font = "12px system-ui, sans-serif";
    const taken = [];
    for (const [name, lon, lat, rank] of BY_RANK) {
      if (rank > most) break;
      const [x, y] = this.view.toPixel([lon, lat]);
      if (x < -80 || y < 0 || x > this.view.width || y > this.view.height) continue;
      const end = x + 10 + this.pen.measureText(name).width;
      if (taken.some((one) => x < one.end && end > one.x && Math.abs(y - one.y) < 14)) continue;
      taken.push({ x, y, end });
      this.pen.fillStyle = this.ink.soft;
      this.pen.fillRect(x - 1.5, y - 1.5, 3, 3);
      this.#label(name, x + 5, y + 4);
    }
  }

  /** A path around rings; each copy of it that the view holds, 360° apart. */
  #trace(rings, isClosed, paint) {
    const { west, east } = this.view.bounds;
    const lons = rings.flat().map(([lon]) => lon);
    const first = Math.floor((west - Math.max(...lons)) / 360);
    for (let turn = first; turn * 360 + Math.min(...lons) <= east; turn += 1) {
      this.pen.beginPath();
      for (const ring of rings) {
        ring.forEach(([lon, lat], n) => {
          this.pen[n ? "lineTo" : "moveTo"](...this.view.toExactPixel([lon + turn * 360, lat]));
        });
        if (isClosed) this.pen.closePath();
      }
      paint();
    }
  }

  #drawShape(shape, colour) {
    this.#trace(outline(shape), true, () => {
      this.pen.globalAlpha = 0.16;
      this.pen.fillStyle = colour;
      this.pen.fill("evenodd");
      this.pen.globalAlpha = 1;
      this.pen.lineWidth = 2;
      this.pen.strokeStyle = colour;
      this.pen.stroke();
    });
  }

  #drawDraft({ shape, places }) {
    if (shape) this.#drawShape(shape, this.ink.accent);
    this.#trace([places], false, () => {
      this.pen.setLineDash([5, 4]);
      this.pen.lineWidth = 2;
      this.pen.strokeStyle = this.ink.accent;
      this.pen.stroke();
      this.pen.setLineDash([]);
    });
    for (const at of places) this.#drawDot(at, 4, this.ink.accent, true);
  }

  #drawDot(at, radius, colour, isExact = false) {
    const [x, y] = isExact ? this.view.toExactPixel(at) : this.view.toPixel(at);
    this.pen.beginPath();
    this.pen.arc(x, y, radius, 0, 2 * Math.PI);
    this.pen.fillStyle = colour;
    this.pen.fill();
    this.pen.lineWidth = 1;
    this.pen.strokeStyle = this.ink.surface;
    this.pen.stroke();
  }

  #drawCursor([x, y]) {
    this.pen.strokeStyle = this.ink.text;
    this.pen.lineWidth = 1.5;
    this.pen.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      this.pen.moveTo(x + 4 * dx, y + 4 * dy);
      this.pen.lineTo(x + 13 * dx, y + 13 * dy);
    }
    this.pen.stroke();
  }
}
