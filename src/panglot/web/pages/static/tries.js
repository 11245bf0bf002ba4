// The last tries, in memory: a strip of what was sent and what came of it.

import { h } from "./dom.js";
import { pictureOf } from "./body.js";
import { phrase } from "./language.js";
import { milliseconds } from "./words.js";

const MOST = 20;

/** Keeps tries `{request, answer, error}`; `chosen` is called with the one that is clicked. */
export class Tries {
  constructor(chosen) {
    this.chosen = chosen;
    this.list = h("ol", {});
    this.element = h("section", { class: "tries", hidden: true }, h("h2", {}, phrase("tries")), this.list);
  }

  add(attempt) {
    const { request, answer, error } = attempt;
    const picture = pictureOf(request.body);
    const status = error ? (error.name === "AbortError" ? "stopped" : "failed") : String(answer.status);
    const shown = error ? phrase(`try_${status}`) : status;
    const words = phrase("try_again", { path: request.path, status: `${shown}${answer?.took ? `, ${milliseconds(answer.took)}` : ""}` });
    const button = h("button", { type: "button", title: words, onclick: () => this.chosen(attempt) },
      picture ? h("img", { src: URL.createObjectURL(picture), alt: "" }) : h("span", { class: "code excerpt", "aria-hidden": "true" }, excerpt(request)),
      h("span", { class: `verdict ${verdict(status)}` }, shown),
      h("span", { class: "unseen" }, ` ${words}`));
    this.list.prepend(h("li", {}, button));
    while (this.list.childElementCount > MOST) this.list.lastElementChild.remove();
    this.element.hidden = false;
  }
}

export const verdict = (status) => (/^2/.test(status) ? "good" : /^(stopped|3)/.test(status) ? "" : "bad");

function excerpt({ method, path, body }) {
  if (body.kind === "json") return body.text.slice(0, 60);
  if (body.kind === "form") return body.entries.map((entry) => entry.text ?? entry.file.name).join(" ").slice(0, 60);
  return body.file?.name.slice(0, 60) ?? `${method} ${path}`.slice(0, 60);
}
