// Texts to begin with. A model keeps no texts, only the words of its training examples: those of frequent labels.

import { get } from "./api.js";
import { el } from "./dom.js";
import { modelName } from "./store.js";

const N_TEXTS = 3;
const N_WORDS = 8;

// The texts of a model, by its name; they stay the same.
const known = new Map();

async function load(model, signal) {
  const { labels } = await get("v1/labels", { sort: "count", limit: N_TEXTS, model }, signal);
  const details = await Promise.all(labels.map(({ id }) => get(`v1/labels/${id}`, { model }, signal)));
  const texts = details.map(({ label, examples }, i) => examples[i]?.words.slice(0, N_WORDS).join(" ") || label);
  return Array.from(new Set(texts));
}

// Buttons that `take` a text; they appear once the server has answered, and not at all if it cannot.
export function exampleTexts(signal, take) {
  const node = el("div", { class: "chips" });
  const model = modelName();
  const show = (texts) => {
    const buttons = texts.map((text) => el("button", { class: "chip", type: "button", dir: "auto", onclick: () => take(text) }, text));
    node.replaceChildren(el("span", { class: "soft" }, "Or try words of training examples:"), ...buttons);
  };
  if (known.has(model)) show(known.get(model));
  else load(model, signal).then((texts) => { known.set(model, texts); show(texts); }, () => {});
  return node;
}
