// A stand-in for a trained model: nearest training examples vote for labels. It answers in the shape of the real one,
// from the bundled data set, with a few labels added that try to break the page.

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { tokens } from "../page/words.js";

const DATA = new URL("../../data/debian-small/train.jsonl.gz", import.meta.url);
const N_CLUSTERS = 90;
const LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft".repeat(4);

export const HOSTILE = [
  '<img src=x onerror="globalThis.broken=true">',
  "</script><script>globalThis.broken=true</script>",
  "=HYPERLINK(\"http://example.invalid\",\"click\")",
  "\u202eright to left override",
  "مكتبة صور عربية",
  "👩‍👩‍👧‍👦 family 🏳️‍🌈",
  LONG,
  "javascript:alert(1)",
];

export function loadModel() {
  const lines = gunzipSync(readFileSync(DATA)).toString("utf8").trim().split("\n").map((line) => JSON.parse(line));
  const points = lines.map(({ text, labels }) => ({ text, labels }));
  points.push({ text: "hostilelabels for testing the page", labels: HOSTILE });
  return new Model(points);
}

const round = (value) => Math.fround(value);

class Model {
  constructor(points) {
    this.points = points;
    this.names = [];
    this.ids = new Map();
    this.members = [];
    this.answered = new Map();
    this.frequencies = new Map();
    points.forEach((point, row) => {
      for (const name of point.labels) {
        if (!this.ids.has(name)) {
          this.ids.set(name, this.names.length);
          this.names.push(name);
          this.members.push([]);
        }
        this.members[this.ids.get(name)].push(row);
      }
      for (const word of new Set(wordsOf(point.text))) this.frequencies.set(word, (this.frequencies.get(word) ?? 0) + 1);
    });
    this.rows = points.map((point) => this.weigh(point.text));
    // The mean weight of each word.
    this.usual = new Map();
    this.postings = new Map();
    this.rows.forEach((row, i) => {
      for (const [word, weight] of row) {
        this.usual.set(word, (this.usual.get(word) ?? 0) + weight / this.rows.length);
        if (this.frequencies.get(word) > 1500) continue;
        if (!this.postings.has(word)) this.postings.set(word, []);
        this.postings.get(word).push([i, weight]);
      }
    });
    this.clusters = Array.from({ length: N_CLUSTERS }, () => []);
    this.names.forEach((name, id) => {
      for (const { cluster, edge_score } of this.clustersOf(id)) this.clusters[cluster].push({ id, label: name, edge_score });
    });
    for (const labels of this.clusters) labels.sort((a, b) => b.edge_score - a.edge_score);
  }

  weigh(text) {
    const counts = new Map();
    for (const word of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + 1);
    const row = new Map();
    let norm = 0;
    for (const [word, n] of counts) {
      const frequency = this.frequencies.get(word);
      if (!frequency) continue;
      const weight = (1 + Math.log(n)) * Math.log(1 + this.points.length / frequency);
      row.set(word, weight);
      norm += weight * weight;
    }
    for (const [word, weight] of row) row.set(word, weight / Math.sqrt(norm));
    return row;
  }

  nearest(row, n) {
    const sums = new Map();
    for (const [word, weight] of row) {
      for (const [i, other] of this.postings.get(word) ?? []) sums.set(i, (sums.get(i) ?? 0) + weight * other);
    }
    return Array.from(sums, ([point, similarity]) => ({ point, similarity }))
      .sort((a, b) => b.similarity - a.similarity || a.point - b.point).slice(0, n);
  }

  // Many texts of a test are the same, so answers are kept.
  predict(text, k, hasProbabilities = true) {
    const key = `${k} ${hasProbabilities} ${text}`;
    if (!this.answered.has(key)) this.answered.set(key, this.rank(text, k, hasProbabilities));
    return this.answered.get(key);
  }

  rank(text, k, hasProbabilities) {
    const votes = new Map();
    for (const { point, similarity } of this.nearest(this.weigh(text), 20)) {
      for (const name of this.points[point].labels) votes.set(name, (votes.get(name) ?? 0) + similarity ** 2);
    }
    const ranked = Array.from(votes).sort((a, b) => b[1] - a[1] || this.ids.get(a[0]) - this.ids.get(b[0])).slice(0, k);
    return ranked.map(([label, vote]) => {
      const score = round(vote / (vote + 0.4));
      return { label, id: this.ids.get(label), score, probability: hasProbabilities ? round(0.9 * score) : null };
    });
  }

  explain(text, k, hasProbabilities) {
    const row = this.weigh(text);
    const near = this.nearest(row, 20);
    const answers = this.predict(text, k, hasProbabilities).map((answer) => this.reasons(answer, row, near));
    const neighbours = near.slice(0, 5).map(({ point, similarity }) => ({
      point, similarity: round(similarity), labels: this.points[point].labels,
      text: point % 2 ? null : this.points[point].text,
    }));
    return { text, words: Array.from(row.keys()), answers, neighbours };
  }

  reasons(answer, row, near) {
    const words = this.wordsFor(answer.id, row).slice(0, 8);
    const has = near.filter(({ point }) => this.points[point].labels.includes(answer.label));
    const votes = has.reduce((sum, { similarity }) => sum + similarity ** 2, 0);
    const name = wordsOf(answer.label).filter((word) => row.has(word)).length / Math.max(1, wordsOf(answer.label).length);
    const members = [0, 1].map((member) => {
      const paths = this.clustersOf(answer.id).map(({ cluster, edge_score }) => ({
        cluster, cluster_score: round(chance(cluster + answer.id + member)), edge_score,
      })).sort((a, b) => b.cluster_score * b.edge_score - a.cluster_score * a.edge_score);
      const reached = member === 1 && answer.id % 5 === 0 ? [] : paths;
      const shortlist_score = reached.length ? reached[0].cluster_score * reached[0].edge_score : 0;
      const relevance = round(0.3 + 0.6 * chance(answer.id + 7));
      const sum = words.reduce((total, [, weight]) => total + weight, 0);
      return {
        place: reached.length ? 1 + (answer.id % 9) : null, paths: reached, shortlist_score, relevance,
        model_score: shortlist_score * relevance,
        ranker: { margin: sum - 0.4, score: 1 / (1 + Math.exp(0.4 - sum)), embedding: 0, intercept: -0.4, words },
        sources: {
          score: answer.score, without_network: answer.score * 0.8, without_ranker: answer.score * 1.15,
          without_neighbours: answer.score * 0.3, without_names: answer.score * (name ? 0.9 : 1),
        },
        score: answer.score,
      };
    });
    return {
      ...answer, n_points: this.members[answer.id].length,
      votes: has.length ? { score: votes, nearest: has[0].similarity } : null,
      name: name ? { cosine: name * 0.8, contained: name } : null, members,
    };
  }

  // The mean weight of each word in the label's examples, less its usual weight; times its weight in the text, if given.
  wordsFor(id, row = null) {
    const rows = this.members[id].slice(0, 40).map((point) => this.rows[point]);
    const sums = new Map();
    for (const one of rows) for (const [word, weight] of one) sums.set(word, (sums.get(word) ?? 0) + weight / rows.length);
    const words = row ? Array.from(row.keys()) : Array.from(sums.keys());
    return words.map((word) => [word, round(((sums.get(word) ?? 0) - this.usual.get(word)) * (row ? 3 * row.get(word) : 4))])
      .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  }

  clustersOf(id) {
    const first = hash(this.names[id].slice(0, 5)) % N_CLUSTERS;
    const others = [hash(this.names[id]) % N_CLUSTERS, (first + id) % N_CLUSTERS].slice(0, 1 + (id % 2));
    return Array.from(new Set([first, ...others]), (cluster, i) => ({ cluster, edge_score: round((i ? 0.2 : 0.6) + 0.39 * chance(id + i)) }));
  }
}

function wordsOf(text) {
  return tokens(text).map((token) => token.lowered);
}

function hash(text) {
  let value = 2166136261;
  for (const character of text) value = Math.imul(value ^ character.codePointAt(0), 16777619) >>> 0;
  return value;
}

function chance(seed) {
  return (hash(String(seed)) % 1000) / 1000;
}
