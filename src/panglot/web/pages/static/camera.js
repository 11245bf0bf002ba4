// A picture from the camera.

import { h } from "./dom.js";
import { phrase } from "./language.js";

/** Show what the camera sees until a picture is taken; null when it is not. */
export async function picture() {
  const stream = await navigator.mediaDevices.getUserMedia({ video: true });
  const video = h("video", { autoplay: true, playsinline: true, ".muted": true, ".srcObject": stream });
  const dialog = h("dialog", { class: "camera", "aria-label": phrase("camera") }, h("form", { method: "dialog" }, video,
    h("p", { class: "buttons" }, h("button", { value: "" }, phrase("cancel")), h("button", { class: "primary", value: "take", autofocus: true }, phrase("take_picture")))));
  document.body.append(dialog);
  dialog.showModal();
  await new Promise((resolve) => { dialog.onclose = resolve; });
  const taken = dialog.returnValue === "take" ? await frame(video) : null;
  stream.getTracks().forEach((track) => track.stop());
  dialog.remove();
  return taken;
}

async function frame(video) {
  const canvas = h("canvas", { width: video.videoWidth, height: video.videoHeight });
  canvas.getContext("2d").drawImage(video, 0, 0);
  const blob = await new Promise((resolve) => { canvas.toBlob(resolve, "image/jpeg", 0.92); });
  return new File([blob], "camera.jpg", { type: "image/jpeg" });
}
