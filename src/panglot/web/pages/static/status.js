// The status page: what the server does, second by second.

import { Chart } from "./charts.js";
import { byId, h, say, scroller } from "./dom.js";
import { aboutModel, after, feed } from "./feed.js";
import { phrase, spoken } from "./language.js";
import { get, stateIs } from "./server.js";
import { bar, SPANS } from "./timing.js";
import { verdict } from "./tries.js";
import { bytes, clock, count, digits, duration, milliseconds } from "./words.js";

const [, GOOD, REFUSED, FAILED, P50, P95, P99, WAITING, RUNNING, , CPU, MEMORY] = Array(12).keys();
const column = (place) => (sample) => sample[place];
/** A second without an answer has no latency. */
const orNone = (place) => (sample) => sample[place] || null;
const share = (value) => `${digits(value * 100)} %`;

const NUMBERS = ["process", "served", "in_flight", "cpu", "memory", "gpu", "since", "count", "status", "total", "batches", "admitted", "refused", "at_once"];
const headed = (name) => [NUMBERS.includes(name) ? "number" : "", ["process", "route", "kind"].includes(name) ? "wide" : "", ["stages", "model"].includes(name) ? name : ""].join(" ").trim() || null;

let known = null;
let shownOnce = "";

// Parts

const charts = [
  new Chart(phrase("chart_requests"), [
    { name: phrase("series_answered"), colour: "c2", read: column(GOOD) },
    { name: "4xx", colour: "c5", read: column(REFUSED) },
    { name: "5xx", colour: "bad", read: column(FAILED) },
  ], { stacked: true, words: digits }),
  new Chart(phrase("chart_latency"), [
    { name: "p50", colour: "c0", read: orNone(P50) },
    { name: "p95", colour: "c4", read: orNone(P95) },
    { name: "p99", colour: "c3", read: orNone(P99) },
  ], { words: (value) => (value ? milliseconds(value) : "–") }),
  new Chart(phrase("chart_queue"), [
    { name: phrase("series_waiting"), colour: "c1", read: column(WAITING) },
    { name: phrase("series_in_progress"), colour: "c0", read: column(RUNNING) },
  ], { words: count }),
  new Chart(phrase("chart_cost"), [
    { name: phrase("series_cpu"), colour: "c6", read: column(CPU) },
    { name: phrase("series_memory"), colour: "c7", read: column(MEMORY), words: bytes, own: true },
  ], { words: share }),
];

const figures = Object.fromEntries(["uptime", "answered", "refused", "failed", "in_progress", "held"].map((name) => [name, h("dd", {}, "–")]));
const OF_MODEL = aboutModel(location.search);
const reload = h("button", { type: "button", onclick: loadAnew });
const chooser = h("select", { id: "model", onchange: () => location.assign(chooser.value ? `?model=${encodeURIComponent(chooser.value)}` : location.pathname) });
const choice = h("div", { class: "models", hidden: true }, h("label", { class: "unseen", for: "model" }, phrase("model")), chooser);
const dev = h("p", { class: "hint dev", hidden: true }, h("span", { class: "code" }, "--dev"), ` ${phrase("dev_on")}`);
const trouble = h("p", { class: "sheet lost", role: "alert", hidden: true }, phrase("server_back"));

const advice = h("p", { class: "sheet advice", role: "status", hidden: true });

const fronts = listing("fronts", ["front", "process", "busy", "memory", "connections", "rate", "lent", "borrowed"]);
const workers = listing("workers", ["model", "worker", "state", "process", "served", "in_flight", "cpu", "memory", "gpu", "since"]);
const errors = listing("errors", ["model", "what", "kind", "count", "last"]);
const deaths = listing("restarts", ["when", "model", "why"]);
const sizes = listing("sizes", ["when", "workers", "why"]);
const batches = listing("batches", ["items", "batches", "share"]);
const keys = listing("keys", ["key", "may", "limits", "admitted", "refused", "at_once"]);
const requests = listing("requests", ["time", "request", "model", "route", "status", "total", "stages"]);

/** A table with its title, called `name` in the dictionary and in the style. */
function listing(name, heads) {
  const body = h("tbody", {});
  const table = h("table", {}, h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col", class: headed(head) }, phrase(`head_${head}`))))), body);
  const none = h("p", { class: "empty" }, phrase(`none_${name}`));
  const note = h("span", { class: "hint" });
  const element = h("section", { class: `listing ${name}` }, h("h2", {}, phrase(`listing_${name}`), note), scroller("sheet", phrase(`listing_${name}`), table, none));
  const show = () => { none.hidden = body.childElementCount > 0; table.hidden = !none.hidden; };
  show();
  return { element, body, show, note };
}

// What happens

function told(kind, value) {
  trouble.hidden = kind !== "lost";
  document.body.classList.toggle("stale", kind === "lost");
  if (kind === "lost") {
    stateIs(kind);
    return;
  }
  if (kind === "snapshot") known = value;
  else if (known) known = after(known, value);
  if (known) draw(kind === "snapshot" ? known.recent : known.fresh, kind === "snapshot");
}

function draw(fresh, anew) {
  if (anew) drawChoice();
  reload.hidden = !known.about.may_reload;
  stateIs(known.state);
  say(figures.uptime, duration(known.uptime));
  say(figures.answered, count(known.answered));
  say(figures.refused, count(known.refused));
  say(figures.failed, count(known.failed));
  figures.failed.classList.toggle("bad", known.failed > 0);
  say(figures.in_progress, known.waiting ? phrase("in_progress_waiting", { count: known.in_progress, waiting: known.waiting }) : count(known.in_progress));
  say(figures.held, bytes(known.held));
  for (const chart of charts) chart.draw(known.history);
  say(advice, known.advice ?? "");
  advice.hidden = !known.advice;
  drawFronts();
  drawWorkers();
  drawErrors();
  drawSizes();
  drawDeaths();
  drawBatches();
  drawKeys();
  drawRequests(fresh, anew);
}

/** Which models there are to choose from, and which are shown. */
function drawChoice() {
  const names = [...new Set(known.about.models.map((model) => model.name))];
  choice.hidden = names.length < 2;
  chooser.replaceChildren(h("option", { value: "" }, phrase("all_models")), ...names.map((name) => h("option", { value: name, selected: name === known.about.model }, name)));
  document.body.classList.toggle("one-model", names.length < 2 || known.about.model !== "");
  // While it says what became of a click, that stays.
  if (!reload.disabled) say(reload, reloading());
  dev.hidden = !known.about.dev;
}

const reloading = () => (choice.hidden || known.about.model ? phrase("reload_model") : phrase("reload_all"));

/** Bring rows in line with entries, by their keys: rows that stay are filled anew, not made anew. */
function keep(list, entries, keyOf, make) {
  const rows = new Map([...list.body.children].map((row) => [row.dataset.key, row]));
  entries.forEach((entry, place) => {
    const key = String(keyOf(entry));
    const row = rows.get(key) ?? make(entry, key);
    rows.delete(key);
    row.dataset.key = key;
    row.refresh(entry);
    if (list.body.children[place] !== row) list.body.insertBefore(row, list.body.children[place] ?? null);
  });
  rows.forEach((row) => { row.detail?.remove(); row.remove(); });
  list.show();
}

/** A row of cells of which each is filled by a function of the entry. */
function rowOf(cells) {
  const made = cells.map(([classes]) => h("td", { class: classes || null }));
  const row = h("tr", {}, made);
  row.refresh = (entry) => cells.forEach(([, words], place) => {
    const value = words(entry);
    if (value instanceof Node) made[place].replaceChildren(value);
    else say(made[place], value);
  });
  return row;
}

/** The fronts of a server that has several. */
function drawFronts() {
  fronts.element.hidden = !known.fronts;
  keep(fronts, known.fronts ?? [], (front) => `${front.front} ${front.pid}`, () => rowOf([
    ["", (front) => front.front],
    ["number wide", (front) => front.pid],
    ["number", (front) => share(front.busy)],
    ["number", (front) => bytes(front.memory)],
    ["number", (front) => count(front.connections)],
    ["number", (front) => digits(front.requests)],
    ["number", (front) => count(front.lent)],
    ["number", (front) => count(front.borrowed)],
  ]));
}

function drawWorkers() {
  const gpu = known.workers.some((worker) => worker.gpu);
  workers.element.classList.toggle("no-gpu", !gpu);
  keep(workers, known.workers, (worker) => `${worker.model} ${worker.pool} ${worker.index} ${worker.pid}`, () => rowOf([
    ["model", (worker) => worker.model],
    ["", (worker) => `${worker.pool} ${worker.index}${worker.front === undefined ? "" : ` · ${phrase("of_front", { number: worker.front })}`}`.trim()],
    ["", (worker) => h("span", {}, h("span", { class: `state ${worker.state}` }, spoken("state", worker.state)), h("span", { class: "hint" }, ` ${worker.step}`))],
    ["number wide", (worker) => worker.pid || "–"],
    ["number", (worker) => count(worker.served)],
    ["number", (worker) => count(worker.in_flight)],
    ["number", (worker) => share(worker.cpu)],
    ["number", (worker) => bytes(worker.memory)],
    ["number", (worker) => (worker.gpu ? bytes(worker.gpu) : "–")],
    ["number", (worker) => duration(worker.seconds)],
  ]));
  const ranges = known.pools.filter((size) => size.changes).map((size) => `${titled(size)} ${phrase("ready_of", { ready: size.ready, workers: size.workers })}`.trim());
  const asleep = known.asleep?.length ? [phrase("asleep_are", { names: known.asleep.join(", ") })] : [];
  say(workers.note, ` ${[...asleep, ...ranges, phrase("and_server", { cpu: share(known.front.cpu), memory: bytes(known.front.memory) })].join(phrase("and_then"))}`);
}

const titled = (entry) => [known.about.models.length > 1 ? entry.model : "", entry.pool].join(" ").trim();

function drawSizes() {
  sizes.element.hidden = !known.pools.some((size) => size.changes);
  const changes = known.pools.flatMap((size) => (size.changes ?? []).map((change) => ({ ...change, whose: titled(size) })));
  changes.sort((first, second) => second.when - first.when);
  keep(sizes, changes, (change) => `${change.whose} ${change.when}`, () => rowOf([
    ["", (change) => clock(change.when)],
    ["", (change) => `${change.whose} ${change.before} → ${change.after}`.trim()],
    ["message", (change) => change.why],
  ]));
}

function drawKeys() {
  keys.element.hidden = !known.keys;
  const limits = (key) => [key.rate ? phrase("rate_limit", { rate: digits(key.rate) }) : "", key.at_once ? phrase("at_once_limit", { count: key.at_once }) : "", key.expires ? phrase("until", { time: new Date(key.expires * 1000).toLocaleString() }) : ""];
  keep(keys, known.keys ?? [], (key) => key.name, () => rowOf([
    ["", (key) => key.name],
    ["message", (key) => [key.may.join(", "), key.models ? phrase("models_are", { names: key.models.join(", ") }) : "", key.routes ? key.routes.join(", ") : ""].filter(Boolean).join(phrase("and_then"))],
    ["", (key) => limits(key).filter(Boolean).join(", ") || "–"],
    ["number", (key) => count(key.admitted)],
    ["number", (key) => count(key.rate_refused + key.at_once_refused + key.forbidden)],
    ["number", (key) => count(key.open)],
  ]));
}

function drawErrors() {
  keep(errors, known.errors, (group) => `${group.kind} ${group.model} ${group.what}`, () => {
    const row = rowOf([
      ["model", (group) => group.model],
      ["message", (group) => (group.traceback ? h("details", { ".open": Boolean(row.querySelector("details")?.open) }, h("summary", {}, group.what), h("pre", { class: "plain code" }, group.traceback)) : group.what)],
      ["wide hint", (group) => phrase(`kind_${group.kind}`)],
      ["number", (group) => count(group.count)],
      ["number", (group) => clock(group.last)],
    ]);
    return row;
  });
  say(errors.note, known.about.dev || !known.errors.some((group) => group.kind === "script") ? "" : ` ${phrase("start_with_dev")}`);
}

function drawDeaths() {
  const reasons = Object.entries(known.restarts).map(([reason, number]) => `${reason} ${count(number)}`).join(", ");
  say(deaths.note, reasons ? ` ${reasons}` : "");
  keep(deaths, known.deaths, (death) => `${death.when} ${death.what}`, (death) => rowOf([
    ["", () => clock(death.when)],
    ["model", () => death.model],
    ["message", () => (death.more ? h("details", {}, h("summary", {}, death.what), h("pre", { class: "plain code" }, death.more)) : death.what)],
  ].map(([classes, words]) => [classes, once(words)])));
}

/** A function whose first result is kept. */
function once(make) {
  let made = null;
  return () => { made ??= make(); return made; };
}

function drawBatches() {
  const most = Math.max(...known.batches.map(([, number]) => number), 1);
  keep(batches, known.batches, ([size]) => size, () => rowOf([
    ["", ([size]) => (size <= 2 ? size : `${size / 2 + 1}–${size}`)],
    ["number", ([, number]) => count(number)],
    ["stages", ([, number]) => { const track = h("div", { class: "track" }, h("i", {})); track.firstChild.style.width = `${(100 * number) / most}%`; return track; }],
  ]));
}

// Requests

function drawRequests(fresh, anew) {
  if (anew) requests.body.replaceChildren();
  for (const entry of fresh) requests.body.prepend(...requestRow(entry));
  const rows = [...requests.body.querySelectorAll("tr[data-id]")];
  rows.slice(50).forEach((row) => { row.detail.remove(); row.remove(); });
  const most = Math.max(...known.recent.map((entry) => entry.total), 1e-3);
  if (fresh.length || anew) rows.slice(0, 50).forEach((row) => row.scale(most));
  say(requests.note, known.recent.length ? ` ${phrase("last_requests", { count: known.recent.length, time: milliseconds(most) })}` : "");
  requests.show();
  openWanted();
}

/** Open the request that the page's address names, once it is there. */
function openWanted() {
  const wanted = decodeURIComponent(location.hash.slice(1));
  const row = wanted && wanted !== shownOnce ? [...requests.body.querySelectorAll("tr[data-id]")].find((one) => one.dataset.id === wanted) : null;
  if (!row) return;
  shownOnce = wanted;
  if (row.detail.hidden) row.querySelector("button").click();
  row.scrollIntoView({ block: "center" });
  row.querySelector("button").focus({ preventScroll: true });
}

function requestRow(entry) {
  const stages = h("td", { class: "stages" });
  const opener = h("button", { type: "button", class: "plainly code", "aria-expanded": "false", title: entry.id }, entry.id);
  const row = h("tr", { "data-id": entry.id },
    h("td", {}, clock(entry.when)), h("td", { class: "id" }, opener), h("td", { class: "model" }, entry.model), h("td", { class: "wide" }, entry.route),
    h("td", { class: "number" }, h("span", { class: `verdict ${verdict(String(entry.status))}` }, String(entry.status))),
    h("td", { class: "number" }, milliseconds(entry.total)), stages);
  row.detail = h("tr", { class: "detail", hidden: true }, h("td", { colspan: "7" }));
  const spans = SPANS.filter((name) => entry.stages[name]).map((name) => [name, entry.stages[name]]);
  const rest = Math.max(0, entry.total - spans.reduce((sum, [, ms]) => sum + ms, 0));
  row.scale = (most) => stages.replaceChildren(bar([...spans, ["server", rest]], most));
  opener.addEventListener("click", () => toggle(row, opener, entry, [...spans, ["server", rest]]));
  return [row, row.detail];
}

async function toggle(row, opener, entry, spans) {
  const open = row.detail.hidden;
  row.detail.hidden = !open;
  opener.setAttribute("aria-expanded", open);
  const cell = row.detail.firstElementChild;
  if (!open || cell.childElementCount) return;
  const legend = h("ul", { class: "legend" }, spans.map(([name, ms]) => h("li", {}, h("i", { class: name }), `${phrase(`stage_${name}`)} ${milliseconds(ms)}`)));
  cell.replaceChildren(legend);
  const more = await get(`status/${encodeURIComponent(entry.id)}`).catch(() => null);
  if (!more) return;
  const lines = more.log.map((line) => h("li", {}, h("span", { class: "hint" }, clock(line.when)), ` ${line.text}`));
  cell.append(
    more.message ? h("p", { class: "bad" }, more.message) : "",
    lines.length ? h("div", {}, h("h3", { class: "hint" }, phrase("lines_logged", { count: lines.length })), h("ul", { class: "log code" }, lines)) : h("p", { class: "hint" }, phrase("nothing_logged")),
    more.traceback ? h("pre", { class: "plain code traceback" }, more.traceback) : "");
}

async function loadAnew() {
  reload.disabled = true;
  const answer = await fetch(`reload${OF_MODEL}`, { method: "POST" }).catch(() => null);
  say(reload, answer?.ok ? phrase("loading_anew") : phrase("was_refused"));
  setTimeout(() => { reload.disabled = false; say(reload, reloading()); }, 3000);
}

byId("main").replaceChildren(
  h("div", { class: "status" },
    trouble,
    advice,
    h("div", { class: "headline" }, h("h1", {}, phrase("status")), choice, h("dl", { class: "figures" }, Object.entries(figures).map(([name, value]) => h("div", {}, h("dt", {}, phrase(`figure_${name}`)), value))), reload),
    dev,
    h("div", { class: "charts" }, charts.map((chart) => chart.element)),
    errors.element,
    fronts.element,
    h("div", { class: "two" }, workers.element, h("div", {}, sizes.element, deaths.element, batches.element)),
    keys.element,
    requests.element));
feed(told);
window.addEventListener("hashchange", () => { shownOnce = ""; openWanted(); });
