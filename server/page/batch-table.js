// The answers to many texts, a page at a time: the table never has more than a page of rows.

import { address } from "./api.js";
import { valueOf, valueText } from "./answers.js";
import { copyBox } from "./copying.js";
import { bdi, el } from "./dom.js";
import { number, shorten } from "./format.js";
import { hashOf } from "./router.js";

const PER_PAGE = 25;
const SHOWN_LABELS = 10;
const MAX_LINKED = 20_000;

// `fill` shows what has been answered since, from `threshold()` on. `turned` hears of the page that the user goes to.
export function resultTable(run, first, threshold, turned) {
  const nPages = Math.max(1, Math.ceil(run.rows.length / PER_PAGE));
  const hasIds = run.rows.some((row) => row.id !== null);
  let page = Math.min(first, nPages - 1);
  const body = el("tbody");
  const words = el("span", { class: "soft" });
  const button = (name, to) => el("button", { class: "button", type: "button", onclick: () => turn(to()) }, name);
  const back = [button("First", () => 0), button("Previous", () => page - 1)];
  const forth = [button("Next", () => page + 1), button("Last", () => nPages - 1)];
  const pager = el("nav", { class: "pager", "aria-label": "Pages of the table" }, back, words, forth);
  const model = run.settings.model;
  const copies = copyBox("This page of texts in code", () => ({
    url: address("v1/predict"),
    body: { texts: pageRows().map((row) => row.text), ...run.settings, ...(threshold() > 0 ? { threshold: threshold() } : {}) },
  }));
  const table = el("table", { class: "list results" },
    el("caption", { class: "only-heard" }, "Texts and their labels"),
    el("thead", {}, el("tr", {}, ...[hasIds ? "Id" : "Row (from 0)", "Text", "Labels"].map((name) => el("th", { scope: "col" }, name)))),
    body);
  const node = el("div", {}, table, nPages > 1 ? pager : null, copies);
  let filled = null;
  fill();
  return { node, fill };

  function pageRows() {
    return run.rows.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
  }

  function turn(to) {
    page = Math.min(nPages - 1, Math.max(0, to));
    turned(page);
    fill();
  }

  function fill() {
    const start = page * PER_PAGE;
    const nAnswered = pageRows().filter((_, i) => run.results[start + i]).length;
    const drawn = `${page} ${nAnswered} ${threshold()}`;
    if (drawn === filled) return;
    filled = drawn;
    copies.forget();
    body.replaceChildren(...pageRows().map((row, i) => resultRow(row, start + i)));
    words.textContent = `Page ${number(page + 1)} of ${number(nPages)}`;
    // A button that is switched off loses the focus, so it is only marked.
    for (const one of back) one.setAttribute("aria-disabled", String(page === 0));
    for (const one of forth) one.setAttribute("aria-disabled", String(page === nPages - 1));
  }

  function resultRow(row, i) {
    const result = run.results[i];
    return el("tr", {},
      el("td", { class: "id", title: hasIds ? row.id : null }, hasIds ? bdi(shorten(row.id ?? "", 24)) : number(i)),
      el("td", { class: "text" }, textCell(row.text, model)),
      el("td", { class: "labels" }, cells(result, threshold())));
  }
}

// The text leads to its reasons, unless it is too long for an address.
function textCell(text, model) {
  const words = shorten(text, 140);
  if (words === "") return el("span", { class: "soft" }, "(empty)");
  if (text.length > MAX_LINKED) return el("span", { dir: "auto" }, words);
  return el("a", { href: hashOf(["predict"], { text, model }), dir: "auto" }, words);
}

function cells(result, threshold) {
  if (!result) return el("span", { class: "soft" }, "waiting");
  if (result.error) return el("span", { class: "problem" }, `Not labelled: ${result.error}`);
  const labels = result.labels.filter((label) => valueOf(label) >= threshold);
  if (labels.length === 0) return el("span", { class: "soft" }, "no answer above the threshold");
  const shown = labels.slice(0, SHOWN_LABELS).map((label) => el("span", { class: "chip" },
    bdi(shorten(label.label, 60)), " ", el("span", { class: "soft num" }, valueText(label))));
  const more = labels.length - shown.length;
  return el("div", { class: "chips" }, shown, more > 0 ? el("span", { class: "soft" }, `and ${more} more`) : null);
}
