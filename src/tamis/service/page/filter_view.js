// The filter: written, drawn, tried on recent events, and saved with delivery settings.

import { changeSubscription, createSubscription, readSubscription } from "/page/api.js";
import { field, h, toast } from "/page/elements.js";
import { deliveryForm } from "/page/delivery_form.js";
import { filterCheck } from "/page/filter_check.js";
import { filterText } from "/page/format.js";
import { mapPanel } from "/page/map_panel.js";
import { nearForm } from "/page/near_form.js";

const PRIORITIES = { 0: "0, the highest", 9: "9, the lowest" };
const EXAMPLES = {
  sql: "brand = 'Huawei' AND price < 3300",
  query: "brand=Huawei&price_below=3300",
  json: '{"attribute": "price", "op": "<", "value": 3300}',
};

// Not randomUUID: that is only there with TLS, or on this machine.
const randomName = () => crypto.getRandomValues(new Uint32Array(4)).join("-");

export function filterView() {
  const title = h("h1", { id: "filter-title" });
  const text = h("textarea", {
    rows: 5, spellcheck: "false", autocapitalize: "off", autocomplete: "off", id: "filter",
    "aria-describedby": "filter-problem check-status",
  });
  const spelling = h("select", { "aria-label": "Spelling", onchange: () => { placeholder(); check.check(); } },
    h("option", { value: "sql" }, "SQL"),
    h("option", { value: "query" }, "Query"),
    h("option", { value: "json" }, "JSON"));
  const id = h("input", { autocomplete: "off", spellcheck: "false", placeholder: "made for you" });
  const idField = field("Name", id, "its id, for the list and the feed");
  const priority = h("select", {}, Array.from({ length: 10 }, (_, n) =>
    h("option", { value: n, selected: n === 5 }, PRIORITIES[n] ?? String(n))));
  const delivery = deliveryForm();
  const problem = h("p", { class: "note bad", role: "alert", hidden: true });
  const save = h("button", { class: "main", type: "submit" }, "Save");
  const cancel = h("a", { class: "button", href: "#/subscriptions", onclick: () => write(null) }, "Cancel");
  let edited = null; // the subscription as it was read, while one is edited
  let asRead = ""; // the form as it was then
  let isOutdated = false; // whether the service refused to save over a newer version
  let attempt = { body: null, once: null }; // to create something, and the name of that attempt

  const near = nearForm(() => check.check());
  const draft = () => ({ filter: text.value, spelling: spelling.value, ...near.read() });
  const map = mapPanel({
    read: () => ({ text: text.value, spelling: spelling.value }),
    write(made) {
      text.value = made;
      check.check();
    },
  });
  const check = filterCheck(text, draft, (told) => map.showFilter(told?.sql ?? null));

  function placeholder() {
    text.placeholder = EXAMPLES[spelling.value];
  }

  const held = () => ({
    filter: text.value, spelling: spelling.value, priority: Number(priority.value), delivery: delivery.read(),
    ...(edited ? near.changes() : near.read()),
  });

  /** The form as a text that changes with it. */
  function saidNow() {
    try {
      return JSON.stringify(held());
    } catch (error) {
      return error.message;
    }
  }

  function say(error) {
    isOutdated = error?.status === 412;
    problem.hidden = error === null;
    problem.textContent = error === null ? "" : isOutdated
      ? "It was changed meanwhile, here or elsewhere. Open it again to see how it is now." : error.message;
  }

  function write(saved) {
    edited = saved;
    title.textContent = saved ? `Edit ${saved.id}` : "New filter";
    text.value = saved ? filterText(saved) : "";
    spelling.value = saved?.spelling ?? "sql";
    id.value = saved?.id ?? "";
    idField.hidden = Boolean(saved);
    cancel.hidden = !saved;
    priority.value = String(saved?.priority ?? 5);
    delivery.write(saved?.delivery ?? {});
    near.write(saved);
    save.textContent = saved ? "Save changes" : "Save";
    say(null);
    placeholder();
    asRead = saidNow();
    attempt = { body: null, once: null };
    check.check();
  }

  async function submit(event) {
    event.preventDefault();
    save.disabled = true;
    say(null);
    try {
      const saved = edited
        ? await changeSubscription(edited.id, held(), edited.etag)
        : await create(id.value.trim() ? { id: id.value.trim(), ...held() } : held());
      toast(`${saved.id} is saved`);
      write(null);
      location.hash = "#/subscriptions";
    } catch (error) {
      say(error);
    } finally {
      save.disabled = false;
    }
  }

  /** Saved once, also if the answer got lost and the same is tried again. */
  function create(body) {
    const said = JSON.stringify(body);
    if (attempt.body !== said) attempt = { body: said, once: randomName() };
    return createSubscription(body, attempt.once);
  }

  async function open(wanted) {
    try {
      write(await readSubscription(wanted));
    } catch (error) {
      write(null);
      say(error);
    }
  }

  const form = h("form", { class: "columns", onsubmit: submit, onkeydown: (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  } },
  h("div", { class: "card write" },
    h("div", { class: "row filter-head" }, h("label", { htmlFor: "filter" }, "Events I want to hear about"),
      h("span", { class: "end" }, spelling)),
    text,
    h("div", { class: "row under" }, check.status),
    check.place, map.element, near.element),
  h("aside", { class: "card tried", "aria-label": "Recent events" },
    h("h2", {}, "On recent events"), check.figures, check.examples),
  h("div", { class: "card told" },
    h("h2", {}, "How to be told"),
    h("div", { class: "fields" }, idField, field("Priority", priority)),
    delivery.element,
    problem,
    h("div", { class: "row save" }, save, cancel, h("small", { class: "end" }, "Ctrl + Enter saves"))));

  write(null);
  return {
    element: h("section", { "aria-labelledby": "filter-title" },
      h("div", { class: "view-head" }, title), form),
    show(wanted) {
      // Who only looked elsewhere finds the draft again.
      const isDraft = wanted === edited?.id && saidNow() !== asRead && !isOutdated;
      if (wanted !== null && !isDraft) open(wanted);
      else if (wanted === null && edited) write(null);
      map.show();
    },
    hide: () => check.stop(),
  };
}
