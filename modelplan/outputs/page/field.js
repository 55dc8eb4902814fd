// @ts-check
"use strict";
/** The field: the heights of all allocators as one chart, in which a click shows a placement. */

/** The excess over the bound up to which the axis of the field is linear; beyond it each tick is ten times the last. */
const LINEAR = 0.001;

/** How far along the axis an excess over the bound is, from 0 to 1. @param {number} excess @param {number} most */
function along(excess, most) {
  return Math.log10(1 + Math.max(excess, 0) / LINEAR) / Math.log10(1 + most / LINEAR);
}

/** The ticks of the axis: excesses with their names. @param {number} most @returns {[number, string][]} */
function fieldTicks(most) {
  /** @type {[number, string][]} */ const found = [[0, "0"]];
  for (let tick = 0.01; tick <= most; tick *= 10) found.push([tick, `+${count(Math.round(tick * 100))}%`]);
  return found;
}

/** The chart of the field: a row for each allocator with its height as a bar from the bound. Ours stay on top while
 * the others, lowest first, are scrolled; a click or Enter shows the placement.
 * @param {NonNullable<Page["field"]>} field @param {string[]} shown @param {string} now @param {(k: number) => void} turn */
function fieldChart(field, shown, now, turn) {
  const base = Math.max(field.bound, 1);
  const excess = (/** @type {number} */ height) => (height - base) / base;
  const most = Math.max(...field.rows.map((row) => excess(row[2])), 0.01);
  const ticks = fieldTicks(most);
  const lines = (/** @type {boolean} */ named) => ticks.map(([tick, name]) => {
    const line = make("span", { className: tick ? "tick" : "tick zero" }, ...(named ? [make("i", {}, name)] : []));
    line.style.left = `${100 * along(tick, most)}%`;
    return line;
  });
  const isOurs = (/** @type {string} */ name) => name === "modelplan" || name === "best";
  const sorted = field.rows.map((row, k) => ({ row, k })).sort((a, b) => Number(isOurs(b.row[0])) - Number(isOurs(a.row[0])) || a.k - b.k);
  const rows = sorted.map(({ row: [name, kind, height, by] }) => {
    const at = shown.indexOf(name);
    const bar = make("span", { className: "bar" });
    bar.style.width = `${100 * along(excess(height), most)}%`;
    const over = field.bound ? `${(100 * excess(height)).toFixed(2)}% above the bound` : "";
    const row = make("tr", { tabIndex: at < 0 ? -1 : 0, className: `${name === now ? "on" : ""} ${isOurs(name) ? "ours" : ""}`, title: [kind, over, at < 0 ? "not drawn: the file would be too large" : by ? `the height of ${by}` : ""].filter(Boolean).join(" · ") }, make("td", {}, name), make("td", { className: "number" }, count(height)), make("td", { className: "track" }, make("div", {}, ...lines(false), bar)));
    row.setAttribute("aria-label", `${name}, height ${count(height)} bytes, ${over}`);
    if (name === now) row.setAttribute("aria-current", "true");
    if (at >= 0) row.onclick = () => turn(at);
    row.onkeydown = (e) => e.key === "Enter" && at >= 0 && turn(at);
    return row;
  });
  const head = [make("span", {}, "allocator"), make("span", {}, "height"), make("div", {}, ...lines(true))].map((inside, k) => make("th", { scope: "col", className: ["", "number", "track"][k], ...(k === 2 ? { "aria-label": "excess over the bound" } : {}) }, inside));
  head.forEach((cell, k) => (cell.style.width = ["34%", "20%", "46%"][k]));
  const ours = sorted.filter(({ row }) => isOurs(row[0])).length;
  const refused = field.refused.length ? [make("p", {}, `Refused the problem: ${field.refused.join(", ")}.`)] : [];
  const words = `Heights of ${count(field.rows.length)} allocators, as bars from the lower bound of ${human(field.bound)}. Click one to see where it puts the buffers.`;
  return [make("p", {}, words), make("table", { "aria-label": "Allocators", className: "field" }, make("thead", {}, make("tr", {}, ...head), ...rows.slice(0, ours)), make("tbody", {}, ...rows.slice(ours))), ...refused];
}
