// Sends many texts in pieces that the server accepts, and keeps the answers in order.
//
// A piece that is refused as a whole (too large, too slow, a bad value) is halved until the text at fault stands alone;
// that text gets the server's message, the others their answers. A busy server is asked again when it says so.

const MAX_PIECE = 256;
const MAX_WAITS = 12;
const encoder = new TextEncoder();

export class BatchRun {
  // `post(path, body, signal)` sends a request; `sleep(seconds, signal)` waits.
  constructor(rows, settings, limits, { post, sleep }) {
    this.rows = rows;
    this.settings = settings;
    this.limits = limits;
    this.post = post;
    this.sleep = sleep;
    // Per row {labels} or {error}; undefined before it is answered.
    this.results = new Array(rows.length);
    this.at = 0;
    this.failed = 0;
    this.waiting = null;
  }

  get isDone() {
    return this.at >= this.rows.length;
  }

  // Answers what is not answered yet. Ends when all is done; throws what stops it, and can be called again to go on.
  async run(changed, signal) {
    while (!this.isDone) {
      const end = this.pieceEnd(this.at);
      await this.answer(this.at, end, signal);
      this.at = end;
      changed();
    }
  }

  // Where the piece that begins at `start` ends: within the server's limits.
  pieceEnd(start) {
    const { max_texts: maxTexts, max_body_bytes: maxBytes } = this.limits;
    let size = encoder.encode(JSON.stringify(this.body([]))).length + 16;
    let end = start;
    while (end < this.rows.length && end - start < Math.min(maxTexts, MAX_PIECE)) {
      size += this.problemOf(end) ? 0 : encoder.encode(JSON.stringify(this.rows[end].text)).length + 1;
      if (size > maxBytes && end > start) break;
      end += 1;
    }
    return end;
  }

  body(texts) {
    return { texts, ...this.settings };
  }

  // Why a text need not be sent, if so.
  problemOf(i) {
    const { text } = this.rows[i];
    if (text.trim() === "") return "the text is empty";
    const limit = this.limits.max_text_bytes;
    const isLong = text.length > limit || (3 * text.length > limit && encoder.encode(text).length > limit);
    return isLong ? `the text is longer than the ${limit} bytes that the server accepts` : null;
  }

  async answer(start, end, signal) {
    const sent = [];
    for (let i = start; i < end; i += 1) {
      const error = this.problemOf(i);
      if (error) this.fail(i, error);
      else sent.push(i);
    }
    await this.send(sent, signal);
  }

  async send(places, signal) {
    if (places.length === 0) return;
    try {
      const answer = await this.patiently(this.body(places.map((i) => this.rows[i].text)), signal);
      if (answer.results?.length !== places.length) {
        throw new Error(`The server answered ${answer.results?.length ?? 0} of ${places.length} texts. Tell whoever runs it.`);
      }
      places.forEach((i, j) => { this.results[i] = { labels: answer.results[j].labels }; });
    } catch (error) {
      if (![400, 413, 422, 504].includes(error.status)) throw error;
      if (places.length === 1) return this.fail(places[0], error.message);
      const half = places.length >> 1;
      await this.send(places.slice(0, half), signal);
      await this.send(places.slice(half), signal);
    }
  }

  async patiently(body, signal) {
    for (let tries = 0; ; tries += 1) {
      try {
        return await this.post("v1/predict", body, signal);
      } catch (error) {
        if (![429, 503].includes(error.status) || tries >= MAX_WAITS) throw error;
        const seconds = Math.min(60, error.retryAfter ?? 2 ** Math.min(tries, 5));
        this.waiting = seconds;
        try {
          await this.sleep(seconds, signal);
        } finally {
          this.waiting = null;
        }
      }
    }
  }

  fail(i, error) {
    if (!this.results[i]?.error) this.failed += 1;
    this.results[i] = { error };
  }
}

// The answers that are shown as a table: one row per answer, with the columns of `elias predict --output-format csv` and the text.
export function tableOf(rows, results, isShown = () => true) {
  const hasIds = rows.some((row) => row.id !== null);
  const hasErrors = results.some((result) => result?.error);
  const head = [hasIds ? "id" : "row", "text", "rank", "label", "score", "probability", ...(hasErrors ? ["error"] : [])];
  const body = rows.flatMap((row, i) => {
    const start = [hasIds ? (row.id ?? "") : i, row.text];
    const result = results[i];
    if (!result) return [];
    const end = hasErrors ? [result.error ?? null] : [];
    // A text without answers keeps a row, so that none is lost.
    const labels = result.labels?.filter(isShown) ?? [];
    if (labels.length === 0) return [[...start, null, null, null, null, ...end]];
    return labels.map((label, j) => [...start, j + 1, label.label, label.score, label.probability, ...end]);
  });
  return [head, ...body];
}
