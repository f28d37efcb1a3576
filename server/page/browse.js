// Looking around in a model: lists of labels and clusters, and a page about each of them.

import { get } from "./api.js";
import { announce, bdi, debounce, el, problem } from "./dom.js";
import { count, number, shorten } from "./format.js";
import { clusterPage, labelPage } from "./pages.js";
import { hashOf, natural, parseHash, replaceHash } from "./router.js";
import { modelName } from "./store.js";

const PER_PAGE = 50;

// Orders that a list can have, in the words of the API, and how a table says so.
const SORTS = { id: ["ascending", "▲"], name: ["ascending", "▲"], count: ["descending", "▼"] };

const LISTS = {
  labels: {
    title: "Labels", one: "label", path: "v1/labels", rows: "labels", hint: "Part of a label’s name",
    heads: [["Label", "", "name"], ["Training examples", "num", "count"]],
    row: (label, model) => [
      el("td", { class: "name" }, el("a", { href: hashOf(["labels", label.id], { model }) }, bdi(label.label))),
      el("td", { class: "num" }, number(label.n_points))],
  },
  clusters: {
    title: "Clusters", one: "cluster", path: "v1/clusters", rows: "clusters", hint: "Part of the name of a strong label in it",
    heads: [["Cluster", "", "id"], ["Labels", "num", "count"], ["Strongest labels", "", "name"]],
    row: (cluster, model) => [
      el("td", {}, el("a", { href: hashOf(["clusters", cluster.cluster], { model }) }, `Cluster ${cluster.cluster}`)),
      el("td", { class: "num" }, number(cluster.n_labels)),
      el("td", { class: "name soft" }, cluster.labels.slice(0, 5).flatMap((name, i) => [i ? ", " : "", bdi(shorten(name, 50))]))],
  },
};

export function mount(route, signal) {
  const [kind, id] = route.path;
  if (id === undefined) return new ListView(kind, signal);
  const node = el("div", { class: "browse" });
  const heading = el("h1", { tabindex: "-1" }, kind === "labels" ? "Label" : "Cluster");
  const content = el("div", { "aria-busy": "true" }, el("p", { class: "soft loading" }, "Loading…"));
  const back = el("a", { href: hashOf([kind], { model: modelName() }) }, kind === "labels" ? "All labels" : "All clusters");
  node.append(el("p", { class: "back" }, "← ", back), heading, content);
  let title = heading.textContent;
  const load = async () => {
    try {
      const page = kind === "labels" ? labelPage : clusterPage;
      const { name, parts } = await page(id, signal);
      heading.replaceChildren(...name);
      title = shorten(heading.textContent, 60);
      document.title = `${title} · elias`;
      content.replaceChildren(...parts);
    } catch (error) {
      if (error.name === "AbortError") return;
      content.replaceChildren(problem(error, load));
    }
    content.setAttribute("aria-busy", "false");
  };
  return { node, ready: load, title: () => title };
}

class ListView {
  constructor(kind, signal) {
    this.kind = kind;
    this.list = LISTS[kind];
    this.signal = signal;
    this.searchSoon = debounce(() => this.search(), 200);
    signal.addEventListener("abort", () => this.searchSoon.cancel());
    this.input = el("input", {
      type: "search", id: "search", placeholder: this.list.hint, autocomplete: "off", spellcheck: "false", dir: "auto",
      oninput: () => this.searchSoon(),
    });
    this.content = el("div", { "aria-busy": "true" }, el("p", { class: "soft loading" }, "Loading…"));
    const tabs = Object.entries(LISTS).map(([name, list]) => el("a", {
      href: hashOf([name], { model: modelName() }), "aria-current": name === kind ? "page" : null,
    }, list.title));
    this.node = el("div", { class: "browse" },
      el("h1", { tabindex: "-1" }, this.list.title),
      el("nav", { class: "subtabs", "aria-label": "What to browse" }, tabs),
      el("search", {}, el("label", { class: "field" }, el("span", {}, `Search ${this.list.title.toLowerCase()}`), this.input)),
      this.content);
    this.ready = () => this.update();
  }

  title() {
    return this.list.title;
  }

  // Takes over an address; false if it needs another view.
  update(route = null) {
    const { path, query } = route ?? parseHash(location.hash);
    if (path[0] !== this.kind || path.length > 1) return false;
    const text = query.get("query") ?? "";
    if (this.input.value !== text) this.input.value = text;
    this.offset = natural(query, "offset", 0);
    const sort = query.get("sort") ?? "id";
    this.sort = SORTS[sort] ? sort : "id";
    const isPaging = route !== null && this.shown !== undefined;
    this.load(isPaging);
    return true;
  }

  address(offset, sort = this.sort) {
    return hashOf([this.kind], { query: this.input.value, offset: offset || null, sort: sort === "id" ? null : sort, model: modelName() });
  }

  // The head of a column, which sorts by it; a second click brings back the order of the model.
  head([name, kind, sort]) {
    const isIt = this.sort === sort;
    const [order, arrow] = SORTS[sort];
    return el("th", { scope: "col", class: kind, "aria-sort": isIt ? order : null },
      el("a", { href: this.address(0, isIt ? "id" : sort) }, name, isIt ? el("span", { "aria-hidden": "true" }, ` ${arrow}`) : null));
  }

  search() {
    this.offset = 0;
    replaceHash(this.address(0));
    this.load(false);
  }

  async load(isPaging) {
    this.pending?.abort();
    const pending = new AbortController();
    this.pending = pending;
    this.content.setAttribute("aria-busy", "true");
    const query = { query: this.input.value.trim(), limit: PER_PAGE, offset: this.offset, sort: this.sort === "id" ? null : this.sort, model: modelName() };
    try {
      const found = await get(this.list.path, query, AbortSignal.any([pending.signal, this.signal]));
      if (this.pending !== pending) return;
      this.shown = found;
      this.show(found);
      announce(count(found.total, this.list.one));
      if (isPaging) {
        scrollTo(0, 0);
        this.node.querySelector("h1").focus({ preventScroll: true });
      }
    } catch (error) {
      if (error.name === "AbortError" || this.pending !== pending) return;
      this.content.replaceChildren(problem(error, () => this.load(false)));
    } finally {
      if (this.pending === pending) this.content.setAttribute("aria-busy", "false");
    }
  }

  show(found) {
    const rows = found[this.list.rows];
    const last = this.offset + rows.length;
    if (rows.length === 0) {
      const words = this.offset > 0 ? "There is nothing this far down the list." : `No ${this.list.one} matches. Try a shorter part of the name.`;
      const first = this.offset > 0 ? el("a", { href: this.address(0) }, "Go to the first page") : null;
      return this.content.replaceChildren(el("p", {}, words, " ", first));
    }
    const heads = this.list.heads.map((head) => this.head(head));
    const model = modelName();
    this.content.replaceChildren(
      el("p", { class: "soft" }, `${number(this.offset + 1)}–${number(last)} of ${count(found.total, this.list.one)}`),
      el("table", { class: `list ${this.kind}` }, el("caption", { class: "only-heard" }, this.list.title),
        el("thead", {}, el("tr", {}, heads)),
        el("tbody", {}, rows.map((row) => el("tr", {}, this.list.row(row, model))))),
      pager(this.offset, PER_PAGE, found.total, (offset) => this.address(offset)));
  }
}

// Links to the pages before and after.
function pager(offset, size, total, address) {
  if (total <= size && offset === 0) return el("span");
  const link = (words, to, isThere) => (isThere
    ? el("a", { class: "button", href: address(to) }, words)
    : el("span", { class: "button off", "aria-hidden": "true" }, words));
  const pages = Math.ceil(total / size);
  return el("nav", { class: "pager", "aria-label": "Pages" },
    link("First", 0, offset > 0),
    link("Previous", Math.max(0, offset - size), offset > 0),
    el("span", { class: "soft" }, `Page ${number(Math.floor(offset / size) + 1)} of ${number(pages)}`),
    link("Next", offset + size, offset + size < total),
    link("Last", (pages - 1) * size, offset + size < total));
}
