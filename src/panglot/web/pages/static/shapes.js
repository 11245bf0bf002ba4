// Boxes, polygons, points and masks in an answer, in the shapes that scripts of the platforms return.

const NAMES = ["class", "label", "name", "class_name", "category", "tag", "text", "transcription", "type", "class_id", "category_id", "index"];
const SCORES = ["score", "confidence", "conf", "probability", "prob", "rec_score", "det_score"];
const BOXES = ["bbox", "box", "boxes", "bboxes", "bndbox", "rect", "bounding_box", "boundingbox", "xyxy", "location", "detection_boxes", "roi", "rois"];
const POLYGONS = ["pts", "polygon", "polygons", "points", "poly", "dt_polys", "dt_boxes", "segmentation", "contour", "quad", "text_region"];
const POINTS = ["keypoints", "keypoint", "landmarks", "landmark", "kps", "joints"];
const MASKS = ["mask", "masks", "segmentation", "rle", "seg_map", "label_map"];

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const numbers = (value, length) => Array.isArray(value) && (!length || value.length === length) && value.length > 0 && value.every(isNumber);
const pick = (entry, names) => names.map((name) => entry[name]).find((value) => ["string", "number"].includes(typeof value));

/** All shapes in a value: `{kind: box|polygon|points|mask, label, score, ...}`, with coordinates as the script has them. */
export function shapes(value) {
  const found = [];
  walk(value, found, 0);
  return found.slice(0, 500);
}

function walk(value, found, depth) {
  if (depth > 6 || value === null || typeof value !== "object") return;
  if (Array.isArray(value)) {
    if (value.length && value.every((row) => numbers(row, 6))) value.forEach((row) => found.push(fromRow(row)));
    else value.slice(0, 1000).forEach((one) => walk(one, found, depth + 1));
    return;
  }
  const before = found.length;
  columns(value, found);
  if (found.length === before) entry(value, found);
  if (found.length === before) Object.values(value).forEach((one) => walk(one, found, depth + 1));
}

/** A row `class, score, left, top, right, bottom`, as PaddleDetection gives it. */
function fromRow([label, score, ...corners]) {
  return { kind: "box", label: String(label), score, ...corner(corners) };
}

/** Lists beside each other: boxes, classes and scores by their place. */
function columns(value, found) {
  const boxes = Object.entries(value).find(([name, one]) => lower(BOXES, name) && Array.isArray(one) && one.length && one.every((row) => numbers(row, 4)));
  const polygons = Object.entries(value).find(([name, one]) => lower(POLYGONS, name) && Array.isArray(one) && one.length && one.every((row) => pairs(row)));
  if (!boxes && !polygons) return;
  const [name, rows] = boxes ?? polygons;
  const lists = Object.entries(value).filter(([other, one]) => other !== name && Array.isArray(one) && one.length === rows.length);
  const labels = lists.find(([other, one]) => /class|label|name|text|categor/i.test(other) && one.every((entry) => typeof entry !== "object"))?.[1];
  const scores = lists.find(([other, one]) => /score|conf|prob/i.test(other) && one.every((entry) => isNumber(Number(entry))))?.[1];
  rows.forEach((row, place) => {
    const about = { label: labels ? String(labels[place]) : "", score: scores ? Number(scores[place]) : null };
    if (boxes) found.push({ kind: "box", ...about, ...corner(name === "detection_boxes" ? [row[1], row[0], row[3], row[2]] : row) });
    else found.push({ kind: "polygon", ...about, points: pairs(row) });
  });
}

const lower = (names, name) => names.includes(name.toLowerCase());

/** One object that says where it is. */
function entry(value, found) {
  const score = pick(value, SCORES);
  const about = { label: String(pick(value, NAMES) ?? ""), score: score === undefined ? null : Number(score) };
  const before = found.length;
  const own = named(value);
  if (own) found.push({ kind: "box", ...about, ...own });
  for (const [name, one] of Object.entries(value)) {
    if (lower(POINTS, name) && points(one)) found.push({ kind: "points", ...about, points: points(one) });
    else if (lower(MASKS, name) && mask(one)) found.push({ kind: "mask", ...about, mask: mask(one) });
    else if (lower(POLYGONS, name) && pairs(flatPolygon(one))) found.push({ kind: "polygon", ...about, points: pairs(flatPolygon(one)) });
    else if (lower(BOXES, name) && numbers(one, 4)) found.push({ kind: "box", ...about, ...corner(one, name === "xywh") });
    else if (lower(BOXES, name) && pairs(one)) found.push({ kind: "polygon", ...about, points: pairs(one) });
    else if (lower(BOXES, name) && one && typeof one === "object" && named(one)) found.push({ kind: "box", ...about, ...named(one) });
  }
  if (found.length - before > 1) found.slice(before + 1).forEach((shape) => { shape.together = true; });
}

/** COCO keeps polygons as a list of flat lists. */
const flatPolygon = (value) => (Array.isArray(value) && value.length === 1 && numbers(value[0]) ? value[0] : value);

/** A box by the names of its sides. */
function named(value) {
  const side = (...names) => names.map((name) => value[name]).find(isNumber);
  const [left, top] = [side("xmin", "x1", "left", "x"), side("ymin", "y1", "top", "y")];
  const [right, bottom] = [side("xmax", "x2", "right"), side("ymax", "y2", "bottom")];
  const [width, height] = [side("width", "w"), side("height", "h")];
  if (left === undefined || top === undefined) return null;
  if (right !== undefined && bottom !== undefined) return { left, top, right, bottom };
  if (width !== undefined && height !== undefined) return { left, top, right: left + width, bottom: top + height };
  return null;
}

/** Left, top, right, bottom; or width and height, where these cannot be the far corner. */
function corner([left, top, third, fourth]) {
  const far = third >= left && fourth >= top;
  return far ? { left, top, right: third, bottom: fourth } : { left, top, right: left + third, bottom: top + fourth };
}

/** Points as pairs, from pairs or a flat list; null for anything else. */
function pairs(value) {
  if (!Array.isArray(value) || value.length < 3) return null;
  if (value.every((one) => numbers(one, 2))) return value;
  if (numbers(value) && value.length >= 6 && value.length % 2 === 0) return chunks(value, 2);
  if (value.every((one) => one && isNumber(one.x) && isNumber(one.y))) return value.map((one) => [one.x, one.y]);
  return null;
}

/** Key points `[x, y]` or `[x, y, score]`, as rows or flat. */
function points(value) {
  if (!Array.isArray(value) || !value.length) return null;
  if (value.every((one) => numbers(one) && (one.length === 2 || one.length === 3))) return value;
  if (numbers(value) && value.length % 3 === 0) return chunks(value, 3);
  if (numbers(value) && value.length % 2 === 0) return chunks(value, 2);
  if (value.every((one) => one && isNumber(one.x) && isNumber(one.y))) return value.map((one) => [one.x, one.y, one.score ?? 1]);
  return null;
}

const chunks = (list, size) => Array.from({ length: list.length / size }, (_, place) => list.slice(place * size, place * size + size));

/** `{width, height, at(x, y)}` of rows of numbers, or of COCO's run lengths. */
function mask(value) {
  if (Array.isArray(value) && value.length > 1 && value.every((row) => numbers(row, value[0].length)) && value[0].length > 2) {
    return { width: value[0].length, height: value.length, at: (x, y) => value[y][x] };
  }
  if (value && numbers(value.size, 2) && numbers(value.counts)) {
    const [height, width] = value.size;
    const flat = new Uint8Array(width * height);
    let place = 0;
    value.counts.forEach((run, turn) => { if (turn % 2) flat.fill(1, place, place + run); place += run; });
    return { width, height, at: (x, y) => flat[x * height + y] };
  }
  return null;
}

/** Whether coordinates are shares of the picture rather than pixels. */
export function isRelative(found) {
  const all = found.flatMap((shape) => (shape.kind === "box" ? [shape.right, shape.bottom] : (shape.points ?? []).flatMap(([x, y]) => [x, y])));
  return all.length > 0 && all.every((value) => value <= 1.001);
}

/** Labels with scores, `[[label, score]]`, best first; empty where an answer has none. */
export function labels(value, depth = 0) {
  if (depth > 4 || value === null || typeof value !== "object") return [];
  const rows = Array.isArray(value) ? fromList(value) : fromObject(value);
  if (rows.length) return rows.sort((one, other) => other[1] - one[1]).slice(0, 20);
  const inside = Array.isArray(value) ? (value.length === 1 ? value : []) : Object.values(value);
  for (const one of inside) {
    const found = labels(one, depth + 1);
    if (found.length) return found;
  }
  // One label with its score, where no list of several is inside.
  const [label, score] = [pick(value, NAMES), pick(value, SCORES)];
  return label !== undefined && typeof score === "number" && isScore(score) ? [[String(label), score]] : [];
}

function fromList(value) {
  if (!value.length) return [];
  if (value.every((one) => Array.isArray(one) && one.length === 2 && typeof one[0] === "string" && isScore(one[1]))) {
    return value.map(([label, score]) => [label, Number(score)]);
  }
  if (!value.every((one) => one && typeof one === "object" && !Array.isArray(one))) return [];
  const rows = value.map((one) => [pick(one, NAMES), pick(one, SCORES)]);
  return rows.every(([label, score]) => label !== undefined && isScore(score)) ? rows.map(([label, score]) => [String(label), Number(score)]) : [];
}

function fromObject(value) {
  const lists = Object.entries(value).filter(([, one]) => Array.isArray(one) && one.length > 1);
  const names = lists.find(([name, one]) => /class|label|name|categor/i.test(name) && one.every((entry) => ["string", "number"].includes(typeof entry)));
  const scores = lists.find(([name, one]) => /score|conf|prob/i.test(name) && one.every(isScore));
  if (names && scores && names[1].length === scores[1].length) return names[1].map((name, place) => [String(name), Number(scores[1][place])]);
  const entries = Object.entries(value);
  const sure = entries.length > 1 && entries.every(([, one]) => isNumber(one) && one >= 0 && one <= 1);
  return sure && Math.abs(entries.reduce((sum, [, one]) => sum + one, 0) - 1) < 0.05 ? entries.map(([name, score]) => [name, score]) : [];
}

const isScore = (value) => value !== "" && isNumber(Number(value)) && Number(value) >= 0 && Number(value) <= 1;
