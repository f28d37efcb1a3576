// The path of a text through the clusters to a label, as a drawing and in words.

import { get } from "./api.js";
import { bdi, el } from "./dom.js";
import { drawPath } from "./drawing.js";
import { listed, score, shorten } from "./format.js";
import { hashOf } from "./router.js";
import { rankerSum } from "./why-sources.js";

export function pathSection(answer, model) {
  if (answer.members.length === 0) {
    return el("section", {}, el("p", {}, "No training example has this label. It was found by its names, synonyms and descriptions."));
  }
  const body = el("div");
  // The member whose network likes the label best comes first.
  const best = answer.members.reduce((top, member, i, all) => (member.model_score > all[top].model_score ? i : top), 0);
  const show = (i) => body.replaceChildren(...memberPath(answer, answer.members[i], model));
  show(best);
  const options = answer.members.map((_, i) => el("option", { value: i, selected: i === best }, `${i + 1} of ${answer.members.length}`));
  const picker = answer.members.length > 1
    ? el("label", { class: "picker" }, el("span", {}, "Member"), el("select", { onchange: (event) => show(Number(event.target.value)) }, options))
    : null;
  return el("section", {}, el("div", { class: "row between" }, el("h3", {}, "The path through the clusters"), picker), body);
}

function memberPath(answer, member, model) {
  const link = (cluster) => hashOf(["clusters", cluster], { model });
  const [first] = member.paths;
  if (!first) {
    return [
      el("p", {}, "The search through the clusters did not reach this label. Another source brought it in: word weights, similar examples or its name."),
      numbers(member, link),
    ];
  }
  const place = el("div", { class: "drawing" });
  let drawnAt = 0;
  // Letters keep their size: the drawing is made for the width there is.
  const observer = new ResizeObserver(([entry]) => {
    const width = Math.round(Math.min(680, Math.max(260, entry.contentRect.width)));
    if (width === drawnAt) return;
    drawnAt = width;
    place.replaceChildren(drawPath(answer, member, width, link));
  });
  observer.observe(place);
  const others = member.paths.length - 1;
  const about = el("p", { class: "soft about-cluster" });
  tellAbout(first.cluster, model, about);
  return [
    el("p", {}, "The model does not compare a text with every label. It first picks the clusters, groups of related labels, that match the text."),
    place,
    el("p", {}, "The best path goes through ", el("a", { href: link(first.cluster) }, `cluster ${first.cluster}`),
      `: the match of text and cluster is ${score(first.cluster_score)}, `, bdi(answer.label),
      ` belongs to the cluster with ${score(first.edge_score)}, and the match of text and label is ${score(member.relevance)}.`,
      others > 0 ? " Only the best path counts; the others are drawn in grey." : ""),
    about,
    numbers(member, link),
  ];
}

// A cluster has no name, so its strongest labels say what it is about. Without them nothing is lost.
async function tellAbout(cluster, model, place) {
  try {
    const { labels } = await get(`v1/clusters/${cluster}`, { model });
    const names = labels.slice(0, 5).map(({ id, label }) => el("a", { href: hashOf(["labels", id], { model }) }, bdi(shorten(label, 50))));
    if (names.length) place.append(`The strongest labels of cluster ${cluster}: `, ...listed(names), ".");
  } catch {
    place.remove();
  }
}

function numbers(member, link) {
  const rows = member.paths.map((path, i) => el("tr", {},
    el("td", {}, el("a", { href: link(path.cluster) }, `Cluster ${path.cluster}`), i === 0 ? " (counts)" : ""),
    el("td", { class: "num" }, score(path.cluster_score)),
    el("td", { class: "num" }, score(path.edge_score)),
    el("td", { class: "num" }, score(path.cluster_score * path.edge_score))));
  const facts = [
    ["Shortlist score ŷ, of the best path", score(member.shortlist_score)],
    ["Relevance σ, of the label’s own classifier", score(member.relevance)],
    ["Network’s score p = σ · ŷ", score(member.model_score)],
    ["Place among the network’s labels", member.place === null ? "not in its shortlist" : String(member.place)],
    member.ranker ? ["Word weights: score q", score(member.ranker.score)] : null,
    member.ranker ? ["Word weights: sum", rankerSum(member.ranker)] : null,
    ["Final score of this member", member.score === null ? "not a candidate" : score(member.score)],
  ].filter(Boolean);
  return el("details", {}, el("summary", {}, "All numbers"),
    rows.length ? el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Path through"), el("th", { scope: "col", class: "num" }, "Match ŝ"),
        el("th", { scope: "col", class: "num" }, "Edge"), el("th", { scope: "col", class: "num" }, "Product"))),
      el("tbody", {}, rows)) : null,
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
}
