// @ts-check
"use strict";
/** What a plan has otherwise than another: figures, and buffer by buffer. */

/** @typedef {{buffer: number, gone: number, kind: string, name: string, bytes: number, words: string[]}} Change */
/** @typedef {{kind: string, bytes: number, rows: Change[]}} Group */

/** Up to how many changes are all shown; where there are more, only their kinds are, until one is opened. */
const MOST_OPEN = 20;
/** How many changes of a kind are listed. */
const MOST_LISTED = 500;
/** Which kinds of changes somebody opened (true) or closed. @type {Map<string, boolean>} */
const opened = new Map();

/** A difference of bytes. @param {number} n */
function signed(n) {
  return n ? `${n > 0 ? "+" : "−"}${count(Math.abs(n))} B` : "same";
}

/** What a rewrite did to the memory that is needed, in a sentence. @param {Plan} old @param {Plan} now */
function verdictOf(old, now) {
  const [x, y] = [old, now].map((p) => p.columns.planned + p.columns.tail);
  const words = x === y ? "the same" : `${count(Math.abs(x - y))} B ${y < x ? "less" : "more"}`;
  return `${human(x)} before, ${human(y)} after: ${words}${now.columns.fits ? "" : "; it does not fit"}`;
}

/** The figures that differ, as rows of label, old, new, difference. @param {Plan} old @param {Plan} now @returns {string[][]} */
function changedFigures(old, now) {
  const [a, b] = [old.columns, now.columns];
  const rows = [];
  const add = (/** @type {string} */ label, /** @type {number} */ x, /** @type {number} */ y) => rows.push([label, `${count(x)} B`, `${count(y)} B`, signed(y - x)]);
  if (a.tail || b.tail) {
    add("arena", a.planned + a.tail, b.planned + b.tail);
    add("planned activations", a.planned, b.planned);
    if (a.tail !== b.tail) add("kept by the runtime", a.tail, b.tail);
  } else add("planned activations", a.planned, b.planned);
  add("alive at the peak", old.most, now.most);
  const peaks = [old, now].map((p) => p.stepLabel(p.peaks[0]?.start ?? 0));
  if (peaks[0] !== peaks[1]) rows.push(["where the peak is", ...peaks, ""]);
  const before = new Map(a.facts);
  const shown = new Set(["arena", "planned by TFLM (head)", "kept by TFLM (tail)"]);
  for (const [label, value] of b.facts) if (!shown.has(label) && before.has(label) && before.get(label) !== value) rows.push([label, ...[String(before.get(label)), value].map((text) => text.replace(/ \(.* B\)$/, "")), ""]);
  return rows;
}

/** The buffers that came, went, moved or changed, largest first; one that is gone has the number -1, and `gone` is
 * its number in the old plan.
 * @param {Plan} old @param {Plan} now @returns {Change[]} */
function changedBuffers(old, now) {
  const into = new Map(writtenOver(now).map((row) => [row[0], overlapWords(now, row[0], row[1], row[2], now.shorts)]));
  /** @type {Change[]} */ const found = [];
  const met = new Set();
  for (let i = 0; i < now.n; i++) {
    const j = old.twin(now, i);
    /** What changed: the kind, and words on it. @type {[string, string][]} */ const parts = [];
    if (j < 0) parts.push(["new", "new"]);
    else {
      met.add(j);
      if (old.size[j] !== now.size[i]) parts.push(["of another size", `${count(old.size[j])} → ${count(now.size[i])} B`]);
      if (old.low[j] !== now.low[i]) parts.push(["moved", `moved from ${count(old.low[j])} to ${count(now.low[i])}`]);
      if (!sameLife(old, j, now, i)) parts.push(["alive in other steps", `alive in steps ${count(old.start[j])} to ${count(old.end[j] - 1)} → ${count(now.start[i])} to ${count(now.end[i] - 1)}`]);
      const joined = now.tensors(i).length - old.tensors(j).length;
      if (joined > 0 && now.graph === old.graph) parts.push(["shared with more tensors", `shares its bytes with ${joined} more tensor${joined > 1 ? "s" : ""}`]);
    }
    const over = into.get(i);
    if (over) parts.push(["partly in the bytes of another", over]);
    if (parts.length) found.push({ buffer: i, gone: -1, kind: joinedKinds(parts.map((part) => part[0])), name: now.label(i), bytes: now.size[i], words: parts.map((part) => part[1]) });
  }
  for (let j = 0; j < old.n; j++) {
    if (met.has(j)) continue;
    const within = [now.twin(old, j), ...old.tensors(j).map((t) => now.holder(/** @type {Graph} */ (old.graph).tensors[t]))].find((i) => i >= 0);
    found.push({ buffer: -1, gone: j, kind: within === undefined ? "gone" : "now in the bytes of another", name: old.label(j), bytes: old.size[j], words: [within === undefined ? "gone" : `now in the bytes of ${now.label(within)}`] });
  }
  return found.sort((a, b) => b.bytes - a.bytes || a.buffer - b.buffer);
}

/** Kinds of changes as one: "moved, alive in other steps and of another size". @param {string[]} kinds */
function joinedKinds(kinds) {
  const sorted = [...kinds].sort((a, b) => Number(b === "moved") - Number(a === "moved") || (a < b ? -1 : 1));
  return sorted.length > 1 ? `${sorted.slice(0, -1).join(", ")} and ${sorted[sorted.length - 1]}` : sorted[0];
}

/** Changes by their kind, the kind with the most bytes first. @param {Change[]} changed @returns {Group[]} */
function groupsOf(changed) {
  /** @type {Map<string, Group>} */ const found = new Map();
  for (const one of changed) {
    const group = found.get(one.kind) ?? { kind: one.kind, bytes: 0, rows: [] };
    found.set(one.kind, group);
    group.bytes += one.bytes;
    group.rows.push(one);
  }
  return [...found.values()].sort((a, b) => b.bytes - a.bytes || (a.kind < b.kind ? -1 : 1));
}

/** Whether a buffer lives from the same operator to the same, whatever their numbers.
 * @param {Plan} old @param {number} j @param {Plan} now @param {number} i */
function sameLife(old, j, now, i) {
  if (old.columns.parts === now.columns.parts && old.start[j] === now.start[i] && old.end[j] === now.end[i]) return true;
  const first = old.start[j] === 0 || now.start[i] === 0 ? old.start[j] === now.start[i] : old.opKey(old.start[j]) === now.opKey(now.start[i]);
  const ends = old.end[j] === old.steps || now.end[i] === now.steps;
  return first && (ends ? old.end[j] === old.steps && now.end[i] === now.steps : old.opKey(old.end[j] - 1) === now.opKey(now.end[i] - 1));
}

/** How many buffers changed, came and went, in a sentence. @param {Change[]} changed @param {Plan} old @param {Plan} now */
function countOf(changed, old, now) {
  if (!changed.length) return "No buffer changed.";
  const gone = changed.filter((one) => one.words[0] === "gone").length;
  const within = changed.filter((one) => one.gone >= 0).length - gone;
  const fresh = changed.filter((one) => one.words[0] === "new").length;
  const other = changed.length - gone - within - fresh, same = now.n - other - fresh;
  const parts = [[other, "changed"], [same, "as before"], [fresh, "new"]].filter((row) => row[0]).map(([n, word]) => `${count(Number(n))} ${word}`);
  return `${count(old.n)} buffers before${gone ? `, ${count(gone)} gone` : ""}${within ? `, ${count(within)} now in the bytes of others` : ""}; ${count(now.n)} after: ${parts.join(", ")}.`;
}

/** Buffers that lie partly in the bytes of another that is alive: which, in which, by how many bytes. @param {Plan} p */
function writtenOver(p) {
  const found = [];
  for (const [i, j] of p.columns.overlaps) {
    const shared = Math.min(p.high[i], p.high[j]) - Math.max(p.low[i], p.low[j]);
    if (shared > 0 && p.start[i] < p.end[j] && p.start[j] < p.end[i]) found.push([i, j, shared]);
  }
  return found;
}

/** What happens where two buffers share bytes: the operator that writes one over the other, the loop in which that
 * happens, or only where and when. @param {Plan} p @param {number} i @param {number} j @param {number} shared @param {string[]} [names] */
function overlapWords(p, i, j, shared, names) {
  const name = names ? names[j] : p.label(j);
  const bytes = human(shared);
  const from = Math.max(p.start[i], p.start[j]), to = Math.min(p.end[i], p.end[j]) - 1;
  const writes = (/** @type {number} */ k) => new Set(p.tensors(k).length ? p.writersOf(k) : []);
  const meets = (/** @type {number} */ a, /** @type {number} */ b) => p.readersOf(b).find((op) => writes(a).has(op) && inSpan(p.stepOf.get(op), from, to));
  const over = meets(i, j), under = meets(j, i);
  if (over !== undefined) return `written over ${name} by ${p.opLabel(over)} (step ${count(p.stepOf.get(over) ?? 0)}) while that reads it: ${bytes}`;
  if (under !== undefined) return `${name} is written over it by ${p.opLabel(under)} (step ${count(p.stepOf.get(under) ?? 0)}) while that reads it: ${bytes}`;
  const why = p.columns.parts ? ": the plan in the file puts both there" : "";
  return `shares ${bytes} with ${name} in ${from === to ? `step ${count(from)}` : `steps ${count(from)} to ${count(to)}`}${why}`;
}

/** @param {number|undefined} step @param {number} from @param {number} to */
function inSpan(step, from, to) {
  return step !== undefined && from <= step && step <= to;
}

/** The list of what changed. @param {Plan} old @param {Plan} now @param {{pick: (i: number) => void, pickGone: (j: number) => void, picked: number}} o */
function changesPanel(old, now, o) {
  if (old === now) return [make("p", {}, `The other plans are compared with this one, "${now.name}": choose one above the map.`)];
  const cells = (/** @type {string[]} */ row) => make("tr", {}, ...row.map((text, k) => make(k ? "td" : "th", { className: k ? "number" : "", title: text, ...(k ? {} : { scope: "row" }) }, text)));
  const head = (/** @type {string[]} */ words, /** @type {string[]} */ wide, /** @type {number[]} */ numbers) => make("thead", {}, make("tr", {}, ...words.map((word, k) => { const cell = make("th", { scope: "col", className: numbers.includes(k) ? "number" : "" }, make("span", {}, word)); cell.style.width = wide[k]; return cell; })));
  const table = (/** @type {string} */ label, /** @type {string[][]} */ rows) => make("table", { "aria-label": label, className: "figures" }, head(["", ...(data.change ? ["before", "after"] : [old.name, now.name]), "change"], ["31%", "22.5%", "22.5%", "24%"], [1, 2, 3]), make("tbody", {}, ...rows.map(cells)));
  const figures = changedFigures(old, now), memory = figures.filter((row) => row[3]), other = figures.filter((row) => !row[3]);
  const changed = changedBuffers(old, now);
  const bodies = groupsOf(changed).map((group) => groupBody(group, changed.length <= MOST_OPEN, old, now, o));
  const words = countOf(changed, old, now);
  const buffers = make("table", { "aria-label": "Buffers that changed" }, head(["change", "bytes", ""], ["34%", "18%", "48%"], [1]), ...bodies);
  return [make("p", {}, make("b", {}, `"${now.name}" against "${old.name}"`)), table("Bytes that changed", memory), make("p", {}, words), ...(changed.length ? [buffers] : []), ...(other.length ? [make("p", {}, "Other figures that changed:"), table("Other figures that changed", other)] : [])];
}

/** The changes of one kind as rows under a row that opens and closes them; rows that are closed are not made.
 * @param {Group} group @param {boolean} few @param {Plan} old @param {Plan} now @param {{pick: (i: number) => void, pickGone: (j: number) => void, picked: number}} o */
function groupBody(group, few, old, now, o) {
  const open = opened.get(group.kind) ?? (few || group.rows.some((one) => one.buffer >= 0 && one.buffer === o.picked));
  const body = make("tbody", {});
  const fill = (/** @type {boolean} */ shown) => {
    const button = make("button", { type: "button", className: "group", "aria-expanded": String(shown), onclick: () => { opened.set(group.kind, !shown); fill(!shown); body.querySelector("button")?.focus(); } }, `${count(group.rows.length)} ${group.kind}`);
    const name = make("th", { scope: "rowgroup", colSpan: 3 }, button, make("span", { className: "sum" }, brief(group.bytes)));
    const rows = shown ? group.rows.slice(0, MOST_LISTED).map((one) => changeRow(one, old, now, o)) : [];
    const more = shown && group.rows.length > rows.length ? [make("tr", {}, make("td", { colSpan: 3 }, `and ${count(group.rows.length - rows.length)} more`))] : [];
    body.replaceChildren(make("tr", { className: "group" }, name), ...rows, ...more);
  };
  fill(open);
  return body;
}

/** A changed buffer as a row; a click or Enter shows it on the map.
 * @param {Change} one @param {Plan} old @param {Plan} now @param {{pick: (i: number) => void, pickGone: (j: number) => void, picked: number}} o */
function changeRow(one, old, now, o) {
  const row = make("tr", { className: one.buffer >= 0 && one.buffer === o.picked ? "on" : "", tabIndex: 0, "aria-label": `${one.name}: ${one.words.join("; ")}` }, make("td", { title: one.name, className: "name" }, one.gone >= 0 ? old.shorts[one.gone] : now.shorts[one.buffer]), make("td", { className: "number" }, count(one.bytes)), make("td", { className: "words" }, ...one.words.map((word) => make("div", {}, word))));
  const show = () => (one.gone < 0 ? o.pick(one.buffer) : o.pickGone(one.gone));
  row.onclick = show;
  row.onkeydown = (e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), e.stopPropagation(), show());
  return row;
}
