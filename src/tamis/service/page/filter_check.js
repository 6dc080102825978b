// What the service says of a filter while it is written: where it is wrong, and what it accepts.

import { explain, preview } from "/page/api.js";
import { announce, button, debounced, h, refill } from "/page/elements.js";
import { eventCard } from "/page/event_card.js";
import { count, plural, share } from "/page/format.js";

const N_EVENTS = 1_000;
const N_EXAMPLES = 5;

/** Offsets count code points, as Python does; a textarea counts UTF-16. */
function offsetIn(text, offset) {
  return Array.from(text).slice(0, offset).join("").length;
}

/**
 * Checks `input` (a textarea) shortly after each change. `draft()` is what to ask of the service;
 * `onchecked` gets the answer, or null where there is none.
 */
export function filterCheck(input, draft, onchecked) {
  const status = h("div", { class: "check-status", id: "check-status" });
  const place = h("div", { id: "filter-problem" });
  const figures = h("div");
  const examples = h("div", { class: "events" });
  let asking = null;

  function clear() {
    asking?.abort();
    input.removeAttribute("aria-invalid");
    refill(place);
    refill(status, h("span", { class: "soft" }, "Write a filter to see what it accepts."));
    refill(figures, h("p", { class: "soft" }, "How often it would have matched shows here, with examples."));
    refill(examples);
    onchecked(null);
  }

  async function check() {
    asking?.abort();
    if (!input.value.trim()) return clear();
    asking = new AbortController();
    try {
      const told = await preview({ ...draft(), n_events: N_EVENTS, n_examples: N_EXAMPLES }, asking.signal);
      showValid(told);
    } catch (error) {
      if (error.name !== "AbortError") showProblem(error);
    }
  }

  function showValid(told) {
    input.removeAttribute("aria-invalid");
    refill(place);
    refill(status, h("span", { class: "chip good" }, "✓ valid"),
      told.n_conjunctions > 1 && h("small", {}, `${count(told.n_conjunctions)} alternatives in its normal form`));
    refill(figures,
      h("p", { class: "headline" }, h("strong", {}, count(told.n_matches)),
        ` of the last ${plural(told.n_events, "event")}`,
        told.share !== null && h("span", { class: "soft" }, ` · ${share(told.share)}`)),
      h("meter", { class: "share", max: 1, value: told.share ?? 0, "aria-label": "share of the recent events" }),
      told.warning && h("p", { class: "note warn" }, `Too broad: ${told.warning}`),
      told.n_events === 0 && h("p", { class: "soft" }, "No events have been published yet."));
    refill(examples, told.examples.length ? h("h3", {}, "The newest it accepts") : null,
      told.examples.map((event) => eventCard(event, async () => ({
        explained: await explain({ filter: told.sql, spelling: "sql", event }),
      }))));
    announce(`Valid. ${count(told.n_matches)} of ${count(told.n_events)} recent events match.`);
    onchecked(told);
  }

  function showProblem(error) {
    const { line, column, offset, caret, path, hint } = error.told ?? {};
    input.setAttribute("aria-invalid", "true");
    const where = path ? `at ${path}` : line ? `line ${line}, column ${column}` : null;
    const goThere = offset !== undefined && button("Go there", () => {
      const at = offsetIn(input.value, offset);
      input.focus();
      input.setSelectionRange(at, Math.min(at + 1, input.value.length));
    }, { class: "quiet" });
    refill(status, h("span", { class: "chip bad" }, error.status === 0 ? "not checked" : "✗ not valid"),
      where && h("small", {}, where), goThere);
    refill(place, h("div", { class: "note bad" },
      h("p", {}, error.message), caret && h("pre", { class: "caret" }, caret), hint && h("p", {}, hint)));
    refill(figures, h("p", { class: "soft" }, "Not tried: the filter cannot be read yet."));
    refill(examples);
    announce(`Not valid${where ? `, ${where}` : ""}: ${error.message}`);
    onchecked(null);
  }

  input.addEventListener("input", debounced(250, check));
  clear();
  return { status, place, figures, examples, check, stop: () => asking?.abort() };
}
