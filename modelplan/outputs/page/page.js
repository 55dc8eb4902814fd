// @ts-check
"use strict";
/** The state of the page, what it shows of it, and what changes it. */

const data = /** @type {Page} */ (JSON.parse(get("data").textContent));
const plans = data.views.map((_, k) => new Plan(data, k));
const chart = new Chart(get("curve"), get("map"));
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");
const TOUCH = matchMedia("(hover: none)");

/** @type {{view: number, step: number, picked: number, query: string, theme: string, tab: string, rank: number, hints: boolean, sort: {column: number, down: boolean}}} */
const state = { view: 0, step: 0, picked: -1, query: "", theme: dark.matches ? "dark" : "light", tab: "live", rank: 0, hints: true, sort: { column: 1, down: true } };
let chosenTheme = false;
/** @type {number[]} */
let matches = [];
let moving = 0;
const operators = new LongList(get("ops"), opRow, 22);
const buffers = new BufferGrid({ pick, plan: () => plan(), picked: () => state.picked, swatch: (p, i) => swatch(lookOf(p, p.columns.kind[i]), state.theme, chart.patterns), changed: remember });

/** What somebody reads who opens the page for the first time. */
const HINTS = [
  "Who keeps a tensor alive, and why does it lie there? Click it on the map, or search for its name.",
  "What is alive at a step? Click the step on the curve; the peaks are numbered by height.",
  ...(data.field ? ["What does another allocator do? Click its bar."] : plans.length > 1 ? ["What does another plan change? Choose it above the map, then look into Changes."] : []),
];
const TABS = ["live", "all", "graph", "changes", "ops", "facts", "field"];

/** The plan in sight. */
const plan = () => plans[state.view];
/** The plans of the model of a plan, in their order. @param {Plan} p */
const siblings = (p) => plans.filter((q) => q.columns.model[0] === p.columns.model[0]);
/** The names of the models, where there are several. */
const models = [...new Set(plans.map((p) => p.columns.model[0]))].filter((name) => name !== undefined);

// What the page shows ------------------------------------------------------------------------------------------------

/** Shows all but the charts' windows anew. */
function refresh() {
  const p = plan();
  const steps = litSteps();
  chart.light(state.picked, { ...steps, cursor: state.step }, matches);
  chart.patterns = get("patterns").getAttribute("aria-pressed") === "true";
  chart.draw();
  const o = { theme: state.theme, patterns: chart.patterns, step: state.step, pick, goto: (/** @type {number} */ op) => goto(p.stepOf.get(op) ?? 0) };
  get("details").replaceChildren(...(state.picked < 0 ? hints() : detailsOf(p, state.picked, o)));
  get("details").hidden = state.picked < 0 && !state.hints;
  get("live").replaceChildren(...liveTable({ plan: p, picked: state.picked, sort: state.sort, order: sortBy, ...o }));
  operators.show(p.steps);
  buffers.show();
  showChanges();
  showGraph();
  tell(-1);
  const rank = p.peakAt(state.step);
  get("where").textContent = `${rank < 0 ? "" : `peak ${count(rank + 1)} of ${count(p.peaks.length)}${p.equal(rank)} · `}${brief(p.live[state.step] ?? 0)} alive at ${p.stepLabel(state.step)}`;
  get("where").title = get("where").textContent;
  remember();
}

/** What somebody may ask, with a button that closes it; beside the changes no more than what is not told there. */
function hints() {
  const asked = state.tab === "changes" ? HINTS.slice(0, 1) : HINTS;
  const close = make("button", { type: "button", className: "close", title: "Close these hints", "aria-label": "Close these hints", onclick: () => { state.hints = false; refresh(); } }, "×");
  return state.hints ? [close, ...asked.map((hint) => make("p", {}, hint))] : [];
}

/** Shows what the plan has otherwise than the first; only where that is looked at, since it goes through all buffers. */
function showChanges() {
  const [first, ...others] = siblings(plan());
  if (state.tab === "changes" && others.length) get("changes").replaceChildren(...changesPanel(first, plan(), { pick, pickGone: (j) => { turnTo(plans.indexOf(first), j); choose("live"); }, picked: state.picked }));
}

/** Shows the operators around that of the step, where they are looked at. */
function showGraph() {
  if (state.tab === "graph") showAround(get("graph"), plan(), state.step, { pick, goto, picked: state.picked });
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
  const whole = c.planned + c.tail;
  const regions = /** @type {[string, number, string][]} */ (c.regions.map(([name, , used, size]) => [name, used, `of ${brief(size)}`]));
  const area = p.graph ? "planned activations" : "height";
  const figures = regions.length ? regions : [...(c.tail ? [["arena", whole]] : []), [area, c.planned], ["alive at the peak", p.most], ...(c.bound ? [["lower bound", c.bound]] : []), ...(c.capacity === null ? [] : [["capacity", c.capacity]])];
  const verdict = (/** @type {number} */ room) => (c.fits ? `fits, ${brief(room)} to spare` : room < 0 ? `${brief(-room)} too much` : "refused by the runtime");
  get("figures").replaceChildren(...figures.map(([name, n, of]) => make("div", { className: !c.fits && name === "capacity" ? "over" : "" }, make("dt", {}, explained(String(name))), make("dd", {}, brief(Number(n)), " ", of ? make("small", {}, String(of)) : name === "capacity" ? make("small", {}, verdict(Number(n) - whole)) : make("small", { className: "bytes" }, `${count(Number(n))} B`)))));
  const present = [...new Set(c.kind)].sort((a, b) => a - b);
  const patterns = get("patterns").getAttribute("aria-pressed") === "true";
  const entry = (/** @type {Node} */ patch, /** @type {string} */ text) => make("li", {}, patch, explained(text));
  const free = make("span", { className: "swatch" });
  free.style.background = chart.colour().free;
  get("legend").replaceChildren(...present.map((k) => entry(swatch(lookOf(p, k), state.theme, patterns), c.labels[k])), ...(writtenOver(p).length ? [entry(make("span", { className: "swatch shared" }), "bytes of several buffers at once")] : []), ...(c.claimed.length ? [entry(make("span", { className: "swatch claimed" }), "another model may use it at any time")] : []), entry(free, "free"), ...lostEntry(p));
  get("facts").replaceChildren(definitions([...c.facts, ["buffers", count(p.n)], ["steps", count(p.steps)]]));
  if (data.field) get("field").replaceChildren(...fieldChart(data.field, plans.map((q) => q.name), p.name, (k) => { turnTo(k); }));
  const several = siblings(p).length > 1;
  get("tab-changes").hidden = !several || data.field !== null;
  if (models.length) {
    get("title").textContent = p.columns.model[0];
    get("subtitle").textContent = get("subtitle").title = p.columns.model[1] ?? "";
  }
  for (const [k, b] of [...get("models").children].entries()) {
    b.setAttribute("aria-checked", String(models[k] === p.columns.model[0]));
    b.tabIndex = models[k] === p.columns.model[0] ? 0 : -1;
  }
  get("switch").hidden = models.length ? !several : data.field !== null && plans.length > 6;
  get("tab-graph").hidden = !p.graph || !c.order.length;
  get("about").textContent = c.about + (c.twins.length ? ` · the same plan as: ${c.twins.join(", ")}` : "");
  get("about").title = get("about").textContent;
  openAbout(false);
  get("summary").replaceChildren(...summaryOf(p).map((line) => make("p", {}, line)));
  get("map").setAttribute("aria-label", `Memory map of ${data.title}, plan ${p.name}`);
  for (const [k, b] of [...get("switch").children].entries()) {
    b.setAttribute("aria-checked", String(k === state.view));
    b.tabIndex = k === state.view ? 0 : -1;
    b.hidden = models.length > 0 && plans[k].columns.model[0] !== p.columns.model[0];
  }
}

/** Shows two lines about the plan or all of them, and a button for the rest where there is one. @param {boolean} open */
function openAbout(open) {
  const about = get("about"), more = get("more");
  about.classList.toggle("open", open);
  more.hidden = !open && about.scrollHeight <= about.clientHeight + 1;
  more.textContent = open ? "less" : "more";
  more.setAttribute("aria-expanded", String(open));
  more.onclick = () => openAbout(!open);
}

/** What is lost to fragmentation, with a button that goes where most is. @param {Plan} p */
function lostEntry(p) {
  const { step, bytes } = mostLost(p);
  const button = make("button", { type: "button", className: "link", title: "Go to the step at which most is lost", onclick: () => goto(step) }, `${brief(bytes)}, most at ${p.stepLabel(step)}`);
  if (bytes) return [make("li", {}, make("span", { className: "swatch lost" }), explained("lost to fragmentation"), button)];
  return p.columns.height <= (p.columns.bound || p.most) && !p.columns.regions.length ? [make("li", {}, "nothing is ", explained("lost to fragmentation"))] : [];
}

/** The plan in sentences. @param {Plan} p */
function summaryOf(p) {
  const c = p.columns;
  const top = p.peaks[0];
  const lines = c.regions.length
    ? [`${data.title}: ${count(p.n)} stays of buffers over ${count(p.steps)} steps, ${count(c.copies.length)} copies. ${c.regions.map(([name, , used, size]) => `${name}: ${human(used)} of ${human(size)}`).join("; ")}.`]
    : [`${data.title}: ${count(p.n)} buffers over ${count(p.steps)} steps need ${human(c.planned)}; no placement needs less than ${human(c.bound)}.`];
  const whole = c.planned + c.tail;
  if (c.tail) lines.push(`With the ${human(c.tail)} that the runtime keeps for itself the arena is ${human(whole)}.`);
  if (c.capacity !== null) lines.push(c.fits ? `It fits the capacity of ${human(c.capacity)}.` : `It does not fit the capacity of ${human(c.capacity)}.`);
  if (top) lines.push(`Most is alive at ${p.stepLabel(top.start)}: ${human(top.bytes)}. Alive there: ${p.aliveAt(top.start).slice(0, 8).map((i) => `${p.label(i)} ${brief(p.size[i])}`).join("; ")}.`);
  const lost = mostLost(p);
  if (lost.bytes) lines.push(`Lost to fragmentation: ${human(lost.bytes)}, most at ${p.stepLabel(lost.step)}.`);
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
  const label = p.columns.op_labels[op ?? -1] ?? "";
  const row = make("div", { className: "row", id: `op-${step}`, title: [label, name].filter(Boolean).join(", ") }, make("span", { className: "step" }, count(step)), make("span", { className: "what" }, label.split(" in the ")[0] || kind, name && name !== kind ? ` ${name}` : ""), load);
  if (step === state.step) row.classList.add("on");
  if (writers.includes(step)) row.classList.add("writer");
  if (readers.includes(step)) row.classList.add("reader");
  if (op !== undefined && (p.columns.op_callers[op] ?? -1) >= 0) row.classList.add("inner");
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
  reveal();
}

/** Brings the chosen step and the chosen buffer into sight in the lists. */
function reveal() {
  operators.reveal(state.step);
  buffers.reveal();
}

/** Goes to a step. @param {number} step */
function goto(step) {
  const p = plan();
  state.step = Math.max(0, Math.min(p.steps - 1, step));
  bring({ x0: state.step, x1: state.step + 1, y0: 0, y1: 0 });
  refresh();
  reveal();
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

/** Shows another plan; the rectangles move there. A buffer of it may be picked.
 * @param {number} number @param {number} [buffer] */
function turnTo(number, buffer) {
  if (number === state.view || !plans[number]) return;
  const from = plan();
  const to = plans[number];
  const another = from.columns.model[0] !== to.columns.model[0];
  const fitted = another || same(chart.window, chart.whole(from));
  state.view = number;
  state.picked = another ? -1 : buffer ?? (state.picked < 0 ? -1 : to.twin(from, state.picked));
  const op = from.columns.order[state.step];
  const moved = from.graph === to.graph && op !== undefined ? to.stepOf.get(op) : undefined;
  state.step = Math.min(to.steps - 1, moved ?? Math.round((state.step * to.steps) / from.steps));
  if (buffer !== undefined) state.step = to.start[buffer];
  else if (another) state.step = to.peaks[0]?.start ?? 0;
  search(state.query);
  chart.show(to, fitted ? chart.whole(to) : chart.window);
  frame();
  chart.pairs = null;
  chart.light(state.picked, { ...litSteps(), cursor: state.step }, matches);
  const done = () => { moving = 0; if (get(`tab-${state.tab}`).hidden) choose("live"); refresh(); reveal(); };
  if (calm.matches || another) return done();
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
  for (const name of TABS) {
    get(name).hidden = name !== tab;
    get(`tab-${name}`).setAttribute("aria-selected", String(name === tab));
    get(`tab-${name}`).tabIndex = name === tab ? 0 : -1;
  }
  if (state.picked < 0) get("details").replaceChildren(...hints());
  buffers.show();
  reveal();
  showChanges();
  showGraph();
  remember();
}
