// Runs once for all tabs of a browser that show the same models: one connection to the server, for those tabs that somebody sees.

import { aboutModel, after, listener } from "./feed.js";

const looking = new Set();
let last = null;

const open = listener(new URL(`../status/events${aboutModel(self.location.search)}`, import.meta.url), (kind, value) => {
  if (kind === "snapshot") last = value;
  if (kind === "tick" && last) last = after(last, value);
  for (const port of looking) port.postMessage([kind, value]);
});

self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data: on }) => {
    const newcomer = on && !looking.has(port);
    if (on) looking.add(port);
    else looking.delete(port);
    if (newcomer && last && looking.size > 1) port.postMessage(["snapshot", last]);
    if (!looking.size) last = null;
    open(looking.size > 0);
  };
};
