// A conversation with a model that has OpenAI's chat route: messages, streamed answers, settings, history.

import { Bubble } from "./bubble.js";
import { Conversations, textOf, titleOf } from "./conversations.js";
import { copyButton, h, newId, s, say, tabs } from "./dom.js";
import { field } from "./fields.js";
import { phrase } from "./language.js";
import { base64 } from "./media.js";
import { parse } from "./numbers.js";
import { reason, send } from "./sending.js";
import { renewState, watchState } from "./server.js";
import { snippets } from "./snippets.js";
import { bytes } from "./words.js";

const LARGEST_PICTURE = 20e6;
/** A frame with a hill and the sun, drawn as an outline. */
const PICTURE = "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9a1 1 0 1 0 .01 0";
const KNOWN = new Set(["model", "messages", "stream"]);

/** The page of one model's chat: `heading` stands above the messages, `others` below the list of chats. */
export class Chat {
  constructor({ about, model, operation, document, base, heading, others }) {
    Object.assign(this, { about, model, operation, base });
    this.left = new AbortController();
    this.way = operation.ways.find((way) => way.kind === "json");
    this.takesPictures = JSON.stringify(this.way.schema).includes("image_url");
    this.stored = new Conversations(model.name);
    this.running = null;
    this.pictures = [];
    this.list = h("ol", { class: "messages", "aria-live": "polite", "aria-label": phrase("messages") });
    this.scroller = h("div", { class: "talk", tabindex: "0", role: "region", "aria-label": phrase("conversation") }, heading, this.list);
    this.suggestions = this.makeSuggestions();
    this.scroller.append(this.suggestions);
    this.makeComposer();
    this.makeDrawer(document);
    this.history = h("ul", {});
    this.title = h("span", { class: "chat-title" });
    this.chats = h("aside", { class: "chats", "aria-label": phrase("chats") },
      h("button", { type: "button", class: "wide-button new-chat", onclick: () => this.open(this.stored.begin(this.conversation)) }, phrase("new_chat")), this.history, others);
    this.chats.hidden = matchMedia("(max-width: 60rem)").matches;
    const drawerButton = toggleButton(phrase("settings"), this.drawer, () => { this.showCode(); this.scroll(true); });
    const chatsButton = toggleButton(phrase("chats"), this.chats);
    chatsButton.classList.add("chats-button");
    this.element = h("div", { class: "chat" }, this.chats,
      h("section", { class: "sheet conversation", "aria-label": phrase("chat_with", { name: model.name }) },
        h("div", { class: "chat-bar" }, chatsButton, this.title, drawerButton), this.scroller, this.composer),
      this.drawer);
    this.open(this.stored.all[0] ?? this.stored.begin());
  }

  /** The examples of the package, as first messages to choose from. */
  makeSuggestions() {
    const entries = this.operation.examples.map((way) => ({ told: way.value?.messages ?? [], title: way.title }));
    const said = (told, role) => textOf(told.filter((one) => one.role === role).at(-1)?.content).trim();
    return h("ul", { class: "suggestions", "aria-label": phrase("examples") }, entries.filter(({ told }) => said(told, "user")).map(({ told, title }) =>
      h("li", {}, h("button", { type: "button", title: title ?? null, onclick: () => this.suggest(said(told, "user"), said(told, "system")) }, said(told, "user").slice(0, 120)))));
  }

  suggest(text, system) {
    if (system) {
      this.system.value = system;
      this.keepSettings();
    }
    this.input.value = text;
    this.submit();
  }

  makeComposer() {
    const id = newId("message");
    this.input = h("textarea", { id, rows: 1, placeholder: phrase("write_message"), "aria-label": phrase("message"), onkeydown: (event) => this.key(event), oninput: () => this.ready() });
    this.sendButton = h("button", { type: "submit", class: "primary" }, phrase("send"));
    this.stopButton = h("button", { type: "button", hidden: true, onclick: () => this.running?.abort() }, phrase("stop"));
    this.chosen = h("div", { class: "chosen" });
    this.problem = h("p", { class: "hint wrong", role: "alert" });
    const file = h("input", { type: "file", class: "unseen", id: newId("picture"), accept: "image/*", multiple: true, onchange: () => { this.add(file.files); file.value = ""; } });
    const attach = this.takesPictures ? [h("label", { class: "button attach", for: file.id, title: phrase("add_picture") }, s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: PICTURE })), h("span", { class: "unseen" }, phrase("picture"))), file] : null;
    this.composer = h("form", {
      class: "composer", novalidate: true, onsubmit: (event) => { event.preventDefault(); this.submit(); },
      ondragover: (event) => event.preventDefault(), ondrop: (event) => { event.preventDefault(); this.add(event.dataTransfer.files); },
      onpaste: (event) => this.add(event.clipboardData?.files ?? []),
    }, this.chosen, this.problem, h("div", { class: "composer-row" }, attach, this.input, this.stopButton, this.sendButton),
    h("p", { class: "hint chat-keys" }, phrase("chat_keys")));
  }

  makeDrawer(document) {
    const changed = () => this.keepSettings();
    const properties = Object.entries(this.way.schema.properties ?? {}).filter(([name]) => !KNOWN.has(name));
    this.options = properties.map(([name, schema]) => [name, field(document, name, schema, { changed })]);
    const id = newId("system");
    this.system = h("textarea", { id, rows: 3, oninput: changed, placeholder: phrase("system_example") });
    this.streams = h("input", { type: "checkbox", role: "switch", id: newId("stream"), ".checked": true });
    this.code = h("div", {});
    this.drawer = h("aside", { class: "sheet drawer", "aria-label": phrase("settings"), hidden: true },
      h("h2", {}, phrase("settings")),
      h("div", { class: "field" }, h("label", { class: "label", for: id }, phrase("system_prompt")), this.system),
      h("div", { class: "field beside" }, this.streams, h("label", { for: this.streams.id }, phrase("stream_answer"))),
      this.options.map(([, one]) => one.element), h("h2", {}, phrase("as_code_short")), this.code);
  }

  // Conversations

  open(conversation) {
    this.running?.abort();
    this.conversation = conversation;
    this.system.value = conversation.system;
    for (const [name, one] of this.options) if (name in conversation.options) one.write(conversation.options[name]);
    this.drawMessages();
    this.drawHistory();
    this.input.focus({ preventScroll: true });
  }

  drawMessages() {
    this.suggestions.hidden = this.conversation.messages.length > 0 || !this.suggestions.childElementCount;
    this.bubbles = this.conversation.messages.map((message) => this.bubble(message));
    this.list.replaceChildren(...this.bubbles.map((one) => one.element));
    this.scroll(true);
    this.ready();
  }

  bubble(message) {
    return new Bubble(message, message.role === "user" ? { edit: (one) => this.edit(one) } : { retry: (one) => this.retry(one) });
  }

  drawHistory() {
    this.title.textContent = this.conversation.messages.length ? titleOf(this.conversation) : "";
    this.history.replaceChildren(...this.stored.all.map((one) => {
      const title = titleOf(one);
      return h("li", {}, h("button", { type: "button", class: "past", "aria-current": one.id === this.conversation.id ? "true" : null, onclick: () => this.open(one) }, title),
        h("button", { type: "button", class: "small", "aria-label": phrase("delete", { name: title }), onclick: () => this.forget(one) }, "×"));
    }));
  }

  forget(conversation) {
    this.stored.remove(conversation);
    if (conversation === this.conversation) this.open(this.stored.all[0] ?? this.stored.begin());
    else this.drawHistory();
  }

  keepSettings() {
    this.conversation.system = this.system.value;
    this.conversation.options = this.given(true);
    if (this.conversation.messages.length) this.stored.save(this.conversation);
    this.showCode();
  }

  /** The parameters that differ from what the model takes them to be. */
  given(quiet = false) {
    const options = {};
    for (const [name, one] of this.options) {
      try {
        const value = one.read();
        if (value !== undefined && value !== null && value !== one.schema.default) options[name] = value;
      } catch (error) {
        if (!quiet) throw error;
      }
    }
    return options;
  }

  // Messages

  key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.submit();
  }

  ready() {
    this.sendButton.disabled = Boolean(this.running) || (!this.input.value.trim() && !this.pictures.length);
    say(this.problem, "");
  }

  async add(files) {
    const pictures = this.takesPictures ? [...files].filter((file) => file.type.startsWith("image/")) : [];
    for (const file of pictures) {
      if (file.size > LARGEST_PICTURE) say(this.problem, phrase("larger_than", { name: file.name, size: bytes(LARGEST_PICTURE) }));
      else this.pictures.push({ name: file.name, url: `data:${file.type};base64,${await base64(file)}` });
    }
    this.drawPictures();
    if (pictures.length) this.ready();
  }

  drawPictures() {
    this.chosen.replaceChildren(...this.pictures.map((one) => h("figure", {}, h("img", { src: one.url, alt: one.name }),
      h("button", { type: "button", class: "small", "aria-label": phrase("remove", { name: one.name }), onclick: () => { this.pictures = this.pictures.filter((other) => other !== one); this.drawPictures(); this.ready(); } }, "×"))));
  }

  submit() {
    const text = this.input.value.trim();
    if (this.running || (!text && !this.pictures.length)) return;
    const parts = this.pictures.map(({ url }) => ({ type: "image_url", image_url: { url } }));
    const message = { role: "user", content: parts.length ? [...(text ? [{ type: "text", text }] : []), ...parts] : text };
    this.input.value = "";
    this.pictures = [];
    this.drawPictures();
    this.append(message);
    this.answer();
  }

  append(message) {
    this.suggestions.hidden = true;
    this.conversation.messages.push(message);
    const made = this.bubble(message);
    this.bubbles.push(made);
    this.list.append(made.element);
    this.scroll(true);
    return made;
  }

  /** Put a message back into the field; it and what came after are no more. */
  edit(bubble) {
    if (this.running) return;
    this.cut(bubble);
    this.input.value = textOf(bubble.message.content);
    this.pictures = (Array.isArray(bubble.message.content) ? bubble.message.content : []).filter((part) => part.type === "image_url").map((part) => ({ name: phrase("picture"), url: part.image_url.url }));
    this.drawPictures();
    this.ready();
    this.input.focus();
  }

  retry(bubble) {
    if (this.running) return;
    this.cut(bubble);
    this.answer();
  }

  cut(bubble) {
    const place = this.bubbles.indexOf(bubble);
    this.conversation.messages.length = place;
    this.bubbles.splice(place).forEach((one) => one.element.remove());
  }

  /** The body that asks for an answer to the conversation so far. */
  body(options = this.given()) {
    const { messages, system } = this.conversation;
    const told = messages.filter((one) => !one.pending && (one.content || one.tool_calls?.length)).map(({ role, content }) => ({ role, content: content || "" }));
    return {
      model: this.way.value?.model ?? this.model.name,
      messages: [...(system.trim() ? [{ role: "system", content: system }] : []), ...told], ...options,
      ...(this.streams.checked ? { stream: true, stream_options: { include_usage: true } } : {}),
    };
  }

  request(body) {
    // Truss streams events as plain bytes.
    return { method: "POST", path: this.operation.path, headers: {}, events: body.stream, body: { kind: "json", text: JSON.stringify(body), marks: [] } };
  }

  async answer() {
    let request;
    try {
      request = this.request(this.body());
    } catch (error) {
      say(this.problem, error.message);
      return;
    }
    const conversation = this.conversation;
    const message = { role: "assistant", content: "", pending: true };
    const bubble = this.append(message);
    this.running = new AbortController();
    const over = new AbortController();
    watchState(over.signal);
    this.busy(true);
    try {
      const answer = await send(request, this.running.signal, (sofar) => { this.take(message, sofar); bubble.grow(); this.scroll(); }, this.model.max_body);
      await this.finish(message, answer);
    } catch (error) {
      if (error.name === "AbortError") message.stopped = true;
      else if (!message.error) message.error = await this.problemOf(error, message.answer);
    }
    over.abort();
    delete message.pending;
    delete message.heard;
    delete message.answer;
    this.running = null;
    this.busy(false);
    bubble.show();
    this.scroll(true);
    this.stored.save(conversation);
    this.drawHistory();
    this.showCode();
  }

  /** Take in what a stream has said since the last time. */
  take(message, answer) {
    message.heard ??= 0;
    for (const { data } of answer.parts.slice(message.heard)) {
      const choice = data?.choices?.[0];
      message.content += choice?.delta?.content ?? "";
      if (choice?.delta?.tool_calls) message.tool_calls = [...(message.tool_calls ?? []), ...choice.delta.tool_calls];
      message.finish = choice?.finish_reason ?? message.finish;
      message.usage = data?.usage ?? message.usage;
      if (data?.error) message.error = data.error.message ?? String(data.error);
      if (choice?.delta?.content) message.times = { first: message.times?.first ?? performance.now() - answer.began };
    }
    message.heard = answer.parts.length;
    message.answer = answer;
    if (answer.done) message.times = { first: message.times?.first ?? answer.first, took: answer.took };
  }

  async problemOf(error, answer) {
    if (!(error instanceof TypeError || error.reason)) return error.message;
    const why = answer ? await reason(answer, error.reason) : null;
    if (!why) renewState();
    return why ? phrase("answer_broke", { message: why.message || phrase("script_failed") }) : phrase("server_unreachable");
  }

  async finish(message, answer) {
    if (!answer.blob) return;
    const text = await answer.blob.text();
    let value = {};
    try { value = parse(text); } catch { /* The text itself is shown. */ }
    const choice = value.choices?.[0];
    if (answer.status >= 400 || !choice) {
      message.error = value.error?.message ?? (typeof value.error === "string" ? value.error : text.slice(0, 500) || phrase("server_answered", { status: String(answer.status) }));
      return;
    }
    Object.assign(message, { content: choice.message?.content ?? "", finish: choice.finish_reason, usage: value.usage, times: { first: answer.took, took: answer.took } });
    if (choice.message?.tool_calls) message.tool_calls = choice.message.tool_calls;
  }

  busy(on) {
    this.stopButton.hidden = !on;
    this.sendButton.hidden = on;
    this.list.setAttribute("aria-busy", on);
    this.list.dataset.done = Number(this.list.dataset.done ?? 0) + (on ? 0 : 1);
    if (!on) this.ready();
  }

  /** Keep the newest in sight, unless its reader has scrolled away from it. */
  scroll(always = false) {
    const { scroller } = this;
    const near = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 160;
    if (always || near) requestAnimationFrame(() => { scroller.scrollTop = scroller.scrollHeight; });
  }

  showCode() {
    if (this.drawer.hidden) return;
    const body = this.body(this.given(true));
    while (body.messages.at(-1)?.role === "assistant") body.messages.pop();
    if (!body.messages.some((one) => one.role === "user")) body.messages.push({ role: "user", content: phrase("hello") });
    delete body.stream_options;
    const code = snippets(this.request(body), { base: this.base, token: this.about.token, streams: Boolean(body.stream) });
    code.sort(([one], [other]) => Number(other.startsWith("openai")) - Number(one.startsWith("openai")));
    this.code.replaceChildren(tabs(phrase("language"), code.map(([name, text]) => [name, () => h("div", { class: "snippet" }, copyButton(text), h("pre", { class: "plain code", "data-language": name, tabindex: "0" }, text))])));
  }
}

/** A button that shows and hides a panel. */
function toggleButton(words, panel, shown = () => {}) {
  const button = h("button", { type: "button", class: "small", "aria-expanded": String(!panel.hidden), onclick: () => {
    panel.hidden = !panel.hidden;
    panel.classList.toggle("opened", !panel.hidden);
    button.setAttribute("aria-expanded", !panel.hidden);
    shown();
  } }, words);
  return button;
}
