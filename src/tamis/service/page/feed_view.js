// The live feed: notifications as they come, with the reason for each match.

import { explain, preview, readSubscription } from "/page/api.js";
import { announce, button, field, h, refill } from "/page/elements.js";
import { eventCard } from "/page/event_card.js";
import { moment, plural } from "/page/format.js";
import { notificationStream as stream } from "/page/notification_stream.js";
import { session } from "/page/session.js";

const FEW = 5;
const FROM_PAYLOAD = "From the payload, and the filter as it is now: the event itself is no longer remembered.";
const STATES = {
  off: ["Paused", ""],
  connecting: ["Connecting…", "warn"],
  live: ["Live", "good"],
  waiting: ["Connection lost, trying again…", "warn"],
  refused: ["Refused", "bad"],
};

export function feedView() {
  const state = h("span", { class: "chip", id: "feed-state", role: "status" });
  const pause = button("Pause", () => (stream.state === "off" ? stream.start() : stream.pause()));
  const only = h("input", { type: "search", placeholder: "all", autocomplete: "off", oninput: () => draw() });
  const list = h("ol", { class: "notifications", "aria-label": "Notifications" });
  const older = button("Older", async () => {
    older.disabled = true;
    try {
      await stream.loadOlder();
      draw();
    } finally {
      older.disabled = false;
    }
  });
  const empty = h("p", { class: "empty" });
  let isShown = false;

  const isWanted = (one) => one.subscription_id.toLowerCase().includes(only.value.trim().toLowerCase());

  function draw() {
    refill(list, stream.items.filter(isWanted).map(notificationCard));
    update();
  }

  function update() {
    const [text, kind] = STATES[stream.state];
    if (state.textContent !== text) state.textContent = text;
    state.className = `chip ${kind}`;
    pause.textContent = stream.state === "off" ? "Go on" : "Pause";
    older.hidden = stream.older === null;
    empty.hidden = list.childElementCount > 0;
    empty.textContent = stream.items.length
      ? "None of these subscriptions matches what you typed."
      : "Nothing has matched yet. Matches appear here by themselves.";
  }

  let drawn = null;
  stream.addEventListener("change", () => {
    if (!isShown) return;
    if (drawn !== stream.items) draw(); // those that were there before
    drawn = stream.items;
    update();
    if (stream.unseen) stream.see();
  });
  stream.addEventListener("arrival", ({ detail }) => {
    if (!isShown || drawn !== stream.items || !isWanted(detail)) return;
    const card = notificationCard(detail);
    card.classList.add("fresh");
    list.prepend(card);
    while (list.childElementCount > stream.items.length) list.lastElementChild.remove();
    announce(`New: ${plural(detail.n_matches, "match", "matches")} of ${detail.subscription_id}`);
  });

  return {
    element: h("section", { "aria-labelledby": "feed-title" },
      h("div", { class: "view-head" }, h("h1", { id: "feed-title" }, "Live matches"), state,
        h("span", { class: "end" }, pause)),
      h("div", { class: "stack" },
        h("div", { class: "narrow" }, field("Only subscriptions whose id has", only)),
        empty, list, h("div", { class: "row" }, older))),
    show(id) {
      isShown = true;
      if (id !== null) only.value = id;
      drawn = stream.items;
      draw();
      stream.see();
    },
    hide() {
      isShown = false;
    },
  };
}

function notificationCard(told) {
  const matches = h("div", { class: "events" }, told.matches.slice(0, FEW).map((one) => matchCard(told, one)));
  const rest = told.matches.length - FEW;
  const all = rest > 0 && button(`Show ${rest} more`, () => {
    matches.append(...told.matches.slice(FEW).map((one) => matchCard(told, one)));
    all.remove();
  });
  return h("li", { class: "card notification", "data-number": told.number },
    h("div", { class: "row notification-head" },
      h("a", { href: `#/filter/${encodeURIComponent(told.subscription_id)}`, class: "mono" }, told.subscription_id),
      h("span", { class: "chip" }, `priority ${told.priority}`),
      told.parts > 1 && h("span", { class: "chip" }, `part ${told.part} of ${told.parts}`),
      told.held_back > 0
        && h("span", { class: "chip warn" }, `${plural(told.held_back, "match", "matches")} held back`),
      session.isAdmin && h("span", { class: "chip" }, told.owner),
      h("small", { class: "end" }, h("time", { datetime: told.due }, moment(told.due)))),
    matches, all);
}

/** A match as an event: the payload is what a subscriber is told of it. */
function matchCard(told, match) {
  const { text, held } = payloadOf(match);
  const event = { id: match.event_id, time: match.event_time, attributes: held ?? (text ? { payload: text } : {}) };
  return eventCard(event, () => why(told.subscription_id, match.event_id, held));
}

function payloadOf(match) {
  if (!match.payload) return { text: "", held: null };
  const bytes = Uint8Array.from(atob(match.payload), (one) => one.charCodeAt(0));
  const text = new TextDecoder().decode(bytes);
  try {
    const held = JSON.parse(text);
    const isObject = held !== null && typeof held === "object" && !Array.isArray(held);
    return { text, held: isObject ? held : null };
  } catch {
    return { text, held: null };
  }
}

/** The event itself if the service remembers it; else its payload, which need not be all of it. */
async function why(subscriptionId, eventId, payload) {
  const saved = await readSubscription(subscriptionId);
  const { filter, spelling, location, radius_m, area } = saved;
  const asked = { filter, spelling, n_events: 10_000, n_examples: 100 };
  if (location) Object.assign(asked, { location, radius_m, area });
  const recent = (await preview(asked)).examples.find((one) => one.id === eventId);
  if (!recent && !payload) {
    throw new Error("The service no longer remembers this event, and its payload does not say what it was.");
  }
  const explained = await explain({ id: subscriptionId, event: recent ?? { id: eventId, attributes: payload } });
  return { explained, note: recent ? null : FROM_PAYLOAD };
}
