// Pictures of every view, to look at: `node shots.mjs BASE_URL FOLDER`.

import { mkdirSync } from "node:fs";
import { openPage, startBrowser } from "./browser.mjs";

const [base, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const TEXT = "Library to read and write PNG images, with small command line tools for developers";
const LINES = Array.from({ length: 60 }, (_, i) => `${["png image viewer", "python web framework", "fonts for Arabic", "mail server"][i % 4]} number ${i}`).join("\n");
const { browser, stop } = await startBrowser();

const VIEWS = {
  start: async () => {},
  predict: async (page) => {
    await page.getByLabel("Text", { exact: true }).fill(TEXT);
    await page.locator(".answer").first().waitFor();
  },
  why: async (page) => {
    await VIEWS.predict(page);
    await page.locator(".answer").first().click();
    await page.locator(".path-drawing").waitFor();
  },
  labels: async (page) => {
    await page.getByRole("link", { name: "Browse" }).click();
    await page.getByRole("searchbox").fill("lib");
    await page.locator("table.list").waitFor();
  },
  label: async (page) => {
    await page.goto(`${base}#/labels?query=libpng16`);
    await page.locator("td.name a").first().click();
    await page.locator(".scored").first().waitFor();
  },
  clusters: async (page) => {
    await page.goto(`${base}#/clusters`);
    await page.locator("table.list").waitFor();
  },
  cluster: async (page) => {
    await page.goto(`${base}#/clusters/3`);
    await page.locator(".scored").waitFor();
  },
  "batch-empty": async (page) => {
    await page.goto(`${base}#/batch`);
    await page.locator(".drop").waitFor();
  },
  batch: async (page) => {
    await page.goto(`${base}#/batch`);
    await page.getByLabel("Or paste them").fill(LINES);
    await page.getByRole("button", { name: "Use what I pasted" }).click();
    await page.getByRole("button", { name: "Label 60 texts" }).click();
    await page.getByRole("button", { name: "Download as CSV" }).waitFor();
  },
};

const wanted = process.argv.slice(4);
for (const width of [400, 1280, 1920]) {
  for (const dark of [false, true]) {
    for (const [name, prepare] of Object.entries(VIEWS)) {
      if (wanted.length && !wanted.includes(name)) continue;
      if (dark && width === 1920 && name !== "why") continue;
      const { page, context, seen } = await openPage(browser, base, "", { width, height: width === 400 ? 800 : 950, dark });
      await prepare(page);
      await page.screenshot({ path: `${folder}/${name}-${width}${dark ? "-dark" : ""}.png`, fullPage: width === 400 });
      if (seen.errors.length) console.log(name, width, seen.errors);
      await context.close();
    }
  }
}
await stop();
