// The part of each source in an answer: how the score would change without it.

import { bar, el } from "./dom.js";
import { percent, score, signed } from "./format.js";

const SOURCES = [
  ["without_network", "The network", "has learned which groups of labels, and which labels in them, go with such texts."],
  ["without_ranker", "Word weights", "count single words of the text for or against the label."],
  ["without_neighbours", "Similar examples", "are training texts with the same words, and the labels they have."],
  ["without_names", "Label names", "are compared with the words of the text."],
];

// Differences below this are not worth a word.
const SMALL = 0.0005;

export function sources(answer) {
  const heading = el("h3", {}, "Where the score comes from");
  const members = answer.members.map((member) => member.sources).filter(Boolean);
  if (members.length === 0) return el("section", {}, heading, ...products(answer));
  const mean = (name) => members.reduce((sum, member) => sum + member[name], 0) / members.length;
  const all = mean("score");
  const rows = SOURCES.map(([key, name, words]) => ({ name, words, without: mean(key), change: all - mean(key) }));
  const largest = Math.max(SMALL, ...rows.map((row) => Math.abs(row.change)));
  const items = rows.map(({ name, words, without, change }) => {
    const isSmall = Math.abs(change) < SMALL;
    const effect = isSmall ? "makes no difference" : change > 0 ? "raises it" : "lowers it";
    const kind = change > 0 ? "for" : "against";
    return el("li", { class: "source" },
      el("span", { class: "source-name", title: `${name} ${words}` }, name),
      el("span", { class: "source-effect" }, isSmall ? effect : `${effect} by ${score(Math.abs(change))}`),
      bar(isSmall ? 0 : Math.abs(change) / largest, kind),
      el("span", { class: "soft source-without" }, `without: ${score(without)}`));
  });
  const many = members.length > 1 ? ` These are means over the ${members.length} members of the model.` : "";
  return el("section", {}, heading,
    el("p", {}, `With all sources the score is ${score(all)}. Each line shows how one of them changes it.`),
    el("ul", { class: "sources" }, items),
    ...facts(answer),
    el("details", {}, el("summary", {}, "What these sources are"),
      el("ul", { class: "plain" }, SOURCES.map(([, name, words]) => el("li", {}, el("strong", {}, name), ` ${words}`))),
      el("p", { class: "soft" }, `The sources can outweigh each other, so the differences do not add up to the score.${many}`)));
}

// A model without boosted trees multiplies, or looks up, the scores of the network and the ranker.
function products(answer) {
  const lines = answer.members.map((member, i) => {
    const who = answer.members.length > 1 ? `Member ${i + 1}: ` : "";
    const ranker = member.ranker ? `, the word weights ${score(member.ranker.score)}` : "";
    return el("li", {}, `${who}the network gives it ${score(member.model_score)}${ranker}; together ${score(member.score)}.`);
  });
  return [el("ul", { class: "plain" }, lines), ...facts(answer)];
}

function facts(answer) {
  const { name, votes } = answer;
  const said = [];
  if (name) {
    said.push(`The text contains ${percent(name.contained)} of the label’s name.`);
  }
  if (votes) {
    said.push(`Training texts with similar words have this label; the nearest is ${percent(votes.nearest)} similar.`);
  } else {
    said.push("None of the training texts with similar words has this label.");
  }
  const numbers = [
    votes ? `votes ${score(votes.score)}, nearest ${score(votes.nearest)}` : null,
    name ? `name: cosine ${score(name.cosine)}, contained ${score(name.contained)}` : null,
  ].filter(Boolean);
  return [el("p", {}, said.join(" "), numbers.length ? el("span", { class: "soft" }, ` (${numbers.join("; ")})`) : null)];
}

// The ranker's sum for those who want to add it up.
export function rankerSum(ranker) {
  const words = ranker.margin - ranker.embedding - ranker.intercept;
  return `${signed(words)} words ${signed(ranker.embedding)} embedding ${signed(ranker.intercept)} start = ${signed(ranker.margin)}`;
}
