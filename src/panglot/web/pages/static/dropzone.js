// Where files come in: dropped, pasted, chosen, or taken with the camera.

import { h, newId, say } from "./dom.js";
import { picture } from "./camera.js";
import { phrase } from "./language.js";
import { preview } from "./media.js";
import { bytes } from "./words.js";

/** Types that say nothing: every file is of one of them. */
const ANY = ["application/octet-stream", "*/*"];

/** A field for files. `files()` are those it holds; `changed` is called when they change. */
export class DropZone {
  constructor({ label, accept: wanted = "", multiple = false, changed = () => {} }) {
    const accept = ANY.includes(wanted) ? "" : wanted;
    this.label = label;
    this.multiple = multiple;
    this.changed = changed;
    this.held = [];
    this.input = h("input", {
      type: "file", class: "unseen", id: newId("file"), accept: accept.includes("/") ? accept : null, multiple,
      onchange: () => { this.add(this.input.files); this.input.value = ""; },
    });
    this.list = h("div", { class: "held" });
    const pictures = !accept || accept.startsWith("image/");
    const camera = pictures && navigator.mediaDevices?.getUserMedia
      ? h("button", { type: "button", class: "small", onclick: () => this.photograph() }, phrase("camera")) : null;
    this.message = h("span", { class: "hint" }, multiple ? phrase("drop_files") : phrase("drop_file"));
    this.element = h("div", {
      class: "drop", ondragover: (event) => this.over(event, true), ondragleave: (event) => this.over(event, false),
      ondrop: (event) => { this.over(event, false); this.add(event.dataTransfer.files); },
    },
    this.list,
    h("div", { class: "drop-foot" }, this.message,
      h("span", { class: "buttons" }, camera, h("label", { class: "button small", for: this.input.id }, phrase("choose"), h("span", { class: "unseen" }, ` ${phrase("choose_for", { name: label })}`)), this.input)));
  }

  over(event, inside) {
    event.preventDefault();
    this.element.classList.toggle("over", inside);
  }

  add(files) {
    const more = [...files];
    if (!more.length) return;
    this.set(this.multiple ? [...this.held, ...more] : more.slice(0, 1));
  }

  set(files) {
    this.held = [...files];
    this.list.replaceChildren(...this.held.map((file, place) => this.entry(file, place)));
    this.element.classList.toggle("filled", this.held.length > 0);
    this.changed();
  }

  entry(file, place) {
    const remove = h("button", {
      type: "button", class: "small", "aria-label": phrase("remove", { name: file.name }),
      onclick: () => this.set(this.held.filter((_, other) => other !== place)),
    }, "×");
    return h("figure", { class: "file" }, preview(file, file.name),
      h("figcaption", {}, h("span", { class: "name" }, file.name), h("span", { class: "hint" }, bytes(file.size)), remove));
  }

  files() {
    return this.held;
  }

  async photograph() {
    try {
      const file = await picture();
      if (file) this.add([file]);
    } catch (error) {
      say(this.message, phrase("no_camera", { message: error.message }));
    }
  }
}
