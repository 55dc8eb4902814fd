// @ts-check
"use strict";
/** The fragment of the address: what is shown, so that a link restores it. */

let writing = 0;
/** Writes what is shown into the address, so that a link restores it. */
function remember() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    const w = chart.window;
    const p = plan();
    const n = (/** @type {number} */ x) => String(Number(x.toPrecision(7)));
    const parts = { plan: state.view, step: state.step, buffer: state.picked, time: `${n(w.x0)},${n(w.x1)}`, bytes: `${n(w.y0)},${n(w.y1)}`, tab: state.tab, sort: `${state.sort.column}${state.sort.down ? "-" : ""}`, find: state.query, list: `${buffers.wanted.column}${buffers.wanted.down ? "-" : ""}`, name: buffers.wanted.name, at: buffers.wanted.step ?? "", hints: state.hints ? "" : "off", theme: chosenTheme ? state.theme : "" };
    const words = Object.entries(parts).filter(([key, v]) => v !== "" && v !== -1 && !(key === "list" && v === "1-") && !((key === "time" || key === "bytes") && same(w, chart.whole(p))));
    try {
      history.replaceState(null, "", `#${words.map(([key, v]) => `${key}=${encodeURIComponent(v)}`).join("&")}`);
    } catch {
      return; // a page inside another document may have no address of its own
    }
  }, 150);
}

/** Restores what a fragment says; what it does not say stays. */
function restore() {
  const said = new URLSearchParams(location.hash.slice(1));
  const number = (/** @type {string} */ key, /** @type {number} */ least, /** @type {number} */ end) => {
    const n = Number(said.get(key) ?? NaN);
    return Number.isInteger(n) && n >= least && n < end ? n : null;
  };
  state.view = number("plan", 0, plans.length) ?? (data.change ? plans.length - 1 : state.view);
  const p = plan();
  state.step = number("step", 0, p.steps) ?? p.peaks[0]?.start ?? 0;
  state.rank = Math.max(0, p.peakAt(state.step));
  state.picked = number("buffer", 0, p.n) ?? -1;
  const order = /^([0-4])(-?)$/.exec(said.get("sort") ?? "");
  if (order) state.sort = { column: Number(order[1]), down: order[2] === "-" };
  const listed = /^([0-4])(-?)$/.exec(said.get("list") ?? "1-");
  buffers.set({ name: said.get("name") ?? "", step: number("at", 0, p.steps), column: Number(listed?.[1] ?? 1), down: (listed?.[2] ?? "-") === "-" });
  state.hints = said.get("hints") !== "off";
  const theme = said.get("theme");
  chosenTheme = theme === "dark" || theme === "light";
  if (chosenTheme) state.theme = String(theme);
  get("search").value = said.get("find") ?? "";
  search(get("search").value);
  const pair = (/** @type {string} */ key) => {
    const found = (said.get(key) ?? "").split(",").map(Number);
    return found.length === 2 && found.every(Number.isFinite) && found[0] < found[1] ? found : null;
  };
  const w = chart.whole(p);
  const [x, y] = [pair("time"), pair("bytes")];
  chart.show(p, { x0: x ? x[0] : w.x0, x1: x ? x[1] : w.x1, y0: y ? y[0] : w.y0, y1: y ? y[1] : w.y1 });
  dress(state.theme);
  if (!said.get("tab") && (data.field || data.change)) said.set("tab", data.field ? "field" : "changes");
  choose(TABS.includes(said.get("tab") ?? "") && !get(`tab-${said.get("tab")}`).hidden ? String(said.get("tab")) : "live");
  reveal();
}
