// The page about one label and the page about one cluster.

import { address, get, Problem } from "./api.js";
import { copyBox } from "./copying.js";
import { bar, bdi, el } from "./dom.js";
import { count, number, score, shorten, signed } from "./format.js";
import { hashOf } from "./router.js";
import { modelName } from "./store.js";

// Ids come from the address, which anybody may have typed.
function checkId(id, what) {
  if (!/^\d{1,10}$/.test(id)) throw new Problem(404, `“${shorten(id, 40)}” is not the number of a ${what}.`);
}

// Gives the title as nodes, and the parts below it.
export async function labelPage(id, signal) {
  checkId(id, "label");
  const model = modelName();
  const path = `v1/labels/${id}`;
  const label = await get(path, { model }, signal);
  const words = label.words ?? [];
  const largest = Math.max(...words.map(([, weight]) => Math.abs(weight)), Number.MIN_VALUE);
  const examples = label.examples ?? [];
  const clusters = label.clusters ?? [];
  return {
    name: [bdi(label.label)],
    parts: [
      el("p", { class: "facts-line" }, `Label ${label.id} · ${knownFrom(label)}`),
      el("p", {}, el("a", { href: hashOf(["predict"], { text: label.label, model }) }, "Predict with this name as the text")),
      el("div", { class: "cards" },
        card("Clusters", "Groups of related labels that the search goes through. The number says how firmly the label belongs to it; the strongest come first.",
          clusters.length ? el("ul", { class: "scored" }, clusters.map((cluster) => el("li", {},
            el("a", { href: hashOf(["clusters", cluster.cluster], { model }) }, `Cluster ${cluster.cluster}`),
            bar(cluster.edge_score), el("span", { class: "num" }, score(cluster.edge_score))))) : el("p", {}, "None.")),
        card("Words", "Words in a text that count most for or against this label.",
          words.length ? el("ul", { class: "scored" }, words.map(([word, weight]) => el("li", {},
            bdi(word), bar(Math.abs(weight) / largest, weight > 0 ? "for" : "against"),
            el("span", { class: "num" }, signed(weight), el("span", { class: "only-heard" }, weight > 0 ? " for" : " against")))))
            : el("p", {}, "This model weighs no single words."))),
      examples.length ? exampleCard(examples, label.n_points, model) : null,
      copyBox("This label in code", () => ({ url: address(path, { model }) })),
    ].filter(Boolean),
  };
}

// From what a model knows a label: texts of its training, texts that it learned since, or neither.
function knownFrom({ name_only: isNameOnly, n_points: n }) {
  if (!isNameOnly) return `known from ${count(n, "text")}`;
  return n ? `known by its name, and from ${count(n, "text")} learned since the training` : "known by its name only";
}

function exampleCard(examples, nPoints, model) {
  return card("Training examples", `${number(examples.length)} of ${number(nPoints)}, by their strongest words: the model does not keep their texts.`,
    el("ul", { class: "examples" }, examples.map(({ point, words }) => el("li", {},
      el("span", { class: "soft" }, `Example ${number(point + 1)}: `),
      words.length ? el("a", { href: hashOf(["predict"], { text: words.join(" "), model }), dir: "auto" }, words.join(" · ")) : "common words only"))));
}

export async function clusterPage(id, signal) {
  checkId(id, "cluster");
  const model = modelName();
  const path = `v1/clusters/${id}`;
  const cluster = await get(path, { model }, signal);
  const { labels } = cluster;
  const isPart = labels.length < cluster.n_labels;
  return {
    name: [`Cluster ${cluster.cluster}`],
    parts: [
      el("p", { class: "facts-line" }, `${count(cluster.n_labels, "label")}${isPart ? `; these are the ${number(labels.length)} that belong to it most firmly` : ""}`),
      el("p", { class: "soft" }, "A cluster is a group of labels that go with similar texts. The model learned these groups; they have no names."),
      el("ul", { class: "scored columns" }, labels.map((label) => el("li", {},
        el("a", { href: hashOf(["labels", label.id], { model }) }, bdi(label.label)),
        bar(label.edge_score), el("span", { class: "num" }, score(label.edge_score))))),
      copyBox("This cluster in code", () => ({ url: address(path, { model }) })),
    ],
  };
}

function card(title, words, ...content) {
  return el("section", { class: "card" }, el("h2", {}, title), el("p", { class: "soft" }, words), ...content);
}
