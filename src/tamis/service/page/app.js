// The page as a whole: the form for the key, then views behind tabs.

import { call } from "/page/api.js";
import { button, field, h, refill } from "/page/elements.js";
import { feedView } from "/page/feed_view.js";
import { filterView } from "/page/filter_view.js";
import { notificationStream } from "/page/notification_stream.js";
import { operationsView } from "/page/operations_view.js";
import { session } from "/page/session.js";
import { subscriptionsView } from "/page/subscriptions_view.js";

const main = document.getElementById("main");
const tabs = document.getElementById("tabs");
const who = document.getElementById("who");

const VIEWS = {
  filter: { title: "New filter", make: filterView, isFor: () => session.isSubscriber },
  subscriptions: { title: "Subscriptions", make: subscriptionsView, isFor: () => session.isSubscriber },
  feed: { title: "Live", make: feedView, isFor: () => session.isSubscriber },
  operations: { title: "Operations", make: operationsView, isFor: () => session.isAdmin },
};
let views = {};
let shown = null;

/** `#/filter/s1` is the view "filter" of "s1". */
function address() {
  const [, name = "", ...rest] = location.hash.split("/");
  if (!rest.length) return { name, detail: null };
  try {
    return { name, detail: decodeURIComponent(rest.join("/")) };
  } catch {
    return { name: "", detail: null }; // somebody typed half an escape
  }
}

function route() {
  if (!session.who) return;
  let { name, detail } = address();
  if (!VIEWS[name]?.isFor()) {
    [name, detail] = [Object.keys(VIEWS).find((one) => VIEWS[one].isFor()), null];
    if (!name) return showNothingToDo();
  }
  const isSame = shown === name;
  if (shown && !isSame) views[shown].hide?.();
  views[name] ??= VIEWS[name].make();
  shown = name;
  if (!isSame) refill(main, views[name].element);
  views[name].show?.(detail);
  for (const link of tabs.querySelectorAll("a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${VIEWS[name].title} · Tamis`;
  if (isSame) return;
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
}

function showNothingToDo() {
  refill(main, h("div", { class: "card" }, h("h1", {}, "This key may only publish"),
    h("p", {}, "To save filters and follow matches, a key with the scope “subscriber” is needed.")));
}

function tab(name) {
  const badge = name === "feed" && h("span", { class: "badge", hidden: true });
  if (badge) {
    const update = () => {
      const n = shown === "feed" ? 0 : notificationStream.unseen;
      badge.hidden = n === 0;
      refill(badge, n > 99 ? "99+" : String(n), h("span", { class: "visually-hidden" }, " new"));
    };
    notificationStream.addEventListener("change", update);
  }
  return h("a", { href: `#/${name}`, "data-view": name }, VIEWS[name].title, badge);
}

function enter() {
  refill(tabs, Object.keys(VIEWS).filter((name) => VIEWS[name].isFor()).map(tab));
  refill(who, h("span", {}, session.who.owner), button("Leave", () => session.end(), { class: "quiet" }));
  tabs.hidden = who.hidden = false;
  if (session.isSubscriber) notificationStream.start();
  route();
}

function showKeyForm(said = null) {
  const input = h("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const problem = h("p", { class: "note bad", role: "alert", hidden: !said }, said ?? "");
  const submit = h("button", { class: "main", type: "submit" }, "Go");
  const form = h(
    "form", { class: "card key-form", onsubmit: async (event) => {
      event.preventDefault();
      submit.disabled = true;
      try {
        await signIn(input.value.trim());
      } catch (error) {
        problem.hidden = false;
        problem.textContent = error.message;
        input.setAttribute("aria-invalid", "true");
        input.select();
      } finally {
        submit.disabled = false;
      }
    } },
    h("h1", {}, "Welcome to Tamis"),
    h("p", { class: "soft" }, "Save filters, and be told when an event matches one."),
    field("Your key", input, "It begins with tamis_ and stays in this tab until you close it or leave."),
    problem, submit,
  );
  refill(main, form);
  input.focus();
}

async function signIn(key) {
  const told = await call("GET", "/v1/keys/own", { key });
  session.begin(key, told);
  enter();
}

function leave(event) {
  notificationStream.stop();
  for (const view of Object.values(views)) view.hide?.();
  [views, shown] = [{}, null];
  tabs.hidden = who.hidden = true;
  document.title = "Tamis";
  history.replaceState(null, "", "#");
  showKeyForm(event.detail);
}

session.addEventListener("end", leave);
window.addEventListener("hashchange", route);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which view it is
  main.focus();
});

if (session.key) {
  signIn(session.key).catch((error) => {
    if (error.status !== 401) showKeyForm(error.message);
    else if (session.key) session.end(error.message);
  });
} else {
  showKeyForm();
}
