// The playground: a form made of what the server says about itself, and the answer beside it.

import { sendAsJob } from "./as_job.js";
import { brokenOff, shown, Stream, unsent } from "./answer.js";
import { editor, pictureOf } from "./body.js";
import { byId, copyButton, h, newId, say, show, tabs } from "./dom.js";
import { Gallery } from "./gallery.js";
import { described, Home } from "./home.js";
import { phrase } from "./language.js";
import { linked, linkOf } from "./linking.js";
import { matches, operations } from "./operations.js";
import { follow, newRequestId, progressBar } from "./progress.js";
import { reason, send, timings } from "./sending.js";
import { chatOf } from "./talking.js";
import { get, renewState, stateIs, watchState } from "./server.js";
import { snippets } from "./snippets.js";
import { firstTensors, takesTensors } from "./tensors.js";
import { timeline } from "./timing.js";
import { Tries, verdict } from "./tries.js";
import { bytes, milliseconds } from "./words.js";

const BASE = location.origin + location.pathname.replace(/\/[^/]*$/, "");

class Playground {
  constructor(about, model, document) {
    this.about = about;
    this.model = model;
    this.operations = operations(document, model);
    this.client = { start: model.start, path: `${model.start}${document["x-panglot"]?.path}` };
    this.running = null;
    this.left = new AbortController();
    this.samples = new Map();
    this.tries = new Tries((attempt) => this.recall(attempt));
    this.chooser = this.makeChooser();
    this.gallery = new Gallery(this.operations, (operation, way) => this.choose(operation, way));
    this.about_route = h("p", { class: "hint summary" });
    this.parameters = h("div", {});
    this.ways = h("div", { class: "segments", role: "group", "aria-label": phrase("how_to_send") });
    this.place = h("div", { class: "body" });
    this.problem = h("p", { class: "hint wrong", role: "alert" });
    this.runButton = h("button", { class: "primary", type: "submit", title: "Ctrl-Enter" }, phrase("run"));
    this.stopButton = h("button", { type: "button", onclick: () => this.running?.abort(), hidden: true }, phrase("stop"));
    this.form = h("form", { class: "sheet request", novalidate: true, "aria-label": phrase("request"), onsubmit: (event) => { event.preventDefault(); this.run(); } },
      this.about_route, this.parameters, this.place, this.problem,
      h("div", { class: "runbar" }, this.runButton, this.stopButton, this.makeJobChoice(),
        h("span", { class: "spacer" }),
        h("button", { type: "button", class: "small", onclick: () => this.choose(this.operation, this.way) }, phrase("reset")),
        copyButton(() => this.link(), phrase("copy_link"))),
      this.operations.some((one) => one.ways.length > 1) || this.operations.length > 1
        ? h("details", { class: "advanced" }, h("summary", {}, phrase("advanced")), this.chooser.element, this.ways) : h("div", {}, this.chooser.element));
    this.clock = h("p", { class: "clock", role: "timer", hidden: true });
    this.result = h("div", { class: "result" }, empty());
    this.foot = h("div", { class: "foot" });
    this.answer = h("section", { class: "sheet answer", "aria-label": phrase("answer") }, this.clock, this.result, this.foot);
    const { signal } = this.left;
    window.document.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); this.run(); } }, { signal });
    window.document.addEventListener("paste", (event) => this.paste(event), { signal });
  }

  /** A box for requests that take long: as a job, a script that reports its progress is seen working. */
  makeJobChoice() {
    this.asJob = h("input", { type: "checkbox" });
    return h("label", { class: "hint as-job", title: phrase("as_job_about") }, this.asJob, ` ${phrase("as_job")}`);
  }

  makeChooser() {
    const id = newId("operation");
    const select = h("select", { id, onchange: () => this.choose(this.operations[select.value]) },
      this.operations.map((one, place) => h("option", { value: place }, one.id)));
    const label = h("label", { class: "unseen", for: id }, phrase("route"));
    const only = h("p", { class: "route code" }, this.operations[0]?.id ?? "");
    return { select, element: this.operations.length > 1 ? h("div", { class: "chooser" }, label, select) : only };
  }

  // What is to be sent

  choose(operation, way = operation.ways[0]) {
    this.operation = operation;
    this.way = way;
    this.chooser.select.value = this.operations.indexOf(operation);
    this.ways.replaceChildren(...(operation.ways.length > 1 ? operation.ways : []).map((one) =>
      h("button", { type: "button", "aria-pressed": one === way, onclick: () => this.choose(operation, one) }, one.label)));
    const given = (way.path && matches(operation.path, way.path)) || {};
    this.fields = operation.parameters.map((one) => this.parameter(one, given[one.name]));
    this.parameters.replaceChildren(...this.fields.map((one) => one.element));
    this.editor = editor(way, () => this.problemIs(""));
    this.place.replaceChildren(...[this.editor.element].filter(Boolean));
    this.problemIs("");
    this.gallery.chosen(way);
    say(this.about_route, operation.summary === PLAIN_SUMMARY || operation === this.operations[0] ? "" : unescaped(operation.summary));
    this.fetchSamples(way, this.editor);
    if (takesTensors({ ...way, target: operation.path })) this.fillTensors(operation, way);
  }

  async fillTensors(operation, way) {
    const example = this.model.requests.find((request) => request.body.kind === "json")?.body.value;
    const value = way.begun ? null : await firstTensors(operation.path, example).catch(() => null);
    if (!value || this.way !== way) return;
    way.begun = true;
    way.value = value;
    way.schema = {};
    this.choose(operation, way);
  }

  parameter({ name, description, required, schema, ...rest }, value) {
    const id = newId("parameter");
    const first = value ?? schema?.default ?? schema?.enum?.[0] ?? (rest.in !== "path" ? "" : NUMERIC.includes(schema?.type) ? "1" : "any");
    const choices = schema?.enum ?? (schema?.type === "boolean" ? ["true", "false"] : null);
    const control = choices
      ? h("select", { id }, required ? null : h("option", { value: "" }, "–"), choices.map((one) => h("option", { value: one, selected: String(one) === String(first) }, String(one))))
      : h("input", { id, type: NUMERIC.includes(schema?.type) ? "number" : "text", step: schema?.type === "number" ? "any" : null, ".value": first, spellcheck: "false" });
    const label = h("label", { class: required ? "label needed" : "label", for: id }, name);
    return { name, in: rest.in, control, element: h("div", { class: "field" }, label, control, description ? h("p", { class: "hint" }, description) : null) };
  }

  /** Put the package's own files where the example has them. */
  async fetchSamples(way, made) {
    const names = new Set(this.model.files);
    for (const [name, files] of Object.entries(way.files ?? {})) {
      const there = files.filter((file) => names.has(file));
      if (!there.length) continue;
      const found = await Promise.all(there.map((file) => this.sample(file)));
      if (way.kind === "file") made.write({ kind: "file", file: found[0] });
      else made.write({ kind: "form", entries: [...current(made), ...found.map((file) => ({ name, file }))] });
    }
    if (made.sample) for (const name of names) made.sample(name, await this.sample(name));
  }

  sample(name) {
    if (!this.samples.has(name)) {
      const address = `samples/${encodeURIComponent(name)}?model=${encodeURIComponent(this.model.name)}`;
      this.samples.set(name, fetch(address).then(async (answer) => {
        const blob = await answer.blob();
        return new File([blob], name, { type: blob.type });
      }));
    }
    return this.samples.get(name);
  }

  paste(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    if (!files.length || !this.editor.zones.length) return;
    event.preventDefault();
    (this.editor.zones.find((zone) => !zone.files().length) ?? this.editor.zones[0]).add(files);
  }

  problemIs(words) {
    say(this.problem, words);
  }

  /** The request as it stands in the form. Raises Error for one that cannot be sent. */
  request() {
    let path = this.operation.path;
    const query = new URLSearchParams();
    for (const { name, control, ...one } of this.fields) {
      if (one.in === "path") path = path.replace(`{${name}}`, encodeURIComponent(control.value));
      else if (control.value) query.set(name, control.value);
    }
    if (query.size) path += `?${query}`;
    return {
      operation: this.operation.id, way: this.operation.ways.indexOf(this.way), method: this.operation.method, path,
      parameters: Object.fromEntries(this.fields.map((one) => [one.name, one.control.value])),
      headers: this.way.headers ?? {}, body: this.editor.read(),
    };
  }

  link() {
    try {
      const link = linkOf(this.request());
      if (!link) this.problemIs(phrase("too_large_for_link"));
      return link || location.href;
    } catch (error) {
      this.problemIs(error.message);
      return location.href;
    }
  }

  /** Put a request back into the form. */
  restore({ operation, way, parameters, body }) {
    const found = this.operations.find((one) => one.id === operation);
    if (!found) return;
    this.choose(found, found.ways[way] ?? found.ways[0]);
    for (const one of this.fields) if (parameters?.[one.name] !== undefined) one.control.value = parameters[one.name];
    if (this.way.kind === body.kind) this.editor.write({ entries: [], marks: [], ...body });
  }

  recall(attempt) {
    this.restore(attempt.request);
    this.show(attempt);
  }

  // Running

  async run() {
    if (this.running) return;
    let request;
    try {
      request = this.request();
    } catch (error) {
      this.problemIs(error.message);
      return;
    }
    this.problemIs("");
    this.running = new AbortController();
    this.busy(true);
    const attempt = { request, answer: null, error: null };
    const stream = new Stream();
    const over = new AbortController();
    watchState(over.signal);
    try {
      const { signal } = this.running;
      const heard = (answer) => {
        attempt.answer = answer;
        if (answer.parts.length && !answer.done) this.result.replaceChildren(stream.update(answer).element);
      };
      const progressed = (reported) => this.result.replaceChildren(h("p", { class: "reported" }, progressBar(reported)));
      attempt.answer = this.asJob.checked
        ? await sendAsJob(request, signal, heard, progressed, this.model.max_body)
        : await this.sendAndFollow(request, signal, heard, progressed, over);
    } catch (error) {
      attempt.error = error;
      if (error.name !== "AbortError" && attempt.answer) attempt.reason = await reason(attempt.answer, error.reason);
      if (error instanceof TypeError && !attempt.reason) renewState();
    }
    over.abort();
    this.running = null;
    this.busy(false);
    this.tries.add(attempt);
    await this.show(attempt, stream);
  }

  /** Send a request, and show how far it is until its answer begins. */
  sendAndFollow(request, signal, heard, progressed, over) {
    const id = newRequestId();
    follow(id, over.signal, progressed);
    const begun = (answer) => { over.abort(); heard(answer); };
    return send({ ...request, headers: { ...request.headers, "x-request-id": id } }, signal, begun, this.model.max_body);
  }

  busy(on) {
    this.runButton.disabled = on;
    this.stopButton.hidden = !on;
    say(this.runButton, on ? phrase("running") : phrase("run"));
    clearInterval(this.ticking);
    this.clock.hidden = !on;
    if (on) {
      const began = performance.now();
      const tick = () => show(this.clock, h("span", { class: "progress", "aria-hidden": "true" }, h("i")), ` ${((performance.now() - began) / 1000).toFixed(1)} s`);
      tick();
      this.ticking = setInterval(tick, 100);
    }
    this.answer.classList.toggle("busy", on);
    this.form.classList.toggle("busy", on);
    this.answer.setAttribute("aria-busy", on);
  }

  async show({ request, answer, error, reason: why }, stream) {
    const parts = [];
    if (answer?.parts.length) parts.push((stream ?? new Stream()).update(answer).element);
    else if (answer && !error) parts.push(await shown(answer, pictureOf(request.body)));
    if (error) parts.push(why ? brokenOff(why) : unsent(error));
    this.result.replaceChildren(...parts);
    this.foot.replaceChildren(...this.about_answer(request, answer, error));
    this.result.dataset.done = Number(this.result.dataset.done ?? 0) + 1;
  }

  about_answer(request, answer, error) {
    const streams = Boolean(answer?.parts.length);
    const code = snippets(request, { base: BASE, token: this.about.token, streams, client: this.client, type: answer?.status < 400 ? answer.type : "" });
    const shownCode = h("details", { class: "code-of", open: true }, h("summary", {}, phrase("as_code")), tabs(phrase("language"), code.map(([name, text]) =>
      [name, () => h("div", { class: "snippet" }, copyButton(text), h("pre", { class: "plain code", "data-language": name }, text))])));
    if (!answer?.headers) return [shownCode];
    const facts = [
      [phrase("fact_status"), h("span", { class: `verdict ${verdict(String(answer.status))}` }, String(answer.status))],
      [phrase("fact_time"), milliseconds(answer.took ?? answer.first)],
      [phrase("fact_sent"), bytes(answer.sent)],
      [phrase("fact_received"), bytes(answer.received ?? 0)],
      answer.job ? [phrase("head_job"), h("a", { class: "code", href: answer.job }, answer.job.split("/").at(-1))]
        : [phrase("fact_request"), requestLink(answer.headers.get("x-request-id"), this.about)],
    ];
    const warning = answer.headers.get("x-panglot-warning");
    return [
      h("dl", { class: "facts" }, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
      warning ? h("p", { class: "hint" }, warning) : null,
      error || answer.job || !answer.headers.get("server-timing") ? null : timeline(timings(answer.headers.get("server-timing")), answer.took, streams ? answer.first : null),
      shownCode,
    ].filter(Boolean);
  }
}

/** A request's id, which leads to its log lines. */
function requestLink(id, about) {
  const query = about.models.length > 1 ? location.search : "";
  return id ? h("a", { class: "code", href: `status${query}#${encodeURIComponent(id)}`, title: phrase("log_lines") }, id) : "–";
}

/** The document's descriptions are Markdown, in which the server escapes two characters. */
const unescaped = (text) => text.replaceAll("&lt;", "<").replaceAll("&amp;", "&");

const NUMERIC = ["integer", "number"];

const PLAIN_SUMMARY = "Run the model on one request";

const empty = () => h("p", { class: "empty" }, phrase("answer_here"));

function current(made) {
  try {
    return made.read().entries.filter((entry) => entry.file);
  } catch {
    return [];
  }
}

/** Where a platform has a document of its own, this asks for the server's. */
const DOCUMENT = "application/vnd.oai.openapi+json, application/json";
let playground = null;

async function begin() {
  const wanted = new URLSearchParams(location.search).get("model");
  const about = await get(`playground.json${wanted ? `?model=${encodeURIComponent(wanted)}` : ""}`);
  stateIs(about.state);
  playground?.left.abort();
  const named = about.models.find((one) => one.name === wanted);
  if (!named && about.several && (about.models.length || about.absent.length)) {
    playground = new Home(about);
    byId("main").replaceChildren(playground.element);
    return;
  }
  const model = named ?? about.models[0];
  if (!model?.described) {
    const words = model ? phrase("model_loading") : phrase("no_model_yet");
    byId("main").replaceChildren(chooser(about, model) ?? "", h("h1", { class: "waiting" }, model?.name ?? phrase("models")), h("p", { class: "sheet empty" }, words));
    setTimeout(begin, 1000);
    return;
  }
  const document = await get(`${model.start.slice(1)}/openapi.json`.replace(/^\//, ""), DOCUMENT);
  const known = operations(document, model);
  const talk = chatOf(known);
  if (talk && !linked() && !new URLSearchParams(location.search).has("form")) {
    const { Chat } = await import("./chat.js");
    const others = h("p", {}, chooser(about, model), h("a", { href: viewed(model, about, true) }, phrase("all_routes")));
    playground = new Chat({ about, model, operation: talk, document, base: BASE, heading: heading(model), others });
    byId("main").replaceChildren(playground.element);
    playground.input.focus({ preventScroll: true });
    return;
  }
  playground = new Playground(about, model, document);
  if (!playground.operations.length) {
    byId("main").replaceChildren(h("p", { class: "sheet empty" }, phrase("takes_no_requests")));
    return;
  }
  byId("main").replaceChildren(
    h("div", { class: "lead-in" }, heading(model), talk ? h("a", { href: viewed(model, about, false) }, phrase("back_to_chat")) : null),
    h("div", { class: "playground" },
      h("div", { class: "left" }, chooser(about, model), playground.form, playground.gallery.element, playground.tries.element),
      h("div", { class: "right" }, playground.answer)));
  playground.choose(playground.operations[0]);
  const carried = linked();
  if (carried) playground.restore(carried);
}

/** What the author says the model is: the first sentence large, the rest below it. */
function heading(model) {
  const { title, lead } = described(model);
  return h("div", { class: "heading" }, h("h1", {}, title), lead ? h("p", { class: "lead" }, lead) : null);
}

function viewed(model, about, form) {
  const query = new URLSearchParams();
  if (about.models.length > 1) query.set("model", model.name);
  if (form) query.set("form", "1");
  return query.size ? `?${query}` : location.pathname;
}

/** Where there are several models: which of them to try. The address says so too, and so do the links of the page. */
function chooser(about, model) {
  if (about.models.length < 2) return null;
  const select = h("select", { id: "model", onchange: () => location.assign(`?model=${encodeURIComponent(select.value)}`) },
    about.models.map((one) => h("option", { value: one.name, selected: one === model }, one.name)));
  return h("div", { class: "models" }, h("label", { class: "label", for: "model" }, phrase("model")), select);
}

begin().catch((error) => {
  byId("main").replaceChildren(h("p", { class: "sheet lost", role: "alert" }, phrase("page_cannot_be", { message: error.message })));
});
