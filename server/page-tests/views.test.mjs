// The views in a real browser, against the mock or a live server: nothing here depends on what a model knows.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { parseCsv } from "../page/csv.js";
import { percent } from "../page/format.js";
import { api, ask, axe, base, download, startBatch, textBox, withPage } from "./harness.mjs";
import { CSP } from "./mock.mjs";

const TEXT = "Library to read and write PNG images, with small command line tools for developers";
const shownAnswers = (page) => page.locator(".answer-name").allTextContents();
const markers = (page) => page.evaluate(() => globalThis.broken);

test("answers appear while one types, as the service gives them", () => withPage({}, async (page) => {
  await textBox(page).pressSequentially(TEXT.slice(0, 30), { delay: 5 });
  await textBox(page).fill(TEXT);
  const expected = await api("v1/predict", { text: TEXT });
  const names = expected.labels.map((label) => label.label);
  await page.waitForFunction((wanted) => JSON.stringify(Array.from(document.querySelectorAll(".answer-name"), (one) => one.textContent)) === JSON.stringify(wanted), names);
  if (expected.labels[0].probability !== null) {
    assert.equal(await page.locator(".answer-value").first().textContent(), percent(expected.labels[0].probability));
  }
  assert.match(await page.locator("#live").textContent(), new RegExp(`^${names.length} answers?\\. The best is `));
}));

test("the threshold hides answers and the number asks for more", () => withPage({}, async (page) => {
  await ask(page, TEXT);
  await page.getByLabel("Maximum answers").fill("20");
  await page.waitForFunction(() => document.querySelectorAll(".answer").length > 10);
  const all = await page.locator(".answer").count();
  const { labels } = await api("v1/predict", { text: TEXT, k: 20 });
  const value = (label) => label.probability ?? label.score;
  const percentage = Math.ceil(100 * value(labels[2]) + 0.001);
  await page.locator("#threshold").fill(String(percentage));
  const expected = labels.filter((label) => value(label) >= percentage / 100).length;
  assert.equal(await page.locator(".answer").count(), expected);
  assert.ok(expected < all);
  await page.getByText(/below the threshold/).waitFor();
}));

test("a number that makes no sense says what is expected, and changes nothing", () => withPage({}, async (page) => {
  await ask(page, TEXT);
  const shown = await page.locator(".answer").count();
  const k = page.getByLabel("Maximum answers");
  for (const typed of ["0", "101", "2.5", "-1", ""]) {
    await k.fill(typed);
    await page.getByText("A whole number from 1 to 100").waitFor();
    assert.notEqual(await k.getAttribute("aria-invalid"), null);
    assert.equal(await page.locator(".answer").count(), shown);
  }
  await k.fill("3");
  await page.waitForFunction(() => document.querySelectorAll(".answer").length === 3);
  assert.equal(await page.getByText("A whole number").count(), 0);
  assert.equal(await k.getAttribute("aria-invalid"), null);
}));

test("the start has texts to try", () => withPage({}, async (page) => {
  const example = page.locator(".empty button").first();
  const text = await example.textContent();
  await example.click();
  await page.locator(".answer").first().waitFor();
  assert.equal(await textBox(page).inputValue(), text);
  const expected = await api("v1/predict", { text });
  assert.deepEqual(await shownAnswers(page), expected.labels.map((label) => label.label));
}));

test("the reasons say when there is more below", () => withPage({ width: 1280, height: 700 }, async (page) => {
  await ask(page, TEXT);
  await page.locator(".answer").first().click();
  await page.locator(".why-side.more .why .sources").waitFor();
  await page.locator(".why-side").evaluate((one) => one.scrollTo(0, one.scrollHeight));
  await page.locator(".why-side:not(.more)").waitFor();
  await page.locator(".answer").first().click();
  await page.locator(".why-hint").waitFor();
  assert.equal(await page.locator(".why-side.more").count(), 0);
}));

test("an address brings back text, settings and reasons", () => withPage({}, async (page, context) => {
  await ask(page, TEXT);
  await page.getByLabel("Maximum answers").fill("7");
  await page.waitForFunction(() => document.querySelectorAll(".answer").length === 7);
  await page.locator(".answer").nth(1).click();
  await page.locator(".why h2").waitFor();
  const title = await page.locator(".why h2").textContent();
  const other = await context.newPage();
  await other.goto(page.url());
  await other.locator(".why h2").waitFor();
  assert.equal(await other.locator(".why h2").textContent(), title);
  assert.equal(await textBox(other).inputValue(), TEXT);
  assert.equal(await other.locator(".answer").count(), 7);
}));

test("a click on an answer shows why", () => withPage({}, async (page) => {
  await ask(page, TEXT);
  await page.locator(".answer").first().click();
  await page.locator(".why .sources").waitFor();
  const { answers, neighbours } = await api("v1/explain", { text: TEXT });
  const [answer] = answers;
  assert.equal(await page.locator(".why h2").textContent(), `Why ${answer.label}?`);
  assert.equal(await page.locator(".weighed").textContent(), TEXT);
  assert.ok(await page.locator(".weighed mark").count() > 0);
  assert.equal(await page.locator(".source").count(), 4);
  const most = Math.max(...answer.members.map((member) => member.model_score));
  const member = answer.members.find((one) => one.model_score === most);
  assert.equal(await page.locator(".path-drawing a").count(), member.paths.length);
  assert.equal(await page.locator(".way").count(), 2 * member.paths.length);
  if (member.paths.length) {
    const { labels } = await api(`v1/clusters/${member.paths[0].cluster}`);
    await page.locator(".about-cluster", { hasText: labels[0].label }).waitFor();
  }
  assert.equal(await page.locator(".why .examples > li").count(), neighbours.length);
  await page.locator(".answer").first().click();
  assert.equal(await page.locator(".why h2").count(), 0);
}));

test("the way back leads through the same steps", () => withPage({}, async (page) => {
  await ask(page, TEXT);
  await page.locator(".answer").first().click();
  await page.locator(".path-drawing a").first().click();
  await page.locator(".scored").waitFor();
  await page.goBack();
  await page.locator(".why .sources").waitFor();
  assert.equal(await textBox(page).inputValue(), TEXT);
  await page.goBack();
  await page.waitForFunction(() => document.querySelector(".answer") && !document.querySelector(".why h2"));
  await page.goForward();
  await page.locator(".why .sources").waitFor();
}));

test("labels are searched, paged and opened", () => withPage({ hash: "#/labels" }, async (page) => {
  const all = await api("v1/labels?limit=50");
  await page.locator("table.list").waitFor();
  assert.equal(await page.locator("tbody tr").count(), Math.min(50, all.total));
  if (all.total > 50) {
    const first = await page.locator("td.name").first().textContent();
    await page.getByRole("link", { name: "Next" }).click();
    await page.waitForFunction((old) => document.querySelector("td.name")?.textContent !== old, first);
    await page.goBack();
    await page.waitForFunction((old) => document.querySelector("td.name")?.textContent === old, first);
  }
  const label = all.labels[3];
  await page.getByRole("searchbox").fill(label.label);
  const link = page.getByRole("link", { name: label.label, exact: true });
  await page.waitForFunction((name) => document.querySelector("td.name")?.textContent.toLowerCase().includes(name.toLowerCase()), label.label);
  await link.click();
  await page.locator(".cards").waitFor();
  assert.equal(await page.locator("h1").textContent(), label.label);
  const details = await api(`v1/labels/${label.id}`);
  assert.equal(await page.locator(".card .scored").first().locator("li").count(), details.clusters.length);
  await page.locator(".card a").first().click();
  await page.getByRole("heading", { name: `Cluster ${details.clusters[0].cluster}`, level: 1 }).waitFor();
}));

test("lists are sorted by the head of a column", () => withPage({ hash: "#/labels" }, async (page) => {
  const names = () => page.locator("td.name").allTextContents();
  for (const [head, sort, order] of [["Training examples", "count", "descending"], ["Label", "name", "ascending"]]) {
    await page.locator("th a", { hasText: head }).click();
    await page.locator(`th[aria-sort=${order}]`, { hasText: head }).waitFor();
    const { labels } = await api(`v1/labels?limit=50&sort=${sort}`);
    assert.deepEqual(await names(), labels.map((label) => label.label));
  }
  const sorted = await names();
  await page.getByRole("link", { name: "Next" }).click();
  await page.waitForFunction((old) => document.querySelector("td.name")?.textContent !== old, sorted[0]);
  const { labels } = await api("v1/labels?limit=50&offset=50&sort=name");
  assert.deepEqual(await names(), labels.map((label) => label.label));
  await page.locator("th a", { hasText: "Label" }).click();
  const first = await api("v1/labels?limit=1");
  await page.waitForFunction((name) => document.querySelector("td.name")?.textContent === name, first.labels[0].label);
}));

test("a label shows the words of its examples, which are a text to try", () => withPage({ hash: "#/labels/0" }, async (page) => {
  const { examples } = await api("v1/labels/0");
  const links = page.locator(".examples a");
  await links.first().waitFor();
  assert.deepEqual(await links.allTextContents(), examples.map(({ words }) => words.join(" · ")));
  await links.first().click();
  await page.locator(".answer").first().waitFor();
  assert.equal(await textBox(page).inputValue(), examples[0].words.join(" "));
}));

test("clusters lead to their labels", () => withPage({ hash: "#/clusters" }, async (page) => {
  await page.locator("td a").first().click();
  await page.locator(".scored").waitFor();
  const { labels } = await api("v1/clusters/0");
  assert.equal(await page.locator(".scored li").count(), labels.length);
  await page.locator(".scored a").first().click();
  await page.getByRole("heading", { name: labels[0].label, level: 1, exact: true }).waitFor();
}));

test("10,000 texts of a CSV file are labelled and come back in order", () => withPage({ hash: "#/batch" }, async (page) => {
  const about = ["a viewer for PNG images", "fonts for Arabic, Hebrew", "a \"quoted\" mail server", "Python\nweb framework"];
  const texts = Array.from({ length: 10_000 }, (_, i) => `${about[i % 4]} ${i % 100}`);
  const quoted = texts.map((text, i) => `k${i},"${text.replaceAll('"', '""')}"`);
  await page.locator("#file").setInputFiles({ name: "many.csv", mimeType: "text/csv", buffer: Buffer.from(`id,text\r\n${quoted.join("\r\n")}\r\n`) });
  await page.getByRole("button", { name: "Label 10,000 texts" }).click();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  assert.equal(await page.getByRole("progressbar").getAttribute("max"), "10000");
  await page.getByRole("button", { name: "Download as CSV" }).waitFor({ timeout: 60_000 });
  await page.getByText("10,000 of 10,000 texts.").waitFor();
  assert.equal(await page.locator("tbody tr").count(), 25);
  await page.getByRole("button", { name: "Last" }).click();
  assert.match(await page.locator("tbody tr").last().textContent(), /^k9999/);
  const file = await download(page);
  assert.equal(file.name, "many-labels.csv");
  const [head, ...rows] = parseCsv(file.text).map((row) => row.fields);
  assert.deepEqual(head, ["id", "text", "rank", "label", "score", "probability"]);
  const firsts = rows.filter((row) => row[2] === "1" || row[2] === "");
  assert.deepEqual(firsts.map((row) => row[0]), texts.map((_, i) => `k${i}`));
  assert.deepEqual(firsts.map((row) => row[1]), texts);
  const { labels } = await api("v1/predict", { text: texts[9998] });
  const got = rows.filter((row) => row[0] === "k9998").map((row) => [row[3].replace(/^'/, ""), Number(row[4])]);
  assert.deepEqual(got.map(([name]) => name), labels.map((label) => label.label));
  got.forEach(([, score], i) => assert.ok(Math.abs(score - labels[i].score) < 1e-5));
}));

test("a dropped JSON Lines file and pasted lines are taken", () => withPage({ hash: "#/batch" }, async (page) => {
  const data = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(['{"id": 1, "text": "png images"}\n{"id": 2, "text": "fonts"}\n'], "two.jsonl"));
    return transfer;
  });
  await page.dispatchEvent(".drop", "drop", { dataTransfer: data });
  await page.getByText("two.jsonl, read as JSON Lines: 2 texts.").waitFor();
  await startBatch(page, "png images\n\nfonts\nmail");
  await page.getByText("3 of 3 texts.").waitFor();
  const file = await download(page);
  assert.match(file.text, /^\ufeffrow,text,rank/);
}));

test("the threshold of a finished run can be changed, ids stay whole", () => withPage({ hash: "#/batch", width: 1280 }, async (page) => {
  const texts = ["png images", "fonts for Arabic", "mail server"];
  const rows = texts.map((text, i) => `record-2026-00${i},"${text} ${"and more words ".repeat(20)}"`);
  await startBatch(page, `id,text\n${rows.join("\n")}`);
  await page.getByText("3 of 3 texts.").waitFor();
  const id = page.locator("td.id bdi").first();
  assert.ok((await id.boundingBox()).height < 30);
  const chips = page.locator("tbody .chip");
  const all = await chips.count();
  const { labels } = await api("v1/predict", { text: `png images ${"and more words ".repeat(20)}` });
  const value = (label) => label.probability ?? label.score;
  const threshold = page.getByLabel("Threshold (0 to 1)");
  await threshold.fill(String(value(labels[0]) + 0.001));
  await page.getByText("no answer above the threshold").first().waitFor();
  assert.ok(await chips.count() < all);
  const above = parseCsv((await download(page)).text).slice(1).map((row) => row.fields);
  assert.deepEqual(above.filter((row) => row[2] !== "" && Number(row[5] || row[4]) <= value(labels[0])), []);
  assert.deepEqual(new Set(above.map((row) => row[0])).size, 3);
  await threshold.fill("2");
  await page.getByText("A number from 0 to 1").waitFor();
  await threshold.fill("0");
  await page.waitForFunction((n) => document.querySelectorAll("tbody .chip").length === n, all);
}));

test("a run goes on while other views are open", () => withPage({ hash: "#/batch" }, async (page) => {
  await startBatch(page, Array.from({ length: 600 }, (_, i) => `png images ${i}`).join("\n"));
  await page.getByRole("link", { name: "Browse" }).click();
  await page.locator("table.list").waitFor();
  await page.getByRole("link", { name: "Batch" }).click();
  await page.getByText("600 of 600 texts.").waitFor();
}));

test("the colours follow the system until one chooses, and the choice is kept", () => withPage({ dark: true }, async (page) => {
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await back();
  await page.getByRole("button", { name: "Switch to light colours" }).click();
  const light = await back();
  assert.notEqual(light, dark);
  await page.reload();
  await textBox(page).waitFor();
  assert.equal(await back(), light);
  await page.getByRole("button", { name: "Switch to dark colours" }).click();
  assert.equal(await back(), dark);
  await page.emulateMedia({ colorScheme: "light" });
  assert.equal(await back(), light);
}));

test("everything is reached by keyboard, with a focus that is seen", () => withPage({}, async (page) => {
  const focused = () => page.evaluate(() => {
    const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
    return { words: document.activeElement.textContent.trim(), id: document.activeElement.id, seen: outlineStyle !== "none" && outlineWidth !== "0px" };
  });
  const tabTo = async (isThere) => {
    for (let i = 0; i < 40; i += 1) {
      await page.keyboard.press("Tab");
      const now = await focused();
      assert.ok(now.seen, `the focus on “${now.words}” is not seen`);
      if (isThere(now)) return now;
    }
    return assert.fail("Tab does not get there");
  };
  await textBox(page).waitFor();
  await page.keyboard.press("Tab");
  assert.equal((await focused()).words, "Skip to the content");
  await page.keyboard.press("Enter");
  await tabTo(({ id }) => id === "text");
  await page.keyboard.type(TEXT);
  await page.locator(".answers[aria-busy=false] .answer").first().waitFor();
  const [first, second] = await shownAnswers(page);
  await tabTo(({ words }) => words.startsWith(first));
  await page.keyboard.press("ArrowDown");
  assert.ok((await focused()).words.startsWith(second));
  await page.keyboard.press("Enter");
  await page.locator(".why .sources").waitFor();
  assert.equal(await page.locator(".why h2").textContent(), `Why ${second}?`);
  await tabTo(({ words }) => words === "More about this label");
  await page.keyboard.press("Escape");
  assert.ok((await focused()).words.startsWith(second));
  assert.equal(await page.locator(".why h2").count(), 0);
  await page.keyboard.press("Enter");
  await tabTo(({ words }) => words === "More about this label");
  await page.keyboard.press("Enter");
  await page.locator(".cards").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1");
}));

test("texts that look like markup stay texts", () => withPage({}, async (page) => {
  const hostile = `<img src=x onerror="broken=1"> <script>broken=1</script> \u202eRTL مكتبة 👩‍👩‍👧 ${"verylongword".repeat(60)} png`;
  await ask(page, hostile);
  await page.locator(".answer").first().click();
  await page.locator(".why h2").waitFor();
  if (await page.locator(".weighed").count()) assert.equal(await page.locator(".weighed").textContent(), hostile);
  await page.goto(`${base}#/batch`);
  await startBatch(page, hostile);
  await page.getByText("1 of 1 text.").waitFor();
  assert.equal(await page.locator("main img, main script").count(), 0);
  assert.equal(await markers(page), undefined);
}));

test("the copied commands give the same answer", () => withPage({ permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
  const text = "It's a \"PNG\" viewer: $HOME `id` \\ end\nsecond line é 日本";
  await ask(page, text);
  const expected = await api("v1/predict", { text, k: 10 });
  const copied = async (name) => {
    await page.locator(".ask .copy-box").getByRole("button", { name }).click();
    await page.waitForFunction((wanted) => document.querySelector(".ask .copy-box").dataset.copied === wanted, name.replace("Copy as ", ""));
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const run = async (program, values, input) => {
    const { spawn } = await import("node:child_process");
    return new Promise((done) => {
      const child = spawn(program, values, { stdio: ["pipe", "pipe", "inherit"] });
      let out = "";
      child.stdout.on("data", (part) => { out += part; });
      child.on("close", () => done(JSON.parse(out)));
      child.stdin.end(input);
    });
  };
  assert.deepEqual(await run("python3", ["-"], await copied("Copy as Python")), expected);
  if (hasCurl()) assert.deepEqual(await run("sh", [], await copied("Copy as curl")), expected);
}));

function hasCurl() {
  try {
    return execFileSync("curl", ["--version"]).length > 0;
  } catch {
    return false;
  }
}

test("the page forbids itself everything from elsewhere", async () => {
  const response = await fetch(base);
  assert.equal(response.headers.get("Content-Security-Policy"), CSP);
  const html = await response.text();
  assert.doesNotMatch(html, /\s(style|on\w+)=|<style|https?:/);
});

// The views, for the checks that hold in all of them.
const VIEWS = {
  start: async () => {},
  why: async (page) => {
    await ask(page, TEXT);
    await page.locator(".answer").first().click();
    await page.locator(".why .sources").waitFor();
    for (const one of await page.locator(".why summary").all()) await one.click();
    await page.locator(".ask .copy-box button").first().click();
  },
  labels: (page) => page.locator("table.list").waitFor(),
  "labels/0": (page) => page.locator(".cards").waitFor(),
  clusters: (page) => page.locator("table.list").waitFor(),
  "clusters/0": (page) => page.locator(".scored").waitFor(),
  batch: async (page) => {
    await startBatch(page, Array.from({ length: 40 }, (_, i) => `png images ${i} ${"long".repeat(i)}`).join("\n"));
    await page.getByRole("button", { name: "Download as CSV" }).waitFor();
  },
};

for (const [name, prepare] of Object.entries(VIEWS)) {
  const hash = /^(labels|clusters|batch)/.test(name) ? `#/${name}` : "";
  test(`${name}: fits from 400 to 1920 pixels, and axe finds nothing serious, light and dark`, () => withPage({ hash, width: 400 }, async (page) => {
    await prepare(page);
    for (const [width, colorScheme] of [[400, "light"], [400, "dark"], [1280, "dark"], [1280, "light"], [1920, "light"]]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      const here = `at ${width} pixels, ${colorScheme}`;
      const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(inner <= outer, `${here}: ${inner} pixels wide, the window has ${outer}`);
      assert.deepEqual(await axe(page), [], here);
    }
  }));
}
