// Why an answer: the panel with its words, sources, path and examples. It stands beside the answers where there is
// room, and below the chosen answer where there is not.

import { address, post } from "./api.js";
import { valueText } from "./answers.js";
import { copyBox } from "./copying.js";
import { announce, bdi, el, problem } from "./dom.js";
import { count, listed, signed } from "./format.js";
import { hashOf } from "./router.js";
import { modelName } from "./store.js";
import { sources } from "./why-sources.js";
import { pathSection } from "./why-path.js";
import { examples } from "./why-examples.js";
import { termsOf, weigh } from "./words.js";

const wide = matchMedia("(min-width: 1000px)");

// `close` is called when the user leaves the panel.
export function whyPanel(signal, close) {
  const node = el("section", { class: "why", "aria-live": "off" });
  const hint = el("div", { class: "why-hint soft" },
    el("p", {}, "Choose an answer to see why the model gives it: the words that count for it, its path through the clusters, and similar examples."));
  let pending = null;
  let shownFor = null;
  let places = [null, null];

  node.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  wide.addEventListener("change", () => settle(), { signal });
  const sized = new ResizeObserver(() => cue(places[0]));
  sized.observe(node);
  signal.addEventListener("abort", () => sized.disconnect());

  function settle() {
    const [aside, below] = places;
    const home = below && !wide.matches ? below : aside;
    const child = below ? node : hint;
    if (home && child.parentNode !== home) {
      // Moving an element takes its focus away.
      const focused = node.contains(document.activeElement) ? document.activeElement : null;
      home.replaceChildren(child);
      focused?.focus({ preventScroll: true });
    }
    if (home !== aside) aside?.replaceChildren();
    cue(aside);
  }

  return {
    node,
    // Says where the panel may stand: beside the answers, or below one; without the latter there is only a hint.
    place(aside, below) {
      places = [aside, below];
      settle();
    },
    clear() {
      pending?.abort();
      shownFor = null;
      node.replaceChildren();
    },
    async show(body, answer, question) {
      const wanted = `${question} ${answer.id}`;
      if (wanted === shownFor) return;
      shownFor = wanted;
      pending?.abort();
      pending = new AbortController();
      const mine = pending;
      node.setAttribute("aria-busy", "true");
      if (!node.firstChild) node.replaceChildren(el("p", { class: "soft" }, "Looking for the reasons…"));
      try {
        const explanation = await explain(body, question, AbortSignal.any([mine.signal, signal]));
        if (mine !== pending || shownFor !== wanted) return;
        const found = explanation.answers.find((one) => one.id === answer.id) ?? explanation.answers.find((one) => one.label === answer.label);
        node.replaceChildren(...(found ? sections(explanation, found, body, close) : [gone(answer)]));
        announce(`Why ${answer.label}: the reasons are shown.`);
      } catch (error) {
        if (error.name === "AbortError" || mine !== pending) return;
        shownFor = null;
        node.replaceChildren(problem(error, () => this.show(body, answer, question)));
      } finally {
        if (mine === pending) node.setAttribute("aria-busy", "false");
      }
    },
  };
}

// Shows whether there is more below what is seen of the panel.
export function cue(aside) {
  if (!aside) return;
  const hidden = aside.scrollHeight - aside.clientHeight - aside.scrollTop;
  aside.classList.toggle("more", hidden > 8);
}

// The answers to one question are explained together, so another click needs no second request.
let last = { question: null, explanation: null };

async function explain(body, question, signal) {
  if (last.question !== question) {
    const explanation = await post("v1/explain", body, signal);
    last = { question, explanation };
  }
  return last.explanation;
}

function gone(answer) {
  return el("p", {}, "The model was replaced a moment ago and no longer gives the answer ", bdi(answer.label), ". Ask again.");
}

function sections(explanation, answer, body, close) {
  const model = modelName();
  const id = answer.id;
  const title = el("h2", { tabindex: "-1" }, "Why ", bdi(answer.label), "?");
  const label = el("a", { href: hashOf(["labels", id], { model }) }, "More about this label");
  const request = () => ({ url: address("v1/explain"), body });
  return [
    el("div", { class: "why-head" }, title,
      el("button", { class: "icon-button", type: "button", "aria-label": "Close the reasons", onclick: close }, "✕")),
    el("p", { class: "why-sum" }, el("strong", {}, valueText(answer)), " · learned from ", count(answer.n_points, "example"), " · ", label),
    wordSection(explanation.text ?? body.text, answer),
    sources(answer),
    pathSection(answer, model),
    examples(explanation.neighbours ?? [], answer, model),
    copyBox("This explanation in code", request),
  ];
}

function wordSection(text, answer) {
  const terms = termsOf(answer);
  const counting = (isFor) => terms.filter(([, weight]) => (weight > 0) === isFor).slice(0, 3)
    .map(([word]) => el("q", { dir: "auto" }, word));
  const [pro, contra] = [counting(true), counting(false)];
  const said = [];
  if (pro.length) said.push(...listed(pro), pro.length === 1 ? " counts" : " count", " for it");
  if (contra.length) said.push(pro.length ? "; " : "", ...listed(contra), contra.length === 1 ? " counts" : " count", " against it");
  const heading = el("h3", {}, "Words in the text");
  if (terms.length === 0) {
    return el("section", {}, heading, el("p", {}, "No single word of the text counts for or against this label."));
  }
  const largest = Math.abs(terms[0][1]);
  const pieces = weigh(text, terms).map(({ text: piece, weight }) => {
    if (weight === null || weight === 0) return piece;
    const strength = Math.min(1, Math.abs(weight) / largest);
    return el("mark", {
      class: weight > 0 ? "for" : "against",
      title: `${weight > 0 ? "counts for it" : "counts against it"}: ${signed(weight)}`,
      style: { "--strength": `${Math.round(15 + 70 * strength)}%` },
    }, piece);
  });
  const rows = terms.map(([word, weight]) => el("tr", {},
    el("td", {}, bdi(word)), el("td", {}, weight > 0 ? "for" : "against"), el("td", { class: "num" }, signed(weight))));
  return el("section", {}, heading,
    el("p", {}, said, "."),
    el("p", { class: "weighed", dir: "auto" }, pieces),
    el("p", { class: "legend soft" }, el("mark", { class: "for", style: { "--strength": "60%" } }, "counts for it"), " ",
      el("mark", { class: "against", style: { "--strength": "60%" } }, "counts against it"), " The stronger the colour, the greater the weight."),
    el("details", {}, el("summary", {}, "Weights of the words"),
      el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Word"), el("th", { scope: "col" }, "Counts"),
        el("th", { scope: "col", class: "num" }, "Weight"))), el("tbody", {}, rows))));
}
