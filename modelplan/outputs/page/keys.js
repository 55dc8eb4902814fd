// @ts-check
"use strict";
/** Keys, and the moves of the window that they make. */

/** Zooms about the middle, or about the picked step. @param {number} fx @param {number} fy */
function zoom(fx, fy) {
  const w = chart.window;
  const inside = state.step + 0.5 > w.x0 && state.step + 0.5 < w.x1;
  const cx = inside ? state.step + 0.5 : (w.x0 + w.x1) / 2;
  const cy = (w.y0 + w.y1) / 2;
  chart.look({ x0: cx + (w.x0 - cx) * fx, x1: cx + (w.x1 - cx) * fx, y0: cy + (w.y0 - cy) * fy, y1: cy + (w.y1 - cy) * fy });
}

/** Moves the window by shares of itself. @param {number} dx @param {number} dy */
function pan(dx, dy) {
  const w = chart.window;
  const [sx, sy] = [(w.x1 - w.x0) * dx, (w.y1 - w.y0) * dy];
  chart.look({ x0: w.x0 + sx, x1: w.x1 + sx, y0: w.y0 + sy, y1: w.y1 + sy });
}

/** Picks the buffer above or below the picked one among those alive at the step. @param {number} by */
function climb(by) {
  const p = plan();
  const alive = p.aliveAt(state.step).sort((a, b) => p.low[a] - p.low[b] || a - b);
  if (!alive.length) return;
  const at = alive.indexOf(state.picked);
  pick(alive[at < 0 ? (by > 0 ? 0 : alive.length - 1) : Math.max(0, Math.min(alive.length - 1, at + by))]);
}

/** Keys that hold everywhere but in a field: what they do, and how. @type {[string, string, (e: KeyboardEvent) => void][]} */
const KEYS = [
  ["p", "go to the peak", () => gotoPeak(0)],
  ["n", "next lower peak", () => gotoPeak(state.rank + 1)],
  ["b", "peak before", () => gotoPeak(state.rank - 1)],
  ["+", "zoom in", (e) => zoom(0.7, e.altKey ? 1 : 0.7)],
  ["-", "zoom out", () => zoom(1 / 0.7, 1 / 0.7)],
  ["x", "zoom in on time alone; X: out", () => zoom(0.7, 1)],
  ["X", "", () => zoom(1 / 0.7, 1)],
  ["y", "zoom in on addresses alone; Y: out", () => zoom(1, 0.7)],
  ["Y", "", () => zoom(1, 1 / 0.7)],
  ["0", "the whole plan", () => chart.look(chart.whole(plan()))],
  ["/", "search", () => get("search").focus()],
  ["t", "light or dark", () => { chosenTheme = true; dress(state.theme === "dark" ? "light" : "dark"); }],
  ["l", "live set", () => choose("live")],
  ["a", "all buffers", () => { choose("all"); get("all-grid").focus(); }],
  ["r", "the operators around that of the step", () => get("tab-graph").hidden || choose("graph")],
  ["c", "changes", () => get("tab-changes").hidden || choose("changes")],
  ["o", "operators", () => choose("ops")],
  ["g", "to the map", () => get("map").focus()],
  ["s", "next plan", () => turnTo((state.view + 1) % plans.length)],
  ["Escape", "let go of the buffer", () => pick(-1)],
  ["?", "this help", () => get("keys").showModal()],
];
/** Keys of the map. @type {[string, string, (e: KeyboardEvent) => void][]} */
const MAP_KEYS = [
  ["ArrowLeft", "on the map: step before; with Shift: pan", (e) => (e.shiftKey ? pan(-0.15, 0) : goto(state.step - 1))],
  ["ArrowRight", "step after; with Shift: pan", (e) => (e.shiftKey ? pan(0.15, 0) : goto(state.step + 1))],
  ["ArrowUp", "buffer above, of those alive; with Shift: pan", (e) => (e.shiftKey ? pan(0, 0.15) : climb(1))],
  ["ArrowDown", "buffer below; with Shift: pan", (e) => (e.shiftKey ? pan(0, -0.15) : climb(-1))],
  ["PageUp", "ten steps before", () => goto(state.step - 10)],
  ["PageDown", "ten steps after", () => goto(state.step + 10)],
  ["Home", "first step", () => goto(0)],
  ["End", "last step", () => goto(plan().steps - 1)],
];

/** @param {KeyboardEvent} event */
function keys(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || target.tagName === "INPUT" || get("keys").open) return;
  const steps = target === get("map") || target === get("ops");
  const local = target === get("ops") && !event.shiftKey ? { ArrowUp: "ArrowLeft", ArrowDown: "ArrowRight" }[event.key] ?? event.key : event.key;
  const found = [...(steps ? MAP_KEYS : []), ...KEYS].find(([key]) => key === local);
  const plane = /^[1-9]$/.test(event.key);
  if (found) found[2](event);
  else if (plane) turnTo(Number(event.key) - 1);
  else return;
  event.preventDefault();
}
