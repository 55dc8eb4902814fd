// @ts-check
"use strict";
/** The beginning: what stays on the page, what listens to the pointer, the first drawing. */

/** Clicks and hovering over a chart. @param {HTMLElement} box @param {boolean} map */
function pointer(box, map) {
  let down = [0, 0];
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
    const i = at ? plan().at(at.x, at.y) : state.picked;
    const stays = map && i >= 0 && plan().start[i] <= state.step && state.step < plan().end[i];
    if (!stays && s >= 0 && s < plan().steps) state.step = s;
    pick(i);
    if (map) box.focus({ preventScroll: true });
  }, true);
  box.addEventListener("pointermove", (e) => {
    const at = map && !e.buttons && !moving ? chart.under(e.clientX, e.clientY) : null;
    tell(at ? plan().at(at.x, at.y) : -1);
  }, true);
  box.addEventListener("pointerleave", () => tell(-1));
}

/** Says above the map what lies under the pointer, or else which buffer is chosen. @param {number} i */
function tell(i) {
  const tip = get("tip"), shown = i >= 0 ? i : state.picked;
  if (tip.dataset.buffer === `${state.view}-${shown}`) return;
  tip.dataset.buffer = `${state.view}-${shown}`;
  tip.replaceChildren(...(shown < 0 ? [`${TOUCH.matches ? "Tap" : "Point at"} a buffer of the map to read here what it is.`] : tipOf(plan(), shown)));
}

/** Makes what stays: the switch, the table of the field, the keys. */
function build() {
  get("title").textContent = data.title;
  get("subtitle").textContent = data.subtitle;
  get("subtitle").title = data.subtitle;
  get("made").textContent = `made by ${data.made_by}, drawn with Bokeh`;
  get("verdict").hidden = !data.change || plans.length < 2;
  if (data.change) get("verdict").textContent = verdictOf(plans[0], plans[plans.length - 1]);
  if (plans.length > 1)
    get("switch").replaceChildren(...plans.map((p, k) => make("button", { type: "button", role: "radio", title: p.columns.about || p.name, onclick: () => turnTo(k) }, make("span", {}, p.name), make("small", {}, brief(p.columns.planned + p.columns.tail)))));
  const first = (/** @type {string} */ name) => plans.findIndex((p) => p.columns.model[0] === name);
  get("models").hidden = models.length < 2;
  get("models").replaceChildren(...models.map((name) => make("button", { type: "button", role: "radio", title: name, onclick: () => turnTo(first(name)) }, make("span", {}, name), make("small", {}, brief(plans[first(name)].columns.planned + plans[first(name)].columns.tail)))));
  const byKey = (/** @type {string} */ id, /** @type {() => number[]} */ choices) => get(id).addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
    if (!by) return;
    e.preventDefault();
    const all = choices();
    const at = Math.max(all.indexOf(state.view), all.findIndex((k) => id === "models" && plans[k].columns.model[0] === plan().columns.model[0]));
    turnTo(all[(at + by + all.length) % all.length]);
    get(id).querySelector("[aria-checked=true]").focus();
  });
  byKey("switch", () => siblings(plan()).map((p) => plans.indexOf(p)));
  byKey("models", () => models.map(first));
  get("tab-field").hidden = !data.field;
  get("tab-field").tabIndex = -1;
  const told = [...KEYS, ...MAP_KEYS].filter((row) => row[1]).map(([key, what]) => [make("dt", {}, make("kbd", {}, key.replace("Arrow", ""))), make("dd", {}, what)]);
  const close = make("button", { type: "button", className: "leave", onclick: () => get("keys").close() }, "Close");
  const words = make("dl", {}, ...Object.entries(WORDS).flatMap(([word, what]) => [make("dt", {}, word), make("dd", {}, what)]));
  get("keys").replaceChildren(close, make("h2", {}, "Words"), words, make("h2", {}, "Keys"), make("dl", {}, ...told.flat(), make("dt", {}, make("kbd", {}, "1"), " … ", make("kbd", {}, "9")), make("dd", {}, "plan of that number")));
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
  for (const name of TABS) on(`tab-${name}`, () => choose(name));
  get("tabs").addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!by) return;
    const names = TABS.filter((name) => !get(`tab-${name}`).hidden);
    choose(names[(names.indexOf(state.tab) + by + names.length) % names.length]);
    get(`tab-${state.tab}`).focus();
  });
  get("search").addEventListener("input", () => { search(get("search").value); refresh(); });
  get("search").addEventListener("focus", () => search(get("search").value));
  get("search").addEventListener("blur", () => (get("found").hidden = true));
  get("search").addEventListener("keydown", searchKeys);
  document.addEventListener("keydown", keys);
  addEventListener("hashchange", restore);
  addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; chart.dress("light"); refresh(); });
  addEventListener("afterprint", () => dress(state.theme));
  dark.addEventListener("change", () => chosenTheme || dress(dark.matches ? "dark" : "light"));
  pointer(get("map"), true);
  pointer(get("curve"), false);
}

let asked = false;
let resting = 0;
/** How long the window has to rest before names and patterns come back, in milliseconds. */
const REST = 150;
/** Draws anew when the window has moved: once both axes have, and before Bokeh paints, so that it paints once. */
function follow() {
  if (asked || moving) return;
  asked = true;
  queueMicrotask(() => {
    asked = false;
    if (moving) return;
    chart.draw(true);
    remember();
    clearTimeout(resting);
    if (chart.plain) resting = setTimeout(() => moving || chart.draw(), REST);
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
  addEventListener("resize", () => openAbout(get("about").classList.contains("open")));
  document.documentElement.dataset.ready = "true";
});
