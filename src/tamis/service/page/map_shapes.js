// Boxes, circles and polygons: as outlines on the map, and as clauses of the filter language.

import { wrapped } from "/page/map_view.js";

const EARTH_M = 6_371_008.8;
const RADIANS = Math.PI / 180;
const RESERVED = new Set(("and between case current_catalog current_date current_role current_schema current_time "
  + "current_timestamp current_user else end escape false in is like localtime localtimestamp not null or select "
  + "session_user then true when").split(" "));

/** Great-circle metres by the haversine formula, as the language defines them. */
function metresBetween([lon1, lat1], [lon2, lat2]) {
  const a = Math.sin(((lat2 - lat1) * RADIANS) / 2) ** 2
    + Math.cos(lat1 * RADIANS) * Math.cos(lat2 * RADIANS) * Math.sin(((lon2 - lon1) * RADIANS) / 2) ** 2;
  return 2 * EARTH_M * Math.asin(Math.min(1, Math.sqrt(a)));
}

// -- shapes from places

const rounded = (value, decimals) => Number(value.toFixed(decimals));

/** Two corners may be given beyond ±180°: then the box spans that line. */
export function boxOf([lon1, lat1], [lon2, lat2], decimals) {
  const isAround = Math.abs(lon2 - lon1) >= 360;
  const [west, east] = isAround ? [-180, 180] : [Math.min(lon1, lon2), Math.max(lon1, lon2)].map(wrapped);
  const [south, north] = [Math.min(lat1, lat2), Math.max(lat1, lat2)];
  const [w, s, e, n] = [west, south, east, north].map((value) => rounded(value, decimals));
  return { kind: "box", west: w, south: s, east: e, north: n };
}

export function circleOf(center, edge, decimals) {
  const [lon, lat] = [rounded(wrapped(center[0]), decimals), rounded(center[1], decimals)];
  const metres = metresBetween(center, edge);
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(metres, 1))) - 2);
  return { kind: "circle", lon, lat, metres: Math.max(1, Math.round(metres / step) * step) };
}

/** null if it crosses ±180°, which no polygon of the language can. */
export function polygonOf(places, decimals) {
  const turn = 360 * Math.round(places[0][0] / 360);
  const points = places.map(([lon, lat]) => [rounded(lon - turn, decimals), rounded(lat, decimals)]);
  return points.some(([lon]) => Math.abs(lon) > 180) ? null : { kind: "polygon", rings: [points] };
}

/** The rings of a shape, as places; those of a box that spans ±180° go beyond it. */
export function outline(shape) {
  if (shape.kind === "polygon") return shape.rings;
  if (shape.kind === "box") {
    const { west, south, north } = shape;
    const east = shape.east < west ? shape.east + 360 : shape.east;
    return [[[west, south], [east, south], [east, north], [west, north]]];
  }
  const rim = Array.from({ length: 96 }, (_, n) => destination(shape, (n * 360) / 96));
  return [Math.abs(shape.lat) + shape.metres / EARTH_M / RADIANS < 90 ? rim : aroundPole(shape, rim)];
}

/** The rim of a circle with a pole in it, from 180° west of its centre to 180° east, then the pole. */
function aroundPole({ lon, lat }, rim) {
  const pole = lat < 0 ? -90 : 90;
  const ordered = rim.map(([at, height]) => [lon + wrapped(at - lon), height]).sort(([a], [b]) => a - b);
  const behind = ordered[0][1];
  return [[lon - 180, pole], [lon - 180, behind], ...ordered, [lon + 180, behind], [lon + 180, pole]];
}

function destination({ lon, lat, metres }, bearing) {
  const [angle, course, from] = [metres / EARTH_M, bearing * RADIANS, lat * RADIANS];
  const to = Math.asin(Math.sin(from) * Math.cos(angle) + Math.cos(from) * Math.sin(angle) * Math.cos(course));
  const turn = Math.atan2(
    Math.sin(course) * Math.sin(angle) * Math.cos(from), Math.cos(angle) - Math.sin(from) * Math.sin(to));
  return [lon + turn / RADIANS, to / RADIANS];
}

export function describe(shape) {
  if (shape.kind === "box") return `Box from ${shape.west}, ${shape.south} to ${shape.east}, ${shape.north}`;
  if (shape.kind === "circle") return `Circle of ${metresText(shape.metres)} around ${shape.lon}, ${shape.lat}`;
  return `Polygon with ${shape.rings[0].length} corners`;
}

function metresText(metres) {
  const [value, unit] = metres >= 1000 ? [metres / 1000, "km"] : [metres, "m"];
  return `${Number(value.toPrecision(3))} ${unit}`;
}

// -- clauses

function nameText(attribute) {
  const isPlain = /^[\p{L}_][\p{L}\p{Nd}_]*$/u.test(attribute) && !RESERVED.has(attribute.toLowerCase());
  return isPlain ? attribute : `"${attribute.replaceAll('"', '""')}"`;
}

const closed = (rings) => rings.map((ring) => [...ring, ring[0]]);
const ringText = (ring) => `(${ring.map((at) => at.join(" ")).join(", ")})`;
const wkt = (rings) => `POLYGON (${closed(rings).map(ringText).join(", ")})`;
const corners = ({ west, south, east, north }) => [west, south, east, north];

/** The clause for a shape in a spelling: text, or for JSON an object. */
export function clauseOf(shape, attribute, spelling) {
  const { kind, lon, lat, metres, rings } = shape;
  if (spelling === "json") {
    if (kind === "box") return { attribute, op: "box", box: corners(shape) };
    if (kind === "circle") return { attribute, op: "distance", center: [lon, lat], metres };
    return { attribute, op: "within", polygon: { type: "Polygon", coordinates: closed(rings) } };
  }
  if (spelling === "query") {
    const name = encodeURIComponent(attribute);
    if (kind === "box") return `${name}_box=${corners(shape)}`;
    if (kind === "circle") return `${name}_near=${lon},${lat},${metres}`;
    return `${name}_within=${encodeURIComponent(wkt(rings))}`;
  }
  const name = nameText(attribute);
  if (kind === "box") return `box(${name}, ${corners(shape).join(", ")})`;
  if (kind === "circle") return `distance(${name}, ${lon}, ${lat}) <= ${metres}`;
  return `within(${name}, '${wkt(rings)}')`;
}

/** A filter with a clause: instead of a former one if that still stands in it, else beside it. */
export function withClause(text, spelling, clause, former) {
  if (spelling === "json") return jsonWithClause(text, clause, former);
  if (former && text.includes(former)) return text.replace(former, () => clause);
  if (!text.trim()) return clause;
  if (spelling === "query") return `${text.trim()}&${clause}`;
  // On a line of its own: the one before may end in a comment.
  return /\bor\b/i.test(text) ? `(${text.trimEnd()}\n)\nAND ${clause}` : `${text.trimEnd()}\nAND ${clause}`;
}

function jsonWithClause(text, clause, former) {
  const same = (one) => former && JSON.stringify(one) === JSON.stringify(former);
  const held = text.trim() ? JSON.parse(text) : null;
  let made = { and: [held, clause] };
  if (held === null || same(held)) made = clause;
  else if (Array.isArray(held.and)) {
    made = { and: [...held.and.filter((one) => !same(one)), clause] };
  }
  return JSON.stringify(made, null, 2);
}

const NAME = String.raw`("(?:[^"]|"")*"|[^\s,()"]+)`;
const NUMBER = String.raw`(-?[\d.]+(?:e[-+]?\d+)?)`;
const BOX = new RegExp(String.raw`\bbox\(${NAME}, ${NUMBER}, ${NUMBER}, ${NUMBER}, ${NUMBER}\)`, "g");
const CIRCLE = new RegExp(String.raw`\bdistance\(${NAME}, ${NUMBER}, ${NUMBER}\) <=? ${NUMBER}`, "g");
const WITHIN = new RegExp(String.raw`\bwithin\(${NAME}, '([^']*)'\)`, "g");

/** The attribute of the first shape in a filter that the service wrote as SQL; null if none. */
export function attributeIn(sql) {
  const found = new RegExp(String.raw`\b(?:box|distance|within)\(${NAME}, `).exec(sql)?.[1] ?? null;
  return found?.startsWith('"') ? found.slice(1, -1).replaceAll('""', '"') : found;
}

/** The shapes in a filter that the service wrote as SQL. */
export function shapesIn(sql) {
  const found = [];
  for (const [, , ...numbers] of sql.matchAll(BOX)) {
    const [west, south, east, north] = numbers.map(Number);
    found.push({ kind: "box", west, south, east, north });
  }
  for (const [, , ...numbers] of sql.matchAll(CIRCLE)) {
    const [lon, lat, metres] = numbers.map(Number);
    found.push({ kind: "circle", lon, lat, metres });
  }
  for (const [, , text] of sql.matchAll(WITHIN)) {
    const rings = [...text.matchAll(/\(([^()]+)\)/g)].map(([, ring]) =>
      ring.split(",").map((at) => at.trim().split(/\s+/).map(Number)).slice(0, -1)); // closed anyway
    if (rings.length) found.push({ kind: "polygon", rings });
  }
  return found;
}
