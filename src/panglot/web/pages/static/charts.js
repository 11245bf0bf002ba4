// Small charts of the last ten minutes: lines or layers over time, without a layout that moves.

import { h, s, say } from "./dom.js";
import { phrase } from "./language.js";
import { clock } from "./words.js";

const [WIDTH, HEIGHT] = [600, 120];
const [SHORTEST, LONGEST] = [60, 600];

/** A chart with `title` of series `{name, colour, read, words, own}`; `stacked` ones lie on each other, `own` ones have a scale of their own. Where a value is null the line has a gap. */
export class Chart {
  constructor(title, series, { stacked = false, words }) {
    Object.assign(this, { series, stacked, words });
    this.samples = [];
    this.values = series.map((one) => h("dd", {}, "–"));
    this.when = h("span", { class: "hint when" });
    this.paths = series.map((one) => s("path", { class: `${stacked ? "area" : "line"} ${one.colour}`, "vector-effect": "non-scaling-stroke" }));
    this.hair = s("line", { y1: 0, y2: HEIGHT, class: "hair", visibility: "hidden", "vector-effect": "non-scaling-stroke" });
    this.drawing = s("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true", onpointermove: (event) => this.point(event),
      onpointerleave: () => this.point(null),
    }, s("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5, class: "grid", "vector-effect": "non-scaling-stroke" }), [...this.paths].reverse(), this.hair);
    this.scale = h("span", { class: "hint scale" });
    this.start = h("span", {});
    this.span = SHORTEST;
    this.element = h("section", { class: "sheet chart" },
      h("h2", {}, title, this.when),
      h("dl", { class: "legend" }, series.map((one, place) => h("div", {}, h("dt", {}, h("i", { class: `dot ${one.colour}` }), one.name), this.values[place]))),
      h("div", { class: "plot" }, this.drawing, this.scale),
      h("p", { class: "hint ends", "aria-hidden": "true" }, this.start, h("span", {}, phrase("now"))));
  }

  /** Draw these samples, which are lists with the time first. */
  draw(samples) {
    this.samples = samples;
    const now = samples.at(-1)?.[0] ?? 0;
    this.span = Math.min(LONGEST, Math.max(SHORTEST, Math.ceil((now - (samples[0]?.[0] ?? now)) / 60) * 60));
    const rows = samples.map((sample) => this.heights(sample));
    const highest = (places) => nice(Math.max(...rows.flatMap((row) => places.map((place) => row[place])), 0));
    const shared = highest([...this.series.keys()].filter((place) => !this.series[place].own));
    const x = (sample) => (WIDTH * (sample[0] - now + this.span)) / this.span;
    this.paths.forEach((path, place) => {
      const most = this.series[place].own ? highest([place]) : shared;
      const y = (value) => (value === null ? null : HEIGHT - 1 - ((HEIGHT - 6) * value) / most);
      path.setAttribute("d", trace(samples, (sample, row) => [x(sample), y(rows[row][place])], this.stacked));
    });
    say(this.scale, this.words(shared));
    say(this.start, phrase("minutes_ago", { count: this.span / 60 }));
    if (!this.pointed) this.tell(samples.at(-1), "");
  }

  heights(sample) {
    let sum = 0;
    const own = this.series.map((one) => one.read(sample));
    return this.stacked ? own.map((value) => { sum += value; return sum; }) : own;
  }

  tell(sample, when) {
    if (!sample) return;
    this.series.forEach((one, place) => say(this.values[place], (one.words ?? this.words)(one.read(sample))));
    say(this.when, when);
  }

  /** Show the values where the pointer is. */
  point(event) {
    this.pointed = event !== null && this.samples.length > 0;
    this.hair.setAttribute("visibility", this.pointed ? "visible" : "hidden");
    if (!this.pointed) {
      this.tell(this.samples.at(-1), "");
      return;
    }
    const box = this.drawing.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const when = this.samples.at(-1)[0] - this.span * (1 - share);
    const nearest = this.samples.reduce((best, one) => (Math.abs(one[0] - when) < Math.abs(best[0] - when) ? one : best));
    this.hair.setAttribute("x1", WIDTH * share);
    this.hair.setAttribute("x2", WIDTH * share);
    this.tell(nearest, ` ${phrase("at_time", { time: clock(nearest[0]) })}`);
  }
}

function trace(samples, at, closed) {
  if (!samples.length) return "";
  const points = samples.map((sample, row) => at(sample, row)).map(([x, y]) => (y === null ? "" : `${x.toFixed(1)} ${y.toFixed(1)}`));
  if (points.includes("")) {
    // A value between two gaps is a short line, so that it is seen.
    return points.join("L").split(/L{2,}/).map((run) => run.replace(/^L|L$/g, "")).filter(Boolean).map((run) => `M${run}${run.includes("L") ? "" : "m-2 0h4"}`).join("");
  }
  const line = `M${points.join("L")}`;
  return closed ? `${line}L${at(samples.at(-1), samples.length - 1)[0]} ${HEIGHT}L${at(samples[0], 0)[0]} ${HEIGHT}Z` : line;
}

/** The least round number above. */
export function nice(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 5, 7, 10].map((step) => step * power).find((step) => step >= value * 1.02) ?? 10 * power;
}
