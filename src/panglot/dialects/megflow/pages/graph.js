// The graph of a MegFlow package, with what passes through each node at this moment.

import { byId, h, s, say, scroller } from "./dom.js";
import { feed } from "./feed.js";
import { phrase, spoken } from "./language.js";
import { get } from "./server.js";
import { count, digits } from "./words.js";

const [WIDE, HIGH, ACROSS, DOWN, EDGE] = [190, 76, 90, 34, 20];
const RECENT = 10;

/** The nodes of the main graph with its subgraphs opened, and the connections between their ports. */
function opened(document) {
  const graphs = new Map(document.graphs.map((graph) => [graph.name, graph]));
  const shared = new Map(document.shared.map((node) => [node.name, node]));
  const [nodes, links] = [new Map(), []];
  function enter(graph, path, depth) {
    const ends = new Map();
    const endsOf = (port) => {
      const [name, side] = port.split(":");
      const inner = ends.get(`${name}:${side}`);
      if (inner) return inner;
      if (shared.has(name)) {
        nodes.set(name, { name, type: shared.get(name).ty, shared: true });
        return [`${name}:${side}`];
      }
      return [`${path}${name}:${side}`];
    };
    for (const node of graph.nodes) {
      const inside = graphs.get(node.ty);
      if (inside && depth < 8) {
        const doors = enter(inside, `${path}${node.name}/`, depth + 1);
        for (const [door, ports] of doors) ends.set(`${node.name}:${door}`, ports);
      } else nodes.set(path + node.name, { name: path + node.name, type: node.ty });
    }
    for (const { cap, ports } of graph.connections) {
      const reached = ports.flatMap(endsOf);
      links.push({ cap, ports: reached });
    }
    return [...graph.inputs, ...graph.outputs].map(({ name, ports }) => [name, ports.flatMap(endsOf)]);
  }
  enter(graphs.get(document.main), "", 0);
  return { nodes, links };
}

/** Arrows from outputs to inputs, as the reports of the workers tell which ports are which. */
function arrows({ nodes, links }, reports) {
  const isInput = (name, port) => reports.some((node) => node.name === name && port in node.inputs);
  const isOutput = (name, port) => reports.some((node) => node.name === name && port in node.outputs);
  const found = [];
  for (const { cap, ports } of links) {
    const split = ports.map((one) => [one.slice(0, one.lastIndexOf(":")), one.slice(one.lastIndexOf(":") + 1)]).filter(([name]) => nodes.has(name));
    const from = split.filter(([name, port]) => isOutput(name, port) || (!isInput(name, port) && /out/.test(port)));
    const to = split.filter((one) => !from.includes(one));
    for (const [source, out] of from) for (const [target, into] of to) found.push({ source, out, target, into, cap });
  }
  return found;
}

/** Columns by the longest way from a source; arrows that lead back are left out of account. */
function layers(names, edges) {
  const layer = new Map();
  const visit = (name, depth, path) => {
    if (path.has(name) || (layer.get(name) ?? -1) >= depth) return;
    layer.set(name, depth);
    const further = new Set(path).add(name);
    for (const edge of edges) if (edge.source === name && !further.has(edge.target)) visit(edge.target, depth + 1, further);
  };
  const entries = names.filter((name) => !edges.some((edge) => edge.target === name));
  for (const name of entries.length ? entries : names.slice(0, 1)) visit(name, 0, new Set());
  for (const name of names) if (!layer.has(name)) visit(name, 0, new Set());
  return layer;
}

class Drawing {
  constructor(document) {
    this.graph = opened(document);
    this.boxes = new Map();
    this.edges = [];
    this.failures = new Map();
    this.element = scroller("sheet graph", phrase("graph"));
  }

  /** Lay the nodes out; once the reports tell where ports lead. */
  arrange(reports) {
    const names = [...this.graph.nodes.keys()];
    this.known = reports.length;
    const edges = arrows(this.graph, reports);
    const layer = layers(names, edges);
    const columns = [];
    for (const name of names) (columns[layer.get(name)] ??= []).push(name);
    const tallest = Math.max(...columns.map((column) => column.length));
    const at = new Map();
    columns.forEach((column, across) => column.forEach((name, down) => {
      const top = EDGE + ((tallest - column.length) * (HIGH + DOWN)) / 2 + down * (HIGH + DOWN);
      at.set(name, [EDGE + across * (WIDE + ACROSS), top]);
    }));
    const width = 2 * EDGE + columns.length * (WIDE + ACROSS) - ACROSS;
    const back = edges.some((edge) => layer.get(edge.target) <= layer.get(edge.source)) ? 46 : 0;
    const height = 2 * EDGE + tallest * (HIGH + DOWN) - DOWN + back;
    this.edges = edges.map((edge) => this.edge(edge, at, height));
    this.boxes = new Map(names.map((name) => [name, this.box(this.graph.nodes.get(name), at.get(name))]));
    const drawing = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": phrase("graph_of", { count: names.length }) },
      s("defs", {}, s("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, s("path", { d: "M0 0L8 4L0 8Z", class: "head" }))),
      this.edges.map((edge) => edge.group), [...this.boxes.values()].map((box) => box.group));
    this.element.replaceChildren(drawing);
  }

  edge(edge, at, height) {
    const [[x1, y1], [x2, y2]] = [at.get(edge.source), at.get(edge.target)];
    const [from, to] = [[x1 + WIDE, y1 + HIGH / 2], [x2, y2 + HIGH / 2]];
    const forward = x2 > x1;
    const low = height - 8;
    const path = forward
      ? `M${from}C${from[0] + ACROSS / 2} ${from[1]} ${to[0] - ACROSS / 2} ${to[1]} ${to}`
      : `M${x1 + WIDE / 2} ${y1 + HIGH}C${x1 + WIDE / 2} ${low} ${x1 + WIDE / 2} ${low} ${(x1 + x2 + WIDE) / 2} ${low}S${x2 + WIDE / 2} ${low} ${x2 + WIDE / 2} ${y2 + HIGH}`;
    const words = s("text", { x: forward ? (from[0] + to[0]) / 2 : (x1 + x2 + WIDE) / 2, y: (forward ? (from[1] + to[1]) / 2 : low) - 7, "text-anchor": "middle" });
    const group = s("g", { class: "edge" }, s("path", { d: path, "marker-end": "url(#head)" }), words);
    return { ...edge, group, words };
  }

  box({ name, type, shared }, [x, y]) {
    const short = name.split("/").at(-1);
    const rate = s("text", { x: 12, y: HIGH - 12, class: "rate" });
    const queue = s("rect", { x: 0, y: HIGH - 4, width: 0, height: 4, class: "full" });
    const group = s("g", { class: "node", transform: `translate(${x} ${y})` }, s("title", {}, name), s("rect", { width: WIDE, height: HIGH, rx: 10 }),
      s("text", { x: 12, y: 23, class: "title" }, short.length > 22 ? `${short.slice(0, 21)}…` : short),
      s("text", { x: 12, y: 42, class: "type" }, shared ? phrase("shared_node", { type }) : type), rate, queue);
    return { group, rate, queue };
  }

  draw(reports, alive) {
    if (!this.boxes.size || this.known !== reports.length) this.arrange(reports);
    const all = new Map(reports.map((node) => [node.name, node]));
    const now = Date.now() / 1000;
    for (const [name, box] of this.boxes) {
      const node = all.get(name);
      const inputs = Object.values(node?.inputs ?? {});
      const passing = Math.max(0, ...inputs.map((one) => one.rate), ...Object.values(node?.outputs ?? {}).map((one) => one.rate));
      const full = Math.max(0, ...inputs.map((one) => one.queued / Math.max(1, one.cap * (node.instances || 1))));
      const [failures, last] = this.failures.get(name) ?? [node?.failures ?? 0, 0];
      const grown = (node?.failures ?? 0) > failures;
      this.failures.set(name, [node?.failures ?? 0, grown ? now : last]);
      const dead = !alive || (grown ? now : last) > now - RECENT;
      box.group.setAttribute("class", `node${dead ? " dead" : node?.blocked ? " blocked" : ""}`);
      const ports = inputs.length + Object.keys(node?.outputs ?? {}).length;
      say(box.rate, alive && !ports ? "" : alive ? `${phrase("per_second", { rate: digits(passing) })}${node?.instances > 1 ? ` × ${node.instances}` : ""}${node?.failures ? ` · ${phrase("node_failed", { count: node.failures })}` : ""}` : phrase("not_running"));
      box.queue.setAttribute("width", WIDE * Math.min(1, full));
    }
    for (const edge of this.edges) {
      const port = all.get(edge.target)?.inputs[edge.into];
      say(edge.words, port ? `${count(port.queued)} / ${count(port.cap)}` : "");
    }
  }
}

const title = h("h1", {}, phrase("graph"));
const note = h("p", { class: "hint" }, phrase("first_report"));
const document_ = await get("graph");
const drawing = new Drawing(document_);
byId("main").replaceChildren(h("div", { class: "status" }, h("div", { class: "headline" }, title, note), drawing.element,
  h("p", { class: "hint" }, phrase("graph_about"))));
drawing.draw([], true);

let extra = { workers: [] };
let workers = [];
feed((kind, value) => {
  if (kind === "lost") {
    drawing.draw(extra.workers[0]?.nodes ?? [], false);
    say(note, phrase("server_lost"));
    return;
  }
  extra = value.extra ?? extra;
  workers = value.workers ?? workers;
  const state = byId("state");
  state.className = `state ${value.state}`;
  say(state, spoken("state", value.state));
  const alive = workers.some((worker) => worker.state === "ready" || worker.state === "retiring");
  const report = extra.workers[0];
  drawing.draw(report?.nodes ?? [], alive);
  say(note, extra.workers.length > 1 ? phrase("of_worker", { worker: report.worker, count: extra.workers.length }) : phrase("once_a_second", { graph: document_.main }));
});
