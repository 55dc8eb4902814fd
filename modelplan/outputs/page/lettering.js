// @ts-check
"use strict";
/** What is written where, and whether it fits: names of buffers, bytes on an axis. */

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

/** Bytes at a tick. @param {number} t @param {number} step */
function tickLabel(t, step) {
  if (t === 0) return "0";
  const [unit, scale] = t >= 1048576 && step >= 16384 ? ["MiB", 1048576] : t >= 1024 && step >= 16 ? ["KiB", 1024] : ["B", 1];
  const n = t / Number(scale);
  return `${Number(n.toFixed(2)).toLocaleString("en-US")} ${unit}`;
}

const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
pen.font = `11px ${FONT}`;
/** @type {Map<string, number>} */
const widths = new Map();

/** The pixels that a text takes. @param {string} text */
function measure(text) {
  let found = widths.get(text);
  if (found === undefined) widths.set(text, (found = pen.measureText(text).width));
  return found;
}

/** What is written on a rectangle that has so much room along the text and across it; `whole` is 2 for a name that is
 * whole or short, 1 for one that is cut, 0 for bytes alone. @param {Plan} p @param {number} i @param {number} along @param {number} across */
function lettered(p, i, along, across) {
  const size = brief(p.size[i]);
  const sized = measure(size) <= along;
  if (across < 10) return { text: "", whole: -1 };
  const name = fitted(p.label(i), p.shorts[i], along);
  const text = name && sized && across >= 28 ? `${name}\n${size}` : name || (sized ? size : "");
  return { text, whole: !text ? -1 : !name ? 0 : name.includes("…") ? 1 : 2 };
}

/** A name that fits a width: whole, short, or of the short one what begins with its last number; "" where too little stays.
 * @param {string} name @param {string} short @param {number} room */
function fitted(name, short, room) {
  if (measure(name) <= room) return name;
  if (measure(short) <= room) return short;
  const keep = Math.floor((room / measure(short)) * short.length) - 1;
  if (keep < 6) return "";
  const from = Math.min(Math.max(short.search(/\d+\D*$/), 0), short.length - keep);
  const ends = from + keep >= short.length;
  return `${from ? "…" : ""}${short.slice(from, ends || !from ? from + keep : from + keep - 1)}${ends ? "" : "…"}`;
}
