// The examples of a model, as a strip: each fills the form.

import { h } from "./dom.js";
import { written } from "./fields.js";
import { phrase } from "./language.js";

/** All examples of the operations; `chosen` marks the one that the form was filled with. */
export class Gallery {
  constructor(operations, choose) {
    this.entries = operations.flatMap((operation) => operation.examples.map((way) => ({ operation, way })));
    this.buttons = this.entries.map(({ operation, way }) => h("button", { type: "button", onclick: () => choose(operation, way) },
      picture(way), h("span", { class: "excerpt" }, excerpt(way))));
    this.element = h("section", { class: "gallery", hidden: this.entries.length < 2, "aria-label": phrase("examples") },
      h("h2", {}, phrase("examples")), h("ul", {}, this.buttons.map((button) => h("li", {}, button))));
  }

  chosen(way) {
    this.buttons.forEach((button, place) => button.setAttribute("aria-pressed", this.entries[place].way === way));
  }
}

const IMAGE = /\.(png|jpe?g|gif|webp|bmp|svg)$/i;

function filesOf(way) {
  return Object.values(way.files ?? {}).flat().filter(Boolean);
}

function picture(way) {
  const name = filesOf(way).find((file) => IMAGE.test(file));
  return name && way.model ? h("img", { src: `samples/${encodeURIComponent(name)}?model=${encodeURIComponent(way.model)}`, alt: "", loading: "lazy" }) : null;
}

function excerpt(way) {
  if (way.title) return way.title;
  if (way.kind === "json") {
    const value = way.value;
    const texts = value && typeof value === "object" && !Array.isArray(value) ? Object.values(value).filter((one) => typeof one === "string") : [];
    return (typeof value === "string" ? value : (texts[0] ?? written(value))).slice(0, 80);
  }
  return filesOf(way)[0] ?? Object.values(way.fields ?? {})[0] ?? phrase("example");
}
