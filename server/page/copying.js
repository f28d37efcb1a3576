// "Use it in code": the current request as curl and as Python, with buttons that copy it.

import { announce, el } from "./dom.js";
import { savedKey } from "./key.js";
import { asCurl, asPython } from "./snippets.js";

// `current()` gives the request that the page would send now, or null. The words say what it asks for.
export function copyBox(title, current) {
  const shown = el("pre", { class: "code", tabindex: "0", "aria-label": "The request" }, el("code"));
  const buttons = [["curl", asCurl], ["Python", asPython]].map(([name, write]) => {
    const label = `Copy as ${name}`;
    const button = el("button", { class: "button small", type: "button" }, label);
    button.addEventListener("click", async () => {
      const request = current();
      if (!request) return announce("There is nothing to copy yet.");
      const code = write({ ...request, hasKey: savedKey() !== "" });
      shown.firstChild.textContent = code;
      shown.hidden = false;
      const isCopied = await copy(code);
      const words = isCopied ? "Copied" : "Select and copy the text below";
      button.textContent = words;
      box.dataset.copied = isCopied ? name : "";
      announce(isCopied ? `Copied as ${name}` : words);
      setTimeout(() => { button.textContent = label; }, 2000);
    });
    return button;
  });
  shown.hidden = true;
  const box = el("div", { class: "copy-box", role: "group", "aria-label": title },
    el("div", { class: "row" }, el("span", { class: "soft" }, title), ...buttons), shown);
  // What was shown is out of date once the request changes.
  box.forget = () => { shown.hidden = true; };
  return box;
}

// True if it is on the clipboard now. Browsers give the clipboard to secure pages only; the old way works elsewhere.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", { class: "only-heard", "aria-hidden": "true", tabindex: "-1" });
    area.value = text;
    const before = document.activeElement;
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    before?.focus();
    return isDone;
  }
}
