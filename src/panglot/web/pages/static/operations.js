// What can be asked of the server: the operations of /openapi.json, each with the ways its body may be made.

import { phrase } from "./language.js";
import { isNested } from "./numbers.js";
import { resolved } from "./server.js";

const JSON_TYPE = "application/json";
const FORM = "multipart/form-data";

/**
 * The operations that reach a model's script or its platform, those that take a body first. `requests` are those to begin with.
 * `ways` are those to choose from, one of each kind; `examples` all that begin with a request. A way: `{label, kind: json|form|file|none, type, schema, value, files, fields, path}`.
 */
export function operations(document, { name, start, requests }) {
  const found = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    // In the document of one of several models, what is not behind the model's own path says so.
    const place = methods.servers ? path : start + path;
    for (const method of ["post", "get", "put", "patch", "delete"]) {
      const about = methods[method];
      if (!about || !isTried(method, path, about)) continue;
      const all = [...(methods.parameters ?? []), ...(about.parameters ?? [])].map((one) => resolved(document, one));
      // What an operation says of a parameter holds, not what its path says.
      const parameters = [...new Map(all.map((one) => [`${one.in} ${one.name}`, one])).values()];
      found.push({
        id: `${method.toUpperCase()} ${place}`, path: place, method: method.toUpperCase(), summary: about.summary ?? "",
        parameters: parameters.filter((one) => one.in !== "header"),
        gives: Object.keys(about.responses?.["200"]?.content ?? {}),
        ...ways(document, about, requests.filter((one) => matches(place, one.path) && one.method.toLowerCase() === method), name),
      });
    }
  }
  const known = (one) => requests.findIndex((request) => matches(one.path, request.path));
  const rank = (one) => (known(one) >= 0 ? known(one) : one.method === "POST" ? 50 : one.method === "GET" ? 100 : 150);
  return found.sort((one, other) => rank(one) - rank(other));
}

/** Routes that reach a script, and platforms' own pages; of the routes that every server has, those that take tensors. */
function isTried(method, path, about) {
  return about.tags?.includes("inference") || (method === "post" && path.startsWith("/v2/models/") && path.endsWith("/infer"));
}

/** What the parameters of a path are in a request to it; null where it is another path. */
export function matches(template, path) {
  const names = [];
  const pattern = template.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{([^}]*)\}/g, (_, name) => { names.push(name); return "([^/]+?)"; });
  const found = new RegExp(`^${pattern}$`).exec(path.split("?")[0]);
  return found && Object.fromEntries(names.map((name, place) => [name, decodeURIComponent(found[place + 1])]));
}

function ways(document, about, requests, model) {
  const content = about.requestBody ? Object.entries(resolved(document, about.requestBody).content ?? {}) : [];
  if (!content.length) return { ways: [{ label: "", kind: "none", ...pathOf(requests) }], examples: [] };
  const examples = requests.filter((request) => request.body.kind !== "none").map((request) => ({ ...begun(document, request, content), model, title: request.title }));
  const found = examples.filter((way, place) => examples.findIndex((one) => one.kind === way.kind) === place);
  for (const [type, media] of content) {
    const kind = type === JSON_TYPE ? "json" : type === FORM ? "form" : "file";
    if (found.some((way) => way.kind === kind)) continue;
    const schema = fielded(document, media.schema);
    const way = { label: labelOf(kind), kind, type, schema, document, fields: {}, files: {}, ...pathOf(requests) };
    if (kind === "json") way.value = media.example ?? schema.example ?? sketch(document, schema);
    if (kind === "form") way.encoding = media.encoding ?? {};
    found.push(way);
  }
  return { ways: found, examples };
}

const pathOf = (requests) => ({ path: requests[0]?.path, headers: requests[0]?.headers ?? {} });

const labelOf = (kind) => phrase(`way_${kind}`);

/** A way that begins with a request which is known to make sense. */
function begun(document, request, content) {
  const { kind, type } = request.body;
  const media = Object.fromEntries(content);
  const about = kind === "json" ? media[JSON_TYPE] : kind === "form" ? media[FORM] : (media[type] ?? content[0]?.[1]);
  return {
    label: labelOf(kind), document, schema: fielded(document, about?.schema, request.body.value), encoding: about?.encoding ?? {},
    ...request.body, path: request.path, headers: request.headers,
    files: kind === "file" ? { "": [request.body.file] } : (request.body.files ?? {}),
  };
}

/** The schema behind references; of several that it may be, the one that names its fields, unless the value is of another. */
function fielded(document, given, value) {
  const schema = resolved(document, given);
  const named = (schema.anyOf ?? []).map((one) => resolved(document, one)).find((one) => one.type === "object" && one.properties);
  const fits = value === undefined || (isNested(value) && !Array.isArray(value));
  return named && fits ? named : schema;
}

/** A value that a schema allows, where there is no example: names with empty values. */
export function sketch(document, given, depth = 0) {
  const schema = resolved(document, given);
  if ("default" in schema) return schema.default;
  if ("example" in schema) return schema.example;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf || schema.oneOf) return sketch(document, (schema.anyOf ?? schema.oneOf)[0], depth + 1);
  if (schema.type === "object" && depth < 6) {
    return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, one]) => [name, sketch(document, one, depth + 1)]));
  }
  if (schema.type === "array") return schema.minItems && depth < 6 ? [sketch(document, schema.items, depth + 1)] : [];
  if (schema.type === "string") return "";
  if (schema.type === "boolean") return false;
  if (schema.type === "integer" || schema.type === "number") return schema.minimum ?? 0;
  return depth ? null : {};
}
