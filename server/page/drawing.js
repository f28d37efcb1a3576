// A drawing of the paths from a text through clusters to a label. Thick lines are high scores.

import { svg } from "./dom.js";
import { score, shorten } from "./format.js";

const ROW = 40;
const TOP = 34;
const BOX = 28;

// `width` is in CSS pixels; `link` gives the address of a cluster.
export function drawPath(answer, member, width, link) {
  const { paths } = member;
  const isNarrow = width < 420;
  const textWidth = isNarrow ? 40 : 64;
  const clusterWidth = isNarrow ? 80 : 96;
  const labelWidth = isNarrow ? 92 : Math.min(190, Math.round(width * 0.27));
  const height = TOP + Math.max(2, paths.length) * ROW;
  const middle = TOP + (height - TOP) / 2;
  const clusterX = textWidth + (width - textWidth - clusterWidth - labelWidth) / 2;
  const labelX = width - labelWidth;
  const rowY = (i) => TOP + (height - TOP) * ((i + 0.5) / paths.length);

  const lines = [];
  const words = [];
  const boxes = [];
  // The best path is drawn last, above the others.
  for (const [i, path] of Array.from(paths.entries()).reverse()) {
    const y = rowY(i);
    const kind = i === 0 ? "best" : "other";
    lines.push(
      curve(textWidth, middle, clusterX, y, path.cluster_score, kind),
      curve(clusterX + clusterWidth, y, labelX, middle, path.edge_score, kind));
    words.push(
      number(clusterX - 6, y - 6, path.cluster_score, kind, "end"),
      number(clusterX + clusterWidth + 6, y - 6, path.edge_score, kind, "start"));
    boxes.push(svg("a", { href: link(path.cluster) }, box(clusterX, y, clusterWidth, `Cluster ${path.cluster}`, kind)));
  }
  const shown = shorten(answer.label, Math.floor((labelWidth - 10) / 7));
  const label = box(labelX, middle, labelWidth, shown, "best", `σ ${score(member.relevance)}`);
  label.prepend(svg("title", {}, answer.label));
  return svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, class: "path-drawing", role: "group",
    "aria-label": "The paths from the text through the clusters to the label; the numbers are also in the table below",
  },
  svg("text", { x: clusterX - 6, y: 14, class: "head", "text-anchor": "end" }, isNarrow ? "match ŝ" : "text matches (ŝ)"),
  svg("text", { x: clusterX + clusterWidth + 6, y: 14, class: "head" }, isNarrow ? "edge" : "label belongs (edge)"),
  lines, box(0, middle, textWidth, "Text", "best"), boxes.reverse(), label, words);
}

function curve(x1, y1, x2, y2, value, kind) {
  const bend = (x2 - x1) * 0.5;
  const d = `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  return svg("path", { d, class: `way ${kind}`, "stroke-width": (1 + 4 * Math.min(1, Math.max(0, value))).toFixed(1) });
}

function number(x, y, value, kind, anchor) {
  return svg("text", { x, y, class: `value ${kind}`, "text-anchor": anchor }, value.toFixed(2));
}

function box(x, y, width, name, kind, below) {
  const middle = x + width / 2;
  return svg("g", { class: `node ${kind}` },
    svg("rect", { x: x + 0.5, y: y - BOX / 2, width: width - 1, height: BOX, rx: 8 }),
    svg("text", { x: middle, y: y + 4.5, "text-anchor": "middle" }, name),
    below ? svg("text", { x: middle, y: y + BOX / 2 + 15, "text-anchor": "middle", class: "below" }, below) : null);
}
