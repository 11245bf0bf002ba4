// Code in colours: comments, texts, numbers and the words that most languages share. Not exact, and always readable.

import { h } from "./dom.js";

const WORDS = new Set(("and as assert async await break case catch class const continue def default del do elif else enum except export extends false False finally fn for from func function global if impl import in instanceof interface is lambda let match mut new nil None nonlocal not null or pass private public raise return self static struct super switch this throw true True try type typeof undefined use var void while with yield select insert update delete where join group order by limit create table into values echo fi then done esac").split(" "));
const HASH = /^(py(thon)?|sh|bash|shell|zsh|console|ya?ml|toml|r|ruby|rb|perl|dockerfile|make(file)?|ini|conf|)$/i;
const TOKEN = /("""[^]*?"""|'''[^]*?'''|`(?:\\[^]|[^`\\])*`|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(\/\*[^]*?\*\/|\/\/[^\n]*|#[^\n]*|--[^\n]*)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;
const LONGEST = 20000;

/** The code as pieces of text, some of them coloured. */
export function colored(code, language) {
  if (code.length > LONGEST || /^(text|plain|txt|markdown|md|output)$/i.test(language)) return [code];
  const pieces = [];
  let at = 0;
  for (const found of code.matchAll(TOKEN)) {
    const kind = kindOf(found, language);
    if (!kind) continue;
    pieces.push(code.slice(at, found.index), h("span", { class: kind }, found[0]));
    at = found.index + found[0].length;
  }
  return [...pieces, code.slice(at)].filter((piece) => piece !== "");
}

function kindOf([, text, comment, number, word], language) {
  if (text) return "string";
  if (comment?.startsWith("#")) return HASH.test(language) ? "comment" : "";
  if (comment?.startsWith("--")) return /sql|lua|haskell|hs/i.test(language) ? "comment" : "";
  if (comment?.startsWith("//")) return HASH.test(language) && language ? "" : "comment";
  if (comment) return "comment";
  if (number) return "number";
  return WORDS.has(word) ? "word" : "";
}
