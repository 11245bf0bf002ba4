// The page that asks for the token, in place of the one that was asked for.

import { byId, h, say } from "./dom.js";

const field = h("input", {
  type: "password", id: "token", name: "token", autocomplete: "current-password", required: true, spellcheck: "false",
  "aria-describedby": "why",
});
const why = h("p", { class: "hint", id: "why", role: "status" }, "The one that the server was started with, in PANGLOT_TOKEN or --token-file.");
const form = h("form", { class: "sheet login", onsubmit: enter },
  h("h1", {}, "Log in"),
  h("label", { for: "token" }, "Token"),
  field,
  why,
  h("button", { class: "primary" }, "Log in"));

async function enter(event) {
  event.preventDefault();
  const answer = await fetch("login", { method: "POST", headers: { authorization: `Bearer ${field.value}` } });
  if (answer.ok) {
    location.reload();
    return;
  }
  form.classList.add("wrong");
  say(why, answer.status === 401 ? "That is not the token." : `The server answered ${answer.status}.`);
  field.select();
}

// Who follows a link from elsewhere comes without the cookie: a page of this server may have it.
const known = await (await fetch("login")).json();
if (known.logged_in) location.reload();
else {
  byId("main").replaceChildren(form);
  field.focus();
}
