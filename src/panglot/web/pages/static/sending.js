// Sending a request and reading its answer, as it comes.

import { encoded } from "./body.js";
import { phrase } from "./language.js";
import { parse } from "./numbers.js";
import { bytes } from "./words.js";

/** The word that ends a stream of OpenAI's form, and says nothing itself. */
const END = "[DONE]";

/** A body that the server would refuse for its size. */
export class TooLarge extends Error {
  constructor(size, most) {
    super(phrase("body_too_large", { size: bytes(size), most: bytes(most) }));
  }
}

/** A stream that the server ended because its script failed; `reason` is what its last part says. */
export class BrokenOff extends Error {
  constructor(reason) {
    super(reason.message);
    this.reason = reason;
  }
}

const FOLLOWED = /^(text\/event-stream|application\/(x-)?(ndjson|jsonl(ines)?))/;
const OCTETS = /^application\/octet-stream/;

/** Without it the server breaks the connection of such a stream, and the browser drops the parts that came just before. */
const TOLD = { prefer: "error-in-stream" };

/**
 * Send `{method, path, headers, body}`. `heard` is called with the answer so far, whenever there is more of it:
 * `{status, headers, type, blob, parts, began, took, done}`; `parts` are the events or lines of a stream. `events` in the
 * request: bytes are read as events too.
 * A body of more than `most` bytes, which the server would refuse, is not sent: raises TooLarge. Raises BrokenOff.
 */
export async function send(request, signal, heard, most = Infinity) {
  const { body, type } = await encoded(request.body);
  const headers = { ...TOLD, ...request.headers, ...(type ? { "content-type": type } : {}) };
  const began = performance.now();
  const answer = { parts: [], done: false, sent: sizeOf(body), began };
  if (answer.sent > most) throw new TooLarge(answer.sent, most);
  const response = await fetch(request.path.replace(/^\//, ""), { method: request.method, headers, body, signal, cache: "no-store" });
  Object.assign(answer, {
    status: response.status, headers: response.headers, type: response.headers.get("content-type") ?? "",
    first: performance.now() - began,
  });
  heard(answer);
  try {
    if (FOLLOWED.test(answer.type) || (request.events && OCTETS.test(answer.type))) await follow(response, answer, heard);
    else answer.blob = await response.blob();
  } finally {
    answer.took = performance.now() - began;
  }
  answer.received = answer.blob ? answer.blob.size : answer.received;
  answer.done = true;
  heard(answer);
  return answer;
}

function sizeOf(body) {
  if (body === undefined || body === null) return 0;
  if (typeof body === "string") return new TextEncoder().encode(body).length;
  if (body instanceof FormData) return [...body.values()].reduce((sum, one) => sum + (one.size ?? one.length), 0);
  return body.size;
}

async function follow(response, answer, heard) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const events = !/json/.test(answer.type);
  let rest = "";
  let why = null;
  const take = (pieces) => {
    answer.parts.push(...pieces.map(events ? event : line).filter((part) => part !== null));
    const error = answer.headers.has("preference-applied") ? answer.parts.at(-1)?.data?.error : null;
    if (error?.request_id !== answer.headers.get("x-request-id")) return;
    answer.parts.pop();
    why = { message: error.message, lines: "" };
  };
  answer.received = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    answer.received += value.length;
    rest += decoder.decode(value, { stream: true });
    const pieces = rest.split(events ? /\r?\n\r?\n/ : /\r?\n/);
    rest = pieces.pop();
    take(pieces);
    heard(answer);
  }
  if (rest.trim()) take([rest]);
  if (why) throw new BrokenOff(why);
}

/** One server-sent event: `{event, data}`. */
function event(text) {
  let name = "";
  const data = [];
  for (const one of text.split(/\r?\n/)) {
    if (one.startsWith("event:")) name = one.slice(6).trim();
    else if (one.startsWith("data:")) data.push(one.slice(5).replace(/^ /, ""));
  }
  if (data.length === 1 && data[0] === END) return null;
  return data.length || name ? { event: name, data: parsed(data.join("\n")) } : null;
}

function line(text) {
  return text.trim() ? { event: "", data: parsed(text) } : null;
}

function parsed(text) {
  try {
    return parse(text);
  } catch {
    return text;
  }
}

/** Why a stream broke off, as the server notes it: a message and the last lines of its log; where it notes nothing, `told`. */
export async function reason(answer, told = null) {
  const id = answer?.headers?.get("x-request-id");
  if (!id) return told;
  try {
    // The server notes it just after it has closed the connection.
    for (let turn = 0; turn < 5; turn += 1) {
      const known = await fetch(`status/${encodeURIComponent(id)}`);
      if (known.ok) {
        const { message, traceback, log } = await known.json();
        const lines = log.slice(-12).map((line) => line.text).filter((text) => !message || !text.endsWith(`: ${message}`));
        return { message: message || told?.message || "", lines: traceback || lines.join("\n") };
      }
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
  } catch {
    // The server has gone: the first error says so.
  }
  return told;
}

/** The Server-Timing header as `[name, milliseconds]`. */
export function timings(header) {
  return [...(header ?? "").matchAll(/([\w.-]+);dur=([\d.]+)/g)].map(([, name, ms]) => [name, Number(ms)]);
}
