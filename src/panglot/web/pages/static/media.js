// Pictures, sounds and films, of files that were chosen and of answers.

import { h } from "./dom.js";
import { phrase } from "./language.js";

const FAMILIES = { "image/": "img", "audio/": "audio", "video/": "video" };
const SHOWN = /^image\/(png|jpe?g|gif|webp|avif|bmp|svg\+xml|x-icon)$/;

/** How a browser shows this type: `img`, `audio`, `video`, or nothing. */
export function familyOf(type) {
  const family = Object.keys(FAMILIES).find((start) => type.startsWith(start));
  return family && (family !== "image/" || SHOWN.test(type)) ? FAMILIES[family] : "";
}

/** The element that shows a file; a tile with its ending where browsers cannot. */
export function preview(file, name) {
  const family = familyOf(file.type);
  const ending = (file.name ?? "").split(".").slice(1).pop() ?? "";
  if (!family) return h("span", { class: "ending", "aria-hidden": "true" }, ending.slice(0, 5) || phrase("file_ending"));
  const address = URL.createObjectURL(file);
  if (family === "img") {
    const image = h("img", { src: address, alt: name, onerror: () => image.replaceWith(h("p", { class: "hint wrong broken", role: "alert" }, phrase("broken_picture"))) });
    return image;
  }
  return h(family, { src: address, controls: true, "aria-label": name });
}

/** Whether an answer of this type is read as text. */
export const isText = (type) => !type || /^text\/|json|xml|javascript|x-www-form/.test(type);

/** The ending of a file of this type. */
export const endingOf = (type) => type.split("/")[1]?.replace(/^(x-|vnd\.)/, "").replace(/\+.*$/, "").replace(/^(octet-stream|mpeg)$/, (name) => ({ "octet-stream": "bin", mpeg: "mp3" }[name])).replace(/[^a-z0-9]/g, "") || "bin";

const MAGIC = [
  ["iVBORw0KGgo", "image/png", "png"], ["/9j/", "image/jpeg", "jpg"], ["R0lGOD", "image/gif", "gif"],
  ["UklGR", "image/webp", "webp"], ["SUkq", "image/tiff", "tif"], ["Qk0", "image/bmp", "bmp"], ["JVBERi", "application/pdf", "pdf"],
  ["AAAAIGZ0eXA", "video/mp4", "mp4"], ["AAAAHGZ0eXA", "video/mp4", "mp4"], ["T2dnUw", "audio/ogg", "ogg"], ["SUQz", "audio/mpeg", "mp3"],
];

/** The file that a text holds in base64, behind `data:...;base64,` or bare; null for other texts. */
export function inBase64(text, name) {
  const found = /^(data:([^;,]*)[^,]*;base64,)?([A-Za-z0-9+/\s]{40,}={0,2})$/.exec(text);
  if (!found) return null;
  const [, prefix = "", given, body] = found;
  const magic = MAGIC.find(([start]) => body.startsWith(start));
  if (!magic && !prefix) return null;
  const wave = body.startsWith("UklGR") && atob(body.slice(0, 16)).slice(8, 12) === "WAVE";
  const type = wave ? "audio/wav" : (magic?.[1] ?? (given || "application/octet-stream"));
  try {
    const raw = Uint8Array.from(atob(body.replace(/\s/g, "")), (character) => character.charCodeAt(0));
    return { prefix, file: new File([raw], `${name}.${wave ? "wav" : (magic?.[2] ?? "bin")}`, { type }) };
  } catch {
    return null;
  }
}

/** The bytes of a file in base64. */
export async function base64(file) {
  const address = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  return address.slice(address.indexOf(",") + 1);
}
