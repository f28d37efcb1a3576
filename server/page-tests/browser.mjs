// Starts Chromium and opens pages in it. Every page records what it asks for and what goes wrong in it.

import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(new URL(".deps/package.json", import.meta.url));
const { chromium } = require("playwright-core");
export const AXE = require.resolve("axe-core/axe.min.js");

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export async function startBrowser() {
  const folder = mkdtempSync(join(tmpdir(), "elias-page-"));
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const browser = await chromium.launch({ executablePath, headless: true, args: FLAGS, artifactsDir: folder });
  return { browser, stop: async () => { await browser.close(); rmSync(folder, { recursive: true, force: true }); } };
}

// A page of its own context. `seen` has its requests and errors.
export async function openPage(browser, base, hash = "", options = {}) {
  const { width = 1280, height = 900, dark = false, ...rest } = options;
  const context = await browser.newContext({
    viewport: { width, height }, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce", acceptDownloads: true, ...rest,
  });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const seen = { requests: [], errors: [] };
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => {
    // A refused request is reported by the browser itself; the page shows it in words.
    const isExpected = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isExpected) seen.errors.push(message.text());
  });
  await page.goto(`${base}${hash}`);
  return { page, context, seen };
}
