// The training examples nearest to a text.

import { bar, bdi, el } from "./dom.js";
import { number, percent, shorten } from "./format.js";
import { hashOf } from "./router.js";

const SHOWN_LABELS = 8;

export function examples(neighbours, answer, model) {
  const heading = el("h3", {}, "Similar training examples");
  if (neighbours.length === 0) {
    return el("section", {}, heading, el("p", {}, "This model keeps no training examples, or none shares words with the text."));
  }
  const has = neighbours.filter((neighbour) => neighbour.labels.includes(answer.label)).length;
  const words = `${has === 0 ? "None" : has === neighbours.length ? "All" : has} of the ${neighbours.length} nearest examples ${has === 1 ? "has" : "have"} this label.`;
  const hasTexts = neighbours.some((neighbour) => neighbour.text);
  return el("section", {}, heading, el("p", {}, words),
    el("ul", { class: "examples" }, neighbours.map((neighbour) => example(neighbour, answer, model))),
    hasTexts ? null : el("p", { class: "soft" }, "The model keeps the labels of its examples, not their texts."));
}

function example(neighbour, answer, model) {
  const names = neighbour.labels;
  const labels = names.slice(0, SHOWN_LABELS).map((name) => {
    const isIt = name === answer.label;
    return el("a", { class: isIt ? "chip chosen" : "chip", href: hashOf(["labels"], { query: name, model }) },
      bdi(shorten(name, 60)), isIt ? el("span", { class: "only-heard" }, " (this label)") : null);
  });
  const more = names.length - labels.length;
  return el("li", {},
    el("div", { class: "example-head" },
      el("span", {}, `Example ${number(neighbour.point + 1)}`),
      bar(neighbour.similarity, "plain"),
      el("span", { class: "num" }, `${percent(neighbour.similarity)} similar`)),
    neighbour.text ? el("p", { class: "example-text", dir: "auto" }, shorten(neighbour.text, 280)) : null,
    el("div", { class: "chips" }, labels, more > 0 ? el("span", { class: "soft" }, `and ${more} more`) : null));
}
