// Many texts at once: a file or pasted lines go in, a table and a CSV file come out. A run goes on while the user looks
// at other views.

import { post } from "./api.js";
import { valueOf } from "./answers.js";
import { BatchRun, tableOf } from "./batch-run.js";
import { resultTable } from "./batch-table.js";
import { ReadError, writeCsv } from "./csv.js";
import { announce, el, numberField, problem } from "./dom.js";
import { bytes, count, number } from "./format.js";
import { modelName, store } from "./store.js";
import { decode, MAX_FILE_BYTES, MAX_TEXTS, readTexts } from "./texts.js";

// What is loaded and what has been answered; it outlives the view.
const state = { source: null, input: null, column: null, k: 10, threshold: 0, run: null, stop: null, problem: null, page: 0 };
let redraw = () => {};

addEventListener("beforeunload", (event) => {
  if (state.stop) event.preventDefault();
});

// A file that misses its place would replace the page.
for (const kind of ["dragover", "drop"]) {
  addEventListener(kind, (event) => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  });
}

export function mount(route, signal) {
  const view = new BatchView();
  redraw = (what) => view.draw(what);
  signal.addEventListener("abort", () => { redraw = () => {}; });
  view.draw();
  return { node: view.node, title: () => "Batch", update: () => true };
}

class BatchView {
  constructor() {
    this.inputPart = el("section", { class: "card", "aria-labelledby": "batch-input" });
    this.runPart = el("section", { class: "batch-run", "aria-label": "Answers" });
    this.paste = el("textarea", { rows: "5", dir: "auto", placeholder: "One text per line, JSON Lines, or CSV with a header" });
    this.file = el("input", { type: "file", id: "file", accept: ".csv,.tsv,.txt,.jsonl,.ndjson,.json,text/plain,text/csv",
      // Forgetting the last choice lets the same file be chosen again after a change.
      onclick: () => { this.file.value = ""; }, onchange: () => this.takeFile(this.file.files[0]),
    });
    this.node = el("div", { class: "batch" },
      el("h1", { tabindex: "-1" }, "Label many texts"),
      el("p", { class: "soft" }, `Up to ${number(MAX_TEXTS)} texts as CSV, JSON Lines or plain lines. A table needs a column named text, or title with abstract; an id column is kept. The file is read in your browser; only the texts are sent to this server.`),
      this.inputPart, this.runPart);
    this.buildInput();
  }

  buildInput() {
    const drop = el("div", { class: "drop" },
      el("label", { class: "field", for: "file" }, el("span", {}, "Choose a file, or drop it here")), this.file);
    const over = (isOver) => (event) => {
      event.preventDefault();
      drop.classList.toggle("over", isOver);
    };
    drop.addEventListener("dragover", over(true));
    drop.addEventListener("dragleave", over(false));
    drop.addEventListener("drop", (event) => {
      over(false)(event);
      const [file] = event.dataTransfer.files;
      if (file) this.takeFile(file);
      else this.take(event.dataTransfer.getData("text/plain"), "");
    });
    const use = () => this.take(this.paste.value, "");
    this.inputPart.append(el("h2", { id: "batch-input" }, "Texts"),
      el("div", { class: "two" }, drop,
        el("div", {}, el("label", { class: "field" }, el("span", {}, "Or paste them"), this.paste),
          el("button", { class: "button", type: "button", onclick: use }, "Use what I pasted"))));
  }

  async takeFile(file) {
    if (!file) return;
    if (file.size > MAX_FILE_BYTES) {
      return this.refuse(`${file.name} has ${bytes(file.size)}; the limit is ${bytes(MAX_FILE_BYTES)}. Use “elias predict” for large files.`);
    }
    try {
      this.take(decode(new Uint8Array(await file.arrayBuffer())), file.name);
    } catch (error) {
      this.refuse(error instanceof ReadError ? `${file.name}: ${error.message}` : `${file.name} cannot be read. Choose it again.`);
    }
  }

  take(text, name, column = null) {
    if (state.stop) return this.refuseNow();
    Object.assign(state, { run: null, problem: null, page: 0, column });
    try {
      state.input = readTexts(text, name, column);
      state.source = { text, name };
      const { input } = state;
      announce(input.rows ? `${count(input.rows.length, "text")} ready.` : "Choose the column that has the texts.");
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
      return this.refuse(`${name ? `${name}: ` : ""}${error.message}`);
    }
    this.draw();
  }

  // A run that goes on is not thrown away by a file that was dropped by mistake.
  refuseNow() {
    state.problem = { title: "A run is in progress.", message: "Stop it before you load other texts." };
    this.draw();
  }

  refuse(message) {
    if (state.stop) return this.refuseNow();
    Object.assign(state, { input: null, source: null, run: null });
    state.problem = { title: "These texts cannot be read.", message };
    this.draw();
  }

  draw(what = "all") {
    const { run, input } = state;
    if (what === "progress" && this.progress) return this.drawProgress();
    this.progress = null;
    this.runPart.replaceChildren(...[
      state.problem ? problem(state.problem) : null,
      input ? this.summary(input) : null,
      input ? this.settings(input) : null,
      run ? this.progressBox() : null,
      run ? this.table() : null,
    ].filter(Boolean));
    if (run) this.drawProgress();
  }

  summary(input) {
    const { name } = state.source;
    const kind = { table: "a table", jsonl: "JSON Lines", lines: "one text per line" }[input.kind];
    const from = name ? `${name}, read as ${kind}` : `Pasted, read as ${kind}`;
    const cut = input.total > MAX_TEXTS ? ` It has ${number(input.total)}; the first ${number(MAX_TEXTS)} are used. Use “elias predict” for all of them.` : "";
    const words = input.rows ? `${count(input.rows.length, "text")}.${cut}` : "No column is named text or title. Choose the column that has the texts.";
    const title = state.stop ? "Labelling…" : !state.run ? "Ready" : state.run.isDone ? "Done" : "Stopped";
    return el("div", {}, el("h2", {}, title), el("p", {}, `${from}: ${words}`));
  }

  columnPicker(input, isLocked) {
    const isOwn = state.column !== null;
    const automatic = isOwn ? "as the header says" : input.textColumns.join(" + ") || "choose…";
    const options = input.columns.map((name) => el("option", { value: name, selected: name === state.column }, name));
    const pick = (event) => this.take(state.source.text, state.source.name, event.target.value || null);
    return el("label", { class: "field short" }, el("span", {}, "Text column"),
      el("select", { onchange: pick, disabled: isLocked }, el("option", { value: "", selected: !isOwn }, automatic), options));
  }

  settings(input) {
    const isLocked = Boolean(state.run);
    const column = input.columns ? this.columnPicker(input, isLocked) : null;
    if (!input.rows) return el("div", { class: "settings" }, column);
    const k = numberField("Answers per text", { min: 1, max: 100, value: state.k, disabled: isLocked }, (typed) => { state.k = typed; });
    // It only hides answers, so it can be changed at any time.
    const threshold = numberField("Threshold (0 to 1)", { min: 0, max: 1, step: 0.01, value: state.threshold }, (typed) => {
      state.threshold = typed;
      this.results?.fill();
    });
    const start = el("button", { class: "button primary", type: "button", onclick: () => this.start() }, `Label ${count(input.rows.length, "text")}`);
    const again = el("button", { class: "button", type: "button", onclick: () => { Object.assign(state, { run: null, problem: null }); this.draw(); } }, "Start over");
    return el("div", { class: "settings" }, column,
      k.node, threshold.node,
      isLocked ? (state.stop ? null : again) : start);
  }

  start() {
    const settings = { k: state.k };
    if (modelName()) settings.model = modelName();
    state.run = new BatchRun(state.input.rows, settings, store.limits, { post, sleep });
    state.page = 0;
    go();
  }

  progressBox() {
    const { run } = state;
    this.progress = el("progress", { max: run.rows.length, value: run.at, "aria-label": "Texts labelled" });
    this.progressWords = el("span", { class: "num" });
    const cancel = el("button", { class: "button", type: "button", onclick: () => state.stop?.abort() }, "Stop");
    const goOn = el("button", { class: "button primary", type: "button", onclick: go }, "Continue");
    const save = el("button", { class: "button primary", type: "button", onclick: download }, "Download as CSV");
    const buttons = state.stop ? [cancel] : [run.isDone ? null : goOn, run.at > 0 ? save : null];
    return el("div", { class: "progress-box" }, this.progress, el("div", { class: "row between" }, this.progressWords,
      el("div", { class: "row" }, buttons.filter(Boolean))));
  }

  drawProgress() {
    const { run } = state;
    this.progress.value = run.at;
    const failed = run.failed ? `, ${number(run.failed)} could not be labelled` : "";
    const wait = run.waiting ? ` The server is busy; continuing in ${count(Math.ceil(run.waiting), "second")}.` : "";
    this.progressWords.textContent = `${number(run.at)} of ${count(run.rows.length, "text")}${failed}.${wait}`;
    this.results?.fill();
  }

  table() {
    this.results = resultTable(state.run, state.page, () => state.threshold, (page) => { state.page = page; });
    return this.results.node;
  }
}

// Starts the run, or goes on with it.
async function go() {
  const { run } = state;
  const stop = new AbortController();
  state.stop = stop;
  state.problem = null;
  redraw();
  announce("Labelling has begun.");
  let problemFound = null;
  try {
    await run.run(() => redraw("progress"), stop.signal);
    announce(`All ${count(run.rows.length, "text")} labelled.`);
  } catch (error) {
    if (error.name !== "AbortError") problemFound = error;
    else announce("Stopped.");
  }
  state.problem = problemFound;
  state.stop = null;
  redraw();
}

// Waits; the progress line tells the user that it does.
function sleep(seconds, signal) {
  redraw("progress");
  return new Promise((done, fail) => {
    const timer = setTimeout(done, 1000 * seconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      fail(signal.reason);
    }, { once: true });
  });
}

function download() {
  const { run, source } = state;
  const file = new Blob([writeCsv(tableOf(run.rows, run.results, (label) => valueOf(label) >= state.threshold))], { type: "text/csv;charset=utf-8" });
  const href = URL.createObjectURL(file);
  const name = `${(source.name || "texts").replace(/\.[^.]*$/, "")}-labels.csv`;
  const link = el("a", { href, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
