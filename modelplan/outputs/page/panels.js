// @ts-check
"use strict";
/** The lists beside the map. Every word of a model becomes text and never markup. */

/** An element. @param {string} tag @param {Record<string, any>} [fields] @param {(Node|string)[]} inside */
function make(tag, fields = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(fields))
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else Object.assign(element, { [name]: value });
  element.append(...inside);
  return element;
}

/** The element of an id. @param {string} id @returns {any} */
function get(id) {
  return document.getElementById(id);
}

/** A patch with the colour and the pattern of a kind. @param {{colour: Record<string, string>, hatch: string}} look @param {string} theme @param {boolean} patterns */
function swatch(look, theme, patterns) {
  const patch = make("span", { className: "swatch", "aria-hidden": "true" });
  const line = theme === "dark" ? "#0c0e1199" : "#4a4f5599";
  const stripes = { "/": 135, "\\": 45, "-": 0, "|": 90, x: 135, "+": 90, ".": 0 };
  const angle = stripes[/** @type {keyof typeof stripes} */ (look.hatch)];
  patch.style.backgroundColor = look.colour[theme];
  if (patterns && angle !== undefined) {
    const one = (/** @type {number} */ a) => `repeating-linear-gradient(${a}deg, ${line} 0 1px, transparent 1px 5px)`;
    const dots = `radial-gradient(${line} 1px, transparent 1.4px) 0 0 / 5px 5px`;
    const both = look.hatch === "x" || look.hatch === "+" ? `${one(angle)}, ${one(angle - 90)}` : one(angle);
    patch.style.background = `${look.hatch === "." ? dots : both}, ${look.colour[theme]}`;
  }
  return patch;
}

/** A definition list. @param {[string, (Node|string)[]|Node|string][]} rows */
function definitions(rows) {
  const list = make("dl");
  for (const [label, value] of rows) list.append(make("dt", {}, explained(label)), make("dd", {}, ...(Array.isArray(value) ? value : [value])));
  return list;
}

/** A list of rows of equal height, of which only those in sight exist. */
class LongList {
  /** @param {HTMLElement} box @param {(k: number) => HTMLElement} row @param {number} height */
  constructor(box, row, height) {
    this.box = box;
    this.row = row;
    this.height = height;
    this.count = 0;
    this.inner = make("div", { role: "presentation" });
    this.inner.style.position = "relative";
    box.replaceChildren(this.inner);
    box.addEventListener("scroll", () => this.fill());
    new ResizeObserver(() => this.fill()).observe(box);
  }

  /** Puts the number of rows. @param {number} count */
  show(count) {
    this.count = count;
    this.inner.style.height = `${count * this.height}px`;
    this.fill();
  }

  /** Makes the rows in sight. */
  fill() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - 4);
    const last = Math.min(this.count, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.height) + 4);
    const rows = [];
    for (let k = first; k < last; k++) {
      const row = this.row(k);
      row.style.top = `${k * this.height}px`;
      rows.push(row);
    }
    this.inner.replaceChildren(...rows);
  }

  /** Brings a row into sight. @param {number} k */
  reveal(k) {
    const top = k * this.height;
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop || top + this.height > scrollTop + clientHeight) this.box.scrollTop = top - clientHeight / 2;
    this.fill();
  }
}

/** Columns of the live set: heading, whether it is a number, what it is sorted by. @type {[string, boolean, (p: Plan, i: number) => number|string][]} */
const LIVE = [
  ["tensor", false, (p, i) => p.label(i)],
  ["bytes", true, (p, i) => p.size[i]],
  ["share", true, (p, i) => p.size[i]], // of bytes that are split where several buffers have them
  ["address", true, (p, i) => p.low[i]],
  ["last step", true, (p, i) => p.end[i]],
];

/** The live set of a step as a table that can be sorted.
 * @param {{plan: Plan, step: number, picked: number, sort: {column: number, down: boolean}, theme: string, patterns: boolean,
 *   pick: (i: number) => void, order: (column: number) => void}} o */
function liveTable(o) {
  const { plan, step, sort } = o;
  const rows = plan.aliveAt(step);
  const total = plan.live[step] ?? 0;
  const own = splitBytes(plan, rows);
  const by = LIVE[sort.column][2];
  const sign = sort.down ? -1 : 1;
  const keys = new Map(rows.map((i) => [i, by(plan, i)]));
  rows.sort((a, b) => {
    const x = /** @type {any} */ (keys.get(a)), y = /** @type {any} */ (keys.get(b));
    return sign * (x < y ? -1 : x > y ? 1 : 0) || a - b;
  });
  const head = make("tr", {}, ...LIVE.map(([name, number], k) => {
    const button = make("button", { type: "button", title: WORDS[name] ?? "", onclick: () => o.order(k) }, name);
    const cell = make("th", { scope: "col", className: number ? "number" : "" }, button);
    if (sort.column === k) cell.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
    const digits = (/** @type {number} */ n) => `${Math.max(44, 7.6 * count(n).length + 14)}px`;
    cell.style.width = ["auto", digits(Math.max(...rows.map((i) => plan.size[i]), 1e4)), "56px", digits(Math.max(plan.columns.height, 1e4)), "70px"][k];
    return cell;
  }));
  const names = namesApart(rows.slice(0, 1000).map((i) => plan.shorts[i]));
  const body = make("tbody", {}, ...rows.slice(0, 1000).map((i, k) => {
    const share = total ? (100 * /** @type {number} */ (own.get(i))) / total : 0;
    const cell = make("td", { className: "number share" }, `${share.toFixed(1)}%`);
    cell.style.setProperty("--share", `${share}%`);
    const name = make("td", { title: plan.label(i), className: "name" }, swatch(lookOf(plan, plan.columns.kind[i]), o.theme, o.patterns), ...breakable(names[k]), ...(plan.columns.regions.length ? [make("small", {}, ` in ${plan.regionAt(plan.low[i])?.[0]}`)] : []));
    const row = make("tr", { tabIndex: 0, className: i === o.picked ? "on" : "", "aria-label": `${plan.label(i)}, ${count(plan.size[i])} bytes, last step ${count(plan.end[i] - 1)}` }, name, make("td", { className: "number" }, count(plan.size[i])), cell, make("td", { className: "number", title: place(plan, i) }, count(plan.low[i] - (plan.regionAt(plan.low[i])?.[1] ?? 0))), make("td", { className: "number" }, count(plan.end[i] - 1)));
    row.dataset.buffer = String(i);
    row.onclick = () => o.pick(i);
    row.onkeydown = (e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), e.stopPropagation(), o.pick(i));
    return row;
  }));
  const at = plan.peakLabel(step);
  const words = `Alive at ${plan.stepLabel(step)}${at ? ` (${at})` : ""}: ${rows.length} buffer${rows.length === 1 ? "" : "s"}, ${human(total)}: shares are of these bytes, which are ${plan.most ? ((100 * total) / plan.most).toFixed(1) : 0}% of the highest peak`;
  const twice = rows.reduce((sum, i) => sum + plan.size[i], 0) - total;
  const split = plan.columns.parts && twice > 0 ? [make("p", {}, `${human(twice)} of these lie in bytes that another buffer has too: their share is split evenly.`)] : [];
  const more = rows.length > 1000 ? [make("p", {}, `The first 1,000 of ${count(rows.length)} in this order.`)] : [];
  return [make("p", {}, words), ...split, make("table", { "aria-label": "Live set" }, make("thead", {}, head), body), ...more];
}

/** A name that may be broken where its words end. @param {string} name */
function breakable(name) {
  return (name.match(/[^/_;]*[/_;]?/g) ?? []).filter(Boolean).flatMap((part) => [part, make("wbr")]);
}

/** Names for a table: without the folders that all have in common, and long ones without their middle where that
 * leaves them apart. @param {string[]} names */
function namesApart(names) {
  const paths = names.map((name) => name.split("/"));
  let common = 0;
  while (paths.length > 1 && paths.every((path) => path.length > common + 1 && path[common] === paths[0][common])) common++;
  const rest = paths.map((path) => path.slice(common).join("/"));
  const cut = rest.map((name) => cutMiddle(name));
  return cut.map((name, k) => (cut.indexOf(name) === k && cut.lastIndexOf(name) === k ? name : rest[k]));
}

/** What is known of a buffer. @param {Plan} plan @param {number} i @param {{goto: (op: number) => void, pick: (i: number) => void, step: number, theme: string, patterns: boolean}} o */
function detailsOf(plan, i, o) {
  const c = plan.columns;
  const g = plan.graph;
  const tensors = plan.tensors(i);
  const merged = tensors.length > 1;
  const ops = (/** @type {number[]} */ list, /** @type {string} */ role, named = merged) => {
    const sorted = [...list].sort((a, b) => (plan.stepOf.get(a) ?? 0) - (plan.stepOf.get(b) ?? 0)).slice(0, 40);
    const buttons = sorted.map((op) => make("button", { type: "button", className: `link ${role}`, onclick: () => o.goto(op) }, `${plan.opLabel(op)} (step ${plan.stepOf.get(op)})${named ? touched(op, role) : ""}`));
    const rows = buttons.length > 1 || named ? buttons.map((button) => make("div", {}, button)) : buttons;
    return [...rows, ...(list.length > 40 ? [` and ${list.length - 40} more`] : [])];
  };
  const touched = (/** @type {number} */ op, /** @type {string} */ role) => {
    const G = /** @type {Graph} */ (g);
    const own = tensors.filter((t) => (role === "writer" ? G.writes : G.reads)[op]?.includes(t));
    return own.length ? `: ${own.map((t) => cutMiddle(G.tensors[t])).join(" and ")}` : "";
  };
  const last = plan.end[i] - 1;
  /** @type {[string, any][]} */
  const rows = [["bytes", human(plan.size[i])], ["share", shareWords(plan, i, o.step)], ["alive", `steps ${count(plan.start[i])} to ${count(last)}`]];
  if (g && tensors.length) {
    const t = plan.chiefs[i];
    const writers = plan.writersOf(i), readers = plan.readersOf(i);
    rows.push(["written by", writers.length ? ops(writers, "writer") : g.inputs.includes(t) ? "the caller: it is an input" : "nothing: it keeps its value"]);
    rows.push(["read by", readers.length ? ops(readers, "reader") : "no operator"]);
    rows.splice(2, 0, ["kept alive by", keeper(plan, i, (list, role) => ops(list, role, false))]);
    rows.push(["type", g.types[g.type[t]]]);
  } else if (g && c.order.length) rows.push(["used by", ops(plan.writersOf(i), "writer")]);
  rows.push(["why here", plan.why(i)], ["address", place(plan, i)], ["kind", plan.kind(i)]);
  const copies = plan.copiesOf(i);
  if (copies.length) rows.push(["copied", copies.map((words) => make("div", {}, words))]);
  const held = tensors.length > 1 ? tensors.map((t, k) => {
    const row = /** @type {number[]} */ (c.members[i]);
    const merge = c.merges.find((m) => m[0] === t);
    const G = /** @type {Graph} */ (g);
    const why = merge ? `with ${G.tensors[merge[1]]} since ${plan.opLabel(merge[2])}: ${c.rules[merge[3]]}; saves ${human(merge[4])}` : "the first of them";
    return make("p", {}, make("b", {}, G.tensors[t]), ` ${G.types[G.type[t]]}, at +${count(row[2 * k + 1])}, ${usedIn(plan, t)}: ${why}`);
  }) : [];
  const crossing = writtenOver(plan).filter(([a, b]) => a === i || b === i).map(([a, b, shared]) => make("p", {}, overlapWords(plan, i, a === i ? b : a, shared)));
  const extra = held.length ? [make("p", {}, `${held.length} tensors share these bytes:`), ...held] : [];
  return [make("h2", {}, swatch(lookOf(plan, c.kind[i]), o.theme, o.patterns), plan.label(i)), definitions(rows), ...extra, ...crossing];
}

/** The share of a buffer in the bytes alive at a step. @param {Plan} plan @param {number} i @param {number} step */
function shareWords(plan, i, step) {
  const total = plan.live[step] ?? 0;
  if (step < plan.start[i] || step >= plan.end[i] || !total) return `not alive at step ${count(step)}`;
  const own = /** @type {number} */ (splitBytes(plan, plan.aliveAt(step)).get(i));
  return `${((100 * own) / total).toFixed(1)}% of the bytes alive at step ${count(step)}`;
}

/** When a tensor is written and last read. @param {Plan} plan @param {number} t */
function usedIn(plan, t) {
  const g = /** @type {Graph} */ (plan.graph);
  const steps = (/** @type {number[]} */ ops) => ops.map((op) => plan.stepOf.get(op)).filter((s) => s !== undefined);
  const [made] = steps([plan.writer.get(t) ?? -1]);
  const last = Math.max(-1, ...steps(plan.readers.get(t) ?? []));
  const first = made === undefined ? (g.inputs.includes(t) ? "set by the caller" : plan.columns.parts ? "handed on in place" : "written by no operator") : `written at step ${count(made)}`;
  return `${first}, ${last < 0 ? (g.outputs.includes(t) ? "read by the caller" : "read by none") : `last read at step ${count(last)}`}`;
}

/** A long name without its middle: what tells names apart is mostly at their ends. @param {string} name @param {number} [most] */
function cutMiddle(name, most = 44) {
  const head = Math.floor(most / 3);
  return name.length > most ? `${name.slice(0, head)}…${name.slice(name.length - (most - head - 1))}` : name;
}

/** The addresses of a buffer; in a stack of regions those in its own. @param {Plan} plan @param {number} i */
function place(plan, i) {
  const region = plan.regionAt(plan.low[i]);
  const base = region?.[1] ?? 0;
  return `${count(plan.low[i] - base)} to ${count(plan.high[i] - base)}${region ? ` in ${region[0]}` : ""}`;
}

/** What keeps a buffer alive to its last step. @param {Plan} plan @param {number} i @param {(list: number[], role: string) => (Node|string)[]} ops */
function keeper(plan, i, ops) {
  const g = /** @type {Graph} */ (plan.graph);
  const last = plan.end[i] - 1;
  const op = plan.columns.order[last];
  if (plan.end[i] >= plan.steps && plan.tensors(i).some((t) => g.outputs.includes(t))) return "the caller: it is an output";
  if (op !== undefined && plan.readersOf(i).includes(op)) return ["its last reader: ", ...ops([op], "reader")];
  if (op !== undefined && plan.writersOf(i).includes(op)) return "nobody: it is free after the operator that writes it";
  for (let around = plan.columns.op_callers[op ?? -1] ?? -1; around >= 0; around = plan.columns.op_callers[around])
    if ([...plan.readersOf(i), ...plan.writersOf(i)].includes(around)) return [...ops([around], "reader"), `: its body uses it again until step ${count(last)}`];
  return "the runtime, to the end of the run";
}

/** A line on a buffer, above the map; the panel beside the map has the rest. @param {Plan} plan @param {number} i */
function tipOf(plan, i) {
  const t = plan.tensors(i).length ? plan.chiefs[i] : undefined;
  const g = plan.graph;
  const more = plan.tensors(i).length - 1;
  const what = g && t !== undefined && !more ? g.types[g.type[t]] : more > 0 ? `${more + 1} tensors` : plan.kind(i);
  return [make("b", {}, cutMiddle(plan.shorts[i], 38)), ` ${human(plan.size[i])} · ${what} · steps ${count(plan.start[i])} to ${count(plan.end[i] - 1)} · address ${place(plan, i)}`];
}
