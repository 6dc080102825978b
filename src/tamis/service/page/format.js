// Numbers, times and values as people read them.

const WHOLE = new Intl.NumberFormat();
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

const UNKNOWN = "–";
const isKnown = (value) => typeof value === "number" && Number.isFinite(value);

export const count = (value) => (isKnown(value) ? WHOLE.format(value) : UNKNOWN);

/** Three digits are enough: 0.125, 12.5, 1,250. */
export function figure(value) {
  if (!isKnown(value)) return UNKNOWN;
  const size = Math.abs(value);
  const digits = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return new Intl.NumberFormat(undefined, { maximumFractionDigits: digits }).format(value);
}

export function share(value) {
  if (!isKnown(value)) return UNKNOWN;
  const percent = value * 100;
  return percent > 0 && percent < 0.1 ? "< 0.1 %" : `${figure(percent)} %`;
}

export function seconds(value) {
  if (!isKnown(value)) return UNKNOWN;
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 120) return `${figure(value)} s`;
  return value < 7200 ? `${Math.round(value / 60)} min` : `${figure(value / 3600)} h`;
}

/** A moment, short if it is of today. */
export function moment(text) {
  const at = new Date(text);
  if (!text || Number.isNaN(at.getTime())) return UNKNOWN;
  return at.toDateString() === new Date().toDateString() ? CLOCK.format(at) : MOMENT.format(at);
}

/** The value of an attribute as one line. */
export function valueText(value) {
  if (Array.isArray(value)) return value.map(valueText).join(", ");
  if (value === null || typeof value !== "object") return String(value);
  if (value.type === "Point") return value.coordinates.map((one) => figure5(one)).join(", ");
  if (value.$timestamp) return value.$timestamp;
  if (value.$number) return value.$number;
  return JSON.stringify(value);
}

const figure5 = (value) => String(Math.round(value * 1e5) / 1e5);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** The filter of a subscription as its owner wrote it. */
export function filterText(saved) {
  return typeof saved.filter === "string" ? saved.filter : JSON.stringify(saved.filter, null, 2);
}
