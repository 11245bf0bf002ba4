// The page that asks for the token, in place of the one that was asked for.

import { byId, flagged, h, show } from "./dom.js";
import { phrase } from "./language.js";

const field = h("input", {
  type: "password", id: "token", name: "token", autocomplete: "current-password", required: true, spellcheck: "false",
  "aria-describedby": "why",
});
const why = h("p", { class: "hint", id: "why", role: "status" }, flagged(phrase("which_token")));
const form = h("form", { class: "sheet login", onsubmit: enter },
  h("h1", {}, phrase("log_in")),
  h("label", { for: "token" }, phrase("token")),
  field,
  why,
  h("button", { class: "primary" }, phrase("log_in")));

async function enter(event) {
  event.preventDefault();
  const answer = await fetch("login", { method: "POST", headers: { authorization: `Bearer ${field.value}` } });
  if (answer.ok) {
    location.reload();
    return;
  }
  form.classList.add("wrong");
  const words = { 401: phrase("wrong_token"), 403: phrase("no_pages") }[answer.status];
  show(why, flagged(words ?? phrase("server_answered", { status: String(answer.status) })));
  field.select();
}

// Who follows a link from elsewhere comes without the cookie: a page of this server may have it.
const known = await (await fetch("login")).json();
if (known.logged_in) location.reload();
else {
  byId("main").replaceChildren(form);
  field.focus();
}
