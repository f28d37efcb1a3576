// Making elements. Everything that comes from a user or a model goes through text nodes and attributes,
// never through markup.

// An element with properties and children. `on*` functions are listeners, `class` and `data-*`, `aria-*` and the like
// are attributes, `style` is an object of CSS properties. Strings among the children become text.
export function el(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

// The same for SVG.
export function svg(name, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), properties, children);
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, part] of Object.entries(value)) node.style.setProperty(key, part);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Calls `work` once nothing has called for `ms`.
export function debounce(work, ms) {
  let timer;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), ms);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

// Tells users of screen readers what has changed.
export function announce(words) {
  const live = document.getElementById("live");
  // The same words twice are heard twice only if the text changes.
  live.textContent = live.textContent === words ? `${words}\u00a0` : words;
}

// A bar from 0 to 1, for the eye: the number stands beside it.
export function bar(share, kind = "") {
  const width = `${(100 * Math.min(1, Math.max(0, share || 0))).toFixed(1)}%`;
  return el("span", { class: `bar ${kind}`, "aria-hidden": "true" }, el("span", { style: { width } }));
}

// A labelled input for a number from `min` to `max`. `change` hears of numbers that are in order; the input says what it
// expects where one is not.
export function numberField(words, { min, max, step = 1, value, disabled = false }, change) {
  const problem = el("span", { class: "problem", role: "alert" });
  const input = el("input", { type: "number", min, max, step, value, disabled, inputmode: step === 1 ? "numeric" : "decimal", oninput: () => {
    const typed = Number(input.value);
    const isFine = input.value.trim() !== "" && typed >= min && typed <= max && (step !== 1 || Number.isInteger(typed));
    input.toggleAttribute("aria-invalid", !isFine);
    problem.textContent = isFine ? "" : `${step === 1 ? "A whole number" : "A number"} from ${min} to ${max}`;
    if (isFine) change(typed);
  } });
  const node = el("label", { class: "field short" }, el("span", {}, words), input, problem);
  return { node, input };
}

// A message that something went wrong, with a button to try again where that makes sense.
export function problem(error, retry) {
  return el(
    "div",
    { class: "problem-box", role: "alert" },
    el("p", {}, el("strong", {}, error.title ?? "That did not work. "), " ", error.message),
    error.remedy ? el("p", {}, error.remedy) : null,
    retry ? el("button", { class: "button", type: "button", onclick: retry }, "Try again") : null,
  );
}

// Text from a user or a model inside a sentence: its direction does not disturb the words around it.
export function bdi(text, properties = {}) {
  return el("bdi", properties, text);
}
