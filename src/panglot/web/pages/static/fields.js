// One field of a form, made of its schema: sliders, choices, switches, text, files, and JSON for the rest.

import { DropZone } from "./dropzone.js";
import { h, newId, say } from "./dom.js";
import { phrase } from "./language.js";
import { isNested, number as exactly, parse } from "./numbers.js";
import { resolved } from "./server.js";

const LONG = 60;
const WORDY = /text|prompt|sentence|content|message|question|query|document|passage|review|article|story|code|body/i;

/** `{element, read, write}`. `read` gives undefined for a field that is left empty, and raises for one that is wrong. */
export function field(document, name, given, { required = false, changed = () => {}, accept = "" } = {}) {
  const schema = flattened(document, given);
  const made = kinds(schema, { document, name, required, changed, accept });
  const beside = made.control?.type === "checkbox";
  const about = schema.description ? h("p", { class: "hint", id: `${made.id}-about` }, schema.description) : null;
  if (about) made.control?.setAttribute("aria-describedby", about.id);
  if (required && made.control && !beside) made.control.required = true;
  const label = h(made.group ? "span" : "label", { class: required && !beside ? "label needed" : "label", for: made.group ? null : made.id, id: `${made.id}-label` },
    name);
  if (beside) return { ...made, schema, element: h("div", { class: "field beside" }, made.element, label, about) };
  if (made.group) {
    made.element.setAttribute("role", "group");
    made.element.setAttribute("aria-labelledby", label.id);
  }
  return { ...made, schema, element: h("div", { class: "field" }, label, made.element, about) };
}

/** Whether null is all that a schema takes; OpenAPI 3.0 has no type for it. */
const isNull = (schema) => schema.type === "null" || (schema.enum?.length === 1 && schema.enum[0] === null);

/** The schema behind `anyOf` with null, and behind references. */
function flattened(document, given) {
  const schema = resolved(document, given);
  const options = (schema.anyOf ?? schema.oneOf ?? []).map((one) => resolved(document, one)).filter((one) => !isNull(one));
  const nullable = schema.nullable || options.length < (schema.anyOf ?? schema.oneOf ?? []).length || (schema.enum?.includes(null) ?? false);
  const [whole] = schema.allOf?.length === 1 ? [resolved(document, schema.allOf[0])] : options.length === 1 ? options : [];
  if (whole) return { ...whole, ...schema, nullable, allOf: undefined, anyOf: undefined, oneOf: undefined };
  return { ...schema, nullable };
}

function kinds(schema, about) {
  const items = resolved(about.document, schema.items);
  if (isFile(schema)) return files(schema, about, false);
  if (schema.type === "array" && isFile(items)) return files(items, about, true);
  if (schema.enum) return choice(schema, about);
  if (schema.type === "boolean" && schema.nullable) return choice({ ...schema, enum: [true, false] }, about);
  if (schema.type === "boolean") return toggle(schema, about);
  if (schema.type === "integer" || schema.type === "number") return number(schema, about);
  if (schema.type === "string") return text(schema, about);
  return json(schema, about);
}

export const isFile = (schema) => schema.format === "binary" || isEncoded(schema);
const isEncoded = (schema) => schema.format === "byte" || schema.contentEncoding === "base64";

function files(schema, { name, changed, accept }, multiple) {
  const zone = new DropZone({ label: name, accept: accept || schema.contentMediaType || "", multiple, changed });
  return {
    id: newId("field"), group: true, element: zone.element, zone, encoded: isEncoded(schema),
    read: () => (multiple ? zone.files() : zone.files()[0]),
    write: (value) => zone.set([value].flat().filter((one) => one instanceof Blob)),
  };
}

function choice(schema, { required, changed }) {
  const id = newId("field");
  const options = schema.enum.filter((one) => one !== null);
  // A choice that has a default, and cannot be null, always has a value.
  const always = !schema.nullable && (required || options.includes(schema.default));
  const control = h("select", { id, onchange: changed },
    always ? null : h("option", { value: "" }, schema.nullable ? phrase("none") : "–"),
    options.map((one, place) => h("option", { value: place + 1 }, String(one))));
  const write = (value) => { control.value = options.findIndex((one) => one === value || String(one) === value) + 1 || (always ? 1 : ""); };
  write(schema.default ?? undefined);
  return { id, control, element: control, write, read: () => (control.value ? options[control.value - 1] : empty(schema)) };
}

/** What a field that is left empty says: null where that may be, and is not what the server takes it for anyway. */
const empty = (schema) => (schema.nullable && schema.default !== null ? null : undefined);

function toggle(schema, { changed }) {
  const id = newId("field");
  const control = h("input", { type: "checkbox", role: "switch", id, ".checked": schema.default === true, onchange: changed });
  return { id, control, element: control, read: () => control.checked, write: (value) => { control.checked = value === true; } };
}

function number(schema, { name, required, changed }) {
  const id = newId("field");
  const placeholder = required ? null : schema.nullable ? phrase("none") : phrase("unset");
  const [least, most] = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum];
  const bounded = Number.isFinite(least) && Number.isFinite(most);
  const step = schema.multipleOf ?? (schema.type === "integer" ? 1 : "any");
  const control = h("input", { type: "number", id, min: least, max: most, step, ".value": schema.default ?? "", placeholder, oninput: fromNumber });
  const slider = bounded ? h("input", {
    type: "range", min: least, max: most, step: step === "any" ? (most - least) / 100 : step, "aria-label": phrase("as_slider", { name }), oninput: fromSlider,
    ".value": schema.default ?? least,
  }) : null;
  function fromNumber() { if (slider && control.value !== "") slider.value = control.value; changed(); }
  function fromSlider() { control.value = slider.value; changed(); }
  function write(value) {
    control.value = value ?? "";
    if (slider) slider.value = value ?? least;
  }
  function read() {
    if (control.value === "" && !control.validity.badInput) return empty(schema);
    if (!control.validity.valid) throw new Error(`${name}: ${control.validationMessage}`);
    return exactly(control.value);
  }
  return { id, control, element: slider ? h("div", { class: "slider" }, slider, control) : control, read, write };
}

function text(schema, { name, changed }) {
  const id = newId("field");
  const long = (schema.maxLength ?? 0) > LONG || String(schema.default ?? "").length > LONG || WORDY.test(name);
  const control = h(long ? "textarea" : "input", {
    id, type: long ? null : "text", minlength: schema.minLength, maxlength: schema.maxLength, spellcheck: "false",
    rows: long ? 3 : null, ".value": schema.default ?? "", oninput: changed,
  });
  let touched = Boolean(schema.default);
  control.addEventListener("input", () => { touched = true; });
  return {
    id, control, element: control,
    read: () => (control.value || (touched && !schema.nullable) ? control.value : empty(schema)),
    write: (value) => { touched = value !== undefined && value !== null; control.value = value ?? ""; },
  };
}

/** A value as JSON, with what is wrong with it below. */
export function json(schema, { name, changed }) {
  const id = newId("field");
  const control = h("textarea", { id, class: "code", spellcheck: "false", rows: 2, autocapitalize: "off", oninput: edited, onblur: () => read(true) });
  const wrong = h("p", { class: "hint wrong", role: "alert" });
  function edited() { say(wrong, ""); changed(); }
  function read(quiet = false) {
    if (!control.value.trim()) return undefined;
    try {
      return parse(control.value);
    } catch (error) {
      say(wrong, error.message);
      if (quiet) return undefined;
      throw new Error(phrase("not_json", { name: name || phrase("the_body"), message: error.message }));
    }
  }
  const write = (value) => { say(wrong, ""); control.value = value === undefined ? "" : written(value); };
  write(schema.default);
  return { id, control, element: h("div", { class: "json" }, control, wrong), read: () => read(), write, raw: () => control.value };
}

/** JSON with short lists and objects on one line, as a person would write it. */
export function written(value, indent = "") {
  const line = flat(value);
  if (line.length + indent.length <= 72 || !isNested(value)) return line;
  const deeper = `${indent}  `;
  if (Array.isArray(value) && value.every((one) => typeof one === "number")) return `[\n${filled(value.map(String), deeper)}\n${indent}]`;
  const lines = Array.isArray(value)
    ? value.map((one) => written(one, deeper))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${written(one, deeper)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${lines.map((one) => deeper + one).join(",\n")}\n${indent}${close}`;
}

function flat(value) {
  if (Array.isArray(value)) return `[${value.map(flat).join(", ")}]`;
  if (!isNested(value)) return JSON.stringify(value) ?? "null";
  const inside = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${flat(one)}`);
  return inside.length ? `{${inside.join(", ")}}` : "{}";
}

/** Words in lines of up to 72 characters. */
function filled(words, indent) {
  const lines = [""];
  for (const [place, word] of words.entries()) {
    const piece = place < words.length - 1 ? `${word},` : word;
    const last = lines.at(-1);
    if (last && indent.length + last.length + piece.length + 1 > 72) lines.push(piece);
    else lines[lines.length - 1] = last ? `${last} ${piece}` : piece;
  }
  return lines.map((line) => indent + line).join("\n");
}
