// The jobs of the server: what waits, runs and failed; cancelling one, and running one once more.

import { byId, h, say, show } from "./dom.js";
import { progressBar } from "./progress.js";
import { get } from "./server.js";
import { count, duration } from "./words.js";

const EVERY = 2000;
const STATES = ["queued", "running", "done", "failed", "cancelled", "expired", "interrupted"];
const HEADS = ["Job", "State", "Model", "Route", "Accepted", "How far", "Attempts", ""];
const ONCE_MORE = ["failed", "interrupted", "expired"];

const durable = h("p", { class: "hint" });
const problem = h("p", { class: "hint wrong", role: "alert" });
const filters = h("div", { class: "segments", role: "group", "aria-label": "Jobs in which state" });
const body = h("tbody", {});
const none = h("p", { class: "empty" }, "There are no such jobs.");
const table = h("table", {}, h("thead", {}, h("tr", {}, HEADS.map((name) => h("th", { scope: "col" }, name)))), body);
const more = h("button", { type: "button", class: "small", hidden: true, onclick: () => turn(pages.at(-1)?.before) }, "Older jobs");
const newest = h("button", { type: "button", class: "small", hidden: true, onclick: () => turn(0) }, "Newest jobs");

let state = new URLSearchParams(location.search).get("state") ?? "";
let from = 0;
let asked = 0;
const pages = [];

const here = () => `jobs?${new URLSearchParams({ ...(state ? { state } : {}), ...(from ? { before: from } : {}) })}`;

/** Look again, and once more after a while: the list changes by itself. */
async function look() {
  const number = ++asked;
  try {
    const listed = await get(here());
    // Another look has begun since: that of the state which is chosen now.
    if (number !== asked) return;
    draw(listed);
    document.body.classList.remove("stale");
  } catch (error) {
    document.body.classList.add("stale");
    say(problem, `The jobs cannot be read: ${error.message}.`);
  }
  if (number === asked) setTimeout(() => { if (number === asked) look(); }, EVERY);
}

function draw(listed) {
  pages.splice(0, pages.length, listed);
  say(durable, listed.durable ? "Stored on disk." : "In memory: a restart of the server loses them. --jobs DIR stores them on disk.");
  show(filters, ["", ...STATES].map((name) =>
    h("button", { type: "button", "aria-pressed": name === state, onclick: () => choose(name) },
      name ? `${name} ${count(listed.counts[name] ?? 0)}` : "all")));
  show(body, listed.jobs.map(row));
  table.hidden = !listed.jobs.length;
  none.hidden = !table.hidden;
  more.hidden = !listed.before;
  newest.hidden = !from;
}

function row(job) {
  return h("tr", { "data-id": job.id },
    h("td", {}, h("a", { class: "code", href: job.result ? job.result.slice(1) : `jobs/${job.id}` }, job.id)),
    h("td", { class: `verdict ${job.state === "failed" ? "bad" : ""}` }, job.state),
    h("td", {}, job.model),
    h("td", { class: "code" }, job.route),
    h("td", { title: job.accepted }, `${duration(Math.max(0, (Date.now() - Date.parse(job.accepted)) / 1000))} ago`),
    h("td", { class: "message" }, job.error ? job.error.message : progressBar(job.progress)),
    h("td", { class: "number" }, String(job.attempts)),
    h("td", {}, action(job)));
}

function action(job) {
  if (!job.ended) return button("Cancel", `jobs/${job.id}`, "DELETE");
  return ONCE_MORE.includes(job.state) ? button("Retry", `jobs/${job.id}/retry`, "POST") : null;
}

function button(name, path, method) {
  return h("button", { type: "button", class: "small", onclick: async (event) => {
    event.target.disabled = true;
    say(problem, "");
    const answer = await fetch(path, { method });
    if (!answer.ok) say(problem, (await answer.json().catch(() => null))?.error?.message ?? `The server answered ${answer.status}.`);
    look();
  } }, name);
}

function choose(name) {
  state = name;
  history.replaceState(null, "", name ? `?state=${name}` : location.pathname);
  turn(0);
}

function turn(before) {
  from = before ?? 0;
  look();
}

byId("main").replaceChildren(
  h("section", { class: "listing jobs" }, h("h1", {}, "Jobs"), durable, filters, problem,
    h("div", { class: "sheet scroll" }, table, none), h("p", {}, more, " ", newest)));
look();
