// The same request as a line of curl, and as programs. Each runs as it is pasted, beside the files it names.

import { endingOf, isText } from "./media.js";
import { Exact, isNested, parse } from "./numbers.js";

const JSON_HEADER = "Content-Type: application/json";

/**
 * `[[language, code]]` of a request to a server at `base`; with `token`, the one in PANGLOT_TOKEN.
 * `client` says what `panglot.Client` calls by itself: `{start, path}`. `type` is that of the answer, where it is known.
 */
export function snippets(request, { base, token, streams = false, client = null, type = "" }) {
  const about = { ...request, body: written(request.body), url: base + request.path, token, streams, file: fileOf(type) };
  const found = [["curl", curl(about)], ["Python", python(about)]];
  const own = client && request.method === "POST" && request.path === client.path ? clientCall(about, client) : "";
  if (own) found.push(["panglot.Client", own]);
  found.push(["JavaScript", javascript(about)]);
  const model = /^((?:\/[^/]+)*)\/v2\/models\/([^/]+)(?:\/versions\/([^/]+))?\/infer$/.exec(request.path);
  if (model && request.body.kind === "json") found.push(["tritonclient", triton(about, model, base)]);
  const routed = /^(.*\/v1)\/(chat\/completions|embeddings|completions)$/.exec(request.path);
  if (routed && request.body.kind === "json") found.push(["openai", openai(about, base + routed[1], routed[2])]);
  return found;
}

/** The name of a file for an answer that is no text; empty for one that is printed. */
function fileOf(type) {
  const kind = type.split(";")[0].trim();
  return !kind || isText(kind) || /json/.test(kind) ? "" : `answer.${endingOf(kind)}`;
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

function curl({ method, url, headers, body, token, streams, file: saved }) {
  const words = ["curl"];
  if (streams) words.push("-N");
  if (saved) words.push(`-f -o ${saved}`);
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

function python({ method, url, headers, body, token, streams, file: saved }) {
  const imports = ["import requests"];
  const given = { ...headers };
  const more = [];
  if (body.kind === "json") {
    if (body.marks.length) imports.push("import base64");
    more.push(`json=${literal(exactly(body.text), body.marks, "    ")}`);
  } else if (body.kind === "file") {
    given["Content-Type"] = body.type;
    more.push(`data=open(${text(body.file.name)}, "rb")`);
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
  if (streams) more.push("stream=True");
  const call = [text(url), ...more, "timeout=60"].map((one) => `    ${one},`).join("\n");
  const end = streams ? "for line in answer.iter_lines():\n    print(line.decode())"
    : saved ? `answer.raise_for_status()\nopen("${saved}", "wb").write(answer.content)`
      : "print(answer.status_code, answer.content.decode())";
  return `${ordered(imports)}answer = requests.${method.toLowerCase()}(\n${call}\n)\n${end}`;
}

/** Imports as tools for Python order them: the standard library, then the rest. */
function ordered(imports) {
  const standard = imports.filter((one) => /^(import (base64|os)|from pathlib .*)$/.test(one)).sort();
  const others = imports.filter((one) => !standard.includes(one));
  return [standard, others].filter((group) => group.length).map((group) => `${group.join("\n")}\n\n`).join("");
}

// panglot.Client

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const RESERVED = /^(self|False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)$/;

/** A call of the client, which makes the request itself; empty for a request that it would not make so. */
function clientCall({ body, url, streams, file: saved }, { path, start }) {
  const given = clientInput(body);
  if (!given) return "";
  const imports = ["from panglot import Client"];
  if (given.includes("Path(")) imports.push("from pathlib import Path");
  const address = url.slice(0, url.length - path.length) + start;
  const call = streams ? `for part in client.stream(${given}):\n        print(part)`
    : saved ? `open("${saved}", "wb").write(client.ask(${given}))` : `print(client.ask(${given}))`;
  return `${ordered(imports)}with Client(${text(address)}) as client:\n    ${call}`;
}

/** What is given to the client: a file alone where the rest of the request is the platform's form of it. */
function clientInput(body) {
  if (body.kind === "file") return `Path(${text(body.file.name)})`;
  if (body.kind === "form") return formValues(body.entries);
  if (body.kind !== "json") return "";
  const value = exactly(body.text);
  if (!body.marks.length) return typeof value === "string" ? "" : values(value);
  return String(leaves(value)) === body.marks[0].mark ? `Path(${text(body.marks[0].file.name)})` : "";
}

const leaves = (value) => (isNested(value) && !Array.isArray(value) ? Object.values(value).flatMap(leaves) : [Array.isArray(value) ? null : value]);

/** A value, by names where it has some. */
function values(value) {
  const named = isNested(value) && !Array.isArray(value) && !(value instanceof Written) ? Object.entries(value) : [];
  if (!named.length || !named.every(([name]) => NAME.test(name) && !RESERVED.test(name))) return literal(value, [], "    ");
  return spread(named.map(([name, one]) => `${name}=${literal(one, [], "        ")}`));
}

/** The values of a form by their names; several of one name are a list. */
function formValues(entries) {
  const names = [...new Set(entries.map((entry) => entry.name))];
  if (!names.every((name) => NAME.test(name) && !RESERVED.test(name))) return "";
  return spread(names.map((name) => {
    const mine = entries.filter((entry) => entry.name === name).map((entry) => (entry.file ? `Path(${text(entry.file.name)})` : text(entry.text)));
    return `${name}=${mine.length > 1 ? `[${mine.join(", ")}]` : mine[0]}`;
  }));
}

const spread = (parts) => (parts.join(", ").length <= 70 ? parts.join(", ") : `\n${parts.map((part) => `        ${part},`).join("\n")}\n    `);

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

function javascript({ method, url, headers, body, token, streams, file: saved }) {
  const before = [];
  const files = [body.file, ...(body.entries ?? []).map((entry) => entry.file), ...(body.marks ?? []).map((entry) => entry.file)].filter(Boolean);
  const used = [...(files.length ? ["readFile"] : []), ...(saved ? ["writeFile"] : [])];
  if (used.length) before.push(`import { ${used.join(", ")} } from "node:fs/promises";\n`);
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
    : saved ? `if (!answer.ok) throw new Error(await answer.text());\nawait writeFile("${saved}", new Uint8Array(await answer.arrayBuffer()));`
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
