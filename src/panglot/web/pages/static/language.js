// What the pages say, in the language that the server chose for this browser.

const answer = await fetch(new URL(`./phrases.${document.documentElement.lang}.json`, import.meta.url));
const phrases = await answer.json();

/** The phrase of this key, with `{name}` filled in. Of a phrase with two forms the first is for a `count` of one. */
export function phrase(key, values = {}) {
  if (!(key in phrases)) throw new Error(`no phrase ${key}`);
  const [one, other = one] = [phrases[key]].flat();
  return (values.count === 1 ? one : other).replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === "number" ? values[name].toLocaleString("en") : values[name]));
}

/** The phrase for a name that comes from the server; the name itself where there is none. */
export const spoken = (kind, name) => phrases[`${kind}_${name}`] ?? name;
