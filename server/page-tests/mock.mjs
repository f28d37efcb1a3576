// A server that speaks the page's half of the HTTP contract. `node mock.mjs [PORT]` starts it by hand.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import { loadModel } from "./model.mjs";

export const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PAGE = new URL("../page/", import.meta.url);
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };

class Refusal extends Error {
  constructor(status, type, message) {
    super(message);
    Object.assign(this, { status, type });
  }
}

const ORDERS = {
  id: () => 0,
  name: (a, b) => (a.label.toLowerCase() < b.label.toLowerCase() ? -1 : 1),
  count: (a, b) => b.n_points - a.n_points,
};

let model;

// Options: `key`, `names` of the models (those after the first have no probabilities), `limits`,
// `before(request, body)` which may wait, or return {status, headers, value} instead of the answer.
export async function startMock(options = {}) {
  model ??= loadModel();
  const server = createServer((request, response) => {
    answer(request, options).catch((error) => {
      const status = error.status ?? 500;
      return { status, value: { error: error.message, error_type: error.type ?? "internal" } };
    }).then(({ status = 200, headers = {}, value, file, type }) => {
      const sent = file ?? JSON.stringify(value);
      response.writeHead(status, {
        "Content-Type": type ?? "application/json", "Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff", ...headers,
      });
      response.end(sent);
    });
  });
  await new Promise((done) => { server.listen(options.port ?? 0, "127.0.0.1", done); });
  const url = `http://127.0.0.1:${server.address().port}/`;
  return { url, stop: () => { server.closeAllConnections(); server.close(); } };
}

async function answer(request, options) {
  const url = new URL(request.url, "http://localhost");
  const path = url.pathname;
  if (!path.startsWith("/v1/")) return page(path);
  const isLearning = path === "/v1/learn" || path === "/v1/learned";
  const key = isLearning ? options.learnKey : options.key;
  if (isLearning && !key) throw new Refusal(403, "forbidden", "this service does not learn");
  if (key && request.headers.authorization !== `Bearer ${key}`) {
    throw new Refusal(401, "unauthorized", "the API key is missing or wrong");
  }
  const body = request.method === "POST" ? await readBody(request) : null;
  const instead = await options.before?.({ path, method: request.method }, body);
  if (instead) return instead;
  const names = options.names ?? ["debian"];
  const name = (body ? body.model : url.searchParams.get("model")) ?? names[0];
  if (!names.includes(name)) throw new Refusal(404, "unknown_model", `there is no model "${name}"`);
  const hasProbabilities = name === names[0];
  if (isLearning) return { value: learn(body, name, options) };
  const value = route(path, request.method, url.searchParams, body, { names, name, hasProbabilities, limits: limitsOf(options), learns: Boolean(options.learnKey) });
  for (const { text, not } of options.learned ?? []) {
    if (path === "/v1/predict" && body.text === text) value.labels = value.labels.filter(({ label }) => !not.includes(label));
  }
  return { value };
}

// Remembers corrections in `options`; wrong labels are gone from the answers to the same text.
function learn(body, name, options) {
  options.learned ??= [];
  if (body) {
    const { text, labels = [], not = [] } = body;
    const unknown = [...labels, ...not].find((label) => !model.names.includes(label));
    if (unknown) throw new Refusal(404, "not_found", `labels: "${unknown}" is not among the labels of the model`);
    options.learned.push({ text, labels, not });
    return { model: name, n_learned: options.learned.length };
  }
  return { model: name, n_learned: options.learned.length, recent: options.learned.slice(-20).reverse() };
}

function limitsOf(options) {
  return { max_texts: 1000, max_text_bytes: 100_000, max_body_bytes: 2_000_000, timeout_ms: 30_000, ...options.limits };
}

function route(path, method, query, body, { names, name, hasProbabilities, limits, learns }) {
  if (path === "/v1/models") return { models: names.map((one, i) => ({ ...modelInfo(one, i === 0), learns })) };
  if (path === "/v1/limits") return limits;
  if (path === "/v1/predict" && method === "POST") return predict(body, name, hasProbabilities, limits);
  if (path === "/v1/explain" && method === "POST") {
    return { model: name, ...model.explain(body.text, body.k ?? 10, hasProbabilities) };
  }
  const [, , kind, id] = path.split("/");
  const limit = Number(query.get("limit") ?? 50);
  const offset = Number(query.get("offset") ?? 0);
  const wanted = (query.get("query") ?? "").toLowerCase();
  if (kind === "labels" && id === undefined) {
    const found = model.names.map((label, i) => ({ id: i, label, n_points: model.members[i].length }))
      .filter(({ label }) => label.toLowerCase().includes(wanted));
    found.sort(ORDERS[query.get("sort") ?? "id"]);
    return { model: name, total: found.length, labels: found.slice(offset, offset + limit) };
  }
  if (kind === "labels" && model.names[id] !== undefined) {
    return {
      id: Number(id), label: model.names[id], n_points: model.members[id].length, clusters: model.clustersOf(Number(id)),
      words: model.wordsFor(Number(id)).slice(0, 20),
      examples: model.members[id].slice(0, 5).map((point) => ({ point, words: Array.from(model.rows[point].keys()).slice(0, 12) })),
    };
  }
  if (kind === "clusters" && id === undefined) {
    const found = model.clusters.map((labels, cluster) => ({ cluster, n_labels: labels.length, labels: labels.map(({ label }) => label) }))
      .filter(({ labels }) => wanted === "" || labels.some((label) => label.toLowerCase().includes(wanted)));
    const shown = found.slice(offset, offset + limit).map((one) => ({ ...one, labels: one.labels.slice(0, 5) }));
    return { total: found.length, clusters: shown };
  }
  if (kind === "clusters" && model.clusters[id]) {
    return { cluster: Number(id), labels: model.clusters[id].slice(0, 100), n_labels: model.clusters[id].length };
  }
  throw new Refusal(404, "not_found", "there is nothing at this address");
}

function modelInfo(name, hasProbabilities) {
  return {
    name, n_labels: model.names.length, n_points: model.points.length, n_members: 2, encoder: "bag", has_probabilities: hasProbabilities,
    why_no_probabilities: hasProbabilities ? null : "it was trained on too few texts to calibrate", takes_texts: true, loaded_at: "2026-11-17T08:00:00Z",
  };
}

function predict(body, name, hasProbabilities, limits) {
  const { text, texts, k = 10, threshold = 0 } = body;
  const all = texts ?? [text];
  if (all.length > limits.max_texts) throw new Refusal(413, "too_many_texts", `there are ${all.length} texts, the limit is ${limits.max_texts}`);
  if (all.some((one) => typeof one !== "string" || one === "REFUSE THIS TEXT")) throw new Refusal(422, "bad_text", "a text is not acceptable");
  const results = all.map((one) => ({
    labels: model.predict(one, k, hasProbabilities).filter((label) => (label.probability ?? label.score) >= threshold),
  }));
  return texts ? { model: name, results } : { model: name, ...results[0] };
}

async function readBody(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    throw new Refusal(400, "bad_json", "the body is not JSON");
  }
}

async function page(path) {
  const name = path === "/" ? "index.html" : path.slice(1);
  if (!/^[a-z-]+\.(html|js|css|svg)$/.test(name)) throw new Refusal(404, "not_found", "there is nothing at this address");
  try {
    return { file: await readFile(new URL(name, PAGE)), type: TYPES[name.split(".").pop()] };
  } catch {
    throw new Refusal(404, "not_found", "there is nothing at this address");
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { url } = await startMock({ port: Number(process.argv[2] ?? 8090), names: ["debian", "uncalibrated"] });
  console.log(url);
}
