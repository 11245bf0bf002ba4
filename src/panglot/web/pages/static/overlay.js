// Shapes of an answer, drawn over the picture that was sent.

import { h, s } from "./dom.js";
import { phrase } from "./language.js";
import { isRelative } from "./shapes.js";
import { digits, percent } from "./words.js";

/** A score as people read it: per cent where it is a share. */
const scored = (score) => (score >= 0 && score <= 1 ? percent(score) : digits(score));

const COLOURS = 8;
const [LEAST, HIGHEST] = [400, 520];

/** The picture with its shapes, and a list of them; pointing at one shows the other. */
export function overlay(picture, found) {
  const image = h("img", { src: URL.createObjectURL(picture), alt: picture.name });
  const kinds = [...new Set(found.map((shape) => shape.label))];
  const colour = (shape) => `c${kinds.indexOf(shape.label) % COLOURS}`;
  const stage = h("div", { class: "stage" }, image);
  const list = h("ul", { class: "found" });
  image.addEventListener("load", () => {
    const [width, height] = [image.naturalWidth, image.naturalHeight];
    // Small pictures are shown larger, so that what is drawn over them can be read.
    stage.style.width = `${Math.min(Math.max(width, LEAST), (HIGHEST * width) / height)}px`;
    stage.classList.toggle("coarse", width < LEAST / 3);
    const scale = isRelative(found) ? [width, height] : [1, 1];
    const groups = found.map((shape) => s("g", { class: colour(shape) }, drawn(shape, scale, [width, height])));
    stage.append(s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": phrase("found", { count: found.length }), preserveAspectRatio: "none" }, groups));
    const rows = found.map((shape, place) => [shape, groups[place]]).filter(([shape]) => !shape.together);
    list.replaceChildren(...rows.map(([shape, group]) => row(shape, group, colour(shape))));
  });
  return h("div", { class: "overlay" }, stage, list);
}

function row(shape, group, colour) {
  const mark = (on) => () => group.classList.toggle("marked", on);
  return h("li", { onpointerenter: mark(true), onpointerleave: mark(false) }, h("i", { class: `dot ${colour}` }),
    h("span", { class: "name" }, shape.label || shape.kind), shape.score === null ? null : h("span", { class: "number" }, scored(shape.score)));
}

function drawn(shape, [across, down], [width, height]) {
  const unit = Math.max(width, height) / 100;
  if (shape.kind === "box") {
    const [left, top] = [shape.left * across, shape.top * down];
    const box = s("rect", { x: left, y: top, width: Math.max(0, shape.right * across - left), height: Math.max(0, shape.bottom * down - top), rx: unit / 3, "vector-effect": "non-scaling-stroke" });
    return [box, caption(shape, left, top, unit)];
  }
  const points = (shape.points ?? []).map(([x, y, sure = 1]) => [x * across, y * down, sure]);
  if (shape.kind === "polygon") {
    return [s("polygon", { points: points.map(([x, y]) => `${x},${y}`).join(" "), "vector-effect": "non-scaling-stroke" }), caption(shape, points[0][0], points[0][1], unit)];
  }
  if (shape.kind === "points") return points.filter(([, , sure]) => sure > 0).map(([x, y]) => s("circle", { cx: x, cy: y, r: unit * 0.9 }));
  return s("image", { href: painted(shape.mask), width, height, preserveAspectRatio: "none", class: "mask" });
}

function caption(shape, x, y, unit) {
  if (!shape.label) return null;
  const size = unit * 3.4;
  const words = shape.score === null ? shape.label : `${shape.label} ${scored(shape.score)}`;
  return s("text", { x: x + unit * 0.6, y: Math.max(size, y - unit * 0.8), "font-size": size, "stroke-width": size / 5 }, words);
}

/** A mask as a picture of its own, every class in another colour. */
function painted(mask) {
  const canvas = h("canvas", { width: mask.width, height: mask.height });
  const context = canvas.getContext("2d");
  const data = context.createImageData(mask.width, mask.height);
  for (let y = 0; y < mask.height; y += 1) {
    for (let x = 0; x < mask.width; x += 1) {
      const value = Math.round(Number(mask.at(x, y)));
      if (value > 0) data.data.set([...hue(value), 130], (y * mask.width + x) * 4);
    }
  }
  context.putImageData(data, 0, 0);
  return canvas.toDataURL();
}

function hue(number) {
  const turn = (number * 0.618034) % 1 * 6;
  const part = (shift) => Math.round(255 * Math.max(0, Math.min(1, Math.abs(((turn + shift) % 6) - 3) - 1)));
  return [part(0), part(4), part(2)];
}
