"use strict";
// Tooltips: elements with data-t show it on hover and on touch.
const tip = document.getElementById("tip");
function showTip(event) {
  const mark = event.target.closest("[data-t]");
  if (!mark) { tip.hidden = true; return; }
  tip.textContent = mark.dataset.t;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, innerWidth - width - 8);
  const top = event.clientY + 16 + height < innerHeight ? event.clientY + 16 : event.clientY - height - 12;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = Math.max(4, top) + "px";
}
addEventListener("pointermove", showTip);
addEventListener("pointerdown", showTip);
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

// Tables: the rows are JSON in the page; the first ones are drawn, searching and sorting finds the others.
const STEP = 50;
function table(id, columns, rows) {
  const root = document.getElementById(id);
  const body = root.querySelector("tbody"), search = root.querySelector("input");
  const more = root.querySelector("button.more"), status = root.querySelector(".status");
  let shown = rows, n = STEP, sorted = { at: -1, up: false };
  const keys = rows.map(row => columns.map(c => c.find ? c.find(row) : "").join("\n").toLowerCase());
  function draw() {
    body.replaceChildren(...shown.slice(0, n).map(row => {
      const tr = document.createElement("tr");
      for (const column of columns) {
        const td = document.createElement("td");
        if (column.style) td.className = column.style;
        const cell = column.show(row);
        if (cell instanceof Node) td.append(cell); else td.textContent = cell;
        tr.append(td);
      }
      return tr;
    }));
    status.textContent = shown.length + " of " + rows.length + (n < shown.length ? ", first " + n + " shown" : "");
    more.hidden = shown.length <= n;
  }
  function update() {
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    rows.forEach((row, at) => { if (words.every(word => keys[at].includes(word))) found.push(row); });
    const { at, up } = sorted;
    if (at >= 0) {
      const value = columns[at].sort || columns[at].show;
      found.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        const order = typeof x === "number" ? x - y : String(x).localeCompare(String(y));
        return up ? order : -order;
      });
    }
    shown = found; n = STEP; draw();
  }
  root.querySelectorAll("th").forEach((th, at) => {
    th.querySelector("button").addEventListener("click", () => {
      const first = typeof (columns[at].sort || columns[at].show)(rows[0] || []) !== "number";
      sorted = { at, up: sorted.at === at ? !sorted.up : first };
      root.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
      th.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
      update();
    });
  });
  search.addEventListener("input", update);
  more.addEventListener("click", () => { n += 4 * STEP; draw(); });
  draw();
  return { find(text) { search.value = text; update(); root.scrollIntoView({ behavior: "smooth" }); } };
}

const data = JSON.parse(document.getElementById("data").textContent);
let clusterTable;
// Clusters of a label that are shown at once, the strongest first; a frequent label is in a hundred.
const SHOWN = 4;
function clusterLinks(clusters) {
  const span = document.createElement("span");
  span.className = "links";
  const add = (text, onClick) => {
    const button = document.createElement("button");
    button.className = "link";
    button.textContent = text;
    button.addEventListener("click", onClick);
    span.append(button, " ");
    return button;
  };
  const show = some => some.forEach(cluster => add("#" + cluster, () => clusterTable.find("#" + cluster + ";")));
  show(clusters.slice(0, SHOWN));
  const others = clusters.slice(SHOWN);
  if (others.length > 0) {
    const more = add("+" + others.length, () => { more.remove(); show(others); });
  }
  return span;
}
const names = data.names;
const percent = values => ({ show: at => values[at] === null ? "–" : values[at] + "\u00a0%", sort: at => values[at] ?? -1 });
// A label: name, training points, clusters, test points, precision and recall at the threshold, found.
table("label-table", [
  { show: at => names[at], find: at => names[at], style: "name" },
  { show: at => data.points[at] },
  { show: at => clusterLinks(data.clusters[at]), sort: at => data.clusters[at].length },
  { show: at => data.pairs[at] },
  percent(data.precision),
  percent(data.recall),
  { show: at => data.pairs[at] ? (100 * data.found[at] / data.pairs[at]).toFixed(0) + "\u00a0%" : "–",
    sort: at => data.pairs[at] ? data.found[at] / data.pairs[at] : -1 },
], data.rows);
const clusterRows = data.strongest.map((_, at) => at);
clusterTable = table("cluster-table", [
  { show: at => "#" + at, find: at => "#" + at + ";", sort: at => at },
  { show: at => data.sizes[at] },
  { show: at => data.members[at] },
  { show: at => data.strongest[at].join(", "), find: at => data.strongest[at].join(" "), style: "words" },
  { show: at => data.words[at].join(", "), find: at => data.words[at].join(" "), style: "words" },
], clusterRows);
