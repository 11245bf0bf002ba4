// Markdown as elements. Text never becomes markup: every piece of it is a text node, and links lead to the web or to mail.

import { colored } from "./coloring.js";
import { copyButton, h, scroller } from "./dom.js";
import { phrase } from "./language.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const TASK = /^\[([ xX])\]\s+/;
const DEEPEST = 8;

/** The elements of a text in Markdown. */
export function markdown(text) {
  return h("div", { class: "markdown" }, blocks(text.replaceAll("\r\n", "\n").split("\n"), 0));
}

function blocks(lines, depth) {
  const made = [];
  let at = 0;
  while (at < lines.length) {
    const [element, next] = block(lines, at, depth);
    if (element) made.push(element);
    at = next;
  }
  return made;
}

/** The element that begins at a line, and the line behind it. */
function block(lines, at, depth) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence);
  const heading = HEADING.exec(line);
  // The page has headings of its own above: those of a text begin at the third level.
  if (heading) return [h(`h${Math.min(6, heading[1].length + 2)}`, { class: `size-${heading[1].length}` }, inline(heading[2])), at + 1];
  if (RULE.test(line)) return [h("hr"), at + 1];
  if (QUOTE.test(line) && depth < DEEPEST) {
    const end = until(lines, at, (other) => !QUOTE.test(other));
    return [h("blockquote", {}, blocks(lines.slice(at, end).map((other) => other.replace(QUOTE, "")), depth + 1)), end];
  }
  if (ITEM.test(line) && depth < DEEPEST) return list(lines, at, depth);
  if (line.includes("|") && DIVIDER.test(lines[at + 1] ?? "")) return table(lines, at);
  const end = until(lines, at + 1, (other) => !other.trim() || startsBlock(other));
  const words = lines.slice(at, end).map((other) => other.trimStart());
  return [h("p", {}, words.flatMap((one, place) => [place ? (/( {2}|\\)$/.test(words[place - 1]) ? h("br") : "\n") : null, inline(one.replace(/( {2,}|\\)$/, ""))])), end];
}

const startsBlock = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);

function until(lines, at, ends) {
  let end = at;
  while (end < lines.length && !ends(lines[end])) end += 1;
  return end;
}

function fenced(lines, at, [, marks, language]) {
  const end = until(lines, at + 1, (line) => line.trim().startsWith(marks) && /^(`+|~+)$/.test(line.trim()));
  return [codeBlock(lines.slice(at + 1, end).join("\n"), language), end + 1];
}

/** Code with its language and a button that copies it. */
export function codeBlock(code, language) {
  return h("div", { class: "fenced" }, h("div", { class: "fenced-head" }, h("span", {}, language || phrase("plain_text")), copyButton(code)),
    h("pre", { tabindex: "0", "aria-label": phrase("code_in", { language: language || phrase("plain_text") }) }, h("code", {}, colored(code, language))));
}

function list(lines, at, depth) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const items = [];
  let next = at;
  while (next < lines.length) {
    const item = ITEM.exec(lines[next]);
    if (!item || item[1].length > indent.length + 1 || /\d/.test(item[2]) !== ordered) break;
    const inside = item[1].length + item[2].length + 1;
    const end = until(lines, next + 1, (line) => line.trim() && !line.startsWith(" ".repeat(Math.min(inside, indent.length + 2))) && (ITEM.test(line) || startsBlock(line) || !lines[lines.indexOf(line, next) - 1]?.trim()));
    const body = [item[3], ...lines.slice(next + 1, end).map((line) => line.replace(new RegExp(`^ {0,${inside}}`), ""))];
    const task = TASK.exec(body[0])?.[1];
    if (task) body[0] = body[0].replace(TASK, task === " " ? "☐ " : "☑ ");
    const made = blocks(body, depth + 1);
    // An item of one paragraph is that line, not a paragraph of its own.
    items.push(h("li", { class: task ? "task" : null }, made[0]?.tagName === "P" ? [...made[0].childNodes] : made[0], made.slice(1)));
    next = end;
  }
  const start = ordered ? Number.parseInt(mark, 10) : 1;
  return [h(ordered ? "ol" : "ul", { start: start === 1 ? null : start }, items), next];
}

function table(lines, at) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
  const sides = cells(lines[at + 1]).map((cell) => (/^:.*:$/.test(cell) ? "centre" : /:$/.test(cell) ? "number" : null));
  const end = until(lines, at + 2, (line) => !line.includes("|"));
  const row = (line, tag) => h("tr", {}, cells(line).slice(0, sides.length).map((cell, place) => h(tag, { class: sides[place], scope: tag === "th" ? "col" : null }, inline(cell))));
  return [scroller("", phrase("view_table"), h("table", {}, h("thead", {}, row(lines[at], "th")), h("tbody", {}, lines.slice(at + 2, end).map((line) => row(line, "td"))))), end];
}

// Inside of a line

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", "#39": "'", nbsp: "\u00a0" };
const SPANS = [
  [/&(amp|lt|gt|quot|apos|#39|nbsp);/, ([, name]) => ENTITIES[name]],
  [/\\([\\`*_{}[\]()#+\-.!~>|])/, ([, character]) => character],
  [/(`+)([^`]|[^`][^]*?[^`])\1(?!`)/, ([, , code]) => h("code", {}, code.trim())],
  [/!?\[([^\]]*)\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"]*")?\s*\)/, ([, words, address]) => link(address, inline(words || address))],
  [/<(https?:\/\/[^\s>]+)>/, ([, address]) => link(address, address)],
  [/https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]]/, ([address]) => link(address, address)],
  [/\*\*(?=\S)([^]*?\S)\*\*(?!\*)/, ([, words]) => h("strong", {}, inline(words))],
  [/__(?=\S)([^]*?\S)__(?!\w)/, ([, words]) => h("strong", {}, inline(words))],
  [/~~(?=\S)([^]*?\S)~~/, ([, words]) => h("s", {}, inline(words))],
  [/\*(?=[^\s*])((?:[^*]|\*\*[^*]+\*\*)+?)(?<!\s)\*(?!\*)/, ([, words]) => h("em", {}, inline(words))],
  [/(?<!\w)_(?=[^\s_])([^_]*?[^\s_])_(?!\w)/, ([, words]) => h("em", {}, inline(words))],
];

function inline(text) {
  const made = [];
  let rest = text;
  while (rest) {
    const first = SPANS.map(([pattern, make]) => [pattern.exec(rest), make]).filter(([found]) => found).sort(([one], [other]) => one.index - other.index)[0];
    if (!first) break;
    const [found, make] = first;
    made.push(rest.slice(0, found.index), make(found));
    rest = rest.slice(found.index + found[0].length);
  }
  return [...made, rest].filter((one) => one !== "");
}

function link(address, words) {
  const safe = /^(https?:\/\/|mailto:)/i.test(address);
  return safe ? h("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow" }, words) : h("span", {}, words);
}
