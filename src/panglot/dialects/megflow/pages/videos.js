// Videos of a MegFlow package: started, looked at while they run, stopped; ended ones stay listed with their reason.

import { DropZone } from "./dropzone.js";
import { byId, h, newId, say } from "./dom.js";
import { feed } from "./feed.js";
import { written } from "./fields.js";
import { phrase, spoken } from "./language.js";
import { send } from "./sending.js";
import { get } from "./server.js";
import { count, digits, milliseconds } from "./words.js";

const MOST_EVENTS = 200;
const ALIVE = ["opening", "running", "retrying"];

// Starting

const source = h("input", { type: "text", id: newId("source"), placeholder: phrase("source_example"), spellcheck: "false", autocomplete: "off" });
const fps = h("input", { type: "number", id: newId("fps"), min: "0", step: "any", placeholder: phrase("all_frames") });
const message = h("p", { class: "hint", role: "status" });
const upload = new DropZone({ label: phrase("a_video"), accept: "video/*" });
const form = h("form", { class: "sheet request", onsubmit: start },
  h("h2", {}, phrase("start_stream")),
  h("div", { class: "field" }, h("label", { class: "label", for: source.id }, phrase("path_or_address")), source,
    h("p", { class: "hint" }, phrase("source_about"))),
  h("div", { class: "field" }, h("span", { class: "label" }, phrase("own_video")), upload.element),
  h("div", { class: "field" }, h("label", { class: "label", for: fps.id }, phrase("frames_per_second")), fps),
  message,
  h("div", { class: "runbar" }, h("button", { class: "primary" }, phrase("start"))));

async function start(event) {
  event.preventDefault();
  const query = fps.value ? `?fps=${encodeURIComponent(fps.value)}` : "";
  const [file] = upload.files();
  if (file) {
    analyse(file, query);
    return;
  }
  if (!source.value) {
    say(message, phrase("name_source"));
    return;
  }
  const answer = await fetch(`start/${encodeURIComponent(source.value)}${query}`, { method: "POST" });
  say(message, answer.ok ? "" : `${answer.status}: ${await answer.text() || phrase("cannot_start")}`);
  if (answer.ok) renew();
}

/** An upload is analysed while its answer is read; it ends with this page. */
async function analyse(file, query) {
  const stop = new AbortController();
  const card = new Card({ id: `upload-${Date.now()}`, url: file.name, state: "running", error: "" }, () => stop.abort());
  card.isUpload = true;
  card.picture(h("video", { src: URL.createObjectURL(file), controls: true, ".muted": true, "aria-label": file.name }));
  cards.set(card.id, card);
  arrange();
  let shown = 0;
  try {
    const answer = await send({ method: "POST", path: `/analyze_video${query}`, headers: {}, body: { kind: "file", file, type: file.type || "application/octet-stream" } }, stop.signal, ({ parts }) => {
      parts.slice(shown).forEach((part) => card.event(part.event, part.data));
      shown = parts.length;
    });
    const text = answer.blob ? await answer.blob.text() : "";
    card.refresh({ ...card.about, state: answer.status < 400 ? "finished" : "failed", error: answer.status < 400 ? "" : `${answer.status}: ${text}`, results: shown });
  } catch (error) {
    card.refresh({ ...card.about, state: error.name === "AbortError" ? "stopped" : "failed", error: error.name === "AbortError" ? "" : error.message, results: shown });
  }
  arrange();
}

// Streams

class Card {
  constructor(about, stop) {
    this.id = about.id;
    this.state = h("span", { class: "state" });
    this.reason = h("p", { class: "hint" });
    this.figures = Object.fromEntries(["decoded", "analysed", "lag", "results", "dropped", "lost"].map((name) => [name, h("dd", {}, "–")]));
    this.screen = h("div", { class: "screen" });
    this.events = h("ol", { class: "events code", tabindex: "0", "aria-label": phrase("results") });
    this.stopButton = h("button", { type: "button", class: "small", onclick: stop }, phrase("stop"));
    this.element = h("article", { class: "sheet stream", "aria-label": phrase("stream_of", { source: about.url }) },
      h("div", { class: "stream-head" }, h("h3", { class: "name" }, about.url), this.state, h("span", { class: "spacer" }), this.stopButton),
      this.reason,
      h("div", { class: "stream-body" }, this.screen, this.events),
      h("dl", { class: "facts" }, Object.entries(this.figures).map(([name, value]) => h("div", {}, h("dt", {}, phrase(`video_${name}`)), value))));
    this.refresh(about);
  }

  get alive() {
    return ALIVE.includes(this.about.state);
  }

  picture(element) {
    this.screen.replaceChildren(element);
  }

  refresh(about) {
    this.about = about;
    this.state.className = `state ${about.state}`;
    say(this.state, spoken("state", about.state));
    say(this.reason, about.error || (about.state === "finished" ? phrase("played") : about.state === "stopped" ? phrase("was_stopped") : ""));
    const words = {
      decoded: about.decoded_fps === undefined ? "–" : digits(about.decoded_fps), analysed: about.analysed_fps === undefined ? "–" : digits(about.analysed_fps),
      lag: about.lag === undefined ? "–" : milliseconds(about.lag * 1000), results: count(about.results ?? 0),
      dropped: count((about.dropped ?? 0) + (about.results_dropped ?? 0)), lost: count(about.lost ?? 0),
    };
    for (const [name, value] of Object.entries(words)) say(this.figures[name], value);
    this.stopButton.hidden = !this.alive;
    if (!this.alive) this.close();
  }

  /** Look at a stream that runs: its picture as a film, its results as they come. */
  watch() {
    if (this.source || this.isUpload) return;
    const film = h("img", { src: `preview/${this.id}.mjpeg`, alt: phrase("last_frame"), onerror: () => film.classList.add("missing") });
    this.picture(film);
    this.source = new EventSource(`events/${this.id}`);
    for (const name of ["message", "state", "lost", "dropped", "gap", "end"]) {
      this.source.addEventListener(name, (event) => {
        this.event(name, event.data);
        if (name === "end") renew();
      });
    }
  }

  /** Keep the last picture, and end the connections. */
  close() {
    this.source?.close();
    const film = this.screen.querySelector("img");
    if (this.source && film?.naturalWidth) {
      const still = h("canvas", { width: film.naturalWidth, height: film.naturalHeight, role: "img", "aria-label": phrase("last_frame") });
      still.getContext("2d").drawImage(film, 0, 0);
      film.src = "data:,";
      this.picture(still);
    } else if (this.source && film) film.removeAttribute("src");
    if (this.source) this.source = { close() {} };
  }

  event(name, data) {
    let value = data;
    try { value = typeof data === "string" && data ? JSON.parse(data) : data; } catch { /* it stays a text */ }
    if (name === "end") return;
    const frame = value?.frame ?? "";
    let said = value?.message ?? value?.result ?? value;
    try { said = typeof said === "string" ? JSON.parse(said) : said; } catch { /* it stays a text */ }
    this.events.prepend(h("li", {}, h("span", { class: "hint number" }, String(frame)), name && name !== "message" ? h("span", { class: "chip" }, name) : null,
      h("span", { class: "name" }, typeof said === "object" ? written(said) : String(said))));
    if (this.events.childElementCount > MOST_EVENTS) this.events.lastElementChild.remove();
  }
}

const cards = new Map();
const running = h("div", { class: "streams" });
const over = h("div", { class: "streams" });
const none = h("p", { class: "sheet empty" }, phrase("no_stream"));
const overTitle = h("h2", { hidden: true }, phrase("finished"));

async function renew() {
  const listed = await get("list");
  for (const about of listed) {
    const card = cards.get(about.id) ?? new Card(about, () => stop(about.id));
    cards.set(about.id, card);
    card.refresh({ ...(rates.get(about.id) ?? {}), ...about });
  }
  for (const [id, card] of cards) {
    if (!card.isUpload && card.alive && !listed.some((about) => about.id === id)) card.refresh({ ...card.about, state: "stopped" });
  }
  arrange();
}

function arrange() {
  const all = [...cards.values()].reverse();
  const alive = all.filter((card) => card.alive);
  alive.slice(0, 2).forEach((card) => card.watch());
  settle(running, alive.length ? alive.map((card) => card.element) : [none]);
  const ended = all.filter((card) => !card.alive);
  settle(over, ended.map((card) => card.element));
  overTitle.hidden = !ended.length;
}

/** Put elements in this order; elements already in order are not touched, so that films go on. */
function settle(list, wanted) {
  [...list.children].forEach((one) => { if (!wanted.includes(one)) one.remove(); });
  wanted.forEach((one, index) => { if (list.children[index] !== one) list.insertBefore(one, list.children[index] ?? null); });
}

async function stop(id) {
  await fetch(`stop/${id}`, { method: "POST" });
  renew();
}

byId("main").replaceChildren(h("h1", { class: "unseen" }, phrase("videos")), h("div", { class: "playground videos" }, h("div", { class: "left" }, form),
  h("div", { class: "right status" }, running, overTitle, over)));
const rates = new Map();
let states = "";
feed((kind, value) => {
  if (kind === "lost" || !value.extra) return;
  const state = byId("state");
  state.className = `state ${value.state}`;
  say(state, spoken("state", value.state));
  const streams = value.extra.workers.flatMap((worker) => worker.streams ?? []);
  for (const one of streams) {
    rates.set(one.id, one);
    cards.get(one.id)?.refresh(one);
  }
  const now = JSON.stringify(streams.map((one) => [one.id, one.state]));
  if (now !== states) renew();
  states = now;
});
renew();
