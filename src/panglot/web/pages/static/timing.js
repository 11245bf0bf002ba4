// Where the time of a request went, as one bar.

import { h } from "./dom.js";
import { phrase } from "./language.js";
import { milliseconds } from "./words.js";

export const SPANS = ["queue", "decode", "preprocess", "inference", "postprocess", "encode"];

/** A bar of `[name, milliseconds]` on a scale of `most` milliseconds, read aloud in words. */
export function bar(spans, most) {
  const real = spans.filter(([, ms]) => ms > 0);
  const words = real.map(([name, ms]) => `${phrase(`stage_${name}`)} ${milliseconds(ms)}`).join(", ") || phrase("no_stage");
  return h("div", { class: "bar", role: "img", "aria-label": words, title: words }, real.map(([name, ms]) => {
    const piece = h("i", { class: name });
    piece.style.width = `${(100 * ms) / Math.max(most, 1e-6)}%`;
    return piece;
  }));
}

/**
 * The bar of one answer with its legend: stages, the rest of the server, and the way there and back.
 * The header of a stream, which came after `first` milliseconds, knows the time until then: the rest is the model's.
 */
export function timeline(found, took, first = null) {
  const times = Object.fromEntries(found);
  if (first !== null) {
    times.inference = (times.inference ?? 0) + took - first;
    times.total = (times.total ?? 0) + took - first;
  }
  const stages = SPANS.filter((name) => times[name] > 0).map((name) => [name, times[name]]);
  const total = times.total ?? 0;
  const rest = Math.max(0, total - stages.reduce((sum, [, ms]) => sum + ms, 0));
  const spans = [...stages, ["server", rest], ["network", Math.max(0, took - total)]];
  return h("div", { class: "timeline" }, bar(spans, Math.max(took, total)),
    h("ul", { class: "legend" }, spans.map(([name, ms]) => h("li", {}, h("i", { class: name }), `${phrase(`stage_${name}`)} `, h("span", { class: "number" }, milliseconds(ms))))));
}
