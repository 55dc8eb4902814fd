// @ts-check
"use strict";
/** The list of all buffers of a plan: filtered by name and by step, sorted by each heading. */

/** How long a buffer is alive, in steps. @param {Plan} p @param {number} i */
const lifetime = (p, i) => p.end[i] - p.start[i];

/** Columns of the list: heading, whether it is a number, what it is sorted by. @type {[string, boolean, (p: Plan, i: number) => number][]} */
const COLUMNS = [
  ["buffer", false, (p, i) => p.nameRanks[i]],
  ["bytes", true, (p, i) => p.size[i]],
  ["first step", true, (p, i) => p.start[i]],
  ["lifetime", true, lifetime],
  ["address", true, (p, i) => p.low[i]],
];

/** What the list is asked for. @typedef {{name: string, step: number|null, column: number, down: boolean}} Wanted */

/** The buffers whose names or kinds hold all words and that are alive at the step, in the order of a column.
 * Cost: O(n log n) in buffers. @param {Plan} p @param {Wanted} wanted */
function listedBuffers(p, wanted) {
  const words = wanted.name.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const step = wanted.step;
  const found = [];
  for (let i = 0; i < p.n; i++) {
    if (step !== null && !(p.start[i] <= step && step < p.end[i])) continue;
    if (words.length && !holdsWords(p, i, words)) continue;
    found.push(i);
  }
  const by = COLUMNS[wanted.column][2];
  const keys = Float64Array.from({ length: p.n }, (_, i) => by(p, i));
  const sign = wanted.down ? -1 : 1;
  return Uint32Array.from(found).sort((a, b) => sign * (keys[a] - keys[b]) || a - b);
}

/** Whether the names of the tensors of a buffer and its kind hold all words, whatever the case. @param {Plan} p @param {number} i @param {string[]} words */
function holdsWords(p, i, words) {
  const names = p.tensors(i).map((t) => /** @type {Graph} */ (p.graph).tensors[t]);
  const text = `${names.join(" ") || p.label(i)} ${p.kind(i)}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** The list as a grid of which only the rows in sight exist. */
class BufferGrid {
  /** @param {{pick: (i: number) => void, plan: () => Plan, picked: () => number, swatch: (p: Plan, i: number) => Node, changed: () => void}} o */
  constructor(o) {
    this.o = o;
    /** @type {Wanted} */ this.wanted = { name: "", step: null, column: 1, down: true };
    /** @type {Uint32Array} */ this.rows = new Uint32Array();
    /** @type {Map<number, number>} */ this.places = new Map();
    this.done = "";
    this.least = 0;
    this.list = new LongList(get("all-rows"), (k) => this.row(k), 22);
    this.heads = COLUMNS.map(([name, number], k) => make("span", { role: "columnheader", className: number ? "number" : "", "aria-colindex": k + 1 }, make("button", { type: "button", title: WORDS[name] ?? "", onclick: () => this.sortBy(k) }, name)));
    get("all-head").replaceChildren(...this.heads);
    get("all-name").addEventListener("input", () => this.ask({ name: get("all-name").value }));
    get("all-step").addEventListener("input", () => this.ask({ step: stepOf(get("all-step").value) }));
    get("all-copy").onclick = () => copyText(tableText(o.plan(), this.rows)).then(() => this.copied("Copied"), () => this.copied("Not allowed"));
    get("all-grid").addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => this.key(e));
    for (const id of ["all-name", "all-step"])
      get(id).addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
        if (e.key === "Escape") this.set({ ...this.wanted, name: "", step: null });
        if (e.key === "Escape" || e.key === "Enter") get("all-grid").focus();
      });
  }

  /** Shows the list as it is asked for, and the fields too. @param {Wanted} wanted */
  set(wanted) {
    get("all-name").value = wanted.name;
    get("all-step").value = wanted.step ?? "";
    this.ask(wanted);
  }

  /** Asks for other rows or another order. @param {Partial<Wanted>} part */
  ask(part) {
    this.wanted = { ...this.wanted, ...part };
    this.show();
    this.reveal();
    this.o.changed();
  }

  /** @param {number} column */
  sortBy(column) {
    const { column: old, down } = this.wanted;
    this.ask({ column, down: old === column ? !down : column === 1 || column === 3 });
  }

  /** Shows the rows of the plan, where the list is looked at. */
  show() {
    if (get("all").hidden) return;
    const p = this.o.plan();
    const asked = JSON.stringify([plans.indexOf(p), this.wanted]);
    if (this.done !== asked) {
      this.done = asked;
      this.rows = listedBuffers(p, this.wanted);
      this.places = new Map(Array.from(this.rows, (i, k) => [i, k]));
    }
    const digits = (/** @type {number} */ most) => Math.max(52, Math.ceil(6.9 * count(most).length) + 10);
    const wide = [digits(p.size.reduce((a, b) => Math.max(a, b), 0)), 50, 62, digits(p.top) + 6];
    get("all-grid").style.setProperty("--wide", wide.map((width) => `${width}px`).join(" "));
    get("all-head").style.marginRight = `${this.list.box.offsetWidth - this.list.inner.offsetWidth}px`;
    this.least = wide.reduce((a, b) => a + b);
    this.heads.forEach((cell, k) => {
      if (k === this.wanted.column) cell.setAttribute("aria-sort", this.wanted.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    const grid = get("all-grid");
    grid.setAttribute("aria-rowcount", String(this.rows.length + 1));
    const at = this.places.get(this.o.picked());
    this.list.show(this.rows.length);
    if (at === undefined) grid.removeAttribute("aria-activedescendant");
    else grid.setAttribute("aria-activedescendant", `all-${at}`);
    const bytes = this.rows.reduce((sum, i) => sum + p.size[i], 0);
    const hidden = this.o.picked() >= 0 && at === undefined ? " The chosen buffer is not among them." : "";
    const words = `${this.rows.length === p.n ? "All" : `${count(this.rows.length)} of`} ${count(p.n)} buffers, ${human(bytes)} in sum.${hidden}`;
    if (get("all-count").textContent !== words) get("all-count").textContent = words;
  }

  /** Says on the button for a while what became of the copy. @param {string} words */
  copied(words) {
    get("all-copy").textContent = words;
    setTimeout(() => (get("all-copy").textContent = "Copy table"), 1500);
  }

  /** Brings the chosen buffer into sight. */
  reveal() {
    const at = this.places.get(this.o.picked());
    if (!get("all").hidden && at !== undefined) this.list.reveal(at);
  }

  /** @param {number} k */
  row(k) {
    const p = this.o.plan(), i = this.rows[k], on = i === this.o.picked();
    const region = p.regionAt(p.low[i]);
    const room = this.list.inner.clientWidth - this.least - 46 - (region ? 1.1 * measure(` in ${region[0]}`) : 0);
    const cell = (/** @type {string} */ text, /** @type {number} */ column) => make("span", { role: "gridcell", className: "number", "aria-colindex": column }, text);
    const name = make("span", { role: "gridcell", "aria-colindex": 1, className: "what" }, this.o.swatch(p, i), make("span", { className: "unseen" }, `${p.kind(i)} `), cutTo(p.shorts[i].replace(/^scratch of /, ""), room), ...(region ? [make("small", {}, ` in ${region[0]}`)] : []));
    const row = make("div", { role: "row", id: `all-${k}`, "aria-rowindex": k + 2, "aria-selected": String(on), className: on ? "row cells on" : "row cells", title: `${p.label(i)}: ${human(p.size[i])}, steps ${count(p.start[i])} to ${count(p.end[i] - 1)}, ${place(p, i)}` }, name, cell(count(p.size[i]), 2), cell(count(p.start[i]), 3), cell(count(lifetime(p, i)), 4), cell(count(p.low[i] - (region?.[1] ?? 0)), 5));
    row.dataset.buffer = String(i);
    row.onclick = () => this.o.pick(i);
    return row;
  }

  /** Moves among the rows; the buffer of the row is chosen. @param {KeyboardEvent} e */
  key(e) {
    if (e.target !== get("all-grid") || e.shiftKey || e.ctrlKey || e.metaKey || !this.rows.length) return;
    const at = this.places.get(this.o.picked()) ?? -1;
    const last = this.rows.length - 1;
    const page = Math.max(1, Math.floor(this.list.box.clientHeight / 22) - 1);
    const to = { ArrowDown: at + 1, ArrowUp: Math.max(at, 1) - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    e.stopPropagation();
    this.o.pick(this.rows[Math.max(0, Math.min(last, to))]);
  }
}

/** Rows of the list as lines of a table: columns parted by tabs, bytes and steps as plain numbers.
 * @param {Plan} p @param {Iterable<number>} rows */
function tableText(p, rows) {
  const ops = (/** @type {number[]} */ list) => list.map((op) => p.opLabel(op)).join(", ");
  const head = ["buffer", "kind", "type", "bytes", "first step", "last step", "address", "end", "written by", "read by"];
  const lines = Array.from(rows, (i) => {
    const base = p.regionAt(p.low[i])?.[1] ?? 0;
    const type = p.chiefs[i] >= 0 ? /** @type {Graph} */ (p.graph).types[/** @type {Graph} */ (p.graph).type[p.chiefs[i]]] : "";
    const around = p.graph && p.columns.order.length ? [ops(p.writersOf(i)), ops(p.readersOf(i))] : ["", ""];
    return [p.label(i), p.kind(i), type, p.size[i], p.start[i], p.end[i] - 1, p.low[i] - base, p.high[i] - base, ...around].map((cell) => String(cell).replace(/[\t\n]/g, " ")).join("\t");
  });
  return [head.join("\t"), ...lines, ""].join("\n");
}

/** Puts a text where other programs paste from. @param {string} text */
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = /** @type {HTMLTextAreaElement} */ (make("textarea", { value: text, className: "unseen" })); // a page that came by http has no clipboard
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** So much of a name as has room: its end, where numbers tell layers apart, or its beginning where it begins with the
 * number of an operator. @param {string} name @param {number} room */
function cutTo(name, room) {
  const wide = (/** @type {string} */ text) => 1.1 * measure(text); // the list is written larger than the map
  if (wide(name) <= room) return name;
  const cut = (/** @type {number} */ most) => (/^op \d/.test(name) ? `${name.slice(0, most)}…` : `…${name.slice(-most)}`);
  let most = Math.min(name.length - 1, Math.ceil(room / 4));
  while (most > 6 && wide(cut(most)) > room) most--;
  return cut(most);
}

/** The step that is written in a field, null where none is. @param {string} text */
function stepOf(text) {
  return /^\d{1,9}$/.test(text.trim()) ? Number(text) : null;
}
