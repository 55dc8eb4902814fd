// @ts-check
"use strict";
/** Search by name or kind. */

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
      if (holdsWords(p, i, words)) matches.push(i);
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
