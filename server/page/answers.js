// A list of answers with bars, best first.

import { bar, bdi, el } from "./dom.js";
import { count, percent, score } from "./format.js";
import { hasProbabilities, store } from "./store.js";

function hasProbability(answer) {
  return answer.probability !== null && answer.probability !== undefined;
}

// What the threshold compares: the probability, or the score where there is none.
export function valueOf(answer) {
  return answer.probability ?? answer.score;
}

// The value in words: "48%", or the score where there is no probability.
export function valueText(answer) {
  return hasProbability(answer) ? percent(answer.probability) : score(answer.score);
}

// The visible answers of `nAll`, each with what `beside` makes for it. Gives the node, and by label id the button and the
// place below it.
export function answerList(visible, nAll, choose, beside = () => null) {
  const items = new Map();
  const rows = visible.map((answer) => {
    const holder = el("div", { class: "why-below", id: `why-${answer.id}` });
    const kind = hasProbability(answer) ? "" : "score";
    const button = el("button", {
      class: "answer", type: "button", "data-id": answer.id, "aria-expanded": "false", onclick: () => choose(answer),
    },
    el("span", { class: "answer-name" }, bdi(answer.label)),
    el("span", { class: "answer-value" }, valueText(answer)),
    bar(valueOf(answer), kind));
    items.set(answer.id, { answer, button, holder });
    return el("li", {}, button, beside(answer), holder);
  });
  const list = el("ol", { class: "answer-list", onkeydown: moveFocus }, rows);
  const hidden = nAll - visible.length;
  const isSure = hasProbabilities();
  const notes = [];
  if (nAll === 0) notes.push("The model has no answer for this text.");
  if (hidden > 0) {
    const which = visible.length ? `${count(hidden, "more answer")} ${hidden === 1 ? "is" : "are"}` : "All answers are";
    notes.push(`${which} below the threshold.`);
  }
  if (!isSure) {
    const why = store.model?.why_no_probabilities;
    notes.push(`This model has no probabilities${why ? ` (${why})` : ""}. The bars are scores: they put the answers in order, but do not say how often they are right.`);
  } else if (visible.length) {
    notes.push("The percentage shows how often such an answer is right. Choose an answer to see why.");
  }
  const node = el("div", {}, visible.length ? list : null, notes.map((words) => el("p", { class: "soft note" }, words)));
  return { node, items };
}

// The arrow keys move between answers, as Tab does.
function moveFocus(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !event.target.classList.contains("answer")) return;
  const buttons = Array.from(event.currentTarget.querySelectorAll("button.answer"));
  const next = buttons[buttons.indexOf(event.target) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
