// JSON that folds, lists of objects as tables, labels as bars.

import { h, scroller } from "./dom.js";
import { phrase } from "./language.js";
import { isNested } from "./numbers.js";
import { digits, percent } from "./words.js";

const OPEN = 2;
const MOST = 200;

/** A value as text that folds; what is deep or long begins folded. */
export function tree(value) {
  return h("div", { class: "tree code" }, node(value, 0));
}

function node(value, depth) {
  if (!isNested(value)) return leaf(value);
  const entries = Array.isArray(value) ? value.map((one, place) => [place, one]) : Object.entries(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  if (!entries.length) return h("span", {}, open + close);
  if (Array.isArray(value) && value.length <= 16 && value.every((one) => !isNested(one)) && JSON.stringify(value).length < 90) {
    return h("span", {}, "[", value.flatMap((one, place) => [place ? ", " : "", leaf(one)]), "]");
  }
  const shown = entries.slice(0, MOST);
  const list = h("ul", {});
  const details = h("details", { ".open": depth < OPEN && entries.length <= 50 },
    h("summary", {}, open, h("span", { class: "hint" }, ` ${entries.length} `), close), list);
  const grow = () => {
    if (list.childElementCount || !details.open) return;
    list.append(...shown.map(([name, one]) => h("li", {}, Array.isArray(value) ? null : h("span", { class: "key" }, `${name}: `), node(one, depth + 1))));
    if (entries.length > MOST) list.append(h("li", { class: "hint" }, phrase("more", { count: entries.length - MOST })));
  };
  details.addEventListener("toggle", grow);
  grow();
  return details;
}

function leaf(value) {
  const text = typeof value === "string" && value.length > 2000 ? `${JSON.stringify(value.slice(0, 2000))} ${phrase("characters", { count: value.length })}` : JSON.stringify(value) ?? "null";
  return h("span", { class: value === null ? "null" : typeof value === "object" ? "number" : typeof value }, text);
}

/** The longest list of objects in a value, if a table of it tells something; null otherwise. */
export function rowsOf(value, depth = 0) {
  if (!isNested(value) || depth > 3) return null;
  if (Array.isArray(value)) {
    const flat = (one) => isNested(one) && !Array.isArray(one);
    return value.length > 0 && value.every(flat) ? value : null;
  }
  return Object.values(value).map((one) => rowsOf(one, depth + 1)).filter(Boolean).sort((one, other) => other.length - one.length)[0] ?? null;
}

/** Objects as rows, their names as columns. */
export function table(rows) {
  const names = [...new Set(rows.slice(0, MOST).flatMap(Object.keys))].slice(0, 12);
  const numeric = (name) => rows.every((row) => row[name] === undefined || typeof row[name] === "number");
  const cell = (name, value) => h("td", { class: numeric(name) ? "number" : null }, value === undefined ? "" : typeof value === "object" ? JSON.stringify(value).slice(0, 80) : String(value));
  return scroller("", phrase("view_table"), h("table", {},
    h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col", class: numeric(name) ? "number" : null }, name)))),
    h("tbody", {}, rows.slice(0, MOST).map((row) => h("tr", {}, names.map((name) => cell(name, row[name])))))));
}

/** Labels with scores as bars. */
export function bars(labels) {
  const most = Math.max(...labels.map(([, score]) => score), 1e-9);
  return h("ul", { class: "bars" }, labels.map(([label, score]) => {
    const bar = h("i", {});
    bar.style.width = `${(100 * score) / Math.max(most, 1)}%`;
    return h("li", {}, h("span", { class: "name" }, label), h("span", { class: "track", "aria-hidden": "true" }, bar), h("span", { class: "number" }, most <= 1 ? percent(score) : digits(score)));
  }));
}
