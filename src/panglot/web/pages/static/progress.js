// How far a call is, as its script reports it.

import { h } from "./dom.js";

/** A bar for `{progress, text}`; only the text where the script gives no number, and nothing where it says nothing. */
export function progressBar(reported) {
  if (!reported) return null;
  const { progress, text } = reported;
  const words = typeof text === "string" ? text : JSON.stringify(text);
  const bar = progress === null || progress === undefined ? null
    : h("progress", { max: "1", ".value": progress, "aria-label": words || "How far it is" });
  return h("span", { class: "how-far" }, bar, bar ? ` ${Math.round(100 * progress)} % ` : null, words);
}
