// What goes wrong, and what tries to: against mocks that misbehave on purpose.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseCsv } from "../page/csv.js";
import { ask, axe, download, startBatch, textBox, withMock, withPage } from "./harness.mjs";
import { HOSTILE } from "./model.mjs";

const names = (page) => page.locator(".answer-name").allTextContents();
const isPredict = ({ path }) => path === "/v1/predict";

// Lets requests through one by one, as the test says.
function gate() {
  const waiting = [];
  const listeners = [];
  return {
    wait: (body) => new Promise((done) => {
      waiting.push({ body, done });
      listeners.splice(0).forEach((tell) => tell());
    }),
    async next() {
      while (waiting.length === 0) await new Promise((tell) => { listeners.push(tell); });
      return waiting.shift();
    },
  };
}

test("an answer that comes late is dropped", async () => {
  const held = gate();
  const before = (request, body) => (isPredict(request) ? held.wait(body) : null);
  await withMock({ before }, (url) => withPage({ url }, async (page) => {
    await textBox(page).fill("png images");
    const first = await held.next();
    await textBox(page).fill("fonts for Arabic");
    const second = await held.next();
    assert.equal(second.body.text, "fonts for Arabic");
    second.done();
    await page.locator(".answer").first().waitFor();
    await page.evaluate(() => {
      globalThis.sawLate = false;
      new MutationObserver(() => {
        globalThis.sawLate ||= document.querySelector(".answers").textContent.includes("too late");
      }).observe(document.querySelector(".answers"), { childList: true, subtree: true });
    });
    first.done({ value: { model: "debian", labels: [{ label: "too late", id: 1, score: 1, probability: 1 }] } });
    // One more question proves that the late answer had its chance.
    await textBox(page).fill("fonts for Arabic ");
    (await held.next()).done();
    await page.locator(".answers[aria-busy=false]").waitFor();
    assert.equal(await page.evaluate(() => globalThis.sawLate), false);
  }));
});

test("a key is asked for, kept for the tab, and not shown in commands", () => withMock({ key: "secret-key" }, (url) => withPage({ url, permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
  const key = page.getByLabel("API key");
  await key.waitFor();
  assert.deepEqual(await axe(page), []);
  await key.fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("The server did not accept this key.").waitFor();
  await key.fill("clé");
  await page.keyboard.press("Enter");
  await page.getByText("A key has only ASCII").waitFor();
  await key.fill("secret-key");
  await page.keyboard.press("Enter");
  await ask(page, "png images");
  const stored = await page.evaluate(() => [sessionStorage.length, localStorage.length]);
  assert.deepEqual(stored, [1, 0]);
  await page.reload();
  await page.locator(".answer").first().waitFor();
  await page.getByRole("button", { name: "Copy as curl" }).first().click();
  await page.locator(".copy-box[data-copied=curl]").waitFor();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(command, /Bearer \$ELIAS_API_KEY/);
  assert.doesNotMatch(command, /secret-key/);
})));

test("answers are corrected with a key that is asked for once, and the next answers heed it", () => {
  const TEXT = "library to read png images";
  const options = { key: "asking", learnKey: "correcting" };
  return withMock(options, (url) => withPage({ url }, async (page) => {
    const giveKey = async (key, title) => {
      await page.getByRole("heading", { name: title }).waitFor();
      await page.getByLabel("API key").fill(key);
      await page.getByRole("button", { name: "Use this key" }).click();
    };
    await giveKey("asking", "This server needs a key");
    await ask(page, TEXT);
    const before = await page.locator(".answer-name").allTextContents();
    await page.getByRole("button", { name: `Wrong: ${before[1]}`, exact: true }).click();
    await giveKey("asking", "Correcting answers needs a key");
    await page.getByText("The server did not accept this key.").waitFor();
    await giveKey("correcting", "Correcting answers needs a key");
    await page.getByText(`Learned: “${before[1]}” is wrong for this text.`).first().waitFor();
    await page.waitForFunction((name) => Array.from(document.querySelectorAll(".answer-name")).every((one) => one.textContent !== name), before[1]);
    const missing = page.getByRole("combobox", { name: "Missing label" });
    await missing.fill("no such label");
    await page.getByRole("button", { name: "Add it" }).click();
    await page.getByText(/not among the labels/).waitFor();
    await missing.fill(before[1].slice(0, 4));
    await page.locator("#missing-labels option").first().waitFor({ state: "attached" });
    await missing.fill(before[1]);
    await page.getByRole("button", { name: "Add it" }).click();
    await page.getByText(`Learned: “${before[1]}” is a label of this text.`).first().waitFor();
    await page.getByText("What was learned").click();
    await page.getByText("2 corrections since the model was written.").waitFor();
    assert.equal(await page.locator(".learned .chip").count(), 2);
    assert.deepEqual(options.learned, [{ text: TEXT, labels: [], not: [before[1]] }, { text: TEXT, labels: [before[1]], not: [] }]);
    assert.deepEqual(await axe(page), []);
  }));
});

test("a server that does not learn offers no corrections", () => withMock({}, (url) => withPage({ url }, async (page) => {
  await ask(page, "png images");
  assert.equal(await page.locator(".wrong:visible, .corrections:visible").count(), 0);
})));

test("without a key the page says what is missing", () => withMock({ key: "secret-key" }, (url) => withPage({ url }, async (page) => {
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("The server needs a key.").waitFor();
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByLabel("API key").fill("secret-key");
  await page.getByRole("button", { name: "Use this key" }).click();
  await textBox(page).waitFor();
})));

test("a busy server is asked again", () => {
  let n = 0;
  const before = (request) => {
    if (!isPredict(request)) return null;
    n += 1;
    return n === 1 ? { status: 429, headers: { "Retry-After": "1" }, value: { error: "the queue is full", error_type: "queue_full" } } : null;
  };
  return withMock({ before }, (url) => withPage({ url }, async (page) => {
    await textBox(page).fill("png images");
    await page.getByText("Trying again in 1 second.").waitFor();
    await page.locator(".answer").first().waitFor();
    assert.equal(n, 2);
  }));
});

test("a server that fails or is gone is reported in words, and asked again on demand", async () => {
  let isBroken = true;
  const before = (request) => (isPredict(request) && isBroken ? { status: 502, value: "x", type: "text/html", file: "<h1>Bad gateway</h1>" } : null);
  await withMock({ before }, (url) => withPage({ url }, async (page) => {
    await textBox(page).fill("png images");
    await page.getByText("The server failed.").waitFor();
    assert.equal(await page.locator(".answers h1").count(), 0);
    isBroken = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator(".answer").first().waitFor();
    await page.context().setOffline(true);
    await textBox(page).fill("fonts");
    await page.getByText("The server cannot be reached.").waitFor();
    await page.context().setOffline(false);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator(".answer").first().waitFor();
  }));
});

test("a model without probabilities says so, and the choice of model is kept", () => withMock({ names: ["sure", "unsure"] }, (url) => withPage({ url }, async (page) => {
  await ask(page, "png images");
  assert.match(await page.locator(".answer-value").first().textContent(), /%$/);
  await page.getByLabel("Model").selectOption("unsure");
  await page.getByText("This model has no probabilities (it was trained on too few texts to calibrate).").waitFor();
  assert.match(await page.locator(".answer-value").first().textContent(), /^0\.\d+$/);
  assert.match(page.url(), /model=unsure/);
  await page.getByRole("link", { name: "Browse" }).click();
  await page.locator("td.name a").first().click();
  await page.locator(".cards").waitFor();
  assert.match(page.url(), /model=unsure/);
  await page.reload();
  await page.locator(".cards").waitFor();
  assert.equal(await page.getByLabel("Model").inputValue(), "unsure");
  await page.goto(`${url}#/predict?model=gone`);
  await page.getByText("There is no model “gone” on this server").waitFor();
})));

test("labels that look like markup, formulas or worse stay labels", () => withMock({}, (url) => withPage({ url, width: 400 }, async (page) => {
  const fits = async () => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth));
  const isClean = async () => {
    assert.equal(await page.evaluate(() => globalThis.broken), undefined);
    assert.equal(await page.locator("main img, main script").count(), 0);
    await fits();
  };
  await page.getByLabel("Maximum answers").fill("20");
  await ask(page, "hostilelabels");
  assert.deepEqual((await names(page)).slice(0, HOSTILE.length), HOSTILE);
  for (const i of HOSTILE.keys()) {
    await page.locator(".answer").nth(i).click();
    await page.locator(".why .sources").waitFor();
    await isClean();
    await page.locator(".answer").nth(i).click();
  }
  for (const name of HOSTILE) {
    await page.goto(`${url}#/labels?query=${encodeURIComponent(name)}`);
    await page.waitForFunction((wanted) => document.querySelector("td.name")?.textContent === wanted, name);
    await isClean();
    await page.locator("td.name a").click();
    await page.waitForFunction((wanted) => document.querySelector("h1")?.textContent === wanted, name);
    await isClean();
  }
  await page.goto(`${url}#/batch`);
  await startBatch(page, "hostilelabels one\n=hostilelabels two\n@hostilelabels three");
  await page.getByText("3 of 3 texts.").waitFor();
  await isClean();
  const cells = parseCsv((await download(page)).text).flatMap((row) => row.fields);
  assert.ok(cells.includes(`'${HOSTILE[2]}`));
  assert.deepEqual(cells.filter((cell) => /^[=+@]/.test(cell)), []);
})));

test("a run can be stopped and continued, and its answers are those of all texts", async () => {
  const held = gate();
  const before = (request, body) => (isPredict(request) ? held.wait(body) : null);
  await withMock({ before, limits: { max_texts: 10 } }, (url) => withPage({ url, hash: "#/batch" }, async (page) => {
    await startBatch(page, Array.from({ length: 35 }, (_, i) => `png images ${i}`).join("\n"));
    (await held.next()).done();
    await page.getByText("10 of 35 texts.").waitFor();
    const cut = await held.next();
    await page.locator("#file").setInputFiles({ name: "other.txt", mimeType: "text/plain", buffer: Buffer.from("fonts") });
    await page.getByText("Stop it before you load other texts.").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("heading", { name: "Stopped" }).waitFor();
    cut.done();
    await page.getByRole("button", { name: "Continue" }).click();
    for (let i = 0; i < 3; i += 1) {
      const piece = await held.next();
      assert.ok(piece.body.texts.length <= 10);
      piece.done();
    }
    await page.getByRole("heading", { name: "Done" }).waitFor();
    const rows = parseCsv((await download(page)).text).map((row) => row.fields).filter((row) => row[2] === "1");
    assert.deepEqual(rows.map((row) => row[0]), Array.from({ length: 35 }, (_, i) => String(i)));
  }));
});

test("a run waits for a busy server, and one refused text does not spoil the rest", async () => {
  let n = 0;
  const before = (request) => {
    if (!isPredict(request)) return null;
    n += 1;
    return n === 1 ? { status: 429, headers: { "Retry-After": "1" }, value: { error: "the queue is full", error_type: "queue_full" } } : null;
  };
  await withMock({ before }, (url) => withPage({ url, hash: "#/batch" }, async (page) => {
    await startBatch(page, "png images\nREFUSE THIS TEXT\nfonts\nmail");
    await page.getByText("The server is busy; continuing in 1 second.").waitFor();
    await page.getByText("4 of 4 texts, 1 could not be labelled.").waitFor();
    assert.match(await page.locator("tbody tr").nth(1).textContent(), /Not labelled: A text is not acceptable/);
    const rows = parseCsv((await download(page)).text).map((row) => row.fields);
    assert.equal(rows[0].at(-1), "error");
    assert.equal(rows.filter((row) => row[2] === "1").length, 3);
  }));
});

test("a server that goes away stops a run, which can be continued", () => {
  let isGone = true;
  const before = (request) => (isPredict(request) && isGone ? { status: 500, value: { error: "out of luck", error_type: "internal" } } : null);
  return withMock({ before }, (url) => withPage({ url, hash: "#/batch" }, async (page) => {
    await startBatch(page, "png images\nfonts");
    await page.getByText("Out of luck.").waitFor();
    isGone = false;
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("2 of 2 texts.").waitFor();
    assert.equal(await page.getByText("Out of luck.").count(), 0);
  }));
});

test("files that cannot be read are refused with the reason", () => withMock({}, (url) => withPage({ url, hash: "#/batch" }, async (page) => {
  const give = (name, content) => page.locator("#file").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(content) });
  await give("bad.csv", 'id,text\n1,"never closed\n');
  await page.getByText("bad.csv: Line 2: a quotation mark is opened and never closed.").waitFor();
  assert.deepEqual(await axe(page), []);
  await give("latin.txt", [0x63, 0x61, 0x66, 0xe9]);
  await page.getByText("latin.txt: This file is not in UTF-8.").waitFor();
  await give("other.csv", "number,words\n1,png images\n");
  await page.getByText("No column is named text or title.").waitFor();
  await page.getByLabel("Text column").selectOption("words");
  await page.getByRole("button", { name: "Label 1 text" }).click();
  await page.getByText("1 of 1 text.").waitFor();
  await give("many.txt", "png\n".repeat(10_001));
  await page.getByText("It has 10,001; the first 10,000 are used.").waitFor();
})));

test("a server without a model is asked again on demand", () => {
  let isEmpty = true;
  const before = ({ path }) => (path === "/v1/models" && isEmpty ? { value: { models: [] } } : null);
  return withMock({ before }, (url) => withPage({ url }, async (page) => {
    await page.getByText("It has no model yet.").waitFor();
    isEmpty = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await textBox(page).waitFor();
  }));
});

test("texts and addresses beyond the limits are explained", () => withMock({ limits: { max_text_bytes: 50 } }, (url) => withPage({ url }, async (page, context, seen) => {
  await textBox(page).fill("é".repeat(26));
  await page.getByText("This text has 52 bytes; the limit is 50 bytes.").waitFor();
  assert.deepEqual(seen.requests.filter((one) => one.endsWith("/v1/predict")), []);
  await page.goto(`${url}#/labels/99999999`);
  await page.getByText("There is nothing here.").waitFor();
  await page.goto(`${url}#/clusters/..%2F..%2Fmodels`);
  await page.getByText("is not the number of a cluster.").waitFor();
  await page.goto(`${url}#/labels?offset=900000`);
  await page.getByText("There is nothing this far down the list.").waitFor();
  await page.goto(`${url}#/nowhere/%E0%A4%A`);
  await textBox(page).waitFor();
})));
