// The same request as a line of curl, and as programs. Each runs as it is pasted, beside the files it names.

import { Exact, isNested, parse } from "./numbers.js";

const JSON_HEADER = "Content-Type: application/json";

/** `[[language, code]]` of a request to a server at `base`; with `token`, the one in PANGLOT_TOKEN. */
export function snippets(request, base, token, streams) {
  const about = { ...request, body: written(request.body), url: base + request.path, token, streams };
  const found = [["curl", curl(about)], ["Python", python(about)], ["JavaScript", javascript(about)]];
  const model = /^((?:\/[^/]+)*)\/v2\/models\/([^/]+)(?:\/versions\/([^/]+))?\/infer$/.exec(request.path);
  if (model && request.body.kind === "json") found.push(["tritonclient", triton(about, model, base)]);
  const routed = /^(.*\/v1)\/(chat\/completions|embeddings|completions)$/.exec(request.path);
  if (routed && request.body.kind === "json") found.push(["openai", openai(about, base + routed[1], routed[2])]);
  return found;
}

/** The body with what was in base64 from the beginning, and lies in no file, back in its place. */
function written(body) {
  const inline = (body.marks ?? []).filter((entry) => entry.inline);
  if (!inline.length) return body;
  const text = inline.reduce((found, entry) => found.replace(JSON.stringify(entry.mark), () => JSON.stringify(entry.inline)), body.text);
  return { ...body, text, marks: body.marks.filter((entry) => !entry.inline) };
}

// curl

const quoted = (text) => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

function curl({ method, url, headers, body, token, streams }) {
  const words = ["curl"];
  if (streams) words.push("-N");
  if (method !== "POST" || body.kind === "none") words.push(`-X ${method}`);
  if (token) words.push('-H "Authorization: Bearer $PANGLOT_TOKEN"');
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${quoted(`${name}: ${value}`)}`);
  let before = "";
  if (body.kind === "json" && !body.marks.length) words.push(`-H '${JSON_HEADER}' -d ${quoted(body.text)}`);
  else if (body.kind === "json") {
    before = `${printf(body)} |\n`;
    words.push(`-H '${JSON_HEADER}' --data-binary @-`);
  } else if (body.kind === "file") words.push(`-H ${quoted(`Content-Type: ${body.type}`)} --data-binary ${quoted(`@${body.file.name}`)}`);
  for (const { name, text, file } of body.entries ?? []) {
    words.push(file ? `-F ${quoted(`${name}=@"${file.name.replace(/["\\]/g, "\\$&")}"${file.type ? `;type=${file.type}` : ""}`)}` : `--form-string ${quoted(`${name}=${text}`)}`);
  }
  return `${before}${words.join(" ")} ${quoted(url)}`;
}

/** The JSON with the files put in by the shell. */
function printf({ text, marks }) {
  const places = marks.map((entry) => [text.indexOf(JSON.stringify(entry.mark)), entry]).sort(([one], [other]) => one - other);
  let pattern = text.replaceAll("\\", "\\\\").replaceAll("%", "%%");
  for (const [, { mark, prefix }] of places) pattern = pattern.replace(JSON.stringify(mark), () => `"${prefix.replaceAll("%", "%%")}%s"`);
  return `printf ${quoted(pattern)} ${places.map(([, { file }]) => `"$(base64 -w0 ${quoted(file.name)})"`).join(" ")}`;
}

// Python

const text = (value) => JSON.stringify(value);

function python({ method, url, headers, body, token, streams }) {
  const imports = ["import httpx"];
  const given = { ...headers };
  const more = [];
  if (body.kind === "json") {
    if (body.marks.length) imports.unshift("import base64");
    more.push(`json=${literal(exactly(body.text), body.marks, "    ")}`);
  } else if (body.kind === "file") {
    given["Content-Type"] = body.type;
    more.push(`content=open(${text(body.file.name)}, "rb").read()`);
  } else if (body.kind === "form") {
    const parts = body.entries.map(({ name, file, text: words }) => (file
      ? `(${text(name)}, (${text(file.name)}, open(${text(file.name)}, "rb"), ${text(file.type || "application/octet-stream")}))`
      : `(${text(name)}, (None, ${text(words)}))`));
    more.push(`files=[${parts.join(", ")}]`);
  }
  const lines = Object.entries(given).map(([name, value]) => `${text(name)}: ${text(value)}`);
  if (token) {
    imports.push("import os");
    lines.push('"Authorization": f"Bearer {os.environ[\'PANGLOT_TOKEN\']}"');
  }
  if (lines.length) more.push(`headers={${lines.join(", ")}}`);
  const call = [text(url), ...more, "timeout=60"].map((one) => `    ${one},`).join("\n");
  const head = `${imports.sort().join("\n")}\n\n`;
  if (streams) return `${head}with httpx.stream(\n    "${method}",\n${call}\n) as answer:\n    for line in answer.iter_lines():\n        print(line)`;
  return `${head}answer = httpx.${method.toLowerCase()}(\n${call}\n)\nprint(answer.status_code, answer.text)`;
}

/** A number as it was written: Python knows more of them than JavaScript. */
class Written {
  constructor(digits) { this.digits = digits; }
}

const exactly = (json) => JSON.parse(json, (_, value, { source } = {}) => (typeof value === "number" && source ? new Written(source) : value));

/** A JSON value as Python writes it. */
function literal(value, marks, indent) {
  if (value instanceof Written) return value.digits;
  const entry = marks.find((one) => one.mark === value);
  if (entry) return `${entry.prefix ? `${text(entry.prefix)} + ` : ""}base64.b64encode(open(${text(entry.file.name)}, "rb").read()).decode()`;
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return text(value);
  const parts = Array.isArray(value) ? value.map((one) => literal(one, marks, `${indent}    `))
    : Object.entries(value).map(([name, one]) => `${text(name)}: ${literal(one, marks, `${indent}    `)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const flat = `${open}${parts.join(", ")}${close}`;
  if (flat.length <= 88 || parts.every((part) => part.length < 12)) return flat;
  return `${open}\n${parts.map((part) => `${indent}    ${part},`).join("\n")}\n${indent}${close}`;
}

// JavaScript

function javascript({ method, url, headers, body, token, streams }) {
  const before = [];
  const files = [body.file, ...(body.entries ?? []).map((entry) => entry.file), ...(body.marks ?? []).map((entry) => entry.file)].filter(Boolean);
  if (files.length) before.push('import { readFile } from "node:fs/promises";\n');
  const given = { ...headers };
  let content = "";
  if (body.kind === "json") {
    given["Content-Type"] = "application/json";
    // JavaScript itself cannot write every number that stands in the text.
    content = body.marks.length || isSafe(parse(body.text)) ? `JSON.stringify(${script(JSON.parse(body.text), body.marks)})` : text(body.text);
  } else if (body.kind === "file") {
    given["Content-Type"] = body.type;
    content = `await readFile(${text(body.file.name)})`;
  } else if (body.kind === "form") {
    before.push("const form = new FormData();");
    for (const { name, text: words, file } of body.entries) {
      before.push(file ? `form.append(${text(name)}, new Blob([await readFile(${text(file.name)})], { type: ${text(file.type)} }), ${text(file.name)});` : `form.append(${text(name)}, ${text(words)});`);
    }
    content = "form";
  }
  const lines = Object.entries(given).map(([name, value]) => `${text(name)}: ${text(value)}`);
  if (token) lines.push("Authorization: `Bearer ${process.env.PANGLOT_TOKEN}`");
  const options = [`method: "${method}"`, lines.length ? `headers: { ${lines.join(", ")} }` : "", content ? `body: ${content}` : ""].filter(Boolean);
  const end = streams
    ? "const decoder = new TextDecoder();\nfor await (const piece of answer.body) console.log(decoder.decode(piece, { stream: true }));"
    : "console.log(answer.status, await answer.text());";
  return `${before.join("\n")}${before.length ? "\n" : ""}const answer = await fetch(${text(url)}, {\n${options.map((one) => `  ${one},`).join("\n")}\n});\n${end}`;
}

const isSafe = (value) => (isNested(value) ? Object.values(value).every(isSafe) : !(value instanceof Exact));

function script(value, marks) {
  const entry = marks.find((one) => one.mark === value);
  if (entry) return `${entry.prefix ? `${text(entry.prefix)} + ` : ""}(await readFile(${text(entry.file.name)})).toString("base64")`;
  if (value === null || typeof value !== "object") return text(value);
  if (Array.isArray(value)) return `[${value.map((one) => script(one, marks)).join(", ")}]`;
  return `{ ${Object.entries(value).map(([name, one]) => `${text(name)}: ${script(one, marks)}`).join(", ")} }`;
}

// openai

function openai({ body, token }, address, route) {
  const method = { "chat/completions": "chat.completions", embeddings: "embeddings", completions: "completions" }[route];
  const given = JSON.parse(body.text);
  const fields = Object.entries(exactly(body.text)).map(([name, value]) => `    ${name}=${literal(value, body.marks, "    ")},`);
  const key = token ? 'os.environ["PANGLOT_TOKEN"]' : '"none"';
  const end = {
    embeddings: "print(len(answer.data), len(answer.data[0].embedding))",
    completions: given.stream ? 'for part in answer:\n    print(part.choices[0].text if part.choices else "", end="", flush=True)' : "print(answer.choices[0].text)",
    "chat/completions": given.stream ? 'for part in answer:\n    if part.choices:\n        print(part.choices[0].delta.content or "", end="", flush=True)' : "print(answer.choices[0].message.content)",
  }[route];
  return `${token ? "import os\n\n" : ""}from openai import OpenAI\n\nclient = OpenAI(base_url=${text(address)}, api_key=${key})\nanswer = client.${method}.create(\n${fields.join("\n")}\n)\n${end}`;
}

// tritonclient

const TYPES = { BOOL: "bool", UINT8: "uint8", UINT16: "uint16", UINT32: "uint32", UINT64: "uint64", INT8: "int8", INT16: "int16", INT32: "int32", INT64: "int64", FP16: "float16", FP32: "float32", FP64: "float64", BYTES: "object_" };

function triton({ body, token }, [, start, model, version], base) {
  const inputs = exactly(body.text).inputs ?? [];
  const lines = inputs.flatMap(({ name, shape, datatype, data }, place) => [
    `data = np.array(${literal(data, [], "")}, dtype=np.${TYPES[datatype] ?? "float32"}).reshape(${literal(shape, [], "")})`,
    `inputs.append(triton.InferInput(${text(name)}, ${literal(shape, [], "")}, ${text(datatype)}))`,
    `inputs[${place}].set_data_from_numpy(data)`,
  ]);
  const host = base.replace(/^https?:\/\//, "") + start;
  const secure = base.startsWith("https") ? ", ssl=True" : "";
  const headers = token ? ', headers={"Authorization": f"Bearer {os.environ[\'PANGLOT_TOKEN\']}"}' : "";
  const named = [text(decodeURIComponent(model)), "inputs", ...(version ? [`model_version=${text(version)}`] : [])].join(", ");
  return `${token ? "import os\n\n" : ""}import numpy as np
import tritonclient.http as triton

client = triton.InferenceServerClient(${text(host)}${secure})
inputs = []
${lines.join("\n")}
answer = client.infer(${named}${headers})
for output in answer.get_response()["outputs"]:
    print(output["name"], answer.as_numpy(output["name"]))`;
}
