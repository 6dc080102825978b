// For operators: how much comes in and goes out, what lags, what is too broad, what failed.

import { readOperations } from "/page/api.js";
import { chart } from "/page/chart.js";
import { deadDeliveries } from "/page/dead_deliveries.js";
import { h, refill } from "/page/elements.js";
import { count, figure, moment, seconds, share } from "/page/format.js";

const EVERY_MS = 2_000;
const ELSEWHERE = "The figures of the pipeline are not known here: it does not run, or runs elsewhere.";

export function operationsView() {
  const tiles = h("dl", { class: "tiles" });
  const said = h("p", { class: "note", role: "status", hidden: true });
  const charts = [
    chart("Events and matches a second", [
      { name: "events", field: "events_per_s", kind: "first" },
      { name: "matches", field: "matches_per_s", kind: "second" }], figure),
    chart("Lag", [{ name: "behind", field: "lag_s", kind: "first" }], seconds),
    chart("Deliveries a second", [{ name: "sent", field: "deliveries_per_s", kind: "first" }], figure),
  ];
  const broadest = h("div");
  const costliest = h("div");
  const destinations = h("div");
  const dead = deadDeliveries();
  const updated = h("small", { class: "end" });
  const body = h("div", { class: "stack", hidden: true },
    tiles,
    h("div", { class: "charts" }, charts.map((one) => one.element)),
    h("div", { class: "pair" },
      h("section", { class: "card" }, h("h2", {}, "Broadest subscriptions"), broadest),
      h("section", { class: "card" }, h("h2", {}, "Slowest subscriptions"), costliest)),
    h("section", { class: "card" }, h("h2", {}, "Destinations that fail"), destinations),
    dead.element);
  let timer = 0;
  let asking = null;
  let nDead = null;

  async function look() {
    asking = new AbortController();
    try {
      show(await readOperations(asking.signal));
    } catch (error) {
      if (error.name === "AbortError") return;
      said.hidden = false;
      if (error.status === 404) {
        body.hidden = true;
        said.textContent = "Not available: this service does not tell its operations.";
        return;
      }
      said.textContent = error.message;
    }
    timer = setTimeout(look, EVERY_MS);
  }

  function show(told) {
    said.hidden = typeof told.events?.per_s === "number";
    if (!said.hidden && said.textContent !== ELSEWHERE) said.textContent = ELSEWHERE;
    body.hidden = false;
    updated.textContent = `as of ${moment(told.time)}`;
    const sent = told.deliveries ?? {};
    refill(tiles,
      tile("Events a second", figure(told.events?.per_s), `${count(told.events?.total)} in all`),
      tile("Matches a second", figure(told.matches?.per_s), `${count(told.matches?.total)} in all`),
      tile("Lag", seconds(told.lag_s), "the oldest unread event waits", told.lag_s > 60 && "warn"),
      tile("Subscriptions", count(told.index?.n_subscriptions), `index version ${count(told.index?.version)}`),
      tile("Waiting to be sent", count(sent.waiting),
        sent.oldest_waiting_s === 0 ? "none is overdue" : `longest overdue: ${seconds(sent.oldest_waiting_s)}`),
      tile("Given up", count(sent.dead),
        `${count(sent.sent)} sent, ${count(sent.failed)} failed attempts`, sent.dead > 0 && "bad"));
    for (const one of charts) one.draw(told.history ?? []);
    refill(broadest, ranking(told.broadest, "share", "Of the events", share));
    refill(costliest, ranking(told.costliest, "cost_us", "µs an event", figure));
    refill(destinations, destinationTable(sent.destinations));
    if (sent.dead !== nDead) dead.load();
    nDead = sent.dead;
  }

  return {
    element: h("section", { "aria-labelledby": "operations-title" },
      h("div", { class: "view-head" }, h("h1", { id: "operations-title" }, "Operations"), updated),
      h("div", { class: "stack" }, said, body)),
    show() {
      clearTimeout(timer);
      asking?.abort();
      nDead = null;
      look();
    },
    hide() {
      clearTimeout(timer);
      asking?.abort();
    },
  };
}

function tile(name, value, more, kind = "") {
  return h("div", { class: `card tile ${kind || ""}` }, h("dt", {}, name),
    h("dd", {}, h("strong", {}, value), h("small", {}, more)));
}

const titles = (...texts) => h("thead", {}, h("tr", {}, texts.map((text) => h("th", { scope: "col" }, text))));

/** The subscriptions that stand out, each with a bar beside the largest. */
function ranking(rows, name, title, format) {
  if (!rows) return h("p", { class: "soft" }, "Not known.");
  if (!rows.length) return h("p", { class: "soft" }, "None stands out.");
  const most = Math.max(...rows.map((one) => one[name] ?? 0)) || 1;
  return h("table", {},
    titles("Subscription", title, "Matches"),
    h("tbody", {}, rows.map((one) => h("tr", {},
      h("td", {}, h("a", { class: "mono", href: `#/filter/${encodeURIComponent(one.id)}` }, one.id)),
      h("td", {}, h("meter", { max: most, value: one[name] ?? 0, "aria-hidden": "true" }), " ", format(one[name])),
      h("td", { class: "number" }, count(one.matches))))));
}

function destinationTable(rows) {
  if (!rows) return h("p", { class: "soft" }, "Not known.");
  if (!rows.length) return h("p", { class: "soft" }, "None: all took what was sent last.");
  return h("table", {},
    titles("Destination", "State", "Failures in a row"),
    h("tbody", {}, rows.map((one) => h("tr", {},
      h("td", {}, one.destination),
      h("td", {}, h("span", { class: `chip ${one.is_open ? "bad" : "warn"}` }, one.is_open ? "resting" : "still tried")),
      h("td", { class: "number" }, count(one.failures))))));
}
