// The page's table of contents: the shared parts, then the view that the address names.

import { Problem } from "./api.js";
import * as batch from "./batch.js";
import * as browse from "./browse.js";
import { announce, el, problem } from "./dom.js";
import { count } from "./format.js";
import * as predict from "./predict.js";
import { hashOf, parseHash, replaceHash } from "./router.js";
import { choose, load, modelName, store } from "./store.js";

// The first part of an address, and the view that shows it.
const VIEWS = { predict, labels: browse, clusters: browse, batch };
const NAMES = new Map([[predict, "predict"], [browse, "browse"], [batch, "batch"]]);

const main = document.getElementById("main");
let shown = null;
let isFirst = true;

start();

async function start() {
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  setUpTheme();
  setUpPicker();
  addEventListener("hashchange", show);
  await connect();
}

async function connect() {
  main.replaceChildren(el("p", { class: "soft loading" }, "Loading…"));
  try {
    await load();
    if (store.models.length === 0) throw new Problem(503, "It has no model yet.");
  } catch (error) {
    main.replaceChildren(el("h1", { class: "only-heard" }, "elias"), problem(error, connect));
    return;
  }
  fillPicker();
  show();
}

// Shows what the address names; a view that is shown already only hears of the new address.
function show() {
  if (!store.model) return;
  const route = parseHash(location.hash);
  const view = VIEWS[route.path[0]] ?? predict;
  const name = route.query.get("model");
  const notice = document.getElementById("notice");
  notice.hidden = !name || choose(name);
  if (!notice.hidden) notice.textContent = `There is no model “${name}” on this server; this is ${store.model.name}.`;
  document.getElementById("model").value = store.model.name;
  showAbout();
  if (modelName() && name !== modelName()) {
    route.query.set("model", modelName());
    replaceHash(hashOf(route.path.length ? route.path : ["predict"], Object.fromEntries(route.query)));
  }
  if (shown?.view === view && shown.handle.update?.(route)) return mark(view);
  if (shown?.view === predict) document.querySelector(".tabs a").href = predict.lastHash();
  shown?.stop.abort();
  const stop = new AbortController();
  shown = { view, stop, handle: view.mount(route, stop.signal) };
  main.replaceChildren(shown.handle.node);
  shown.handle.ready?.();
  mark(view);
  // A new view begins at its top, also for those who do not see it.
  if (!isFirst) {
    scrollTo(0, 0);
    main.querySelector("h1")?.focus({ preventScroll: true });
  }
  isFirst = false;
}

// Marks the view in the navigation. The way back to the first view leads to the text that was typed there.
function mark(view) {
  for (const link of document.querySelectorAll(".tabs a")) {
    const isHere = link.dataset.view === NAMES.get(view);
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${shown.handle.title?.() ?? "elias"} · elias`;
}

function setUpPicker() {
  document.getElementById("model").addEventListener("change", (event) => {
    choose(event.target.value);
    const { path, query } = parseHash(location.hash);
    // Labels and clusters are numbered per model, so a page about one of them leads back to its list.
    const isAboutOne = path.length > 1;
    const kept = isAboutOne ? {} : Object.fromEntries(query);
    delete kept.offset;
    delete kept.why;
    location.hash = hashOf(path.slice(0, 1).length ? path.slice(0, 1) : ["predict"], { ...kept, model: modelName() });
    announce(`Model ${store.model.name}`);
  });
}

function fillPicker() {
  const options = store.models.map((model) => el("option", { value: model.name }, model.name));
  document.getElementById("model").replaceChildren(...options);
  document.getElementById("model-picker").hidden = store.models.length < 2;
}

function showAbout() {
  const { model } = store;
  const parts = [
    model.name,
    count(model.n_labels, "label"),
    count(model.n_points, "training example"),
    model.n_members > 1 ? `${model.n_members} members` : null,
    model.encoder ? `encoder: ${model.encoder}` : null,
    model.loaded_at ? `loaded ${new Date(model.loaded_at).toLocaleString()}` : null,
  ];
  const shownParts = parts.filter((part) => part !== null && !String(part).includes("Invalid"));
  document.getElementById("about").replaceChildren(...shownParts.map((part) => el("span", {}, part)));
}

// Light, dark, or as the system has it.
function setUpTheme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const name = () => {
    button.textContent = isDark() ? "☀" : "☾";
    button.setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
    button.title = button.getAttribute("aria-label");
  };
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    // Choosing what the system has means following the system again.
    const followsSystem = (next === "dark") === system.matches;
    if (followsSystem) delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      if (followsSystem) localStorage.removeItem("elias-theme");
      else localStorage.setItem("elias-theme", next);
    } catch {
      // Without storage the choice holds until the page is closed.
    }
    name();
  });
  system.addEventListener("change", name);
  name();
}
