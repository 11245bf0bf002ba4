// An answer, shown by its kind.

import { flagged, h, say, tabs } from "./dom.js";
import { phrase, spoken } from "./language.js";
import { markdown } from "./markdown.js";
import { endingOf, familyOf, inBase64, isText, preview } from "./media.js";
import { Exact, isNested, parse } from "./numbers.js";
import { overlay } from "./overlay.js";
import { labels, shapes } from "./shapes.js";
import { bars, rowsOf, table, tree } from "./tree.js";
import { bytes, percent } from "./words.js";

/** The whole of a finished answer; `picture` is the one that was sent, if there was one. */
export async function shown(answer, picture) {
  if (answer.parts.length || !answer.blob) return h("div", {}, new Stream().update(answer).element);
  const type = answer.type.split(";")[0].trim();
  const text = isText(type) ? await answer.blob.text() : "";
  const value = parsed(text);
  if (answer.status >= 400) return failure(answer, value, text);
  if (type === "text/html") return tabs(phrase("answer_as"), [[phrase("view_page"), () => framed(text)], [phrase("view_source"), () => h("pre", { class: "plain code" }, text.slice(0, 1e6))]]);
  if (type === "text/markdown") return tabs(phrase("answer_as"), [[phrase("view_text"), () => markdown(text)], [phrase("view_source"), () => h("pre", { class: "plain code" }, text.slice(0, 1e6))]]);
  if (type === "text/csv") return tabs(phrase("answer_as"), [[phrase("view_table"), () => table(csv(text))], [phrase("view_source"), () => h("pre", { class: "plain code" }, text.slice(0, 1e6))]]);
  if (familyOf(type)) return h("div", { class: "media" }, preview(new File([answer.blob], "answer", { type }), phrase("the_answer")), download(answer, type));
  if (value !== undefined) return values(value, text, picture);
  if (isText(type)) return h("pre", { class: "plain" }, text || phrase("nothing"));
  return answer.blob.size ? download(answer, type) : h("p", { class: "hint" }, phrase("empty_answer"));
}

/** HTML in a frame that may do nothing: it runs no scripts and asks for nothing, and has styles of its own. It is as high as what is in it, within bounds. */
function framed(text) {
  const frame = h("iframe", { class: "framed", title: phrase("answer_as_page"), src: "pages/frame", sandbox: "allow-same-origin" });
  frame.addEventListener("load", () => {
    const page = frame.contentDocument.documentElement;
    page.innerHTML = text;
    frame.style.height = `${Math.min(Math.max(page.scrollHeight + 2, 120), 640)}px`;
  });
  return frame;
}

/** The rows of a table of text, as objects. */
function csv(text) {
  const rows = [[""]];
  for (const [, quoted, plain, end] of text.matchAll(/"((?:[^"]|"")*)"|([^",\r\n]+)|(,|\r?\n)/g)) {
    if (end === ",") rows.at(-1).push("");
    else if (end) rows.push([""]);
    else rows.at(-1)[rows.at(-1).length - 1] += quoted?.replaceAll('""', '"') ?? plain;
  }
  const [names, ...values] = rows.filter((row) => row.length > 1 || row[0]);
  return (values ?? []).map((row) => Object.fromEntries((names ?? []).map((name, place) => [name || String(place + 1), row[place]])));
}

function parsed(text) {
  try {
    return text.trim() ? parse(text) : undefined;
  } catch {
    return undefined;
  }
}

function values(value, text, picture) {
  const views = [];
  const found = picture ? shapes(value) : [];
  const scored = found.length ? [] : labels(value);
  const rows = rowsOf(value);
  const pictures = held(value);
  if (found.length) views.push([phrase("view_picture"), () => overlay(picture, found)]);
  if (pictures.length) views.push([phrase("view_pictures"), () => h("div", { class: "media" }, pictures.map((file) => preview(file, file.name)))]);
  if (scored.length) views.push([phrase("view_labels"), () => h("div", {}, headline(scored), bars(scored))]);
  if (typeof value === "string") views.push([phrase("view_text"), () => (isMarkdown(value) ? markdown(value) : h("pre", { class: "plain" }, value))]);
  if (isFlat(value)) views.push([phrase("view_values"), () => facts(value)]);
  if (rows) views.push([phrase("view_table"), () => table(rows)]);
  views.push([phrase("view_json"), () => tree(value)]);
  if (typeof value === "object") views.push([phrase("view_raw"), () => h("pre", { class: "plain code" }, text.slice(0, 1e6))]);
  return tabs(phrase("answer_as"), views);
}

/** The best label, large, with its share. */
const headline = ([[label, score]]) => h("p", { class: "headline-answer" }, h("b", {}, label), " ", h("span", { class: "hint" }, percent(score)));

const isMarkdown = (text) => /^(#{1,4} |```|[-*] |\d+\. |> |\|.*\|)/m.test(text) || /\*\*\S[^]*?\*\*/.test(text);

/** Whether a value is an object of a few short values, fit to be read at a glance. */
function isFlat(value) {
  if (!isNested(value) || Array.isArray(value)) return false;
  const all = Object.values(value);
  return all.length > 0 && all.length <= 8 && all.every((one) => ["number", "boolean"].includes(typeof one) || one instanceof Exact || (typeof one === "string" && one.length <= 200));
}

function facts(value) {
  return h("dl", { class: "values" }, Object.entries(value).map(([name, one]) => h("div", {}, h("dt", {}, name), h("dd", {}, typeof one === "number" ? String(Number(one.toPrecision(6))) : String(one)))));
}

/** Pictures and sounds inside of JSON. */
function held(value, found = [], depth = 0) {
  if (found.length >= 12 || depth > 6) return found;
  if (typeof value === "string" && value.length > 100) {
    const file = inBase64(value, `answer ${found.length + 1}`)?.file;
    if (file && familyOf(file.type)) found.push(file);
  } else if (value && typeof value === "object") Object.values(value).forEach((one) => held(one, found, depth + 1));
  return found;
}

function download({ blob, headers }, type) {
  const [, named] = /filename="?([^";]+)/.exec(headers.get("content-disposition") ?? "") ?? [];
  return h("p", {}, h("a", { href: URL.createObjectURL(blob), download: named ?? `answer.${endingOf(type)}` }, phrase("save_answer", { type: type || phrase("bytes"), size: bytes(blob.size) })));
}

/** The sentence of an error, in the shapes that the platforms have for it. */
function messageOf(value) {
  if (typeof value === "string") return value;
  return value?.error?.message ?? value?.message ?? [value?.error, value?.error_msg, value?.msg, value?.err_msg].find((one) => typeof one === "string");
}

/** What to do about an error, in a sentence: by its code, else by its status, else by the family of the status. */
function advice(status, code = "") {
  const found = [code, status, Math.floor(status / 100) * 100].find((one) => spoken("advice", one) !== one);
  return found === undefined ? "" : spoken("advice", found);
}

function failure(answer, value, text) {
  const message = value === undefined ? undefined : messageOf(value);
  const traceback = answer.headers.get("x-panglot-error");
  const retry = answer.headers.get("retry-after");
  return h("div", { class: "failure", role: "alert" },
    h("p", { class: "message" }, message ?? (text.slice(0, 4000) || phrase("said_nothing", { status: String(answer.status) }))),
    traceback ? h("pre", { class: "plain code" }, traceback) : null,
    h("p", { class: "hint" }, flagged(advice(answer.status, value?.error?.code)), retry ? ` ${phrase("asks_to_wait", { seconds: retry })}` : ""),
    value !== undefined && typeof value === "object" ? h("details", {}, h("summary", {}, phrase("whole_answer")), tree(value)) : null);
}

/** A stream that broke off, and why, as far as the server tells it. */
export function brokenOff({ message, lines }) {
  return h("div", { class: "failure", role: "alert" },
    h("p", { class: "message" }, phrase("stream_broke", { message: message || phrase("script_failed_writing") })),
    lines ? h("pre", { class: "plain code" }, lines) : h("p", { class: "hint" }, flagged(advice(500))));
}

/** What could not be sent at all, or was stopped. */
export function unsent(error) {
  const stopped = error.name === "AbortError";
  return h("div", { class: stopped ? "failure stopped" : "failure", role: "alert" },
    h("p", { class: "message" }, stopped ? phrase("stopped_sentence") : error instanceof TypeError ? phrase("server_unreachable") : error.message));
}

/** A stream as it grows: text where its parts are pieces of text, else a list. */
export class Stream {
  constructor() {
    this.text = h("pre", { class: "plain growing", "aria-live": "polite" });
    this.list = h("ol", { class: "parts" });
    this.element = h("div", {}, this.text);
    this.count = 0;
  }

  update(answer) {
    const fresh = answer.parts.slice(this.count);
    this.count = answer.parts.length;
    for (const part of fresh) this.add(part);
    if (answer.done && !this.count) say(this.text, phrase("stream_empty"));
    return this;
  }

  add({ event, data }) {
    if (event === "error" || data?.error?.message) {
      this.element.append(h("div", { class: "failure", role: "alert" },
        h("p", { class: "message" }, messageOf(data) ?? phrase("stream_broke_off")), h("p", { class: "hint" }, phrase("stream_before"))));
      return;
    }
    const piece = event && event !== "message" ? null : textOf(data);
    if (piece !== null && !this.list.isConnected) {
      this.text.append(piece);
      this.element.scrollTop = this.element.scrollHeight;
      return;
    }
    if (!this.list.isConnected) {
      if (this.text.textContent) this.element.append(this.list);
      else this.element.replaceChildren(this.list);
    }
    this.list.append(h("li", {}, event && event !== "message" ? h("span", { class: "chip" }, event) : null, data === "" ? null : tree(data)));
    if (this.list.childElementCount > 500) this.list.firstElementChild.remove();
  }
}

const PIECES = ["token", "text", "delta", "content", "piece", "chunk"];

/** The piece of text that an event adds; null where it is something else. */
function textOf(data) {
  if (typeof data === "string") return data;
  const deep = data?.choices?.[0];
  const inside = deep ? (deep.delta?.content ?? deep.text ?? "") : data;
  if (typeof inside === "string") return inside;
  const names = inside && typeof inside === "object" && !Array.isArray(inside) ? Object.keys(inside) : [];
  const name = PIECES.find((one) => typeof inside?.[one] === "string");
  return name && names.length <= 3 ? inside[name] : null;
}
