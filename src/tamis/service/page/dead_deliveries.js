// Deliveries that were given up, and another try for them.

import { listDeadDeliveries, replayDeliveries } from "/page/api.js";
import { button, h, refill, toast } from "/page/elements.js";
import { moment, plural } from "/page/format.js";

export function deadDeliveries() {
  const rows = h("tbody");
  const titles = ["Subscription", "To", "Last problem", "Attempts", "When"];
  const table = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Failed deliveries" },
    h("table", {}, h("thead", {}, h("tr", {},
      h("th", {}, h("span", { class: "visually-hidden" }, "Choose")),
      titles.map((name) => h("th", { scope: "col" }, name)))), rows));
  const said = h("p", { class: "soft", role: "status" });
  const more = button("Load more", () => load(more.dataset.cursor), { hidden: true });
  const chosen = () => [...rows.querySelectorAll("input:checked")].map((box) => box.value);
  const some = button("Try the chosen again", () => replay({ ids: [...new Set(chosen())] }), { disabled: true });
  const all = button("Try all again", () => replay({ all: true }));

  rows.addEventListener("change", () => { some.disabled = chosen().length === 0; });

  async function load(cursor = "") {
    try {
      const page = await listDeadDeliveries(cursor);
      if (!cursor) refill(rows);
      rows.append(...page.items.map(row));
      more.hidden = !page.next;
      more.dataset.cursor = page.next ?? "";
      const isEmpty = rows.childElementCount === 0;
      table.hidden = all.hidden = some.hidden = isEmpty;
      some.disabled = chosen().length === 0;
      said.textContent = isEmpty ? "None: every delivery arrived, or is still being tried." : "";
    } catch (error) {
      table.hidden = all.hidden = some.hidden = more.hidden = true;
      said.textContent = error.status === 404 ? "Not available: this service does not list them." : error.message;
    }
  }

  async function replay(body) {
    some.disabled = all.disabled = true;
    try {
      const { replayed } = await replayDeliveries(body);
      toast(`${plural(replayed, "delivery", "deliveries")} will be tried again`);
      await load();
    } catch (error) {
      said.textContent = error.message;
    } finally {
      all.disabled = false;
      some.disabled = chosen().length === 0;
    }
  }

  return {
    element: h("section", { class: "card", "aria-labelledby": "dead-title" },
      h("h2", { id: "dead-title" }, "Deliveries that were given up"),
      said, table, h("div", { class: "row" }, some, all, more)),
    load,
  };
}

function row(one) {
  const name = `Choose ${one.subscription_id} to ${one.destination}`;
  const box = h("input", { type: "checkbox", value: one.notification_id, "aria-label": name });
  return h("tr", {},
    h("td", {}, box),
    h("td", { class: "mono" }, one.subscription_id),
    h("td", {}, h("span", { class: "chip" }, one.transport), " ", one.destination),
    h("td", {}, one.last_error ?? ""),
    h("td", { class: "number" }, String(one.attempts)),
    h("td", {}, moment(one.last_time)));
}
