// Asking the server that this page comes from.

import { byId, say } from "./dom.js";
import { phrase, spoken } from "./language.js";

/** JSON of the server. A browser that is no longer logged in is shown the page anew, which asks for the token. */
export async function get(path, accept = "application/json") {
  const answer = await fetch(path, { headers: { accept } });
  if (answer.status === 401) location.reload();
  if (!answer.ok) throw new Error(phrase("path_answered", { path, status: String(answer.status) }));
  return answer.json();
}

/** Say at the top of the page how the server is; `lost`: it gives no answer. */
export function stateIs(name) {
  const state = byId("state");
  state.className = `state ${name}`;
  say(state, name === "lost" ? phrase("server_lost") : spoken("state", name));
}

/** Ask how the server is now. */
export async function renewState() {
  const model = new URLSearchParams(location.search).get("model");
  const answer = await fetch(`playground.json${model ? `?model=${encodeURIComponent(model)}` : ""}`).catch(() => null);
  if (!answer) stateIs("lost");
  else if (answer.ok) stateIs((await answer.json()).state);
}

/** While a request runs, until the signal aborts: a model that was not ready wakes up or is loaded for it. */
export function watchState(signal) {
  if (byId("state").classList.contains("ready")) return;
  const timer = setInterval(renewState, 1000);
  signal.addEventListener("abort", () => { clearInterval(timer); renewState(); });
}

/** What an `$ref` leads to, or the value itself. */
export function resolved(document, value) {
  let found = value;
  for (let depth = 0; found && found.$ref && depth < 20; depth += 1) {
    found = found.$ref.replace("#/", "").split("/").reduce((node, step) => node?.[step], document);
  }
  return found ?? {};
}
