// The one way to the server. Addresses are relative to the page, so it also works below a path of a reverse proxy;
// nothing is ever sent to another host.

import { askForKey, savedKey } from "./key.js";

// What went wrong, in words for the page: a title, the server's message, what to do.
export class Problem extends Error {
  constructor(status, message, { retryAfter = null, type = null } = {}) {
    super(message);
    this.status = status;
    this.type = type;
    this.retryAfter = retryAfter;
    [this.title, this.remedy] = WORDS[status] ?? (status >= 500 ? WORDS[500] : ["The server refused this.", ""]);
  }
}

const WORDS = {
  0: ["The server cannot be reached.", "Check that it is still running and that you are connected, then try again."],
  401: ["The server needs a key.", "Ask whoever runs the server for the API key, then try again."],
  403: ["The server does not allow this.", "Ask whoever runs the server."],
  404: ["There is nothing here.", "The address may be old: the model may have been replaced since."],
  409: ["The model cannot take this now.", "Wait a moment, then try again."],
  413: ["That is more than the server accepts at once.", "Shorten the text, or send fewer texts."],
  422: ["The server cannot use these values.", "Change what the message names."],
  429: ["The server is busy.", "Wait a moment, then try again."],
  500: ["The server failed.", "Try again. If it keeps failing, tell whoever runs the server."],
  503: ["The server is not ready.", "It may be starting or stopping. Try again in a moment."],
  504: ["The server took too long.", "Try again, or send a shorter text."],
};

// The full address of a path of the API, with a query if given.
export function address(path, query = {}) {
  const url = new URL(path, new URL(".", document.baseURI.split("#")[0]));
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  return url.href;
}

// What concerns learning needs the key of that kind.
export function get(path, query, signal, kind = "read") {
  return send(address(path, query), { method: "GET" }, signal, kind);
}

export function post(path, body, signal, kind = "read") {
  const headers = { "Content-Type": "application/json" };
  return send(address(path), { method: "POST", headers, body: JSON.stringify(body) }, signal, kind);
}

async function send(url, request, signal, kind) {
  const key = savedKey(kind);
  const headers = { Accept: "application/json", ...request.headers };
  if (key) headers.Authorization = `Bearer ${key}`;
  let response;
  let text;
  try {
    response = await fetch(url, { ...request, headers, signal, credentials: "same-origin", cache: "no-store" });
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "");
  }
  if (response.status === 401 && (await askForKey(kind, key, signal))) return send(url, request, signal, kind);
  const value = parse(text);
  if (response.ok && value !== undefined) return value;
  if (response.ok) throw new Problem(500, "Its answer is not the JSON that this page expects.");
  throw new Problem(response.status, sentence(value?.error ?? `HTTP status ${response.status}`), {
    retryAfter: seconds(response.headers.get("Retry-After")),
    type: value?.error_type ?? null,
  });
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Retry-After is a number of seconds or a date.
function seconds(value) {
  if (value === null) return null;
  if (/^\d+$/.test(value.trim())) return Number(value);
  const wait = (Date.parse(value) - Date.now()) / 1000;
  return Number.isFinite(wait) ? Math.max(0, wait) : null;
}

// The server writes messages in lower case, without a full stop.
function sentence(message) {
  const words = String(message).trim();
  if (words === "") return "";
  const end = /[.!?…]$/u.test(words) ? "" : ".";
  return words[0].toUpperCase() + words.slice(1) + end;
}
