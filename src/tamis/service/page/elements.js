// Elements made from data. Text only ever becomes text: nothing here, or anywhere, parses HTML.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "htmlFor", "selected"]);

/** An element with attributes, listeners (`onclick: …`) and children (elements, texts, null). */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (PROPERTIES.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** Let an element hold these children and no others. */
export function refill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

let numbered = 0;

/** A label, its input and perhaps a hint; the input's id is made here. */
export function field(label, input, hint = null) {
  numbered += 1;
  input.id ||= `field-${numbered}`;
  const said = hint && h("small", { id: `${input.id}-hint` }, hint);
  if (said) input.setAttribute("aria-describedby", said.id);
  return h("div", { class: "field" }, h("label", { htmlFor: input.id }, label), input, said);
}

export function button(text, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, text);
}

/** Say something to who cannot see it happen. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

/** Say something to everybody, for some seconds. */
export function toast(text) {
  const said = h("div", { class: "toast" }, text);
  document.getElementById("toasts").append(said);
  announce(text);
  setTimeout(() => said.remove(), 5000);
}

/** Ask before something is done that cannot be undone; true if it is wanted. */
export function confirmed(question, action) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog", { "aria-label": question },
      h("p", {}, question),
      h("div", { class: "row" },
        button(action, () => dialog.close("yes"), { class: "bad" }),
        button("Keep", () => dialog.close("no"), { autofocus: true })),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Call something once nothing has been asked for `ms` milliseconds. */
export function debounced(ms, call) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), ms);
  };
}
