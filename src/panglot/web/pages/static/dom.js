// Elements, made of text. Nothing that a script, a file name or an error says is ever read as markup.

import { phrase } from "./language.js";

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (`onclick`), properties (`.value`) and children; `null` children are left out. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for drawings. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("aria-") && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
      continue;
    }
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith(".")) element[name.slice(1)] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put other children into an element, and touch it only where there is a difference in text. */
export function say(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** A text of ours, with the flags in it as code that no line breaks. */
export const flagged = (text) => text.split(/(--[a-z][a-z-]*(?: [A-Z]+)?)/).map((piece) => (piece.startsWith("--") ? h("code", { class: "flag" }, piece) : piece));

export const byId = (id) => document.getElementById(id);

let numbers = 0;
export const newId = (start) => `${start}-${++numbers}`;

/** Put these into an element in place of what is there; what is missing of them is left out. */
export const show = (element, ...children) => element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));

/** An element that scrolls sideways where it is too wide, by the keyboard too. `label` is read aloud. */
export const scroller = (classes, label, ...children) => h("div", { class: `${classes} scroll`.trim(), tabindex: "0", role: "group", "aria-label": label }, children);

/** A row of tabs over panels. `entries` are `[name, make]`; a panel is made when it is first looked at. */
export function tabs(label, entries) {
  const panel = h("div", { class: "panel", role: "tabpanel", tabindex: "0", id: newId("panel") });
  const made = new Map();
  const buttons = entries.map(([name], place) =>
    h("button", {
      type: "button", role: "tab", "aria-controls": panel.id, id: newId("tab"),
      onclick: () => show(place), onkeydown: (event) => move(event, place),
    }, name));
  function show(place) {
    buttons.forEach((button, other) => {
      button.setAttribute("aria-selected", other === place);
      button.tabIndex = other === place ? 0 : -1;
    });
    if (!made.has(place)) made.set(place, entries[place][1]());
    panel.setAttribute("aria-labelledby", buttons[place].id);
    panel.replaceChildren(made.get(place));
  }
  function move(event, place) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (place + step + buttons.length) % buttons.length;
    show(next);
    buttons[next].focus();
    event.preventDefault();
  }
  show(0);
  const row = entries.length > 1 ? h("div", { class: "tabs", role: "tablist", "aria-label": label }, buttons) : null;
  return h("div", { class: "tabbed" }, row, panel);
}

/** A button that copies a text, and says so. */
export function copyButton(text, label = phrase("copy")) {
  const button = h("button", { type: "button", class: "small", onclick: copy }, label);
  async function copy() {
    await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
    say(button, phrase("copied"));
    setTimeout(() => say(button, label), 1500);
  }
  return button;
}
