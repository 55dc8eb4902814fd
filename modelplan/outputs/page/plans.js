// @ts-check
"use strict";
/** The plans of the page with what follows from their columns: curves, peaks, who writes and reads, why a place. */

/**
 * @typedef {{tensors: string[], type: number[], bytes: number[], types: string[], op_kind: number[], op_name: string[],
 *   reads: number[][], writes: number[][], others: number[][], kinds: string[], inputs: number[], outputs: number[]}} Graph
 * @typedef {{name: string, model: string[], about: string, twins: string[], facts: [string, string][], graph: number, order: number[], op_labels: string[], op_callers: number[], steps: number,
 *   start: number[], end: number[], size: number[], offset: number[], kind: number[], labels: string[],
 *   members: (number[]|string)[], pinned: number[], merges: number[][], rules: string[], overlaps: number[][],
 *   conflicts: number, capacity: number|null, ops: string[], bound: number, height: number, planned: number, peak: number,
 *   banks: [string, number][], models: [number, string][], claimed: number[][], lost: number[][], tail: number, parts: boolean, given: number[], fits: boolean,
 *   regions: [string, number, number, number][], copies: number[][]}} Columns
 * @typedef {{title: string, subtitle: string, made_by: string, graphs: Graph[], views: Columns[],
 *   change: boolean, field: {bound: number, rows: [string, string, number, string][], refused: string[]}|null}} Page
 * @typedef {{start: number, end: number, bytes: number}} Peak
 */

/** Bytes in the largest unit that keeps them above one; halves go to the even digit, as in text. @param {number} n */
function brief(n) {
  const [unit, scale] = n >= 1048576 ? ["MiB", 1048576] : n >= 1024 ? ["KiB", 1024] : ["B", 1];
  const hundredths = (100 * n) / Number(scale), low = Math.floor(hundredths);
  const nearest = hundredths - low === 0.5 ? low + (low % 2) : Math.round(hundredths);
  return scale === 1 ? `${n} B` : `${(nearest / 100).toFixed(2)} ${unit}`;
}

/** A whole number with commas. @param {number} n */
function count(n) {
  return n.toLocaleString("en-US");
}

/** Bytes as people read them, with the count. @param {number} n */
function human(n) {
  return n >= 1024 ? `${brief(n)} (${count(n)} B)` : `${count(n)} B`;
}

/** One plan of the page. */
class Plan {
  /** @param {Page} page @param {number} number */
  constructor(page, number) {
    const c = page.views[number];
    /** @type {Columns} */ this.columns = c;
    /** @type {Graph|null} */ this.graph = c.graph < 0 ? null : page.graphs[c.graph];
    this.name = c.name;
    this.n = c.start.length;
    this.steps = c.steps;
    this.start = Float64Array.from(c.start);
    this.end = Float64Array.from(c.end);
    this.low = Float64Array.from(c.offset);
    this.high = Float64Array.from(c.offset, (low, i) => low + c.size[i]);
    this.size = Float64Array.from(c.size);
    /** Buffers from the largest area to the smallest. */
    const areas = Float64Array.from(this.size, (s, i) => s * (this.end[i] - this.start[i]));
    this.byArea = Uint32Array.from(areas.keys()).sort((a, b) => areas[b] - areas[a] || a - b);
    this.live = liveBytes(this);
    this.most = this.live.reduce((a, b) => Math.max(a, b), 0);
    /** @type {Peak[]} */ this.peaks = peaksOf(this.live);
    /** The step of each operator. @type {Map<number, number>} */
    this.stepOf = new Map(c.order.map((op, step) => [op, step]));
    /** The buffer of each tensor. @type {Map<number, number>} */
    this.bufferOf = new Map();
    c.members.forEach((row, i) => typeof row !== "string" && tensorsOf(row).forEach((t) => this.bufferOf.set(t, i)));
    /** Which operator writes each tensor, and which read it. @type {Map<number, number>} */
    this.writer = new Map();
    /** @type {Map<number, number[]>} */
    this.readers = new Map();
    this.graph?.writes.forEach((row, op) => row.forEach((t) => this.writer.set(t, op)));
    this.graph?.reads.forEach((row, op) => row.forEach((t) => this.readers.set(t, [...(this.readers.get(t) ?? []), op])));
    this.top = Math.max(c.planned + c.tail, c.height, c.capacity ?? 0, 1);
    /** @type {Map<string, number>|null} */ this.known = null;
    /** @type {Map<string, number>|null} */ this.holders = null;
    this.alone = aloneOf(this);
  }

  /** The tensors of a buffer. @param {number} i */
  tensors(i) {
    const row = this.columns.members[i];
    return typeof row === "string" ? [] : tensorsOf(row);
  }

  /** What a buffer is called: the output or input of the model that it holds, or its largest tensor. @param {number} i */
  label(i) {
    const row = this.columns.members[i];
    return typeof row === "string" ? row : /** @type {Graph} */ (this.graph).tensors[this.chiefs[i]];
  }

  /** The tensor after which each buffer is called, -1 where it holds none. */
  get chiefs() {
    const g = this.graph;
    const outputs = new Set(g?.outputs), inputs = new Set(g?.inputs);
    const found = Array.from({ length: this.n }, (_, i) => {
      const held = this.tensors(i);
      const largest = () => held.reduce((a, b) => (/** @type {Graph} */ (g).bytes[b] > /** @type {Graph} */ (g).bytes[a] ? b : a));
      return held.length && g ? (held.find((t) => outputs.has(t)) ?? held.find((t) => inputs.has(t)) ?? largest()) : -1;
    });
    Object.defineProperty(this, "chiefs", { value: found });
    return found;
  }

  /** A name for each buffer that is as short as it can be and still no other's: the least run of its path. */
  get shorts() {
    const paths = Array.from({ length: this.n }, (_, i) => this.label(i).split(";")[0].split("/").filter(Boolean));
    /** @type {(string|undefined)[]} */ const own = Array.from({ length: this.n });
    for (let length = 1, left = this.n; left && length <= 4; length++) {
      const runs = (/** @type {string[]} */ path) => path.map((_, k) => path.slice(k, k + length).join("/")).slice(0, Math.max(path.length - length + 1, 0)).reverse();
      /** @type {Map<string, number>} */ const owners = new Map();
      for (const path of paths) for (const run of new Set(runs(path))) owners.set(run, (owners.get(run) ?? 0) + 1);
      left = 0;
      for (let i = 0; i < this.n; i++) left += (own[i] ??= runs(paths[i]).find((run) => owners.get(run) === 1)) === undefined ? 1 : 0;
    }
    let common = 0;
    while (paths.length > 1 && paths.every((path) => path.length > common + 1 && path[common] === paths[0][common])) common++;
    const rest = (/** @type {number} */ i) => (common ? `…/${paths[i].slice(common).join("/")}` : this.label(i));
    const found = own.map((name, i) => name ?? rest(i));
    Object.defineProperty(this, "shorts", { value: found });
    return found;
  }

  /** The place of each buffer in the order of names, in which numbers count as such: `layer_2` before `layer_10`. */
  get nameRanks() {
    const { compare } = new Intl.Collator("en", { numeric: true });
    const names = Array.from({ length: this.n }, (_, i) => this.label(i));
    const found = new Float64Array(this.n);
    Uint32Array.from(names.keys()).sort((a, b) => compare(names[a], names[b]) || a - b).forEach((i, k) => (found[i] = k));
    Object.defineProperty(this, "nameRanks", { value: found });
    return found;
  }

  /** The kind of a buffer. @param {number} i */
  kind(i) {
    return this.columns.labels[this.columns.kind[i]];
  }

  /** The operators that write a buffer. @param {number} i */
  writersOf(i) {
    const found = this.tensors(i).map((t) => this.writer.get(t)).filter((op) => op !== undefined);
    const none = this.tensors(i).length === 0 && this.columns.order.length > 0;
    return none ? [this.columns.order[this.start[i]]] : [...new Set(found)];
  }

  /** The operators that read a buffer. @param {number} i */
  readersOf(i) {
    return [...new Set(this.tensors(i).flatMap((t) => this.readers.get(t) ?? []))];
  }

  /** How an operator is called. @param {number} op */
  opLabel(op) {
    const g = /** @type {Graph} */ (this.graph);
    return this.columns.op_labels[op] ?? `op ${op} ${g.kinds[g.op_kind[op]]}`;
  }

  /** What tells the operator of a step in another plan or file: its kind and what it writes. @param {number} step */
  opKey(step) {
    const op = this.columns.order[step];
    if (op === undefined || !this.graph) return `step ${step}`;
    const g = this.graph;
    return [g.kinds[g.op_kind[op]], ...(g.writes[op].length ? g.writes[op].map((t) => g.tensors[t]) : [g.op_name[op]])].join("\u0000");
  }

  /** What runs at a step. @param {number} step */
  stepLabel(step) {
    const name = this.stepName(step);
    return name ? `step ${count(step)}: ${name}` : `step ${count(step)}`;
  }

  /** What the operator of a step is called; "" where none is known. @param {number} step */
  stepName(step) {
    const op = this.columns.order[step];
    return op === undefined ? this.columns.ops[step] ?? "" : this.opLabel(op);
  }

  /** The rank of the peak that a step is at, 0 for the highest; -1 where it is at none. @param {number} step */
  peakAt(step) {
    return this.peaks.findIndex((k) => k.start <= step && step < k.end);
  }

  /** That a peak is as high as the first with that height; "" where it is that itself. @param {number} rank */
  equal(rank) {
    const first = this.peaks.findIndex((one) => one.bytes === this.peaks[rank].bytes);
    return first < rank ? `, as high as peak ${count(first + 1)}` : "";
  }

  /** Which of the peaks a step is at, in words; "" where it is at none. @param {number} step */
  peakLabel(step) {
    const rank = this.peakAt(step);
    if (rank < 0) return "";
    const of = this.peaks.length;
    const { start, end } = this.peaks[rank];
    const span = end - start > 1 ? `, as much in steps ${count(start)} to ${count(end - 1)}` : "";
    return `${rank ? `peak ${count(rank + 1)} of ${count(of)} by height${this.equal(rank)}` : of > 1 ? `the highest of ${count(of)} peaks` : "the only peak"}${span}`;
  }

  /** The buffers alive at a step, largest first. @param {number} step */
  aliveAt(step) {
    /** @type {number[]} */ const found = [];
    for (let i = 0; i < this.n; i++) if (this.start[i] <= step && step < this.end[i]) found.push(i);
    return found.sort((a, b) => this.size[b] - this.size[a] || a - b);
  }

  /** The buffer at an address in a step, -1 where there is none. @param {number} x @param {number} y */
  at(x, y) {
    let found = -1;
    for (let i = 0; i < this.n; i++)
      if (this.start[i] <= x && x < this.end[i] && this.low[i] <= y && y < this.high[i])
        if (found < 0 || this.size[i] < this.size[found]) found = i;
    return found;
  }

  /** The buffer that plays the part of a buffer of another plan, -1 where none does. @param {Plan} other @param {number} i */
  twin(other, i) {
    if (this.graph && this.graph === other.graph && other.tensors(i).length)
      return this.bufferOf.get(other.tensors(i)[0]) ?? -1;
    this.known ??= new Map(Array.from({ length: this.n }, (_, j) => [this.keys[j], j]));
    return this.known.get(other.keys[i]) ?? -1;
  }

  /** The buffer in whose bytes a tensor of this name lies, -1 where none is. @param {string} name */
  holder(name) {
    this.holders ??= new Map(Array.from({ length: this.n }, (_, j) => this.tensors(j).map((t) => /** @type {[string, number]} */ ([/** @type {Graph} */ (this.graph).tensors[t], j]))).flat());
    return this.holders.get(name) ?? -1;
  }

  /** A name for each buffer that no other of the plan has; that of scratch tells its operator, whatever its number. */
  get keys() {
    /** @type {Map<string, number>} */ const seen = new Map();
    const found = Array.from({ length: this.n }, (_, i) => {
      const scratch = this.graph && !this.tensors(i).length && this.columns.order.length;
      const name = scratch ? `scratch of ${this.opKey(this.start[i])}` : this.label(i);
      const times = seen.get(name) ?? 0;
      seen.set(name, times + 1);
      return times ? `${name}\u0000${times}` : name;
    });
    Object.defineProperty(this, "keys", { value: found });
    return found;
  }

  /** The region of a stack that holds an address: name, base, bytes used, size. @param {number} address */
  regionAt(address) {
    return this.columns.regions.filter((row) => row[1] <= address).pop();
  }

  /** The copies of a buffer: what they do, and when. @param {number} i @returns {string[]} */
  copiesOf(i) {
    const place = (/** @type {number} */ stay, /** @type {number} */ address) => `${this.regionAt(stay < 0 ? address : this.low[stay])?.[0]}`;
    const rows = this.columns.copies.filter((copy) => copy[0] === i || copy[1] === i);
    return rows.map(([from, to, issued, due, start, end, size]) => `${to === i ? `from ${place(from, start)}` : `to ${place(to, end)}`}, ${count(size)} B, ${due > issued + 1 ? `during steps ${count(issued)} to ${count(due - 1)}` : `in step ${count(issued)}`}`);
  }

  /** The line that says why a buffer lies where it lies. @param {number} i */
  why(i) {
    const low = this.low[i];
    const region = this.regionAt(low);
    const base = region?.[1] ?? 0;
    if (this.columns.pinned.includes(i)) return "held at this address: the plan in the file, or the runtime, has it here";
    if (this.size[i] === 0) return "it has no bytes";
    const beside = [];
    for (let j = 0; j < this.n; j++)
      if (j !== i && this.size[j] && this.low[j] >= base && this.start[j] < this.end[i] && this.start[i] < this.end[j]) beside.push(j);
    beside.sort((a, b) => this.low[a] - this.low[b]);
    const under = beside.filter((j) => this.high[j] <= low).sort((a, b) => this.high[b] - this.high[a])[0];
    if (this.columns.parts) {
      const over = beside.find((j) => this.low[j] >= this.high[i]);
      const by = this.columns.given.includes(i) ? "the plan in the file puts it at this address" : "the plan in the file leaves it to the runtime, which takes the lowest gap that it finds";
      const name = (/** @type {number|undefined} */ j, /** @type {string} */ none) => (j === undefined ? none : `${this.label(j)} (steps ${count(this.start[j])} to ${count(this.end[j] - 1)})`);
      return `${by}; while it is alive, next below lies ${name(under, "nothing")}, next above ${name(over, "nothing")}`;
    }
    if (low === base) return `at the bottom of ${region?.[0] ?? "the arena"}`;
    let free = base;
    let gap = -1;
    for (const j of beside) {
      if (this.low[j] >= low + this.size[i]) break;
      if (this.low[j] - free >= this.size[i] && free < low && gap < 0) gap = free;
      free = Math.max(free, this.high[j]);
    }
    if (gap >= 0) return `a lower place, at ${count(gap - base)}, would be free too; the allocator chose this one`;
    if (under === undefined) return "nothing lies below it while it is alive; it shares bytes there with what it overlaps";
    const [from, to] = [Math.max(this.start[i], this.start[under]), Math.min(this.end[i], this.end[under]) - 1];
    const shared = from === to ? `step ${count(from)}` : `steps ${count(from)} to ${count(to)}`;
    const space = low - this.high[under];
    return `on top of ${this.label(under)}, alive with it in ${shared}${space ? `, ${count(space)} B above its end` : ""}; no gap below has room for it`;
  }
}

/** The bytes above the bound that fragmentation costs, 0 where it costs none, and the first step at which most are free for
 * want of a whole gap. @param {Plan} p */
function mostLost(p) {
  const lost = new Float64Array(p.steps + 1);
  for (const [start, end, low, high] of p.columns.lost) { lost[start] += high - low; lost[end] -= high - low; }
  for (let s = 1; s <= p.steps; s++) lost[s] += lost[s - 1];
  const step = lost.indexOf(lost.reduce((a, b) => Math.max(a, b), 0));
  return { step, bytes: p.columns.lost.length ? p.columns.height - p.columns.bound : 0 };
}

/** @param {number[]} row pairs of tensor and distance */
function tensorsOf(row) {
  return row.filter((_, k) => k % 2 === 0);
}

/** The bytes alive at each step; those that two buffers hold, where one is written over the other, count once.
 * @param {Plan} plan */
function liveBytes(plan) {
  if (plan.columns.parts) return heldBytes(plan);
  const live = new Float64Array(plan.steps + 1);
  for (let i = 0; i < plan.n; i++) {
    live[plan.start[i]] += plan.size[i];
    live[plan.end[i]] -= plan.size[i];
  }
  const pairs = new Map(plan.columns.overlaps.map(([a, b]) => [a < b ? `${a} ${b}` : `${b} ${a}`, [a, b]]));
  for (const [a, b] of pairs.values()) {
    const shared = Math.min(plan.high[a], plan.high[b]) - Math.max(plan.low[a], plan.low[b]);
    const [start, end] = [Math.max(plan.start[a], plan.start[b]), Math.min(plan.end[a], plan.end[b])];
    if (shared <= 0 || start >= end) continue;
    live[start] -= shared;
    live[end] += shared;
  }
  for (let s = 1; s <= plan.steps; s++) live[s] += live[s - 1];
  return live.slice(0, plan.steps);
}

/** The bytes of the arena that are in use at each step, each counted once. @param {Plan} plan */
function heldBytes(plan) {
  const held = new Float64Array(plan.steps), ends = new Float64Array(plan.steps);
  for (const i of [...plan.low.keys()].sort((a, b) => plan.low[a] - plan.low[b]))
    for (let step = plan.start[i]; step < plan.end[i]; step++) {
      held[step] += Math.max(0, plan.high[i] - Math.max(ends[step], plan.low[i]));
      ends[step] = Math.max(ends[step], plan.high[i]);
    }
  return held;
}

/** Of buffers that are alive together, the bytes of each; what several have is split evenly between them where bytes
 * alive are counted once. @param {Plan} plan @param {number[]} alive @returns {Map<number, number>} */
function splitBytes(plan, alive) {
  const found = new Map(alive.map((i) => [i, plan.columns.parts ? 0 : plan.size[i]]));
  if (!plan.columns.parts) return found;
  const cuts = [...new Set(alive.flatMap((i) => [plan.low[i], plan.high[i]]))].sort((a, b) => a - b);
  for (let k = 1; k < cuts.length; k++) {
    const owners = alive.filter((i) => plan.low[i] < cuts[k] && plan.high[i] > cuts[k - 1]);
    for (const i of owners) found.set(i, /** @type {number} */ (found.get(i)) + (cuts[k] - cuts[k - 1]) / owners.length);
  }
  return found;
}

/** For each buffer that shares bytes with another that is alive, where its name stands: its largest part found that is
 * its own, or half of the shared part where nearly all of it is shared: [start, low, end, high]. @param {Plan} p @returns {Map<number, number[]>} */
function aloneOf(p) {
  const found = new Map();
  const box = (/** @type {number} */ i) => found.get(i) ?? [p.start[i], p.low[i], p.end[i], p.high[i]];
  const area = (/** @type {number[]} */ b) => Math.max(b[2] - b[0], 0) * Math.max(b[3] - b[1], 0);
  for (const [i, j] of p.columns.overlaps) {
    const x0 = Math.max(p.start[i], p.start[j]), x1 = Math.min(p.end[i], p.end[j]);
    const y0 = Math.max(p.low[i], p.low[j]), y1 = Math.min(p.high[i], p.high[j]);
    if (x0 >= x1 || y0 >= y1) continue;
    for (const k of [i, j]) {
      const [a, b, c, d] = box(k);
      const parts = [[a, b, Math.min(c, x0), d], [Math.max(a, x1), b, c, d], [a, b, c, Math.min(d, y0)], [a, Math.max(b, y1), c, d]];
      const best = parts.reduce((one, part) => (area(part) > area(one) ? part : one));
      const over = p.low[k] === y0 && p.low[i] !== p.low[j];
      const half = over ? [x0, (y0 + y1) / 2, x1, y1] : [x0, y0, x1, (y0 + y1) / 2];
      found.set(k, area(best) * 8 < area(box(k)) ? half : best);
    }
  }
  return found;
}

/** Runs of steps that are higher than those beside them, highest first. @param {Float64Array} live @returns {Peak[]} */
function peaksOf(live) {
  const found = [];
  let rising = true;
  for (let s = 0, from = 0; s < live.length; s++) {
    if (s > from && live[s] !== live[s - 1]) {
      rising = live[s] > live[s - 1];
      from = s;
    }
    const last = s + 1 === live.length;
    if (rising && (last || live[s + 1] < live[s])) found.push({ start: from, end: s + 1, bytes: live[s] });
  }
  return found.sort((a, b) => b.bytes - a.bytes || a.start - b.start);
}
