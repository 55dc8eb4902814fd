// @ts-check
"use strict";
/** The memory curve and the map, drawn by Bokeh; both share their time axis. */

/** How many rectangles are drawn one by one; more are painted into an image first. */
const MOST = 1000;
const MOST_OVER_IMAGE = 250;
const MOST_LABELS = 160;
const MOST_HATCHED = 400;
/** How far above the highest peak the axis of the curve goes. */
const HEADROOM = 1.25;
/** How far above the highest line the axis of addresses goes, so that its name has room. */
const ABOVE = 1.09;
/** How many pixels a number below the steps has at least. */
const NUMBERED_STEP = 80;
/** From how many pixels a step has room for the name of its operator, and the most letters of one. */
const NAMED_STEP = 15;
const LONGEST = 18;
const HATCHES = ["/", "\\", ".", "-", "x", "|", "+"];

/** @typedef {{x0: number, x1: number, y0: number, y1: number}} Sight */

class Chart {
  /** @param {HTMLElement} curve @param {HTMLElement} map */
  constructor(curve, map) {
    this.element = map;
    this.theme = "light";
    this.patterns = true;
    /** @type {Plan} */ this.plan = /** @type {any} */ (null);
    /** @type {Set<number>|null} */ this.lit = null;
    this.x = new Bokeh.Range1d({ start: 0, end: 1 });
    this.y = new Bokeh.Range1d({ start: 0, end: 1 });
    const tools = () => [new Bokeh.PanTool({ dimensions: "both" }), new Bokeh.WheelZoomTool({ dimensions: "both" })];
    const shared = { toolbar_location: null, sizing_mode: "stretch_both", min_border_left: 84, min_border_right: 14, min_border_top: 8, lod_threshold: null, output_backend: "canvas", background_fill_color: null, border_fill_color: null };
    this.lower = Bokeh.Plotting.figure({ ...shared, tools: tools(), x_range: this.x, y_range: this.y, min_border_bottom: 22 });
    this.loads = new Bokeh.Range1d({ start: 0, end: 1 });
    this.upper = Bokeh.Plotting.figure({ ...shared, tools: [new Bokeh.PanTool({ dimensions: "width" }), new Bokeh.WheelZoomTool({ dimensions: "width" })], x_range: this.x, y_range: this.loads, min_border_bottom: 4 });
    for (const f of [this.lower, this.upper]) f.toolbar.active_scroll = f.toolbar.tools[1];
    /** @type {Record<string, any>} The rows of each glyph. */ this.sources = {};
    /** @type {any[]} */ this.hatches = [];
    /** @type {[number, string, string][]} */ this.levels = [];
    /** @type {{step: number, name: string}[]} */ this.parts = [];
    /** @type {string|null} What the image shows. */ this.painted = null;
    this.overview = { stamp: "", data: {} };
    /** @type {number[][]|null} */ this.pairs = null;
    /** @type {any} */ this.view = null;
    this.litKey = "";
    /** Whether names and patterns were left out. */
    this.plain = false;
    /** For which window, of which extent, things were chosen last. */
    this.chosenFor = { x0: 0, x1: 0, y0: 0, y1: 0, x: 0, y: 0 };
    /** The place of the plot when it was last drawn. */
    this.plot = { left: 0, top: 0, width: 1, height: 1 };
    /** @type {Record<string, string>|null} The colours of the theme, read once: asking the style costs as much as drawing. */
    this.inks = null;
    /** @type {Map<any, string>} The ticks that each figure has. */
    this.ticks = new Map();
    this.drawn = this.inside = 0;
    /** The most letters of the name of an operator below its step. */
    this.longest = LONGEST;
    /** @type {any} */ this.image = this.boxes = this.names = this.area = this.line = this.spot = this.ranks = this.arrows = this.overlap = this.gaps = this.overflow = null;
    this.build();
    const phone = matchMedia("(max-width: 620px)");
    const narrow = () => {
      for (const f of [this.upper, this.lower]) f.setv({ min_border_left: phone.matches ? 56 : 84, min_border_right: phone.matches ? 4 : 14 });
      for (const f of [this.upper, this.lower]) f.left[0].axis_label_standoff = phone.matches ? 0 : 5;
      this.longest = phone.matches ? LONGEST / 2 + 1 : LONGEST;
    };
    narrow();
    phone.addEventListener("change", narrow);
    const both = new Bokeh.Document();
    both.add_root(this.upper);
    both.add_root(this.lower);
    /** @type {Promise<void>} */
    this.ready = Bokeh.embed.add_document_standalone(both, map, [curve, map]).then((/** @type {any} */ views) => {
      this.view = views.get(this.lower);
      // The map answers keys for both charts, so that Bokeh's own stops of the Tab key would do nothing.
      for (const f of [this.upper, this.lower]) views.get(f).canvas_view.events_el.removeAttribute("tabindex");
    });
  }

  /** Makes the glyphs of both figures. */
  build() {
    const source = () => new Bokeh.ColumnDataSource({ data: {} });
    const low = this.lower;
    const quad = { left: { field: "l" }, right: { field: "r" }, bottom: { field: "b" }, top: { field: "t" } };
    this.sources = { free: source(), image: source(), boxes: source(), marks: source(), common: source(), lost: source(), beyond: source(), tail: source(), claimed: source(), bands: source(), labels: source(), curve: source(), spot: source(), ranks: source(), arrows: source(), ends: source(), levels: source(), levelNames: source(), picked: source(), bands2: source() };
    const s = this.sources;
    for (const [name, columns] of Object.entries({ free: "lrbtc", boxes: "lrbtcoa", common: "lrbt", lost: "lrbt", beyond: "lrbt", tail: "lrbtc", claimed: "lrbt", bands: "lrbtc", bands2: "lrbtc", marks: "lrbtc", picked: "lrbtc", labels: "xyna", curve: "xy", spot: "xy", ranks: "xyn", arrows: "xyXY", ends: "", levels: "xyXYc", levelNames: "xyncg" })) s[name].data = empty(columns);
    s.image.data = { image: [], x: [], y: [], w: [], h: [] };
    low.quad({ ...quad, fill_color: { field: "c" }, line_color: null, source: s.free });
    low.quad({ ...quad, fill_color: null, line_color: null, hatch_pattern: "/", hatch_alpha: 0.25, hatch_weight: 0.7, hatch_scale: 12, source: s.claimed });
    this.image = low.image_rgba({ image: { field: "image" }, x: { field: "x" }, y: { field: "y" }, dw: { field: "w" }, dh: { field: "h" }, source: s.image });
    this.boxes = low.quad({ ...quad, fill_color: { field: "c" }, fill_alpha: { field: "a" }, line_color: { field: "o" }, line_alpha: { field: "a" }, line_width: 0.6, source: s.boxes });
    // A pattern is one for all rectangles of a glyph: Bokeh makes a canvas for each rectangle where it is a column.
    this.hatches = HATCHES.map((pattern) => {
      const rows = source();
      rows.data = empty("lrbt");
      const glyph = low.quad({ ...quad, fill_color: null, line_color: null, hatch_pattern: pattern, hatch_alpha: pattern === "." ? 0.25 : 0.4, hatch_weight: 0.7, hatch_scale: pattern === "." ? 7 : 9, source: rows });
      return { pattern, rows, glyph, shown: false };
    });
    const striped = (/** @type {string} */ pattern, /** @type {any} */ rows) => low.quad({ ...quad, fill_alpha: 0.1, hatch_pattern: pattern, hatch_alpha: 0.5, hatch_scale: 14, hatch_weight: 0.8, line_width: 0.8, source: rows });
    this.overlap = striped("\\", s.common);
    this.gaps = striped("x", s.lost);
    this.overflow = striped("/", s.beyond);
    low.quad({ ...quad, fill_color: { field: "c" }, fill_alpha: 0.16, line_color: null, source: s.tail });
    low.quad({ ...quad, fill_color: { field: "c" }, fill_alpha: 0.15, line_color: { field: "c" }, line_alpha: 0.7, source: s.bands });
    low.quad({ ...quad, fill_color: null, line_color: { field: "c" }, line_width: 1.6, source: s.marks });
    low.quad({ ...quad, fill_color: null, line_color: { field: "c" }, line_width: 3, source: s.picked });
    this.names = low.text({ x: { field: "x" }, y: { field: "y" }, text: { field: "n" }, text_align: "center", text_baseline: "middle", text_font_size: "11px", text_font: FONT, angle: { field: "a" }, source: s.labels });
    low.segment({ x0: { field: "x" }, y0: { field: "y" }, x1: { field: "X" }, y1: { field: "Y" }, line_color: { field: "c" }, line_dash: "dashed", line_width: 1.3, source: s.levels });
    low.text({ x: { field: "x" }, y: { field: "y" }, text: { field: "n" }, text_color: { field: "c" }, text_align: "right", text_baseline: "bottom", y_offset: -2, x_offset: -4, text_font_size: "11px", text_font: FONT, background_fill_color: { field: "g" }, background_fill_alpha: 0.8, source: s.levelNames });
    const head = new Bokeh.VeeHead({ size: 9, line_color: "black" });
    this.arrows = new Bokeh.Arrow({ x_start: { field: "x" }, y_start: { field: "y" }, x_end: { field: "X" }, y_end: { field: "Y" }, start_units: "data", end_units: "data", line_width: 1.4, end: head, source: s.arrows });
    low.add_layout(this.arrows);
    const up = this.upper;
    up.quad({ ...quad, fill_color: { field: "c" }, fill_alpha: 0.15, line_color: { field: "c" }, line_alpha: 0.7, source: s.bands2 });
    this.area = up.varea_step({ x: { field: "x" }, y1: 0, y2: { field: "y" }, step_mode: "after", source: s.curve });
    this.line = up.step({ x: { field: "x" }, y: { field: "y" }, mode: "after", line_width: 1.4, source: s.curve });
    this.spot = up.scatter({ x: { field: "x" }, y: { field: "y" }, size: 8, line_width: 1.5, source: s.spot });
    this.ranks = up.text({ x: { field: "x" }, y: { field: "y" }, text: { field: "n" }, text_align: "center", text_baseline: "bottom", y_offset: -6, text_font_size: "10px", text_font: FONT, source: s.ranks });
    up.left[0].axis_label = "bytes alive";
    low.left[0].axis_label = "address";
    low.below[0].axis_label = "step";
  }

  /** Shows a plan at a window of time and addresses. @param {Plan} plan @param {Sight} window */
  show(plan, window) {
    this.plan = plan;
    this.sources.curve.data = { x: [0, plan.steps], y: [0, 0] }; // Bokeh never comes back from steps without rows
    this.loads.setv({ start: 0, end: Math.max(plan.most, 1) * HEADROOM });
    this.bytesAxis(this.upper, 0, plan.most * HEADROOM, 3);
    this.lower.left[0].axis_label = plan.columns.regions.length ? "address in each region" : "address";
    this.painted = null;
    this.plain = false;
    this.paintStatic();
    this.look(window);
  }

  /** What does not depend on the window: free space, capacity, bound, banks, overlaps. */
  paintStatic() {
    const plan = this.plan;
    const c = plan.columns;
    const ink = this.colour();
    const s = this.sources;
    const free = { l: [0], r: [plan.steps], b: [0], t: [c.planned], c: [ink.free] };
    s.free.data = free;
    const common = empty("lrbt"), beyond = empty("lrbt");
    const add = (/** @type {Record<string, any[]>} */ rows, /** @type {number[]} */ ...box) => {
      if (box[0] < box[1] && box[2] < box[3]) ["l", "r", "b", "t"].forEach((name, k) => rows[name].push(box[k]));
    };
    for (const [i, j] of c.overlaps)
      add(common, Math.max(plan.start[i], plan.start[j]), Math.min(plan.end[i], plan.end[j]), Math.max(plan.low[i], plan.low[j]), Math.min(plan.high[i], plan.high[j]));
    if (c.capacity !== null)
      for (let i = 0; i < plan.n; i++) add(beyond, plan.start[i], plan.end[i], Math.max(plan.low[i], c.capacity), plan.high[i]);
    if (c.capacity !== null) add(beyond, 0, plan.steps, Math.max(c.planned, c.capacity), c.planned + c.tail);
    s.common.data = common;
    s.beyond.data = beyond;
    const claimed = empty("lrbt");
    for (const [start, end, bottom, top] of c.claimed) add(claimed, start, end, bottom, top);
    s.claimed.data = claimed;
    const lost = empty("lrbt");
    for (const [start, end, bottom, top] of c.lost) add(lost, start, end, bottom, top);
    s.lost.data = lost;
    s.tail.data = c.tail ? { l: [0], r: [plan.steps], b: [c.planned], t: [c.planned + c.tail], c: [ink.muted] } : empty("lrbtc");
    /** @type {[number, string, string][]} */
    const levels = c.regions.length ? [] : [[c.planned, `planned${c.planned === c.bound ? " = lower bound" : ""} ${brief(c.planned)}`, c.planned === c.bound ? ink.accent : ink.ink]];
    if (c.planned !== c.bound && c.bound) levels.push([c.bound, `lower bound ${brief(c.bound)}`, ink.accent]);
    if (c.capacity !== null) levels.push([c.capacity, `capacity ${brief(c.capacity)}`, ink.warn]);
    if (c.tail) levels.push([c.planned + c.tail, `arena ${brief(c.planned + c.tail)}${this.longest < LONGEST ? "" : `, ${brief(c.tail)} of it kept by the runtime`}`, ink.muted]);
    for (const [name, base, used, size] of c.regions) levels.push([base, `${name}: ${brief(used)} used of ${brief(size)}`, ink.ink]);
    for (const [name, base] of c.banks) levels.push([base, name, ink.muted]);
    this.levels = levels;
    const ends = c.models.map(([step, name]) => ({ step, name }));
    this.parts = ends;
  }

  /** Puts the window. @param {Sight} w */
  look(w) {
    this.x.setv({ start: w.x0, end: w.x1 });
    this.y.setv({ start: w.y0, end: w.y1 });
  }

  /** @returns {Sight} */
  get window() {
    return { x0: this.x.start, x1: this.x.end, y0: this.y.start, y1: this.y.end };
  }

  /** The window that shows all of a plan. @param {Plan} plan @returns {Sight} */
  whole(plan) {
    return { x0: 0, x1: plan.steps, y0: 0, y1: plan.top * ABOVE };
  }

  /** The place of the plot inside the map, in pixels of the window. */
  get frame() {
    const box = this.element.getBoundingClientRect();
    const f = this.view?.frame?.bbox;
    return f ? { left: box.left + f.left, top: box.top + f.top, width: f.width, height: f.height } : { left: box.left, top: box.top, width: box.width, height: box.height };
  }

  /** Time and address under a point of the window; null outside of the plot. @param {number} px @param {number} py */
  under(px, py) {
    const f = this.frame;
    const w = this.window;
    const u = (px - f.left) / f.width;
    const v = (py - f.top) / f.height;
    if (u < 0 || u > 1 || v < 0 || v > 1) return null;
    return { x: w.x0 + u * (w.x1 - w.x0), y: w.y1 - v * (w.y1 - w.y0) };
  }

  /** Draws what the window shows: the largest rectangles one by one, all others as an image behind them. While the
   * window moves, a crowded one has no names and patterns, and its rectangles and its curve are chosen for a larger
   * window, so that most frames need no others. */
  draw(moving = false) {
    const seen = this.window;
    this.plot = this.frame;
    if (!moving || !this.plain || !within(seen, this.chosenFor)) this.fill(seen, moving);
    this.drawLevels(seen);
    this.bytesAxis(this.lower, seen.y0, seen.y1, 8);
    this.stepAxis(seen);
    this.hideEmpty();
  }

  /** Chooses what is drawn in a window; while it moves, for one that is larger by half on each side. @param {Sight} seen @param {boolean} moving */
  fill(seen, moving) {
    const plan = this.plan;
    const w = moving ? widened(seen) : seen;
    const chosen = [];
    let inside = 0;
    for (const i of plan.byArea) {
      if (moving && inside > MOST) break;
      if (plan.end[i] <= w.x0 || plan.start[i] >= w.x1 || plan.high[i] <= w.y0 || plan.low[i] >= w.y1 || !plan.size[i]) continue;
      inside++;
      if (chosen.length <= MOST) chosen.push(i);
    }
    if (inside > MOST) chosen.length = MOST_OVER_IMAGE;
    this.drawn = chosen.length;
    this.inside = inside;
    const whole = inside <= MOST;
    this.image.visible = !whole;
    if (!whole) this.paint(moving ? this.whole(plan) : w);
    this.sources.boxes.data = this.columns(chosen);
    const plain = moving && !whole;
    this.hatch(plain ? [] : chosen);
    this.sources.curve.data = curveRows(this, plain ? w : seen);
    this.sources.ranks.data = rankRows(this);
    this.sources.labels.data = plain ? empty("xyna") : this.labels(chosen);
    this.sources.arrows.data = copyRows(this);
    this.plain = plain;
    this.chosenFor = { ...w, x: seen.x1 - seen.x0, y: seen.y1 - seen.y0 };
  }

  /** Draws the lines across the map with their names. @param {Sight} w */
  drawLevels(w) {
    const lines = { x: this.levels.map(() => w.x0), X: this.levels.map(() => w.x1), y: this.levels.map((l) => l[0]), Y: this.levels.map((l) => l[0]), c: this.levels.map((l) => l[2]) };
    for (const part of this.parts.filter((one) => one.step > 0)) [lines.x, lines.X, lines.y, lines.Y, lines.c].forEach((column, k) => /** @type {any[]} */ (column).push([part.step, part.step, w.y0, w.y1, this.colour().muted][k]));
    this.sources.levels.data = lines;
    const sorted = this.levels.filter((l) => l[0] >= w.y0 && l[0] <= w.y1).sort((a, b) => a[0] - b[0]);
    const gap = (17 * (w.y1 - w.y0)) / Math.max(this.plot.height, 1);
    const named = sorted.map((l) => ({ y: l[0], n: l[1], c: l[2] }));
    for (let k = 1; k < named.length; k++) named[k].y = Math.max(named[k].y, named[k - 1].y + gap);
    this.sources.levelNames.data = { x: named.map(() => w.x1), y: named.map((l) => l.y), n: named.map((l) => l.n), c: named.map((l) => l.c), g: named.map(() => this.colour().ground) };
  }

  /** Hides glyphs without rows: Bokeh prepares each that is shown anew for each frame. */
  hideEmpty() {
    for (const row of [...this.lower.renderers, ...this.upper.renderers]) {
      const filled = Object.values(row.data_source.data)[0]?.length > 0;
      if (row !== this.image && row.visible !== filled) row.visible = filled;
    }
  }

  /** What a painted image depends on. */
  get stamp() {
    return `${this.plan.name}|${this.theme}|${this.litKey}`;
  }

  /** The columns of rectangles. @param {number[]} chosen */
  columns(chosen) {
    const p = this.plan;
    const w = this.window;
    const f = this.plot;
    const perStep = f.width / (w.x1 - w.x0);
    const perByte = f.height / (w.y1 - w.y0);
    const ink = this.colour();
    const wide = chosen.map((i) => Math.min((p.end[i] - p.start[i]) * perStep, p.size[i] * perByte));
    const looks = p.columns.labels.map((_, k) => lookOf(p, k));
    return {
      l: chosen.map((i) => p.start[i]), r: chosen.map((i) => p.end[i]), b: chosen.map((i) => p.low[i]), t: chosen.map((i) => p.high[i]),
      c: chosen.map((i) => looks[p.columns.kind[i]].colour[this.theme]),
      o: chosen.map((_, k) => (wide[k] > 3 ? ink.edge : null)),
      a: chosen.map((i) => (!this.lit || this.lit.has(i) ? 1 : 0.22)),
    };
  }

  /** Puts the patterns on the rectangles that are large enough to show one. @param {number[]} chosen */
  hatch(chosen) {
    const p = this.plan;
    const w = this.window;
    const f = this.plot;
    const [sx, sy] = [f.width / (w.x1 - w.x0), f.height / (w.y1 - w.y0)];
    for (const row of this.hatches) {
      const { pattern, rows } = row;
      const found = !this.patterns ? [] : chosen.filter((i) => lookOf(p, p.columns.kind[i]).hatch === pattern && Math.min((p.end[i] - p.start[i]) * sx, p.size[i] * sy) > 7 && (!this.lit || this.lit.has(i))).slice(0, MOST_HATCHED);
      const shown = found.length > 0 || row.shown;
      row.shown = found.length > 0;
      if (shown) rows.data = { l: found.map((i) => p.start[i]), r: found.map((i) => p.end[i]), b: found.map((i) => p.low[i]), t: found.map((i) => p.high[i]) };
    }
  }

  /** Names of the rectangles that have room for them. @param {number[]} chosen */
  labels(chosen) {
    const p = this.plan;
    const w = this.window;
    const f = this.plot;
    const found = { x: /** @type {number[]} */ ([]), y: /** @type {number[]} */ ([]), n: /** @type {string[]} */ ([]), a: /** @type {number[]} */ ([]) };
    for (const i of chosen) {
      if (found.x.length >= MOST_LABELS) break;
      const own = p.alone.get(i) ?? [p.start[i], p.low[i], p.end[i], p.high[i]];
      const x0 = Math.max(own[0], w.x0), x1 = Math.min(own[2], w.x1);
      const y0 = Math.max(own[1], w.y0), y1 = Math.min(own[3], w.y1);
      const width = ((x1 - x0) / (w.x1 - w.x0)) * f.width - 6;
      const height = ((y1 - y0) / (w.y1 - w.y0)) * f.height - 4;
      if (Math.min(width, height) < 10 || Math.max(width, height) < 30 || (this.lit && !this.lit.has(i))) continue;
      const level = lettered(p, i, width, height), turned = lettered(p, i, height, width);
      const up = turned.whole > level.whole;
      const text = up ? turned.text : level.text;
      if (!text) continue;
      found.x.push((x0 + x1) / 2);
      found.y.push((y0 + y1) / 2);
      found.n.push(text);
      found.a.push(up ? Math.PI / 2 : 0);
    }
    return found;
  }

  /** Shows an image of all rectangles of a window, for the time in which there are too many to draw; the one of the
   * whole plan is kept, since it is shown while the window moves. @param {Sight} w */
  paint(w) {
    const stamp = `${this.stamp}|${w.x0}|${w.x1}|${w.y0}|${w.y1}`;
    if (this.painted === stamp) return;
    this.painted = stamp;
    const moves = same(w, this.whole(this.plan));
    if (!moves || this.overview.stamp !== stamp) {
      const image = moves ? this.pixels(w, 2048, 1024) : this.pixels(w, Math.ceil(this.plot.width * devicePixelRatio), Math.ceil(this.plot.height * devicePixelRatio));
      const data = { image: [image], x: [w.x0], y: [w.y0], w: [w.x1 - w.x0], h: [w.y1 - w.y0] };
      if (moves) this.overview = { stamp, data };
      this.sources.image.data = data;
    } else this.sources.image.data = this.overview.data;
  }

  /** An image of a window in which each rectangle has a pixel at least, small ones over large ones.
   * @param {Sight} w @param {number} width @param {number} height */
  pixels(w, width, height) {
    const p = this.plan;
    const pixels = new Uint32Array(width * height);
    const sx = width / (w.x1 - w.x0), sy = height / (w.y1 - w.y0);
    const looks = p.columns.labels.map((_, k) => rgba(lookOf(p, k).colour[this.theme]));
    for (const i of p.byArea) {
      if (p.end[i] <= w.x0 || p.start[i] >= w.x1 || p.high[i] <= w.y0 || p.low[i] >= w.y1 || !p.size[i]) continue;
      const colour = looks[p.columns.kind[i]];
      const shade = this.lit && !this.lit.has(i) ? (colour & 0xffffff) | 0x38000000 : colour;
      const x0 = Math.max(0, Math.floor((p.start[i] - w.x0) * sx)), x1 = Math.min(width, Math.max(x0 + 1, Math.round((p.end[i] - w.x0) * sx)));
      const y0 = Math.max(0, Math.floor((p.low[i] - w.y0) * sy)), y1 = Math.min(height, Math.max(y0 + 1, Math.round((p.high[i] - w.y0) * sy)));
      for (let y = y0; y < y1; y++) pixels.fill(shade, y * width + x0, y * width + x1);
    }
    return ndarray(pixels, height, width);
  }

  /** Lights buffers, and the steps that write and read; null puts the light out.
   * @param {number} picked @param {{writers: number[], readers: number[], cursor: number}} steps @param {number[]} matches */
  light(picked, steps, matches) {
    const p = this.plan;
    const ink = this.colour();
    this.litKey = `${picked}:${matches.length}:${matches[0]}:${matches[matches.length - 1]}`;
    this.lit = picked >= 0 || matches.length ? new Set(picked >= 0 ? [picked, ...matches] : matches) : null;
    const columns = (/** @type {[number, string][]} */ rows, /** @type {number} */ top) => ({ l: rows.map((r) => r[0]), r: rows.map((r) => r[0] + 1), b: rows.map(() => 0), t: rows.map(() => top), c: rows.map((r) => r[1]) });
    /** @type {[number, string][]} */
    const rows = [...steps.writers.map((s) => /** @type {[number, string]} */ ([s, ink.writer])), ...steps.readers.map((s) => /** @type {[number, string]} */ ([s, ink.reader]))];
    if (steps.cursor >= 0) rows.push([steps.cursor, ink.muted]);
    this.sources.bands.data = columns(rows, p.top * ABOVE);
    this.sources.bands2.data = columns(rows, p.most * HEADROOM);
    const box = (/** @type {number[]} */ list) => ({ l: list.map((i) => p.start[i]), r: list.map((i) => p.end[i]), b: list.map((i) => p.low[i]), t: list.map((i) => p.high[i]), c: list.map(() => ink.ink) });
    this.sources.marks.data = box(matches.slice(0, 500));
    this.sources.picked.data = box(picked >= 0 ? [picked] : []);
    this.sources.spot.data = steps.cursor >= 0 ? { x: [steps.cursor + 0.5], y: [p.live[steps.cursor] ?? 0] } : { x: [], y: [] };
  }

  /** Moves the rectangles of one plan to their places in another. @param {Plan} from @param {Plan} to @param {number} share */
  between(from, to, share) {
    const k = share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) * (1 - share);
    this.pairs ??= [...to.byArea.slice(0, MOST)].map((i) => [i, from.twin(to, i)]);
    const mix = (/** @type {Float64Array} */ a, /** @type {Float64Array} */ b) => /** @type {number[][]} */ (this.pairs).map(([i, j]) => (j < 0 ? b[i] : a[j] + (b[i] - a[j]) * k));
    const rows = this.columns(this.pairs.map((pair) => pair[0]));
    this.image.visible = false;
    this.sources.labels.data = empty("xyna");
    this.hatch([]);
    this.sources.boxes.data = { ...rows, l: mix(from.start, to.start), r: mix(from.end, to.end), b: mix(from.low, to.low), t: mix(from.high, to.high), a: this.pairs.map(([, j], q) => (j < 0 ? k * rows.a[q] : rows.a[q])) };
  }

  /** The colours of the page in the theme of now. */
  colour() {
    if (this.inks) return this.inks;
    const style = getComputedStyle(document.documentElement);
    const get = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    const dark = this.theme === "dark";
    return this.inks = { ink: get("ink"), muted: get("muted"), line: get("line"), ground: get("ground"), accent: get("accent"), warn: get("warn"), writer: get("writer"), reader: get("reader"), free: dark ? "#1f242a" : "#f1f1ee", edge: dark ? "#0c0e11" : "#4a4f55", area: dark ? "#3c78a8" : "#a9d0f0" };
  }

  /** Takes light or dark. @param {string} theme */
  dress(theme) {
    this.theme = theme;
    this.inks = null;
    const ink = this.colour();
    for (const f of [this.upper, this.lower]) {
      f.setv({ background_fill_color: null, border_fill_color: null, outline_line_color: ink.line });
      for (const place of ["left", "below"])
        for (const axis of f[place]) axis.setv({ axis_label_text_color: ink.muted, axis_label_text_font: FONT, axis_label_text_font_size: "11px", axis_label_text_font_style: "normal", major_label_text_color: ink.muted, major_label_text_font: FONT, major_label_text_font_size: "11px", axis_line_color: ink.line, major_tick_line_color: ink.line, minor_tick_line_color: null });
      if (f === this.upper) f.below[0].setv({ major_label_text_color: null, major_label_text_font_size: "1px", major_tick_line_color: null, axis_line_color: null });
      for (const grid of f.center) if (grid.dimension !== undefined) grid.setv({ grid_line_color: ink.line, grid_line_alpha: 0.55 });
    }
    for (const { glyph } of this.hatches) glyph.glyph.hatch_color = { value: ink.edge };
    this.overlap.glyph.setv({ hatch_color: { value: ink.muted }, fill_color: { value: ink.muted }, line_color: { value: ink.muted } });
    this.gaps.glyph.setv({ hatch_color: { value: ink.warn }, fill_color: { value: null }, line_color: { value: null } });
    this.overflow.glyph.setv({ hatch_color: { value: ink.warn }, fill_color: { value: ink.warn }, line_color: { value: ink.warn } });
    this.names.glyph.text_color = { value: theme === "dark" ? "#ffffff" : "#16191d" };
    this.arrows.line_color = { value: ink.ink };
    this.arrows.end.setv({ line_color: { value: ink.ink }, fill_color: { value: ink.ink } });
    this.ranks.glyph.text_color = { value: ink.muted };
    this.area.glyph.setv({ fill_color: ink.area, fill_alpha: 0.75 });
    this.line.glyph.setv({ line_color: theme === "dark" ? "#8cc4f2" : "#2f6f9f" });
    this.spot.glyph.setv({ fill_color: { value: ink.ground }, line_color: { value: ink.ink } });
  }

  /** Names the operators under their steps where each step is wide enough, else numbers the steps. @param {Sight} seen */
  stepAxis(seen) {
    const p = this.plan;
    const [first, last] = [Math.max(0, Math.floor(seen.x0)), Math.min(p.steps, Math.ceil(seen.x1))];
    const named = p.stepName(first) !== "" && this.plot.width / Math.max(seen.x1 - seen.x0, 1) >= NAMED_STEP;
    let round = 1; // steps between two numbers: 1, 2 or 5 times a power of ten
    for (let k = 0; (last - first) / round > this.plot.width / NUMBERED_STEP; k++) round = [1, 2, 5][k % 3] * 10 ** Math.floor(k / 3);
    const key = `${named ? p.name : round}:${first}:${last}`;
    if (this.ticks.get("steps") === key) return;
    this.ticks.set("steps", key);
    const axis = this.lower.below[0];
    if (!named) {
      const from = Math.ceil(first / round);
      const steps = Array.from({ length: Math.floor(last / round) - from + 1 }, (_, k) => (from + k) * round);
      axis.setv({
        ticker: new Bokeh.FixedTicker({ ticks: steps }), major_label_overrides: new Map(steps.map((step) => [step, count(step)])),
        major_label_orientation: "horizontal", axis_label: "step",
      });
      for (const f of [this.lower, this.upper]) for (const grid of f.center) if (grid.dimension === 0) grid.ticker = axis.ticker;
      return;
    }
    const names = Array.from({ length: last - first }, (_, k) => first + k).map((step) => /** @type {[number, string]} */ ([step + 0.5, `${cut(p.stepName(step).replace(/^op \d+ /, ""), this.longest)} ${count(step)}`]));
    const ticker = new Bokeh.FixedTicker({ ticks: names.map(([t]) => t) });
    axis.setv({ ticker, major_label_overrides: new Map(names), major_label_orientation: Math.PI / 2, axis_label: "step and operator" });
  }

  /** Round numbers of bytes on the left axis. @param {any} figure @param {number} from @param {number} to @param {number} most */
  bytesAxis(figure, from, to, most) {
    let step = 1;
    while ((to - from) / step > most) step *= 2;
    const c = this.plan.columns;
    // Each region counts from its own beginning; a tick that the next region would touch is left out.
    const bases = figure === this.lower && c.regions.length ? c.regions.map(([, base]) => base) : [0];
    /** @type {Map<number, string>} */
    const labels = new Map();
    bases.forEach((base, k) => {
      const end = k + 1 < bases.length ? bases[k + 1] - step / 2 : Infinity;
      const first = Math.max(0, Math.ceil((from - base) / step) * step);
      for (let t = first; base + t <= to && base + t < end; t += step) labels.set(base + t, tickLabel(t, step));
    });
    const ticks = [...labels.keys()];
    const key = `${step}:${ticks[0]}:${ticks.length}:${bases.length}`;
    if (this.ticks.get(figure) === key) return;
    this.ticks.set(figure, key);
    const axis = figure.left[0];
    axis.ticker = new Bokeh.FixedTicker({ ticks });
    for (const grid of figure.center) if (grid.dimension === 1) grid.ticker = axis.ticker;
    axis.major_label_overrides = labels;
  }
}

/** A window that is larger by half of itself on each side. @param {Sight} w @returns {Sight} */
function widened(w) {
  const [dx, dy] = [(w.x1 - w.x0) / 2, (w.y1 - w.y0) / 2];
  return { x0: w.x0 - dx, x1: w.x1 + dx, y0: w.y0 - dy, y1: w.y1 + dy };
}

/** Whether what was chosen for a window will do for another: it holds that, and was about as large. @param {Sight} w @param {Sight & {x: number, y: number}} done */
function within(w, done) {
  return w.x0 >= done.x0 && w.x1 <= done.x1 && w.y0 >= done.y0 && w.y1 <= done.y1 && (w.x1 - w.x0) * 2 >= done.x && (w.y1 - w.y0) * 2 >= done.y;
}

/** Columns without rows. @param {string} names @returns {Record<string, any[]>} */
function empty(names) {
  return Object.fromEntries([...names].map((name) => [name, []]));
}

/** Pixels as Bokeh takes them. @param {Uint32Array} pixels @param {number} height @param {number} width */
function ndarray(pixels, height, width) {
  return Object.assign(pixels, { shape: [height, width], dtype: "uint32", dimension: 2 });
}

/** The name of an operator, cut in the middle where it is long. @param {string} name @param {number} most */
function cut(name, most) {
  return name.length <= most ? name : `${name.slice(0, most / 2 - 1)}…${name.slice(-most / 2)}`;
}
