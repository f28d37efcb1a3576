// Correcting answers: "wrong" beside each of them, labels that are missing, and what was learned so far.

import { get, post } from "./api.js";
import { announce, bdi, debounce, el, problem } from "./dom.js";
import { count, shorten } from "./format.js";
import { modelName, store } from "./store.js";

const N_OFFERED = 8;

export const mayLearn = () => store.model?.learns ?? false;

// Corrects the answers to one text. `learned` is called when the server has learned.
export class Corrections {
  constructor(signal, textOf, learned) {
    Object.assign(this, { signal, textOf, learned });
    this.input = el("input", {
      id: "missing", list: "missing-labels", autocomplete: "off", spellcheck: "false", dir: "auto", maxlength: 1000,
      placeholder: "The name of a label", oninput: () => this.offerSoon(),
    });
    this.offerSoon = debounce(() => this.offer(), 200);
    signal.addEventListener("abort", () => this.offerSoon.cancel());
    this.offered = el("datalist", { id: "missing-labels" });
    this.state = el("p", { class: "soft note", role: "status" });
    this.list = el("div");
    this.details = el("details", { class: "learned", ontoggle: () => this.details.open && this.showRecent() },
      el("summary", {}, "What was learned"), this.list);
    this.node = el("section", { class: "corrections", "aria-label": "Corrections" },
      el("form", { class: "row", onsubmit: (event) => this.submit(event) },
        el("label", { class: "field grow" }, el("span", {}, "Missing label"), this.input, this.offered),
        el("button", { class: "button", type: "submit" }, "Add it")),
      this.state, this.details);
  }

  wrongButton({ label }) {
    const button = el("button", {
      class: "button small wrong", type: "button", "aria-label": `Wrong: ${label}`, title: "Not a label of this text",
      onclick: () => this.send({ not: [label] }, `“${shorten(label, 60)}” is wrong for this text`),
    }, "Wrong");
    return button;
  }

  submit(event) {
    event.preventDefault();
    const label = this.input.value.trim();
    if (label === "") return this.input.focus();
    return this.send({ labels: [label] }, `“${shorten(label, 60)}” is a label of this text`);
  }

  async send(labels, words) {
    const body = { text: this.textOf(), ...labels, model: modelName() ?? undefined };
    try {
      const { n_learned: n } = await post("v1/learn", body, this.signal, "learn");
      store.model.n_learned = n;
      this.input.value = "";
      this.state.textContent = `Learned: ${words}.`;
      announce(this.state.textContent);
      if (this.details.open) this.showRecent();
      this.learned();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.state.replaceChildren(problem(error));
    }
  }

  // Labels whose names contain what is typed.
  async offer() {
    const query = { query: this.input.value.trim(), limit: N_OFFERED, sort: "count", model: modelName() };
    if (query.query === "") return this.offered.replaceChildren();
    try {
      const { labels } = await get("v1/labels", query, this.signal);
      this.offered.replaceChildren(...labels.map(({ label }) => el("option", { value: label })));
    } catch {
      // The name can be typed without help.
    }
  }

  async showRecent() {
    try {
      const { n_learned: n, recent } = await get("v1/learned", { model: modelName() }, this.signal, "learn");
      const one = ({ text, labels, not }) => el("li", {},
        el("p", { class: "example-text", dir: "auto" }, shorten(text, 160)),
        ...labels.map((label) => el("span", { class: "chip for" }, el("span", { class: "only-heard" }, "right: "), "✓ ", bdi(label))),
        ...not.map((label) => el("span", { class: "chip against" }, el("span", { class: "only-heard" }, "wrong: "), "✗ ", bdi(label))));
      const last = recent.length < n ? ` The last ${recent.length}:` : "";
      this.list.replaceChildren(
        el("p", { class: "soft" }, `${count(n, "correction")} since the model was written.${last}`),
        el("ul", { class: "examples" }, recent.map(one)));
    } catch (error) {
      if (error.name === "AbortError") return;
      this.list.replaceChildren(problem(error, () => this.showRecent()));
    }
  }
}
