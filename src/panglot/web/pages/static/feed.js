// The figures of the server, as they come. Tabs of one browser share one connection, and tabs nobody sees have none.

/** Call `told(kind, value)` with `snapshot` and `tick`, and with `lost` while the server cannot be heard. */
export function feed(told) {
  const source = typeof SharedWorker === "function" ? shared(told) : alone(told);
  const look = () => source.look(document.visibilityState === "visible");
  document.addEventListener("visibilitychange", look);
  window.addEventListener("pagehide", () => source.look(false));
  window.addEventListener("pageshow", look);
  look();
}

function shared(told) {
  const worker = new SharedWorker(new URL(`feed_worker.js${aboutModel(location.search)}`, import.meta.url), { name: "panglot feed", type: "module" });
  worker.port.onmessage = ({ data: [kind, value] }) => told(kind, value);
  return { look: (on) => worker.port.postMessage(on) };
}

/** Where browsers have no shared workers: a connection of this tab's own. */
function alone(told) {
  const open = listener(new URL(`../status/events${aboutModel(location.search)}`, import.meta.url), told);
  return { look: open };
}

/** The query that says which of several models the figures are of; empty: of all. */
export function aboutModel(query) {
  const name = new URLSearchParams(query).get("model");
  return name ? `?model=${encodeURIComponent(name)}` : "";
}

/** What is known after a tick; requests that were known already do not come twice. */
export function after(known, tick) {
  const seen = new Set(known.recent.map((entry) => `${entry.when} ${entry.id}`));
  const fresh = tick.recent.filter((entry) => !seen.has(`${entry.when} ${entry.id}`));
  return { ...known, ...tick, fresh, history: [...known.history, tick.sample].slice(-600), recent: [...known.recent, ...fresh].slice(-50) };
}

/** A function that opens and closes a connection, and opens it again after it was lost. */
export function listener(address, told) {
  let source = null;
  let retry = 0;
  function open() {
    source = new EventSource(address);
    for (const kind of ["snapshot", "tick"]) source.addEventListener(kind, (event) => told(kind, JSON.parse(event.data)));
    source.onerror = () => {
      told("lost", null);
      if (source?.readyState !== EventSource.CLOSED) return;
      clearTimeout(retry);
      retry = setTimeout(() => { if (source) open(); }, 3000);
    };
  }
  return (on) => {
    if (on && !source) open();
    if (on || !source) return;
    clearTimeout(retry);
    source.close();
    source = null;
  };
}
