// @ts-check
"use strict";
/** What of a plan the window shows beside the rectangles: the memory curve, the ranks of peaks, the copies. */

/** How many peaks have their number on the curve, and how many copies are drawn. */
const MOST_RANKS = 9;
const MOST_ARROWS = 300;

/** The memory curve in the window; where several steps fall on a pixel, the most and the least of them. @param {Chart} chart @param {Sight} w */
function curveRows(chart, w) {
  const p = chart.plan;
  const from = Math.max(0, Math.floor(w.x0)), to = Math.min(p.steps, Math.ceil(w.x1));
  const each = Math.max(1, Math.floor((1.6 * (chart.window.x1 - chart.window.x0)) / Math.max(chart.plot.width, 100)));
  const x = [], y = [];
  for (let s = from - (from % each); s < to; s += each) {
    const bucket = p.live.subarray(Math.max(s, 0), Math.min(s + each, p.steps));
    x.push(s);
    y.push(bucket.reduce((a, b) => Math.max(a, b), 0));
    if (each > 1) {
      x.push(s + each / 2);
      y.push(bucket.reduce((a, b) => Math.min(a, b), Infinity));
    }
  }
  x.push(to);
  y.push(y[y.length - 1] ?? 0);
  return { x, y };
}

/** The copies in sight, the largest of them where there are many; those of the lit buffers where some are lit. @param {Chart} chart */
function copyRows(chart) {
  const w = chart.window;
  const lit = chart.lit;
  const rows = chart.plan.columns.copies.filter(([from, to, issued, due]) => due > w.x0 && issued < w.x1 && (!lit || lit.has(from) || lit.has(to)));
  const kept = rows.length > MOST_ARROWS ? rows.sort((a, b) => b[6] - a[6]).slice(0, MOST_ARROWS) : rows;
  return { x: kept.map((r) => r[2]), X: kept.map((r) => r[3]), y: kept.map((r) => r[4]), Y: kept.map((r) => r[5]) };
}

/** The numbers of the highest peaks in sight, by height, each above the first step of its peak, as the buttons choose it; one that would touch a higher one's is left out. @param {Chart} chart */
function rankRows(chart) {
  const w = chart.window;
  const room = (16 * (w.x1 - w.x0)) / Math.max(chart.plot.width, 1);
  const found = { x: /** @type {number[]} */ ([]), y: /** @type {number[]} */ ([]), n: /** @type {string[]} */ ([]) };
  for (const [rank, { start, bytes }] of chart.plan.peaks.slice(0, MOST_RANKS).entries()) {
    const x = start + 0.5;
    if (x < w.x0 || x > w.x1 || found.x.some((other) => Math.abs(other - x) < room)) continue;
    found.x.push(x);
    found.y.push(bytes);
    found.n.push(String(rank + 1));
  }
  return found;
}
