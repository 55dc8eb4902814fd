// @ts-check
"use strict";
/** What a plan has otherwise than another: figures, and buffer by buffer. */

/** @typedef {{buffer: number, gone: number, name: string, bytes: number, says: string, words: string[]}} Change */

/** How many changes are told at first, and how many are listed at most. */
const LARGEST = 5;
const MOST_LISTED = 500;
/** Whether somebody asked for all changes. */
let allChanges = false;

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
 * its number in the old plan. `says` is the weightiest of what changed as the end of a sentence, `words` are all of it.
 * @param {Plan} old @param {Plan} now @returns {Change[]} */
function changedBuffers(old, now) {
  const into = new Map(writtenOver(now).map((row) => [row[0], row]));
  const before = new Set(writtenOver(old).map(([i, j]) => `${i} ${j}`));
  /** @type {Change[]} */ const found = [];
  const met = new Set();
  for (let i = 0; i < now.n; i++) {
    const j = old.twin(now, i);
    /** What changed, the weightiest first: the end of a sentence, and the same with numbers. @type {[string, string][]} */ const parts = [];
    if (j < 0) parts.push(["is new", "new"]);
    else {
      met.add(j);
      const [a, b] = [old.size[j], now.size[i]];
      if (a !== b) parts.push([`${b < a ? "shrank" : "grew"} from ${brief(a)} to ${brief(b)}`, `${count(a)} → ${count(b)} B`]);
      const joined = now.tensors(i).length - old.tensors(j).length;
      if (joined > 0 && now.graph === old.graph) parts.push([`also holds ${joined} more tensor${joined > 1 ? "s" : ""}`, `shares its bytes with ${joined} more tensor${joined > 1 ? "s" : ""}`]);
    }
    const over = into.get(i);
    if (over && !before.has(`${j} ${old.twin(now, over[1])}`)) parts.push([`is now written over ${brief(over[2])} of ${now.shorts[over[1]]}`, overlapWords(now, over[0], over[1], over[2], now.shorts)]);
    if (j >= 0 && !sameLife(old, j, now, i)) {
      const [a, b] = [old, now].map((p, k) => { const at = k ? i : j; return spanWords(p.start[at], p.end[at] - 1); });
      parts.push([`is alive in ${b}, not ${a}`, `alive in ${a} → ${b}`]);
    }
    if (j >= 0 && old.low[j] !== now.low[i]) parts.push([`moved from address ${count(old.low[j])} to ${count(now.low[i])}`, `moved from ${count(old.low[j])} to ${count(now.low[i])}`]);
    if (parts.length) found.push({ buffer: i, gone: -1, name: now.label(i), bytes: now.size[i], says: parts[0][0], words: parts.map((part) => part[1]) });
  }
  for (let j = 0; j < old.n; j++) {
    if (met.has(j)) continue;
    const within = [now.twin(old, j), ...old.tensors(j).map((t) => now.holder(/** @type {Graph} */ (old.graph).tensors[t]))].find((i) => i >= 0);
    const says = within === undefined ? "is gone" : `now lies in the bytes of ${now.shorts[within]}`;
    found.push({ buffer: -1, gone: j, name: old.label(j), bytes: old.size[j], says, words: [within === undefined ? "gone" : `now in the bytes of ${now.label(within)}`] });
  }
  return found.sort((a, b) => b.bytes - a.bytes || a.buffer - b.buffer);
}

/** Steps in words. @param {number} from @param {number} to */
function spanWords(from, to) {
  return from === to ? `step ${count(from)}` : `steps ${count(from)} to ${count(to)}`;
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
  const sides = data.change ? ["before", "after"] : [old.name, now.name];
  const table = (/** @type {string} */ label, /** @type {string[][]} */ rows, /** @type {string[]} */ words, /** @type {string[]} */ wide) => make("table", { "aria-label": label, className: "figures" }, head(words, wide, [1, 2, 3]), make("tbody", {}, ...rows.map((row) => cells(row.slice(0, words.length)))));
  const figures = changedFigures(old, now), memory = figures.filter((row) => row[3]), other = figures.filter((row) => !row[3]);
  const changed = changedBuffers(old, now);
  const words = countOf(changed, old, now);
  return [make("p", {}, make("b", {}, `"${now.name}" against "${old.name}"`)), table("Bytes that changed", memory, ["", ...sides, "change"], ["31%", "22.5%", "22.5%", "24%"]), make("p", {}, words), ...largestFirst(changed, old, now, o), ...(other.length ? [make("p", {}, "Other figures that changed:"), table("Other figures that changed", other, ["", ...sides], ["28%", "36%", "36%"])] : [])];
}

/** The changes as sentences, the largest alone until somebody asks for all.
 * @param {Change[]} changed @param {Plan} old @param {Plan} now @param {{pick: (i: number) => void, pickGone: (j: number) => void, picked: number}} o */
function largestFirst(changed, old, now, o) {
  const box = make("div", {});
  const fill = () => {
    const shown = changed.slice(0, allChanges ? MOST_LISTED : LARGEST);
    const button = make("button", { type: "button", className: "more", "aria-expanded": String(allChanges), onclick: () => { allChanges = !allChanges; fill(); box.querySelector("button")?.focus(); } }, allChanges ? `Only the ${LARGEST} largest` : `All ${count(changed.length)} changes`);
    const rest = allChanges && changed.length > shown.length ? [make("p", {}, `and ${count(changed.length - shown.length)} smaller ones`)] : [];
    box.replaceChildren(make("div", { role: "list", className: "told", "aria-label": "Buffers that changed" }, ...shown.map((one) => changeRow(one, old, now, o))), ...rest, ...(changed.length > LARGEST ? [button] : []));
  };
  fill();
  return changed.length ? [box] : [];
}

/** A changed buffer as a sentence, with all that changed below it once it is chosen; a click or Enter shows it on the map.
 * @param {Change} one @param {Plan} old @param {Plan} now @param {{pick: (i: number) => void, pickGone: (j: number) => void, picked: number}} o */
function changeRow(one, old, now, o) {
  const on = one.buffer >= 0 && one.buffer === o.picked;
  const name = one.gone >= 0 ? old.shorts[one.gone] : now.shorts[one.buffer];
  const more = on && one.words.length > 1 ? one.words.map((word) => make("small", {}, word)) : [];
  const row = make("div", { className: on ? "on" : "", tabIndex: 0, role: "button", title: [one.name, ...one.words].join("\n") }, make("b", {}, ...breakable(name)), ` (${brief(one.bytes)}) ${one.says}.`, ...more);
  const show = () => (one.gone < 0 ? o.pick(one.buffer) : o.pickGone(one.gone));
  row.onclick = show;
  row.onkeydown = (e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), e.stopPropagation(), show());
  return make("div", { role: "listitem" }, row);
}
