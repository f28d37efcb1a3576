// What the tests in a browser share: a server, a browser, and pages that must stay clean.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before } from "node:test";
import { AXE, openPage, startBrowser } from "./browser.mjs";
import { startMock } from "./mock.mjs";

const axeSource = readFileSync(AXE, "utf8");
let browser;
let main = null;

// The server under test: a live one if the environment names it, else the mock.
export let base = process.env.ELIAS_PAGE_URL ?? "";

before(async () => {
  browser = await startBrowser();
  if (base) return;
  main = await startMock({ names: ["debian", "uncalibrated"] });
  base = main.url;
});

after(async () => {
  await browser?.stop();
  main?.stop();
});

// Opens the page, hands it to `work`, then checks that nothing failed in it and that no request left the host.
export async function withPage({ hash = "", url = base, ...options }, work) {
  const { page, context, seen } = await openPage(browser.browser, url, hash, options);
  try {
    await work(page, context, seen);
    assert.deepEqual(seen.errors, []);
    const { host } = new URL(url);
    const strangers = seen.requests.filter((one) => !one.startsWith("blob:") && !one.startsWith("data:") && new URL(one).host !== host);
    assert.deepEqual(strangers, []);
  } finally {
    await context.close();
  }
}

// Starts a mock of its own for one test.
export async function withMock(options, work) {
  const mock = await startMock(options);
  try {
    await work(mock.url);
  } finally {
    mock.stop();
  }
}

export async function api(path, body, url = base) {
  const request = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
  const response = await fetch(new URL(path, url), request);
  assert.equal(response.status, 200, `${path}: ${response.status}`);
  return response.json();
}

// What axe finds that keeps people out.
export async function axe(page) {
  // Evaluated by the debugger, which the page's policy does not bind.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axeSource);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}`);
}

export const textBox = (page) => page.getByRole("textbox", { name: "Text", exact: true });

export async function ask(page, text) {
  await textBox(page).fill(text);
  await page.locator(".answers[aria-busy=false] .answer").first().waitFor();
}

// Loads texts into the batch view by pasting them, and starts.
export async function startBatch(page, texts) {
  await page.getByLabel("Or paste them").fill(texts);
  await page.getByRole("button", { name: "Use what I pasted" }).click();
  await page.getByRole("button", { name: /^Label [\d,]+ texts?$/ }).click();
}

export async function download(page) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download as CSV" }).click()]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}
