// The jobs of the server: what waits, runs and failed; cancelling one, and running one once more.

import { byId, flagged, h, say, scroller, show } from "./dom.js";
import { phrase, spoken } from "./language.js";
import { progressBar } from "./progress.js";
import { get } from "./server.js";
import { count, duration } from "./words.js";

const EVERY = 2000;
const STATES = ["queued", "running", "done", "failed", "cancelled", "expired", "interrupted"];
const HEADS = ["job", "state", "model", "route", "accepted", "how_far", "attempts", "action"];
const ONCE_MORE = ["failed", "interrupted", "expired"];

const durable = h("p", { class: "hint" });
const problem = h("p", { class: "hint wrong", role: "alert" });
const filters = h("div", { class: "segments", role: "group", "aria-label": phrase("jobs_in_state") });
const body = h("tbody", {});
const none = h("p", { class: "empty" });
const table = h("table", {}, h("thead", {}, h("tr", {}, HEADS.map((name) => h("th", { scope: "col" }, name === "action" ? h("span", { class: "unseen" }, phrase("head_action")) : phrase(`head_${name}`))))), body);
const more = h("button", { type: "button", class: "small", hidden: true, onclick: () => turn(pages.at(-1)?.before) }, phrase("older_jobs"));
const newest = h("button", { type: "button", class: "small", hidden: true, onclick: () => turn(0) }, phrase("newest_jobs"));

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
    if (document.body.classList.contains("stale")) say(problem, "");
    document.body.classList.remove("stale");
  } catch (error) {
    document.body.classList.add("stale");
    say(problem, error instanceof TypeError ? phrase("server_back") : phrase("jobs_unread", { message: error.message }));
  }
  if (number === asked) setTimeout(() => { if (number === asked) look(); }, EVERY);
}

function draw(listed) {
  pages.splice(0, pages.length, listed);
  show(durable, flagged(listed.durable ? phrase("jobs_on_disk") : phrase("jobs_in_memory")));
  show(filters, ["", ...STATES].map((name) =>
    h("button", { type: "button", "aria-pressed": name === state, onclick: () => choose(name) },
      name ? `${spoken("state", name)} ${count(listed.counts[name] ?? 0)}` : phrase("all"))));
  show(body, listed.jobs.map(row));
  table.hidden = !listed.jobs.length;
  none.hidden = !table.hidden;
  say(none, Object.values(listed.counts).some(Boolean) ? phrase("no_such_jobs") : phrase("no_jobs"));
  more.hidden = !listed.before;
  newest.hidden = !from;
}

function row(job) {
  return h("tr", { "data-id": job.id },
    h("td", {}, h("a", { class: "code", href: job.result ? job.result.slice(1) : `jobs/${job.id}` }, job.id)),
    h("td", { class: `verdict ${job.state === "failed" ? "bad" : ""}` }, spoken("state", job.state)),
    h("td", {}, job.model),
    h("td", { class: "code" }, job.route),
    h("td", { title: job.accepted }, phrase("ago", { time: duration(Math.max(0, (Date.now() - Date.parse(job.accepted)) / 1000)) })),
    h("td", { class: "message" }, job.error ? job.error.message : progressBar(job.progress)),
    h("td", { class: "number" }, String(job.attempts)),
    h("td", {}, action(job)));
}

function action(job) {
  if (!job.ended) return button(phrase("cancel"), `jobs/${job.id}`, "DELETE");
  return ONCE_MORE.includes(job.state) ? button(phrase("retry"), `jobs/${job.id}/retry`, "POST") : null;
}

function button(name, path, method) {
  return h("button", { type: "button", class: "small", onclick: async (event) => {
    event.target.disabled = true;
    say(problem, "");
    const answer = await fetch(path, { method });
    if (!answer.ok) say(problem, (await answer.json().catch(() => null))?.error?.message ?? phrase("server_answered", { status: String(answer.status) }));
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
  h("section", { class: "listing jobs" }, h("h1", {}, phrase("jobs")), durable, filters, problem,
    scroller("sheet", phrase("jobs"), table, none), h("p", {}, more, " ", newest)));
look();
