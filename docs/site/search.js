/* Search where the site is read from files: browsers start no workers there, so the worker's script runs in a frame.
   And search for flags: a word that begins with a dash would be a word that pages must not have. */
"use strict";

const QUERY = 2;

function withoutDashes(message) {
  const words = message && message.type === QUERY ? message.data : null;
  return typeof words === "string" ? { ...message, data: words.replace(/(^|\s)-+(?=\S)/g, "$1") } : message;
}

const send = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  return send.call(this, withoutDashes(message), ...rest);
};

class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    inside.importScripts = (...urls) => urls.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve());
    this.ready = this.load(url);
  }

  load(url) {
    return new Promise((done, failed) => {
      const script = this.frame.contentDocument.createElement("script");
      script.src = url;
      script.onload = done;
      script.onerror = failed;
      this.frame.contentDocument.body.append(script);
    });
  }

  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: withoutDashes(data) })));
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = IFrameWorker;
}
