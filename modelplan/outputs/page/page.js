// @ts-check
"use strict";
/** The state of the page, and what changes it: pointer, keys, search, switches, the fragment of the address. */

const data = /** @type {Page} */ (JSON.parse(get("data").textContent));
const plans = data.views.map((_, k) => new Plan(data, k));
const chart = new Chart(get("curve"), get("map"));
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

/** @type {{view: number, step: number, picked: number, query: string, theme: string, tab: string, rank: number, sort: {column: number, down: boolean}}} */
const state = { view: 0, step: 0, picked: -1, query: "", theme: dark.matches ? "dark" : "light", tab: "live", rank: 0, sort: { column: 1, down: true } };
let chosenTheme = false;
/** @type {number[]} */
let matches = [];
let moving = 0;
const operators = new LongList(get("ops"), opRow, 22);

/** The plan in sight. */
const plan = () => plans[state.view];

// What the page shows ------------------------------------------------------------------------------------------------

/** Shows all but the charts' windows anew. */
function refresh() {
  const p = plan();
  const steps = litSteps();
  chart.light(state.picked, { ...steps, cursor: state.step }, matches);
  chart.patterns = get("patterns").getAttribute("aria-pressed") === "true";
  chart.draw();
  const o = { theme: state.theme, patterns: chart.patterns, pick, goto: (/** @type {number} */ op) => goto(p.stepOf.get(op) ?? 0) };
  get("details").replaceChildren(...(state.picked < 0 ? [make("p", {}, "Click a buffer to see who writes it, who reads it, and why it lies where it lies.")] : detailsOf(p, state.picked, o)));
  get("live").replaceChildren(...liveTable({ plan: p, step: state.step, picked: state.picked, sort: state.sort, order: sortBy, ...o }));
  operators.show(p.steps);
  const peak = p.peaks.findIndex((k) => k.start <= state.step && state.step < k.end);
  const ranked = peak >= 0 ? ` · ${peak ? `peak ${count(peak + 1)} of ${count(p.peaks.length)}` : "the peak"}` : "";
  get("where").textContent = `${p.stepLabel(state.step)} · ${brief(p.live[state.step] ?? 0)} alive${ranked}`;
  remember();
}

/** The steps that write and read the picked buffer. */
function litSteps() {
  const p = plan();
  if (state.picked < 0 || !p.graph) return { writers: [], readers: [] };
  const at = (/** @type {number[]} */ ops) => ops.map((op) => p.stepOf.get(op)).filter((s) => s !== undefined);
  return { writers: at(p.writersOf(state.picked)), readers: at(p.readersOf(state.picked)) };
}

/** What belongs to the plan alone: figures, legend, facts, summary. */
function frame() {
  const p = plan();
  const c = p.columns;
  const whole = c.arena + c.tail;
  const over = c.capacity !== null && whole > c.capacity;
  const figures = [...(c.tail ? [["whole arena", whole], ["planned part", c.arena]] : [["arena", c.arena]]), ["alive at the peak", p.most], ...(c.bound ? [["lower bound", c.bound]] : []), ...(c.capacity === null ? [] : [["capacity", c.capacity]])];
  get("figures").replaceChildren(...figures.map(([name, n]) => make("div", { className: over && name === "capacity" ? "over" : "" }, make("dt", {}, String(name)), make("dd", {}, brief(Number(n)), " ", make("small", {}, `${count(Number(n))} B`)))));
  const present = [...new Set(c.kind)].sort((a, b) => a - b);
  const patterns = get("patterns").getAttribute("aria-pressed") === "true";
  const entry = (/** @type {Node} */ patch, /** @type {string} */ text) => make("li", {}, patch, text);
  const free = make("span", { className: "swatch" });
  free.style.background = chart.colour().free;
  get("legend").replaceChildren(...present.map((k) => entry(swatch(lookOf(p, k), state.theme, patterns), c.labels[k])), entry(free, "free"));
  get("facts").replaceChildren(definitions([...(state.view ? differences(plans[0], p) : []), ...c.facts, ["buffers", count(p.n)], ["steps", count(p.steps)]]));
  if (data.field) get("field").replaceChildren(...fieldTable(data.field, plans.map((q) => q.name), p.name, (k) => { turnTo(k); }));
  get("about").textContent = c.about + (c.twins.length ? ` · the same: ${c.twins.join(", ")}` : "");
  get("about").title = get("about").textContent;
  get("summary").replaceChildren(...summaryOf(p).map((line) => make("p", {}, line)));
  get("map").setAttribute("aria-label", `Memory map of ${data.title}, plan ${p.name}`);
  for (const [k, b] of [...get("switch").children].entries()) {
    b.setAttribute("aria-checked", String(k === state.view));
    b.tabIndex = k === state.view ? 0 : -1;
  }
}

/** The plan in sentences. @param {Plan} p */
function summaryOf(p) {
  const c = p.columns;
  const top = p.peaks[0];
  const lines = [`${data.title}: ${count(p.n)} buffers over ${count(p.steps)} steps need ${human(c.arena)}; no placement needs less than ${human(c.bound)}.`];
  const whole = c.arena + c.tail;
  if (c.tail) lines.push(`With the ${human(c.tail)} that the runtime keeps for itself the arena is ${human(whole)}.`);
  if (c.capacity !== null) lines.push(whole <= c.capacity ? `It fits the capacity of ${human(c.capacity)}.` : `It does not fit the capacity of ${human(c.capacity)}.`);
  if (top) lines.push(`Most is alive at ${p.stepLabel(top.start)}: ${human(top.bytes)}. Alive there: ${p.aliveAt(top.start).slice(0, 8).map((i) => `${p.label(i)} ${brief(p.size[i])}`).join("; ")}.`);
  if (p.peaks[1]) lines.push(`The second-highest peak is ${p.stepLabel(p.peaks[1].start)} with ${human(p.peaks[1].bytes)}.`);
  return lines;
}

/** A row of the list of operators. @param {number} step */
function opRow(step) {
  const p = plan();
  const op = p.columns.order[step];
  const g = p.graph;
  const { writers, readers } = litSteps();
  const kind = op === undefined || !g ? "" : g.kinds[g.op_kind[op]];
  const name = op === undefined || !g ? "" : g.op_name[op];
  const load = make("span", { className: "load" }, brief(p.live[step]));
  load.style.setProperty("--share", `${p.most ? (100 * p.live[step]) / p.most : 0}%`);
  const row = make("div", { className: "row", id: `op-${step}`, title: name }, make("span", { className: "step" }, count(step)), make("span", { className: "what" }, kind, name && name !== kind ? ` ${name}` : ""), load);
  if (step === state.step) row.classList.add("on");
  if (writers.includes(step)) row.classList.add("writer");
  if (readers.includes(step)) row.classList.add("reader");
  row.dataset.step = String(step);
  row.onclick = () => goto(step);
  return row;
}

// What changes the state ----------------------------------------------------------------------------------------------

/** Picks a buffer, or none (-1). @param {number} i */
function pick(i) {
  state.picked = i;
  if (i >= 0) {
    bring({ x0: plan().start[i], x1: plan().end[i], y0: plan().low[i], y1: plan().high[i] });
    if (state.step < plan().start[i] || state.step >= plan().end[i]) state.step = plan().start[i];
  }
  refresh();
  operators.reveal(state.step);
}

/** Goes to a step. @param {number} step */
function goto(step) {
  const p = plan();
  state.step = Math.max(0, Math.min(p.steps - 1, step));
  bring({ x0: state.step, x1: state.step + 1, y0: 0, y1: 0 });
  refresh();
  operators.reveal(state.step);
}

/** Goes to the peak of a rank. @param {number} rank */
function gotoPeak(rank) {
  const peaks = plan().peaks;
  state.rank = peaks.length ? ((rank % peaks.length) + peaks.length) % peaks.length : 0;
  if (peaks.length) goto(peaks[state.rank].start);
  choose("live");
}

/** Moves the window, as little as is needed, so that a box is in sight. @param {Sight} box */
function bring(box) {
  const w = chart.window;
  const shift = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ from, /** @type {number} */ to) => (b <= from || a >= to ? (a + b) / 2 - (from + to) / 2 : 0);
  const dx = shift(box.x0, box.x1, w.x0, w.x1);
  const dy = box.y1 > box.y0 ? shift(box.y0, box.y1, w.y0, w.y1) : 0;
  if (dx || dy) chart.look({ x0: w.x0 + dx, x1: w.x1 + dx, y0: w.y0 + dy, y1: w.y1 + dy });
}

/** Sorts the live set. @param {number} column */
function sortBy(column) {
  state.sort = { column, down: state.sort.column === column ? !state.sort.down : column !== 0 };
  refresh();
  /** @type {any} */ (document.querySelectorAll("#live th button")[column])?.focus();
}

/** Shows another plan; the rectangles move there. @param {number} number */
function turnTo(number) {
  if (number === state.view || !plans[number]) return;
  const from = plan();
  const to = plans[number];
  const fitted = same(chart.window, chart.whole(from));
  state.view = number;
  state.picked = state.picked < 0 ? -1 : to.twin(from, state.picked);
  const op = from.columns.order[state.step];
  const moved = from.graph === to.graph && op !== undefined ? to.stepOf.get(op) : undefined;
  state.step = Math.min(to.steps - 1, moved ?? Math.round((state.step * to.steps) / from.steps));
  search(state.query);
  chart.show(to, fitted ? chart.whole(to) : chart.window);
  frame();
  chart.pairs = null;
  chart.light(state.picked, { ...litSteps(), cursor: state.step }, matches);
  const done = () => { moving = 0; refresh(); operators.reveal(state.step); };
  if (calm.matches) return done();
  const begin = performance.now();
  const run = ++moving;
  const tick = (/** @type {number} */ now) => {
    if (run !== moving) return;
    const share = Math.min(1, Math.max(0, (now - begin) / 700));
    chart.between(from, to, share);
    if (share < 1) requestAnimationFrame(tick);
    else done();
  };
  requestAnimationFrame(tick);
}

/** @param {Sight} a @param {Sight} b */
function same(a, b) {
  const close = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ span) => Math.abs(x - y) <= span / 500;
  return close(a.x0, b.x0, b.x1 - b.x0) && close(a.x1, b.x1, b.x1 - b.x0) && close(a.y0, b.y0, b.y1 - b.y0) && close(a.y1, b.y1, b.y1 - b.y0);
}

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

/** Takes light or dark. @param {string} theme */
function dress(theme) {
  state.theme = theme;
  document.documentElement.dataset.theme = theme;
  get("theme").textContent = theme === "dark" ? "Light" : "Dark";
  chart.dress(theme);
  chart.paintStatic();
  frame();
  refresh();
}

/** Opens one of the lists. @param {string} tab */
function choose(tab) {
  state.tab = tab;
  for (const name of ["live", "ops", "facts", "field"]) {
    get(name).hidden = name !== tab;
    get(`tab-${name}`).setAttribute("aria-selected", String(name === tab));
    get(`tab-${name}`).tabIndex = name === tab ? 0 : -1;
  }
  if (tab === "ops") operators.reveal(state.step);
  remember();
}

// Search --------------------------------------------------------------------------------------------------------------

/** Finds buffers and operators by name or kind; lights the buffers. @param {string} text */
function search(text) {
  const p = plan();
  const g = p.graph;
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const holds = (/** @type {string} */ what) => words.every((word) => what.toLowerCase().includes(word));
  state.query = text;
  matches = [];
  /** @type {[string, string, () => void][]} */
  const rows = [];
  if (words.length) {
    for (let i = 0; i < p.n; i++) {
      const names = p.tensors(i).map((t) => /** @type {Graph} */ (g).tensors[t]);
      if (holds(`${names.join(" ") || p.label(i)} ${p.kind(i)}`)) matches.push(i);
    }
    matches.sort((a, b) => p.size[b] - p.size[a]);
    for (const i of matches) rows.push([p.label(i).length > 36 ? p.shorts[i] : p.label(i), `${p.kind(i)} · ${brief(p.size[i])}`, () => pick(i)]);
    p.columns.order.forEach((op, step) => {
      const G = /** @type {Graph} */ (g);
      if (holds(`${p.opLabel(op)} ${G.op_name[op]}`)) rows.push([`${p.opLabel(op)} ${G.op_name[op]}`, `step ${count(step)}`, () => goto(step)]);
    });
  }
  const found = get("found");
  found.hidden = !words.length || document.activeElement !== get("search");
  const options = rows.slice(0, 100).map(([name, note, go], k) => make("div", { role: "option", id: `found-${k}`, "aria-selected": "false", title: name, onmousedown: (/** @type {Event} */ e) => { e.preventDefault(); go(); found.hidden = true; } }, make("span", {}, name), make("span", {}, note)));
  const more = rows.length > options.length ? [make("p", {}, `and ${count(rows.length - options.length)} more`)] : [];
  found.replaceChildren(...(rows.length ? options : [make("p", {}, "nothing of that name or kind")]), ...more);
}

/** Moves among what was found. @param {KeyboardEvent} event */
function searchKeys(event) {
  const options = [.../** @type {HTMLElement} */ (get("found")).querySelectorAll("[role=option]")];
  const at = options.findIndex((o) => o.getAttribute("aria-selected") === "true");
  const mark = (/** @type {number} */ k) => {
    options.forEach((o, j) => o.setAttribute("aria-selected", String(j === k)));
    options[k]?.scrollIntoView({ block: "nearest" });
    get("search").setAttribute("aria-activedescendant", options[k]?.id ?? "");
  };
  if (event.key === "ArrowDown") mark(Math.min(at + 1, options.length - 1));
  else if (event.key === "ArrowUp") mark(Math.max(at - 1, 0));
  else if (event.key === "Enter") options[Math.max(at, 0)]?.dispatchEvent(new MouseEvent("mousedown", { cancelable: true }));
  else if (event.key === "Escape") {
    get("search").value = "";
    search("");
    refresh();
    get("map").focus();
  } else return;
  event.preventDefault();
}

// Keys ----------------------------------------------------------------------------------------------------------------

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
  ["o", "operators", () => choose("ops")],
  ["g", "to the map", () => get("map").focus()],
  ["s", "next plan", () => turnTo((state.view + 1) % plans.length)],
  ["Escape", "let go of the buffer", () => pick(-1)],
  ["?", "these keys", () => get("keys").showModal()],
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

// The fragment --------------------------------------------------------------------------------------------------------

let writing = 0;
/** Writes what is shown into the address, so that a link restores it. */
function remember() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    const w = chart.window;
    const p = plan();
    const n = (/** @type {number} */ x) => String(Number(x.toPrecision(7)));
    const parts = { plan: state.view, step: state.step, buffer: state.picked, time: `${n(w.x0)},${n(w.x1)}`, bytes: `${n(w.y0)},${n(w.y1)}`, tab: state.tab, sort: `${state.sort.column}${state.sort.down ? "-" : ""}`, find: state.query, theme: chosenTheme ? state.theme : "" };
    const words = Object.entries(parts).filter(([key, v]) => v !== "" && v !== -1 && !((key === "time" || key === "bytes") && same(w, chart.whole(p))));
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
  state.view = number("plan", 0, plans.length) ?? state.view;
  const p = plan();
  state.step = number("step", 0, p.steps) ?? p.peaks[0]?.start ?? 0;
  state.rank = Math.max(0, p.peaks.findIndex((k) => k.start <= state.step && state.step < k.end));
  state.picked = number("buffer", 0, p.n) ?? -1;
  const order = /^([0-4])(-?)$/.exec(said.get("sort") ?? "");
  if (order) state.sort = { column: Number(order[1]), down: order[2] === "-" };
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
  if (!said.get("tab") && data.field) said.set("tab", "field");
  choose(["live", "ops", "facts", "field"].includes(said.get("tab") ?? "") && !get(`tab-${said.get("tab")}`).hidden ? String(said.get("tab")) : "live");
  operators.reveal(state.step);
}

// The beginning -------------------------------------------------------------------------------------------------------

/** Makes what stays: the switch, the table of the field, the keys. */
function build() {
  get("title").textContent = data.title;
  get("subtitle").textContent = data.subtitle;
  get("made").textContent = `made by ${data.made_by}, drawn with Bokeh`;
  if (plans.length > 1)
    get("switch").replaceChildren(...plans.map((p, k) => make("button", { type: "button", role: "radio", title: p.columns.about || p.name, onclick: () => turnTo(k) }, make("span", {}, p.name), make("small", {}, brief(p.columns.arena + p.columns.tail)))));
  get("switch").addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
    if (!by) return;
    e.preventDefault();
    turnTo((state.view + by + plans.length) % plans.length);
    get("switch").children[state.view].focus();
  });
  get("tab-field").hidden = !data.field;
  get("tab-field").tabIndex = -1;
  if (data.field && plans.length > 6) get("switch").hidden = true;
  const told = [...KEYS, ...MAP_KEYS].filter((row) => row[1]).map(([key, what]) => [make("dt", {}, make("kbd", {}, key.replace("Arrow", ""))), make("dd", {}, what)]);
  const close = make("button", { type: "button", onclick: () => get("keys").close() }, "Close");
  get("keys").replaceChildren(make("dl", {}, ...told.flat(), make("dt", {}, make("kbd", {}, "1"), " … ", make("kbd", {}, "9")), make("dd", {}, "plan of that number")), close);
}

/** Listens to pointer and keys. */
function listen() {
  const on = (/** @type {string} */ id, /** @type {() => void} */ run) => (get(id).onclick = run);
  on("peak", () => gotoPeak(0));
  on("next", () => gotoPeak(state.rank + 1));
  on("in", () => zoom(0.7, 0.7));
  on("out", () => zoom(1 / 0.7, 1 / 0.7));
  on("whole", () => chart.look(chart.whole(plan())));
  on("help", () => get("keys").showModal());
  on("theme", () => { chosenTheme = true; dress(state.theme === "dark" ? "light" : "dark"); });
  on("patterns", () => {
    get("patterns").setAttribute("aria-pressed", String(get("patterns").getAttribute("aria-pressed") !== "true"));
    refresh();
    frame();
  });
  for (const name of ["live", "ops", "facts", "field"]) on(`tab-${name}`, () => choose(name));
  get("tabs").addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!by) return;
    const names = ["live", "ops", "facts", "field"].filter((name) => !get(`tab-${name}`).hidden);
    choose(names[(names.indexOf(state.tab) + by + names.length) % names.length]);
    get(`tab-${state.tab}`).focus();
  });
  get("search").addEventListener("input", () => { search(get("search").value); refresh(); });
  get("search").addEventListener("focus", () => search(get("search").value));
  get("search").addEventListener("blur", () => (get("found").hidden = true));
  get("search").addEventListener("keydown", searchKeys);
  document.addEventListener("keydown", keys);
  addEventListener("hashchange", restore);
  addEventListener("beforeprint", () => { chart.dress("light"); document.documentElement.dataset.theme = "light"; refresh(); });
  addEventListener("afterprint", () => dress(state.theme));
  dark.addEventListener("change", () => chosenTheme || dress(dark.matches ? "dark" : "light"));
  pointer(get("map"), true);
  pointer(get("curve"), false);
}

/** Clicks and hovering over a chart. @param {HTMLElement} box @param {boolean} map */
function pointer(box, map) {
  let down = [0, 0];
  const tip = get("tip");
  const step = (/** @type {{clientX: number}} */ e) => {
    const f = chart.frame;
    const w = chart.window;
    return Math.floor(w.x0 + ((e.clientX - f.left) / f.width) * (w.x1 - w.x0));
  };
  box.addEventListener("pointerdown", (e) => (down = [e.clientX, e.clientY]), true);
  box.addEventListener("pointerup", (e) => {
    if (Math.hypot(e.clientX - down[0], e.clientY - down[1]) > 4 || e.button) return;
    const at = map ? chart.under(e.clientX, e.clientY) : null;
    const s = step(e);
    if (s >= 0 && s < plan().steps) state.step = s;
    pick(at ? plan().at(at.x, at.y) : state.picked);
    if (map) box.focus({ preventScroll: true });
  }, true);
  box.addEventListener("pointermove", (e) => {
    const at = map && !e.buttons && !moving ? chart.under(e.clientX, e.clientY) : null;
    const i = at ? plan().at(at.x, at.y) : -1;
    tip.hidden = i < 0;
    if (i < 0) return;
    if (tip.dataset.buffer !== `${state.view}-${i}`) tip.replaceChildren(...tipOf(plan(), i));
    tip.dataset.buffer = `${state.view}-${i}`;
    tip.style.left = `${Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${e.clientY + 18 + tip.offsetHeight > innerHeight ? e.clientY - tip.offsetHeight - 12 : e.clientY + 18}px`;
  }, true);
  box.addEventListener("pointerleave", () => (tip.hidden = true));
}

let asked = 0;
/** Draws anew once in each frame in which the window has moved. */
function follow() {
  if (asked || moving) return;
  asked = requestAnimationFrame(() => {
    asked = 0;
    if (moving) return;
    chart.draw();
    remember();
  });
}

build();
chart.show(plan(), chart.whole(plan()));
chart.ready.then(() => {
  listen();
  restore();
  chart.x.change.connect(follow);
  chart.y.change.connect(follow);
  new ResizeObserver(follow).observe(get("map"));
  document.documentElement.dataset.ready = "true";
});
