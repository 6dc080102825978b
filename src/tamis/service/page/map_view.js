// Which part of the plane of longitude and latitude a canvas shows. The plane goes on at ±180°.

const LARGEST = 200_000; // pixels for a degree

export const wrapped = (lon) => ((((lon + 180) % 360) + 360) % 360) - 180;

export class MapView {
  lon = 10;
  lat = 30;
  scale = 3;
  width = 600;
  height = 360;

  resize(width, height) {
    Object.assign(this, { width, height });
    this.#setScale(this.scale, LARGEST);
    this.#limit();
  }

  /** Where a place is on the canvas: the copy of it that is nearest to the middle. */
  toPixel([lon, lat]) {
    const near = lon - 360 * Math.round((lon - this.lon) / 360);
    return this.toExactPixel([near, lat]);
  }

  toExactPixel([lon, lat]) {
    return [this.width / 2 + (lon - this.lon) * this.scale, this.height / 2 - (lat - this.lat) * this.scale];
  }

  /** The place under a pixel; beyond ±180° where the view is. */
  toPlace([x, y]) {
    const lat = this.lat + (this.height / 2 - y) / this.scale;
    return [this.lon + (x - this.width / 2) / this.scale, Math.max(-90, Math.min(90, lat))];
  }

  pan(dx, dy) {
    this.lon = wrapped(this.lon - dx / this.scale);
    this.lat += dy / this.scale;
    this.#limit();
  }

  /** Zoom so that what is under a pixel stays there. */
  zoom(factor, [x, y] = [this.width / 2, this.height / 2]) {
    const [lon, lat] = this.toPlace([x, y]);
    this.#setScale(this.scale * factor, LARGEST);
    this.lon = wrapped(lon - (x - this.width / 2) / this.scale);
    this.lat = lat - (this.height / 2 - y) / this.scale;
    this.#limit();
  }

  /** Show all of these places (`[lon, lat]` each), with some room around them. */
  fit(places) {
    if (!places.length) return;
    const lons = places.map(([lon]) => lon);
    const lats = places.map(([, lat]) => lat);
    const [west, east] = [Math.min(...lons), Math.max(...lons)];
    const [south, north] = [Math.min(...lats), Math.max(...lats)];
    const scale = Math.min(this.width / (east - west), this.height / (north - south)) / 1.4;
    this.#setScale(scale, 4_000);
    this.lon = wrapped((west + east) / 2);
    this.lat = (south + north) / 2;
    this.#limit();
  }

  /** What is shown: west, south, east, north; west may be below -180, east above 180. */
  get bounds() {
    const [west, north] = this.toPlace([0, 0]);
    const [east, south] = this.toPlace([this.width, this.height]);
    return { west, south, east, north };
  }

  /** How many decimals a pixel is worth. */
  get decimals() {
    return Math.max(1, Math.min(6, Math.ceil(Math.log10(this.scale)) + 1));
  }

  /** At the smallest scale the whole world is seen, once. */
  #setScale(wanted, most) {
    this.scale = Math.max(Math.min(this.width / 360, this.height / 180), Math.min(most, wanted));
  }

  #limit() {
    const half = this.height / 2 / this.scale;
    this.lat = half >= 90 ? 0 : Math.max(half - 90, Math.min(90 - half, this.lat));
  }
}
