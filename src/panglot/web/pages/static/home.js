// The first page of a server that has several models: what they are, how they are, and where to try them.

import { byId, h } from "./dom.js";
import { phrase, spoken } from "./language.js";
import { get, stateIs } from "./server.js";

const EVERY = 2000;

/** What the author says the model is: the first sentence is the title, the rest the lead. */
export function described({ name, summary }) {
  const [, first, rest] = /^(.{1,90}?[.!?。！？])\s+(.*)$/s.exec(summary) ?? (summary.length <= 90 ? ["", summary, ""] : ["", "", summary]);
  return { title: first.replace(/[.。]$/, "") || name, lead: rest };
}

/** A list of models that keeps itself up to date. */
export class Home {
  constructor(about) {
    this.left = new AbortController();
    this.list = h("ul", { class: "cards" });
    this.element = h("div", { class: "home" }, h("div", { class: "lead-in" }, h("div", { class: "heading" }, h("h1", {}, phrase("models")))), this.list);
    this.draw(about);
    const timer = setInterval(() => this.renew(), EVERY);
    this.left.signal.addEventListener("abort", () => clearInterval(timer));
  }

  async renew() {
    if (document.visibilityState !== "visible") return;
    const about = await get("playground.json").catch(() => null);
    stateIs(about ? about.state : "lost");
    if (about) this.draw(about);
  }

  draw(about) {
    // Only what has changed is drawn anew: a link keeps its focus.
    const told = JSON.stringify([about.models, about.absent]);
    if (told === this.told) return;
    this.told = told;
    const focused = document.activeElement?.id;
    this.list.replaceChildren(...about.models.map(card), ...about.absent.map(absent));
    if (focused) byId(focused)?.focus();
  }
}

function card(model) {
  const { title, lead } = described(model);
  const query = `?model=${encodeURIComponent(model.name)}`;
  const facts = [model.dialect, model.versions.length > 1 ? phrase("versions", { names: model.versions.join(", ") }) : ""].filter(Boolean).join(" · ");
  return h("li", { class: "sheet card", "data-model": model.name },
    h("p", { class: "code name" }, model.name, h("span", { class: `state ${model.state}` }, spoken("state", model.state))),
    h("h2", {}, h("a", { href: `./${query}`, id: `try-${model.name}` }, title)),
    lead ? h("p", { class: "lead" }, lead) : null,
    h("p", { class: "hint" }, facts),
    h("p", { class: "links" },
      h("a", { class: "button primary", href: `./${query}`, "aria-label": phrase("try_model", { name: model.name }) }, phrase("try")),
      h("a", { href: `docs${query}`, "aria-label": phrase("api_of", { name: model.name }) }, phrase("api")),
      h("a", { href: `status${query}`, "aria-label": phrase("status_of", { name: model.name }) }, phrase("status"))));
}

/** A model of the server's folder that is not served. */
function absent({ name, state, reason }) {
  const words = state.toLowerCase();
  return h("li", { class: "sheet card", "data-model": name },
    h("p", { class: "code name" }, name, h("span", { class: `state ${words}` }, spoken("state", words))),
    h("p", { class: "hint" }, reason));
}
