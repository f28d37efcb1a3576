// The modules of the page that need no browser.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { describe, test } from "node:test";
import { BatchRun, tableOf } from "../page/batch-run.js";
import { parseCsv, separatorOf, writeCsv } from "../page/csv.js";
import { count, percent, score, shorten, signed } from "../page/format.js";
import { hashOf, parseHash } from "../page/router.js";
import { asCurl, asPython, shellQuote } from "../page/snippets.js";
import { decode, MAX_TEXTS, readTexts } from "../page/texts.js";
import { tokens, weigh } from "../page/words.js";

const NASTY = "It's \"quoted\" $HOME `id` \\n \n\ttab \u2028 é 日本 👩‍👩‍👧 !! %s {x} \u0000 end\\";

describe("CSV", () => {
  const fields = (text, separator) => parseCsv(text, separator).map((row) => row.fields);

  test("fields are read as RFC 4180 has them", () => {
    assert.deepEqual(fields('a,"b ""c"", d"\r\n"x\ny",\r\n'), [["a", 'b "c", d'], ["x\ny", ""]]);
    assert.deepEqual(fields("\ufeffid;text\n\n1;b\n", ";"), [["id", "text"], ["1", "b"]]);
    assert.deepEqual(fields('a\t"b\tc"', "\t"), [["a", "b\tc"]]);
    assert.deepEqual(fields(",\n"), [["", ""]]);
    assert.deepEqual(fields(""), []);
  });

  test("rows know the line they begin on", () => {
    assert.deepEqual(parseCsv('a\n"b\nc"\n\nd\n').map((row) => row.line), [1, 2, 5]);
  });

  test("a quotation mark that is not closed is named with its line", () => {
    assert.throws(() => parseCsv('a\nb,"c\nd'), /Line 2: a quotation mark/);
    assert.throws(() => parseCsv('"a"b'), /Line 1: there is text after/);
  });

  test("the separator is found by the header", () => {
    assert.equal(separatorOf("id;text\n1;a,b,c"), ";");
    assert.equal(separatorOf('id\t"a,b,c,d"'), "\t");
    assert.equal(separatorOf("text"), ",");
  });

  test("what is written is read back", () => {
    const rows = [["id", "text"], ["1", 'say "hi",\r\nthere '], ["2", NASTY]];
    assert.deepEqual(fields(writeCsv(rows)), rows);
  });

  test("python reads what is written", () => {
    const csv = writeCsv([["a", "b"], ["x,\"y\"", "1\n2"]]);
    const program = "import csv,io,json,sys; print(json.dumps(list(csv.reader(io.StringIO(sys.stdin.buffer.read().decode('utf-8-sig'), newline='')))))";
    const read = JSON.parse(execFileSync("python3", ["-c", program], { input: csv }).toString());
    assert.deepEqual(read, [["a", "b"], ["x,\"y\"", "1\n2"]]);
  });

  test("a text that a spreadsheet would run gets an apostrophe, a number does not", () => {
    const written = (value) => writeCsv([[value]]).slice(1).trimEnd();
    assert.equal(written("=1+1"), "'=1+1");
    assert.equal(written("+cmd"), "'+cmd");
    assert.equal(written("-2+3"), "'-2+3");
    assert.equal(written("@SUM(A1)"), "'@SUM(A1)");
    assert.equal(written('=A1,"x"'), '"\'=A1,""x"""');
    assert.equal(written("\t=1"), '"\'\t\'=1"');
    assert.equal(written("\n=1+1"), '"\'\n\'=1+1"');
    assert.equal(written("\u200b=1"), "'\u200b=1");
    assert.equal(written("a;=1+1"), "a;'=1+1");
    assert.equal(written("a; b-c; -5"), "a; b-c; -5");
    assert.equal(written(-0.25), "-0.25");
    assert.equal(written("-17"), "-17");
    assert.equal(written(null), "");
  });
});

describe("texts", () => {
  const check = (text, name, kind, rows) => {
    const found = readTexts(text, name);
    assert.deepEqual([found.kind, found.rows], [kind, rows]);
  };

  test("a table keeps ids and joins title and abstract", () => {
    check('ID,Title,Abstract\n7,A,"b, c"\n8,,d\n', "x.csv", "table", [{ id: "7", text: "A b, c" }, { id: "8", text: "d" }]);
    check("text;n\na;1\n", "", "table", [{ id: null, text: "a" }]);
    check("title\tcontent\na\tb\n", "x.tsv", "table", [{ id: null, text: "a b" }]);
  });

  test("JSON Lines are read with or without ids", () => {
    check('{"id": 5, "text": "a\\nb"}\n\n{"title": "c", "abstract": "d"}\n', "", "jsonl", [{ id: "5", text: "a\nb" }, { id: null, text: "c d" }]);
  });

  test("everything else is one text per line", () => {
    check("Hello, world\r\n\r\nsecond\r\n", "", "lines", [{ id: null, text: "Hello, world" }, { id: null, text: "second" }]);
    check("text,title\nx", "notes.txt", "lines", [{ id: null, text: "text,title" }, { id: null, text: "x" }]);
  });

  test("a table without a column of texts asks for one", () => {
    const found = readTexts("a,b\n1,x y\n", "x.csv");
    assert.deepEqual([found.rows, found.columns], [null, ["a", "b"]]);
    assert.deepEqual(readTexts("a,b\n1,x y\n", "x.csv", "b").rows, [{ id: null, text: "x y" }]);
  });

  test("faults are named with their line", () => {
    assert.throws(() => readTexts("id,text\n1,a,b\n", "x.csv"), /Line 2: it has 3 fields, the header has 2/);
    assert.throws(() => readTexts('{"text": "a"}\n{"text": 1}\n', "x.jsonl"), /Line 2: there is no "text"/);
    assert.throws(() => readTexts('{"text": "a"}\nno\n', "x.jsonl"), /Line 2: this is not JSON/);
    assert.throws(() => readTexts(" \n", ""), /no text/);
    assert.throws(() => decode(new Uint8Array([0x61, 0xff])), /not in UTF-8/);
    assert.throws(() => decode(new Uint8Array([0x1f, 0x8b, 8])), /compressed/);
  });

  test("UTF-16 as spreadsheets write it is read", () => {
    assert.equal(decode(new Uint8Array([0xff, 0xfe, 0x61, 0, 0xe9, 0])), "aé");
  });

  test("more than the limit is cut and counted", () => {
    const found = readTexts("x\n".repeat(MAX_TEXTS + 5));
    assert.deepEqual([found.rows.length, found.total], [MAX_TEXTS, MAX_TEXTS + 5]);
  });
});

describe("snippets", () => {
  const request = { url: "http://h/v1/predict", body: { text: NASTY, k: 5, texts: ["a'b", "c"] } };

  test("a shell gives back what was quoted", () => {
    const text = NASTY.replaceAll("\u0000", "");
    assert.equal(execFileSync("sh", ["-c", `printf %s ${shellQuote(text)}`]).toString(), text);
  });

  test("curl sends the body as it is", () => {
    const command = asCurl(request).replace("curl -sS", "printf '%s\\n'");
    const lines = execFileSync("sh", ["-c", command]).toString();
    assert.deepEqual(JSON.parse(lines.slice(lines.indexOf("\n{") + 1)), request.body);
  });

  test("Python reads the body as it is", () => {
    const program = asPython(request).split("\n").find((line) => line.startsWith("body = "));
    const printed = execFileSync("python3", ["-"], { input: `${program}\nimport json\nprint(json.dumps(body))` });
    assert.deepEqual(JSON.parse(printed.toString()), request.body);
  });

  test("the key is named, never shown", () => {
    assert.match(asCurl({ ...request, hasKey: true }), /Bearer \$ELIAS_API_KEY"/);
    assert.match(asPython({ ...request, hasKey: true }), /os\.environ\["ELIAS_API_KEY"\]/);
    execFileSync("python3", ["-c", `compile(${JSON.stringify(asPython({ url: "http://h/", hasKey: true }))}, "x", "exec")`]);
  });
});

describe("words", () => {
  test("words are cut as the model cuts them", () => {
    const check = (text, words) => assert.deepEqual(tokens(text).map((token) => token.lowered), words);
    check("A C++ parser", ["a", "c", "parser"]);
    check("snake_case x2", ["snake_case", "x2"]);
    check("Café-Straße é", ["café", "straße", "é"]);
    check("naïve’s", ["naïve", "s"]);
    check("cafe\u0301s \u0301a", ["cafe\u0301s", "a"]);
    check("x²½ Ⅷ", ["x²½", "ⅷ"]);
    check("日本x語 한국어", ["日", "本", "x", "語", "한국어"]);
    check("a😀b\u00a0cd", ["a", "b", "cd"]);
  });

  test("pieces join to the text, and runs of words share their weight", () => {
    const text = "Read PNG, read PNG images!";
    const pieces = weigh(text, [["png", 1], ["png images", -0.5]]);
    assert.equal(pieces.map((piece) => piece.text).join(""), text);
    const weighed = pieces.filter((piece) => piece.weight !== null).map((piece) => [piece.text, piece.weight]);
    assert.deepEqual(weighed, [["PNG", 1], ["PNG", 0.75], ["images", -0.25]]);
  });
});

describe("addresses and numbers", () => {
  test("an address is read back", () => {
    const { path, query } = parseHash(hashOf(["labels", "a/b?c"], { query: "x&y=z #é", none: null }));
    assert.deepEqual([path, Object.fromEntries(query)], [["labels", "a/b?c"], { query: "x&y=z #é" }]);
    assert.deepEqual(parseHash("#/%E0%A4%A").path, ["%E0%A4%A"]);
  });

  test("numbers are written as people read them", () => {
    assert.deepEqual([0, 0.0004, 0.034, 0.48, 0.9999, 1].map(percent), ["0%", "< 0.1%", "3.4%", "48%", "> 99.9%", "100%"]);
    const shares = Array.from({ length: 100_001 }, (_, i) => i / 100_000);
    const size = (words) => Number(words.replace(/[<>%\s]/g, "")) + (words.startsWith(">") ? 0.01 : words.startsWith("<") ? -0.01 : 0);
    for (let i = 1; i < shares.length; i += 1) {
      const [less, more] = [percent(shares[i - 1]), percent(shares[i])];
      assert.ok(size(less) <= size(more), `${less} ${more}`);
      assert.equal(more === "100%", shares[i] === 1);
    }
    assert.deepEqual([0.5, 0.0041, -0.2, null].map(score), ["0.500", "0.0041", "−0.200", "–"]);
    assert.deepEqual([1.2, -0.03].map(signed), ["+1.20", "−0.030"]);
    assert.equal(count(10000, "text"), "10,000 texts");
    assert.equal(shorten("a  b\nc", 10), "a b c");
    assert.equal(shorten("x".repeat(500), 5), "xxxx…");
  });
});

describe("a run of many texts", () => {
  const limits = { max_texts: 4, max_text_bytes: 10, max_body_bytes: 1000 };
  const refusal = (status, message) => Object.assign(new Error(message), { status });

  async function run(texts, respond, limit = limits) {
    const sent = [];
    const slept = [];
    const post = async (path, body) => {
      sent.push(body.texts);
      await respond(body.texts, sent.length);
      return { results: body.texts.map((text) => ({ labels: [{ label: `of ${text}`, score: 0.5, probability: null }] })) };
    };
    const sleep = async (seconds) => { slept.push(seconds); };
    const batch = new BatchRun(texts.map((text) => ({ id: null, text })), { k: 1 }, limit, { post, sleep });
    await batch.run(() => {}, null);
    return { batch, sent, slept };
  }

  test("texts are sent in pieces within the limits, answers keep their order", async () => {
    const texts = Array.from({ length: 10 }, (_, i) => `t${i}`);
    const { batch, sent } = await run(texts, () => {});
    assert.deepEqual(sent.map((piece) => piece.length), [4, 4, 2]);
    assert.deepEqual(batch.results.map((result) => result.labels[0].label), texts.map((text) => `of ${text}`));
  });

  test("no piece is larger than the body may be", async () => {
    const { sent } = await run(Array(6).fill("ééééé"), (texts) => {
      assert.ok(Buffer.byteLength(JSON.stringify({ texts, k: 1 })) <= 60);
    }, { ...limits, max_body_bytes: 60 });
    assert.equal(sent.flat().length, 6);
  });

  test("empty and long texts are not sent", async () => {
    const { batch, sent } = await run(["", "x".repeat(11), "ok"], () => {});
    assert.deepEqual(sent, [["ok"]]);
    assert.match(batch.results[0].error, /empty/);
    assert.match(batch.results[1].error, /longer than the 10 bytes/);
    assert.equal(batch.failed, 2);
  });

  test("one bad text does not spoil the others", async () => {
    const { batch } = await run(["a", "b", "bad", "d"], (texts) => {
      if (texts.includes("bad")) throw refusal(422, "no");
    });
    assert.deepEqual(batch.results.map((result) => result.error ?? "fine"), ["fine", "fine", "no", "fine"]);
  });

  test("a busy server is asked again when it says so", async () => {
    const { batch, slept } = await run(["a"], (_, n) => {
      if (n === 1) throw Object.assign(refusal(429, "busy"), { retryAfter: 7 });
      if (n === 2) throw refusal(503, "starting");
    });
    assert.deepEqual(slept, [7, 2]);
    assert.ok(batch.isDone);
  });

  test("a server that answers too little stops the run", async () => {
    const post = async () => ({ results: [] });
    const batch = new BatchRun([{ id: null, text: "a" }], {}, limits, { post, sleep: null });
    await assert.rejects(batch.run(() => {}, null), /0 of 1 texts/);
    assert.equal(batch.at, 0);
  });

  test("the table has a row per answer, and one for a text without any", () => {
    const rows = [{ id: "x", text: "a" }, { id: "y", text: "b" }, { id: "z", text: "c" }];
    const results = [{ labels: [{ label: "l", score: 0.5, probability: 0.4 }] }, { labels: [] }, { error: "no" }];
    assert.deepEqual(tableOf(rows, results), [
      ["id", "text", "rank", "label", "score", "probability", "error"],
      ["x", "a", 1, "l", 0.5, 0.4, null],
      ["y", "b", null, null, null, null, null],
      ["z", "c", null, null, null, null, "no"],
    ]);
    const shown = tableOf(rows, results, (label) => label.score > 0.6);
    assert.deepEqual(shown[1], ["x", "a", null, null, null, null, null]);
    assert.deepEqual(tableOf([{ id: null, text: "a" }], [{ labels: [] }])[0], ["row", "text", "rank", "label", "score", "probability"]);
  });
});
