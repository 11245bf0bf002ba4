// The body of a request: made by hand in fields, kept so that it can be sent, shown as code, and come back to.

import { field, isFile, json, written } from "./fields.js";
import { DropZone } from "./dropzone.js";
import { base64, inBase64 } from "./media.js";
import { h } from "./dom.js";
import { phrase } from "./language.js";
import { isNested, parse } from "./numbers.js";

/** The editor of one way to make the body: `{element, read, write, zones}`. `read` gives a body, see `Body`. */
export function editor(way, changed) {
  if (way.kind === "none") return { element: null, zones: [], read: () => ({ kind: "none" }), write: () => {} };
  if (way.kind === "file") return fileEditor(way, changed);
  if (way.kind === "form") return formEditor(way, changed);
  return jsonEditor(way, changed);
}

// One file

function fileEditor(way, changed) {
  const accept = (way.type ?? "").replace(/\/.*/, (rest) => (/^(image|audio|video)/.test(way.type) ? "/*" : rest));
  const zone = new DropZone({ label: phrase("body_label"), accept, changed });
  const write = (body) => { if (body.file) zone.set([body.file]); };
  function read() {
    const [file] = zone.files();
    if (!file) throw new Error(phrase("choose_first"));
    return { kind: "file", file, type: file.type || (way.type?.includes("*") ? "application/octet-stream" : way.type) || "application/octet-stream" };
  }
  return { element: h("div", { class: "field" }, h("span", { class: "label" }, phrase("file")), zone.element), zones: [zone], read, write };
}

// Forms

function formEditor(way, changed) {
  const properties = { ...(way.schema.properties ?? {}) };
  for (const name of Object.keys(way.files ?? {})) properties[name] ??= { type: "string", format: "binary" };
  for (const name of Object.keys(way.fields ?? {})) properties[name] ??= { type: "string" };
  if (!Object.keys(properties).length) properties.file = { type: "string", format: "binary" };
  const required = way.schema.required ?? Object.keys(way.files ?? {});
  const fields = Object.entries(properties).map(([name, schema]) => [name, field(way.document, name, schema, {
    required: required.includes(name), changed, accept: way.encoding?.[name]?.contentType ?? "",
  })]);
  for (const [name, value] of Object.entries(way.fields ?? {})) {
    const known = fields.find(([other]) => other === name)?.[1];
    if (known && value !== "...") known.write(known.schema.nullable && value === "null" ? null : parsed(known, value));
  }
  function read() {
    const entries = [];
    for (const [name, one] of fields) {
      const value = one.read();
      if (value === undefined && required.includes(name)) throw new Error(phrase("is_missing", { name }));
      for (const single of [value].flat()) {
        if (single instanceof Blob) entries.push({ name, file: single });
        // A form cannot say null: what is left out is what the script takes for nothing.
        else if (single !== undefined && single !== null && !one.zone) entries.push({ name, text: typeof single === "string" ? single : JSON.stringify(single) });
      }
    }
    return { kind: "form", entries };
  }
  function write(body) {
    for (const [name, one] of fields) {
      const mine = body.entries.filter((entry) => entry.name === name);
      if (one.zone) one.write(mine.map((entry) => entry.file));
      else if (mine.length) one.write(parsed(one, mine[0].text));
    }
  }
  return { element: h("div", {}, fields.map(([, one]) => one.element)), zones: zonesOf(fields), read, write };
}

const parsed = (one, text) => {
  if (one.raw || ["checkbox", "number"].includes(one.control?.type)) { try { return parse(text); } catch { return text; } }
  return text;
};
const zonesOf = (fields) => fields.map(([, one]) => one.zone).filter(Boolean);

// JSON

/** Fields where the schema names them, text for everything else; files inside of it lie in drop zones of their own. */
function jsonEditor(way, changed) {
  const schema = way.schema ?? {};
  const named = Object.entries(schema.properties ?? {});
  const simple = named.length > 0 && schema.type === "object" && !hasMark(way.value) && !holdsFile(way.value);
  return simple ? fieldsEditor(way, named, changed) : textEditor(way, changed);
}

function fieldsEditor(way, named, changed) {
  const required = way.schema.required ?? [];
  const fields = named.map(([name, schema]) => [name, field(way.document, name, schema, { required: required.includes(name), changed })]);
  const known = new Set(named.map(([name]) => name));
  let extra = {};
  function fillIn(value) {
    extra = Object.fromEntries(Object.entries(value ?? {}).filter(([name]) => !known.has(name)));
    for (const [name, one] of fields) if (!one.zone && value && name in value) one.write(value[name]);
  }
  fillIn(way.value);
  function read() {
    const value = { ...extra };
    const marks = [];
    for (const [name, one] of fields) {
      const given = one.read();
      if (given === undefined || (Array.isArray(given) && one.zone && !given.length)) {
        if (required.includes(name)) throw new Error(phrase("is_missing", { name }));
      } else if (one.zone) {
        const files = [given].flat().map((file) => mark(marks, file, ""));
        value[name] = Array.isArray(given) ? files : files[0];
      } else value[name] = given;
    }
    return { kind: "json", text: written(value), marks };
  }
  function write(body) {
    fillIn(parse(body.text));
    for (const [name, one] of fields) {
      if (one.zone) one.write(body.marks.filter((entry) => [JSON.parse(body.text)[name]].flat().includes(entry.mark)).map((entry) => entry.file));
    }
  }
  return { element: h("div", {}, fields.map(([, one]) => one.element)), zones: zonesOf(fields), read, write };
}

function mark(marks, file, prefix) {
  const entry = { mark: `‹${file.name || phrase("file_ending")}${marks.length ? ` ${marks.length + 1}` : ""}›`, file, prefix };
  marks.push(entry);
  return entry.mark;
}

const hasMark = (value) => some(value, (one) => one && typeof one === "object" && "$file" in one);
const holdsFile = (value) => some(value, (one) => typeof one === "string" && one.length > 200 && inBase64(one, "x"));

function some(value, test) {
  if (test(value)) return true;
  return isNested(value) && Object.values(value).some((one) => some(one, test));
}

function textEditor(way, changed) {
  const spots = [];
  const value = cut(way.value, "", spots);
  const body = json({}, { name: phrase("the_body"), changed });
  body.control.rows = 8;
  const label = h("label", { class: "label", for: body.id }, phrase("way_json"));
  const zones = spots.map((spot) => {
    spot.zone = new DropZone({ label: spot.where || phrase("the_file"), accept: spot.file && /^image/.test(spot.file.type) ? "image/*" : "", changed });
    if (spot.file) spot.zone.set([spot.file]);
    return spot.zone;
  });
  body.write(value);
  function read() {
    body.read();
    const marks = spots.filter((spot) => body.raw().includes(JSON.stringify(spot.mark)))
      .map((spot) => ({ mark: spot.mark, prefix: spot.prefix, file: spot.zone.files()[0], inline: spot.file && spot.zone.files()[0] === spot.file ? spot.inline : "" }));
    const missing = marks.find((entry) => !entry.file);
    if (missing) throw new Error(phrase("choose_file_for", { mark: missing.mark }));
    return { kind: "json", text: body.raw(), marks };
  }
  function write(given) {
    body.control.value = given.text;
    for (const entry of given.marks) spots.find((spot) => spot.mark === entry.mark)?.zone.set([entry.file]);
  }
  const parts = spots.map((spot) => h("div", { class: "field" }, h("span", { class: "label" }, spot.mark, h("span", { class: "hint" }, ` ${phrase("in_base64", { where: spot.where || phrase("body_label") })}`)), spot.zone.element));
  return {
    element: h("div", {}, parts, h("div", { class: "field" }, label, body.element)), zones, read, write,
    sample: (name, file) => spots.filter((spot) => spot.name === name && !spot.zone.files().length).forEach((spot) => spot.zone.set([file])),
  };
}

/** The value with a mark in place of each file. */
function cut(value, where, spots) {
  const encoded = typeof value === "string" && value.length > 200 ? inBase64(value, `file${spots.length ? spots.length + 1 : ""}`) : null;
  if (encoded || (value && typeof value === "object" && "$file" in value)) {
    const mine = `‹${phrase("file_ending")}${spots.length ? ` ${spots.length + 1}` : ""}›`;
    spots.push({ mark: mine, where, name: value.$file ?? "", prefix: encoded?.prefix ?? value.prefix, file: encoded?.file, inline: encoded ? value : "" });
    return mine;
  }
  if (Array.isArray(value)) return value.map((one, place) => cut(one, `${where}[${place}]`, spots));
  if (!isNested(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, cut(one, where ? `${where}.${name}` : name, spots)]));
}

// Sending

/** What `fetch` sends for a body, and its content type where the browser does not know it. */
export async function encoded(body) {
  if (body.kind === "none") return {};
  if (body.kind === "file") return { body: body.file, type: body.type };
  if (body.kind === "form") {
    const form = new FormData();
    for (const { name, text, file } of body.entries) {
      if (file) form.append(name, file, file.name);
      else form.append(name, text);
    }
    return { body: form };
  }
  if (!body.marks.length) return { body: body.text, type: "application/json" };
  const contents = new Map();
  for (const entry of body.marks) contents.set(entry.mark, entry.prefix + await base64(entry.file));
  return { body: JSON.stringify(filled(parse(body.text), contents)), type: "application/json" };
}

/** The value with contents in the place of their marks. */
function filled(value, contents) {
  if (!isNested(value)) return contents.get(value) ?? value;
  if (Array.isArray(value)) return value.map((one) => filled(one, contents));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, contents)]));
}

/** The first picture of a body, which answers may be drawn over. */
export function pictureOf(body) {
  const files = [body.file, ...(body.entries ?? []).map((entry) => entry.file), ...(body.marks ?? []).map((entry) => entry.file)];
  return files.find((file) => file?.type.startsWith("image/")) ?? null;
}
