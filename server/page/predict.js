// The first view: a text goes in, labels appear as one types, a click on one shows why.

import { address, post } from "./api.js";
import { answerList, valueOf, valueText } from "./answers.js";
import { copyBox } from "./copying.js";
import { announce, debounce, el, numberField, problem } from "./dom.js";
import { exampleTexts } from "./examples.js";
import { bytes, count, percent } from "./format.js";
import { Corrections, mayLearn } from "./learn.js";
import { hashOf, natural, parseHash, replaceHash } from "./router.js";
import { hasProbabilities, modelName, store } from "./store.js";
import { cue, whyPanel } from "./why.js";

const WAIT_MS = 200;
// Longer texts are not kept in the address: browsers and people cut long addresses.
const MAX_KEPT = 4000;
const encoder = new TextEncoder();

// What the user has typed and set; it outlives the view.
const asked = { text: "", k: 10, threshold: 0 };
let lastAddress = "#/predict";

export const lastHash = () => lastAddress;

export function mount(route, signal) {
  const page = new PredictView(signal);
  page.ready = () => page.update(route);
  return page;
}

class PredictView {
  constructor(signal) {
    this.signal = signal;
    this.answers = null;
    this.pending = null;
    this.askSoon = debounce(() => this.ask(), WAIT_MS);
    signal.addEventListener("abort", () => {
      this.pending?.abort();
      this.askSoon.cancel();
      clearTimeout(this.timer);
    });
    this.why = whyPanel(signal, () => this.closeWhy());
    this.node = this.build();
  }

  title() {
    return "Predict";
  }

  build() {
    this.box = el("textarea", {
      id: "text", rows: "6", dir: "auto", "aria-describedby": "text-note", placeholder: "A title, an abstract, a description…",
      oninput: () => this.typed(),
    });
    this.note = el("p", { class: "soft note", id: "text-note" });
    const k = numberField("Maximum answers", { min: 1, max: 100, value: asked.k }, (typed) => {
      asked.k = typed;
      this.changed();
      this.askSoon();
    });
    this.k = k.input;
    this.threshold = el("input", {
      id: "threshold", type: "range", min: "0", max: "100", step: "1", oninput: () => {
        asked.threshold = Number(this.threshold.value) / 100;
        this.changed();
        this.show();
      },
    });
    this.thresholdShown = el("output", { for: "threshold" });
    this.found = el("div", { class: "answers", "aria-busy": "false" });
    this.corrections = new Corrections(this.signal, () => asked.text, () => this.ask());
    this.copies = copyBox("Use it in code", () => this.request());
    this.aside = el("aside", { class: "why-side", "aria-label": "Why this answer", onscroll: () => cue(this.aside) });
    return el("div", { class: "predict" },
      el("section", { class: "ask", "aria-labelledby": "ask-title" },
        el("h1", { id: "ask-title", tabindex: "-1" }, "Which labels fit this text?"),
        el("label", { class: "field" }, el("span", {}, "Text"), this.box),
        this.note,
        el("div", { class: "settings" },
          k.node,
          el("label", { class: "field grow" },
            el("span", {}, "Threshold: ", this.thresholdShown), this.threshold)),
        el("section", { "aria-labelledby": "answers-title" },
          el("h2", { id: "answers-title" }, "Answers"), this.found, this.corrections.node),
        this.copies),
      this.aside);
  }

  // Takes over what an address says.
  update(route) {
    const { query } = route;
    if (!query.has("long")) asked.text = query.get("text") ?? "";
    asked.k = Math.min(100, Math.max(1, natural(query, "k", 10)));
    asked.threshold = Math.min(100, natural(query, "t", 0)) / 100;
    this.chosen = query.has("why") ? natural(query, "why", null) : null;
    this.box.value = asked.text;
    this.k.value = asked.k;
    this.threshold.value = Math.round(100 * asked.threshold);
    this.showSettings();
    this.remember();
    const isSame = this.answers && this.answeredFor === this.question();
    if (isSame) this.show();
    else this.ask();
    return true;
  }

  question() {
    return JSON.stringify([asked.text, asked.k, store.model?.name, store.model?.loaded_at]);
  }

  // Takes a text as if it was typed, and asks at once.
  take(text) {
    this.box.value = text;
    this.typed();
    this.box.focus();
    this.ask();
  }

  typed() {
    asked.text = this.box.value;
    this.copies.forget();
    this.remember();
    this.askSoon();
  }

  // Takes over a setting that was changed.
  changed() {
    this.showSettings();
    this.copies.forget();
    this.remember();
  }

  showSettings() {
    const isSure = hasProbabilities();
    const least = isSure ? `at least ${percent(asked.threshold)} likely` : `score at least ${asked.threshold.toFixed(2)}`;
    this.thresholdShown.textContent = asked.threshold === 0 ? "none" : least;
    this.threshold.setAttribute("aria-valuetext", this.thresholdShown.textContent);
  }

  // Keeps the address in step, so that it can be bookmarked.
  remember() {
    const isLong = asked.text.length > MAX_KEPT;
    lastAddress = hashOf(["predict"], {
      text: isLong ? "" : asked.text,
      long: isLong ? 1 : null,
      k: asked.k === 10 ? null : asked.k,
      t: asked.threshold === 0 ? null : Math.round(100 * asked.threshold),
      why: this.chosen,
      model: modelName(),
    });
    replaceHash(lastAddress);
  }

  // The request that stands on the page.
  request() {
    if (asked.text.trim() === "") return null;
    const body = { text: asked.text, k: asked.k };
    if (asked.threshold > 0) body.threshold = asked.threshold;
    if (modelName()) body.model = modelName();
    return { url: address("v1/predict"), body };
  }

  // Asks the server. Only the newest question is answered: an older one is called off, and its answer dropped.
  async ask() {
    this.askSoon.cancel();
    clearTimeout(this.timer);
    this.pending?.abort();
    this.pending = null;
    const size = encoder.encode(asked.text).length;
    const limit = store.limits.max_text_bytes;
    const isTooLong = size > limit;
    this.note.textContent = isTooLong
      ? `This text has ${bytes(size)}; the limit is ${bytes(limit)}. Shorten it to get answers.`
      : "";
    if (asked.text.trim() === "" || isTooLong) {
      this.answers = null;
      return this.show();
    }
    const pending = new AbortController();
    this.pending = pending;
    const question = this.question();
    this.found.setAttribute("aria-busy", "true");
    // The threshold only hides answers, so moving it needs no request.
    const body = { text: asked.text, k: asked.k, model: modelName() ?? undefined };
    try {
      const answer = await post("v1/predict", body, AbortSignal.any([pending.signal, this.signal]));
      if (this.pending !== pending) return;
      this.answers = answer.labels;
      this.isUnknown = answer.no_known_word === true;
      this.answeredFor = question;
      this.show();
      this.tell();
    } catch (error) {
      if (error.name === "AbortError" || this.pending !== pending) return;
      this.showProblem(error);
    } finally {
      if (this.pending === pending) this.found.setAttribute("aria-busy", "false");
    }
  }

  showProblem(error) {
    this.answers = null;
    this.closeWhy();
    if (error.status === 429 || error.status === 503) {
      const wait = Math.min(60, Math.max(1, error.retryAfter ?? 2));
      error.remedy = `Trying again in ${count(Math.ceil(wait), "second")}.`;
      this.timer = setTimeout(() => this.ask(), 1000 * wait);
    }
    this.found.replaceChildren(problem(error, () => this.ask()));
  }

  visible() {
    return (this.answers ?? []).filter((answer) => valueOf(answer) >= asked.threshold);
  }

  tell() {
    const visible = this.visible();
    const best = visible[0];
    const words = best ? `${count(visible.length, "answer")}. The best is ${best.label}, ${valueText(best)}.` : "No answer above the threshold.";
    announce(words);
  }

  show() {
    this.copies.hidden = !this.answers;
    this.corrections.node.hidden = !this.answers || !mayLearn();
    if (!this.answers) {
      const isEmpty = asked.text.trim() === "";
      const words = isEmpty ? "Type or paste a text above. The answers appear as you type." : "";
      this.found.replaceChildren(el("div", { class: "empty" }, el("p", { class: "soft" }, words),
        isEmpty ? exampleTexts(this.signal, (text) => this.take(text)) : null));
      return this.closeWhy();
    }
    const visible = this.visible();
    const hadFocus = this.found.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    const { node, items } = answerList(visible, this.answers.length, (answer) => this.choose(answer),
      (answer) => mayLearn() && this.corrections.wrongButton(answer));
    const warning = el("p", { class: "soft" }, "The model knows no word of this text; it would answer any such text like this.");
    this.found.replaceChildren(...(this.isUnknown ? [warning, node] : [node]));
    this.items = items;
    if (hadFocus) items.get(Number(hadFocus))?.button.focus({ preventScroll: true });
    this.showWhy();
  }

  // A click on an answer: its reasons, or a second click to hide them. Both are steps of the history.
  choose(answer) {
    this.chosen = this.chosen === answer.id ? null : answer.id;
    const { path, query } = parseHash(location.hash);
    const kept = Object.fromEntries(query);
    history.pushState(null, "", hashOf(path, { ...kept, why: this.chosen }));
    lastAddress = location.hash;
    this.showWhy();
  }

  closeWhy() {
    if (this.chosen !== null && this.chosen !== undefined) {
      const button = this.items?.get(this.chosen)?.button;
      this.chosen = null;
      this.remember();
      if (this.why.node.contains(document.activeElement)) button?.focus();
    }
    this.showWhy();
  }

  showWhy() {
    for (const [id, item] of this.items ?? []) item.button.setAttribute("aria-expanded", String(id === this.chosen));
    const item = this.answers && this.items?.get(this.chosen);
    this.why.place(this.aside, item?.holder ?? null);
    if (!item) return this.why.clear();
    this.why.show({ text: asked.text, k: asked.k, model: modelName() ?? undefined }, item.answer, this.answeredFor);
  }
}
