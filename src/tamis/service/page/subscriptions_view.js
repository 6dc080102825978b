// Subscriptions: listed, searched, paused, deleted; edited in the view of the filter.

import { changeSubscription, deleteSubscription, listSubscriptions } from "/page/api.js";
import { announce, button, confirmed, debounced, field, h, refill, toast } from "/page/elements.js";
import { filterText, moment, plural } from "/page/format.js";
import { session } from "/page/session.js";
import { TRANSPORTS } from "/page/transports.js";

export function subscriptionsView() {
  const search = h("input", { type: "search", autocomplete: "off", placeholder: "in ids and filters" });
  const list = h("ul", { class: "subscriptions", "aria-label": "Subscriptions" });
  const more = button("Load more", () => load(more.dataset.cursor), { hidden: true });
  const said = h("p", { class: "note bad", role: "alert", hidden: true });
  const empty = h("div", { class: "empty", hidden: true });
  let asking = null;

  async function load(cursor = "") {
    asking?.abort();
    asking = new AbortController();
    try {
      const page = await listSubscriptions(search.value.trim(), cursor, asking.signal);
      const cards = page.items.map((one) => subscriptionCard(one, onGone));
      if (cursor) list.append(...cards);
      else refill(list, cards);
      more.hidden = page.next === null;
      more.dataset.cursor = page.next ?? "";
      said.hidden = true;
      describe();
    } catch (error) {
      if (error.name === "AbortError") return;
      said.hidden = false;
      said.textContent = error.message;
    }
  }

  function describe() {
    const n = list.childElementCount;
    empty.hidden = n > 0;
    refill(empty, search.value.trim()
      ? h("p", {}, "No subscription has this in its id or filter.")
      : [h("p", {}, "You have no subscriptions yet."),
        h("a", { class: "button", href: "#/filter" }, "Write a filter")]);
    if (search.value.trim()) announce(`${plural(n, "subscription")} found`);
  }

  function onGone(card) {
    const next = card.nextElementSibling ?? card.previousElementSibling;
    card.remove();
    (next?.querySelector("button") ?? search).focus();
    describe();
  }

  search.addEventListener("input", debounced(200, () => load()));
  return {
    element: h("section", { "aria-labelledby": "subscriptions-title" },
      h("div", { class: "view-head" },
        h("h1", { id: "subscriptions-title" }, session.isAdmin ? "All subscriptions" : "Your subscriptions")),
      h("div", { class: "stack" },
        h("div", { class: "narrow" }, field("Search", search)),
        said, empty, list, h("div", { class: "row" }, more))),
    show: () => load(),
    hide: () => asking?.abort(),
  };
}

/** What of a subscription's settings is worth a chip. */
function chips(saved) {
  const { schedule, rate_cap: cap, ...rest } = saved.delivery;
  const ways = TRANSPORTS.filter(({ name }) => rest[name]);
  return [
    saved.is_paused && h("span", { class: "chip warn" }, "paused"),
    h("span", { class: "chip" }, `priority ${saved.priority}`),
    h("span", { class: "chip" }, schedule ?? "immediate"),
    cap && h("span", { class: "chip" }, `at most ${cap}`),
    ways.map(({ name }) => h("span", { class: "chip" }, name)),
    saved.location && h("span", { class: "chip" }, `${saved.area} of ${saved.radius_m} m`),
    session.isAdmin && h("span", { class: "chip" }, saved.owner),
  ];
}

function subscriptionCard(saved, onGone) {
  const path = encodeURIComponent(saved.id);
  const card = h("li", { class: "card subscription", "data-id": saved.id });
  const problem = h("p", { class: "note bad", role: "alert", hidden: true });

  async function attempt(action) {
    try {
      await action();
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error.status === 412
        ? "It was changed meanwhile, here or elsewhere. Search again to see how it is now."
        : error.message;
    }
  }

  async function setPaused() {
    saved = await changeSubscription(saved.id, { is_paused: !saved.is_paused }, saved.etag);
    draw();
    card.querySelector(".pause").focus();
    announce(`${saved.id} ${saved.is_paused ? "is paused" : "goes on"}`);
  }

  async function remove() {
    if (!(await confirmed(`Delete ${saved.id}? It will match nothing any more.`, "Delete"))) return;
    await deleteSubscription(saved.id, saved.etag);
    toast(`${saved.id} is deleted`);
    onGone(card);
  }

  function draw() {
    problem.hidden = true;
    refill(card,
      h("div", { class: "row" }, h("h2", { class: "mono" }, saved.id),
        h("small", { class: "end" }, "changed ", h("time", { datetime: saved.updated_at }, moment(saved.updated_at)))),
      h("pre", { class: "filter-text" }, filterText(saved)),
      h("div", { class: "row" }, chips(saved)),
      problem,
      h("div", { class: "row" },
        h("a", { class: "button", href: `#/filter/${path}`, "aria-label": `Edit ${saved.id}` }, "Edit"),
        button(saved.is_paused ? "Resume" : "Pause", () => attempt(setPaused),
          { class: "pause", "aria-label": `${saved.is_paused ? "Resume" : "Pause"} ${saved.id}` }),
        h("a", { class: "button", href: `#/feed/${path}`, "aria-label": `Matches of ${saved.id}` }, "Matches"),
        button("Delete", () => attempt(remove), { class: "bad end", "aria-label": `Delete ${saved.id}` })));
  }
  draw();
  return card;
}
