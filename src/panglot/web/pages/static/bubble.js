// One message of a conversation: a bubble with its text, pictures, figures and what can be done with it.

import { copyButton, h, say } from "./dom.js";
import { markdown } from "./markdown.js";
import { tree } from "./tree.js";
import { picturesOf, textOf } from "./conversations.js";
import { phrase } from "./language.js";
import { digits, milliseconds } from "./words.js";

/** A bubble. `actions` are `{retry, edit}`; what is missing there has no button. */
export class Bubble {
  constructor(message, actions) {
    this.message = message;
    this.body = h("div", { class: "said" });
    this.problem = h("div", { class: "hint wrong", role: "alert" });
    this.figures = h("span", { class: "hint figures-of" });
    this.buttons = h("span", { class: "bubble-buttons" }, copyButton(() => textOf(message.content)),
      actions.edit ? h("button", { type: "button", class: "small", onclick: () => actions.edit(this) }, phrase("edit")) : null,
      actions.retry ? h("button", { type: "button", class: "small", onclick: () => actions.retry(this) }, phrase("retry")) : null);
    const who = message.role === "user" ? phrase("you_say") : phrase("model_says");
    this.element = h("li", { class: `bubble ${message.role}` }, h("span", { class: "unseen" }, `${who} `), this.body, this.problem,
      h("div", { class: "bubble-foot" }, this.figures, this.buttons));
    this.show();
  }

  /** Draw the message as it stands; while it grows, only as often as the screen is drawn. */
  grow() {
    this.waiting ??= requestAnimationFrame(() => { this.waiting = null; this.show(); });
  }

  show() {
    const { message } = this;
    const text = textOf(message.content);
    const pictures = picturesOf(message.content).map((address) => h("img", { src: address, alt: phrase("picture_of_message") }));
    const words = message.role === "user" ? h("p", { class: "plain" }, text) : markdown(text);
    const calls = message.tool_calls?.length ? h("div", { class: "calls" }, h("span", { class: "chip" }, phrase("tool_calls")), tree(message.tool_calls)) : null;
    const typing = message.pending && !text ? h("span", { class: "typing", role: "status" }, h("i"), h("i"), h("i"), h("span", { class: "unseen" }, phrase("writing"))) : null;
    this.body.replaceChildren(...[...pictures, text || (!typing && !calls && !pictures.length && !message.error) ? words : null, calls, typing].filter(Boolean));
    say(this.problem, message.error ?? "");
    this.buttons.hidden = Boolean(message.pending);
    say(this.figures, figures(message));
  }
}

function figures({ role, pending, stopped, finish, times, usage }) {
  if (role === "user" || !times) return "";
  const tokens = usage?.completion_tokens;
  const rate = tokens > 1 && times.took > times.first ? phrase("tokens_rate", { count: digits((1000 * tokens) / times.took) }) : "";
  return [
    pending ? "" : stopped ? phrase("stopped") : finish === "length" ? phrase("cut_at_longest") : "",
    tokens === undefined ? "" : phrase("tokens", { count: tokens }),
    usage?.prompt_tokens === undefined ? "" : phrase("tokens_read", { count: usage.prompt_tokens }),
    times.took === undefined ? "" : `${milliseconds(times.took)}`,
    times.first !== undefined && times.took - times.first > 50 ? phrase("first_word", { time: milliseconds(times.first) }) : "", rate,
  ].filter(Boolean).join(" · ");
}
