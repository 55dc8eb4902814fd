// @ts-check
"use strict";
/** The graph around an operator: what it reads and who writes that, what it writes and who reads that. */

/** How many tensors and operators are drawn in a row. */
const MOST_AROUND = 24;


/** Shows the graph around the operator of a step; each card is clicked to walk there.
 * @param {HTMLElement} panel @param {Plan} p @param {number} step @param {{pick: (i: number) => void, goto: (step: number) => void, picked: number}} o */
function showAround(panel, p, step, o) {
  const g = p.graph, op = p.columns.order[step];
  if (!g || op === undefined) return panel.replaceChildren(make("p", {}, "No operator is known at this step."));
  /** @type {Map<string, HTMLElement>} */ const cards = new Map();
  /** @type {[string, string][]} */ const edges = [];
  const rank = (/** @type {string} */ label, /** @type {[string, () => HTMLElement][]} */ entries) => {
    const fresh = [...new Map(entries)].filter(([key]) => !cards.has(key));
    const shown = fresh.slice(0, MOST_AROUND).map(([key, card]) => { const box = card(); cards.set(key, box); return box; });
    const more = fresh.length > shown.length ? [make("p", {}, `and ${count(fresh.length - shown.length)} more`)] : [];
    return make("div", { className: "rank", role: "group", "aria-label": label }, ...shown, ...more);
  };
  const tensor = (/** @type {number} */ t) => /** @type {[string, () => HTMLElement]} */ ([`tensor ${t}`, () => tensorCard(p, t, o)]);
  const operator = (/** @type {number} */ k, own = false) => /** @type {[string, () => HTMLElement]} */ ([`op ${k}`, () => operatorCard(p, k, own, o)]);
  const caller = (/** @type {string} */ key, /** @type {string} */ words) => /** @type {[string, () => HTMLElement]} */ ([key, () => make("div", { className: "card caller" }, words)]);
  const reads = [...new Set(g.reads[op])], writes = [...new Set(g.writes[op])];
  const bySteps = (/** @type {number} */ a, /** @type {number} */ b) => (p.stepOf.get(a) ?? 0) - (p.stepOf.get(b) ?? 0);
  const above = reads.map((t) => {
    const by = p.writer.get(t);
    const row = by !== undefined && by !== op ? operator(by) : g.inputs.includes(t) ? caller("input", "input of the model") : caller("kept", "kept from run to run, or handed on");
    edges.push([row[0], `tensor ${t}`], [`tensor ${t}`, `op ${op}`]);
    return row;
  });
  const below = writes.flatMap((t) => {
    const rows = [...(p.readers.get(t) ?? [])].sort(bySteps).filter((k) => k !== op).map((k) => operator(k));
    if (g.outputs.includes(t)) rows.push(caller("output", "output of the model"));
    edges.push([`op ${op}`, `tensor ${t}`], ...rows.map((row) => /** @type {[string, string]} */ ([`tensor ${t}`, row[0]])));
    return rows;
  });
  const body = make("div", { className: "around" }, rank("written by", above), rank("reads", reads.map(tensor)), rank("operator", [operator(op, true)]), rank("writes", writes.map(tensor)), rank("read by", below));
  panel.replaceChildren(body);
  const join = () => drawEdges(body, edges.filter(([a, b]) => cards.has(a) && cards.has(b)).map(([a, b]) => [/** @type {HTMLElement} */ (cards.get(a)), /** @type {HTMLElement} */ (cards.get(b))]));
  join();
  new ResizeObserver(join).observe(body);
}

/** An operator as a card. @param {Plan} p @param {number} op @param {boolean} own whether the graph is that around it @param {{goto: (step: number) => void}} o */
function operatorCard(p, op, own, o) {
  const g = /** @type {Graph} */ (p.graph), step = p.stepOf.get(op);
  const name = g.op_name[op] && g.op_name[op] !== g.kinds[g.op_kind[op]] ? cutMiddle(g.op_name[op], 34) : "";
  const where = [name, step === undefined ? "in no step" : `step ${count(step)}`].filter(Boolean).join(" · ");
  const constants = own && g.others[op].length ? [make("small", {}, `constants: ${g.others[op].map((t) => g.types[t]).join(", ")}`)] : [];
  const load = own && step !== undefined ? [make("small", {}, `${brief(p.live[step])} alive${p.peakAt(step) === 0 ? ", the highest peak" : ""}`)] : [];
  const card = make("button", { type: "button", className: own ? "card op own" : "card op", title: g.op_name[op], disabled: step === undefined, onclick: () => o.goto(/** @type {number} */ (step)) }, make("b", {}, p.opLabel(op)), make("small", {}, where), ...constants, ...load);
  if (own) card.setAttribute("aria-current", "true");
  return card;
}

/** A tensor as a card; a click chooses its buffer. @param {Plan} p @param {number} t @param {{pick: (i: number) => void, picked: number}} o */
function tensorCard(p, t, o) {
  const g = /** @type {Graph} */ (p.graph), i = p.bufferOf.get(t) ?? -1;
  const words = [make("b", {}, cutMiddle(g.tensors[t], 34)), make("small", {}, `${g.types[g.type[t]]} · ${brief(g.bytes[t])}`)];
  return make("button", { type: "button", className: i >= 0 && i === o.picked ? "card on" : "card", title: g.tensors[t], disabled: i < 0, onclick: () => o.pick(i) }, ...words);
}

/** Draws a line from the lower edge of one card to the upper edge of another for each pair. @param {HTMLElement} body @param {HTMLElement[][]} pairs */
function drawEdges(body, pairs) {
  const home = body.getBoundingClientRect();
  const sheet = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  sheet.setAttribute("aria-hidden", "true");
  for (const [from, to] of pairs) {
    const [a, b] = [from.getBoundingClientRect(), to.getBoundingClientRect()];
    const [x0, y0, x1, y1] = [a.left + a.width / 2 - home.left, a.bottom - home.top, b.left + b.width / 2 - home.left, b.top - home.top];
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    const bend = Math.max((y1 - y0) / 2, 8);
    line.setAttribute("d", `M${x0},${y0}C${x0},${y0 + bend},${x1},${y1 - bend},${x1},${y1 - 1}m-4,-5l4,5l4,-5`);
    sheet.append(line);
  }
  body.querySelector("svg")?.remove();
  body.prepend(sheet);
}
