// Asking the server that this page comes from.

import { phrase } from "./language.js";

/** JSON of the server. A browser that is no longer logged in is shown the page anew, which asks for the token. */
export async function get(path, accept = "application/json") {
  const answer = await fetch(path, { headers: { accept } });
  if (answer.status === 401) location.reload();
  if (!answer.ok) throw new Error(phrase("path_answered", { path, status: String(answer.status) }));
  return answer.json();
}

/** What an `$ref` leads to, or the value itself. */
export function resolved(document, value) {
  let found = value;
  for (let depth = 0; found && found.$ref && depth < 20; depth += 1) {
    found = found.$ref.replace("#/", "").split("/").reduce((node, step) => node?.[step], document);
  }
  return found ?? {};
}
