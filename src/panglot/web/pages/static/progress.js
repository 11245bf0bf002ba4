// How far a call is, as its script reports it.

import { h } from "./dom.js";
import { phrase } from "./language.js";

const EVERY = 500;

/** Ask how far the request of this id is, until the signal aborts; `told` is called with what its script reports. */
export async function follow(id, signal, told) {
  let last = "";
  const rest = () => new Promise((resolve) => { setTimeout(resolve, EVERY); signal.addEventListener("abort", resolve, { once: true }); });
  for (await rest(); !signal.aborted; await rest()) {
    const answer = await fetch(`progress/${id}`, { signal }).catch(() => null);
    const reported = answer?.ok ? await answer.json().catch(() => null) : null;
    const said = JSON.stringify(reported);
    if (!reported || said === last || signal.aborted || (reported.progress === null && !reported.text)) continue;
    last = said;
    told(reported);
  }
}

/** An id for a request, so that it can be asked about while it runs. */
export const newRequestId = () => `page-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;

/** A bar for `{progress, text}`; only the text where the script gives no number, and nothing where it says nothing. */
export function progressBar(reported) {
  if (!reported) return null;
  const { progress, text } = reported;
  const words = typeof text === "string" ? text : JSON.stringify(text);
  const bar = progress === null || progress === undefined ? null
    : h("progress", { max: "1", ".value": progress, "aria-label": words || phrase("how_far") });
  return h("span", { class: "how-far" }, bar, bar ? ` ${Math.round(100 * progress)} % ` : null, words);
}
