// @ts-check
"use strict";
/** Colours and patterns of the kinds of buffers. */

/** @type {Record<string, {colour: Record<string, string>, hatch: string}>} */
const KINDS = {
  input: { colour: { light: "#6fc9a4", dark: "#3f9c78" }, hatch: "/" },
  output: { colour: { light: "#f0b357", dark: "#b97f26" }, hatch: "\\" },
  activation: { colour: { light: "#a9d0f0", dark: "#3c78a8" }, hatch: " " },
  shared: { colour: { light: "#cf8abf", dark: "#99538a" }, hatch: "." },
  state: { colour: { light: "#9b9b9b", dark: "#707680" }, hatch: "-" },
  scratch: { colour: { light: "#efe68a", dark: "#a39a35" }, hatch: "x" },
  weights: { colour: { light: "#c9b79c", dark: "#857356" }, hatch: "|" },
  buffer: { colour: { light: "#a9d0f0", dark: "#3c78a8" }, hatch: " " },
};
const MODELS = ["activation", "output", "input", "scratch"].map((name) => KINDS[name]).concat([
  { colour: { light: "#e9a08c", dark: "#a85c47" }, hatch: "|" },
  { colour: { light: "#b9b3e6", dark: "#665fa6" }, hatch: "+" },
]);

/** The look of a kind of buffers. @param {Plan} plan @param {number} kind */
function lookOf(plan, kind) {
  return KINDS[plan.columns.labels[kind]] ?? (kind === plan.columns.labels.length - 1 ? KINDS.state : kind === plan.columns.labels.length - 2 ? KINDS.shared : MODELS[kind % MODELS.length]);
}

/** A colour as a pixel. @param {string} hex */
function rgba(hex) {
  const n = parseInt(hex.slice(1), 16);
  return ((255 << 24) | ((n & 255) << 16) | (((n >> 8) & 255) << 8) | (n >> 16)) >>> 0;
}
