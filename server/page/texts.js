// From a file, or what was pasted, to a list of texts. Columns are found as `elias predict` finds them.

import { parseCsv, ReadError, separatorOf } from "./csv.js";
import { count } from "./format.js";

export const MAX_TEXTS = 10_000;
export const MAX_FILE_BYTES = 100_000_000;

const TEXT = "text";
const TEXT_PARTS = ["title", "abstract", "content", "description"];
const ENDINGS = { csv: "table", tsv: "table", tab: "table", jsonl: "jsonl", ndjson: "jsonl", json: "jsonl", txt: "lines", text: "lines" };

// What the bytes of a file say as text.
export function decode(bytes) {
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    throw new ReadError("This file is compressed. Unpack it first, or use `elias predict`, which reads it as it is.");
  }
  const isUtf16 = (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  const name = isUtf16 ? (bytes[0] === 0xff ? "utf-16le" : "utf-16be") : "utf-8";
  try {
    return new TextDecoder(name, { fatal: true }).decode(bytes);
  } catch {
    throw new ReadError("This file is not in UTF-8. Save it as UTF-8 and try again (in Excel: “CSV UTF-8”).");
  }
}

// Reads texts. `name` is the name of the file, if there is one; `column` is the column the user chose.
// Gives {kind, rows: [{id, text}], total, columns?, textColumns?}; without a column of texts, `rows` is null.
export function readTexts(text, name = "", column = null) {
  const kind = kindOf(text, name);
  const found = { table: () => fromTable(text, name, column), jsonl: () => fromJsonl(text), lines: () => fromLines(text) }[kind]();
  if (found.rows && found.total === 0) throw new ReadError("There is no text in it.");
  return { kind, ...found };
}

function kindOf(text, name) {
  const first = text.replace(/^\ufeff/, "").trimStart()[0];
  const ending = ENDINGS[name.toLowerCase().split(".").pop()];
  if (ending && name.includes(".")) return ending;
  if (first === "{" && isJson(text.trimStart().replace(/^\ufeff/, "").split("\n", 1)[0])) return "jsonl";
  return hasHeader(text) ? "table" : "lines";
}

function isJson(line) {
  try {
    return JSON.parse(line) !== undefined;
  } catch {
    return false;
  }
}

// Whether the first line names a column of texts.
function hasHeader(text) {
  const first = text.replace(/^[\ufeff\r\n]+/, "").split(/\r?\n/, 1)[0];
  try {
    const [row] = parseCsv(first, separatorOf(first));
    const names = row.fields.map(plainName);
    const isName = (field) => field === TEXT || TEXT_PARTS.includes(field);
    return names.some(isName) && names.every((field) => field.length <= 40);
  } catch {
    return false;
  }
}

function plainName(field) {
  return field.trim().toLowerCase();
}

function fromTable(text, name, column) {
  const separator = /\.(tsv|tab)$/i.test(name) ? "\t" : separatorOf(text);
  const [header, ...body] = parseCsv(text, separator);
  if (!header) return { rows: [], total: 0 };
  const columns = header.fields.map((field) => field.trim());
  const plain = header.fields.map(plainName);
  const chosen = column === null ? textColumns(plain) : [columns.indexOf(column)].filter((i) => i >= 0);
  const textNames = chosen.map((i) => columns[i]);
  if (chosen.length === 0) return { rows: null, total: body.length, columns, textColumns: textNames };
  const idColumn = plain.indexOf("id");
  const rows = body.slice(0, MAX_TEXTS).map(({ line, fields }) => {
    if (fields.length !== columns.length) {
      throw new ReadError(`Line ${line}: it has ${count(fields.length, "field")}, the header has ${columns.length}. Put quotation marks around texts that contain the separator.`);
    }
    const parts = chosen.map((i) => fields[i]).filter((part) => part.trim() !== "");
    return { id: idColumn === -1 ? null : fields[idColumn], text: parts.join(" ") };
  });
  return { rows, total: body.length, columns, textColumns: textNames };
}

function textColumns(names) {
  const text = names.indexOf(TEXT);
  if (text !== -1) return [text];
  return TEXT_PARTS.map((part) => names.indexOf(part)).filter((i) => i !== -1);
}

function fromJsonl(text) {
  const rows = [];
  let total = 0;
  text.replace(/^\ufeff/, "").split("\n").forEach((line, i) => {
    if (line.trim() === "") return;
    total += 1;
    if (total > MAX_TEXTS) return;
    rows.push(fromObject(line, i + 1));
  });
  return { rows, total };
}

function fromObject(line, place) {
  let value;
  try {
    value = JSON.parse(line);
  } catch {
    throw new ReadError(`Line ${place}: this is not JSON. JSON Lines has one object per line: {"id": "1", "text": "…"}.`);
  }
  if (typeof value === "string") return { id: null, text: value };
  const part = (name) => (typeof value?.[name] === "string" ? [value[name]] : []);
  const parts = part(TEXT).length ? part(TEXT) : TEXT_PARTS.flatMap(part);
  if (parts.length === 0) throw new ReadError(`Line ${place}: there is no "text", nor a "title". Name the text "text".`);
  const isId = ["string", "number"].includes(typeof value.id);
  return { id: isId ? String(value.id) : null, text: parts.filter((one) => one.trim() !== "").join(" ") };
}

function fromLines(text) {
  const lines = text.replace(/^\ufeff/, "").split(/\r\n|\n|\r/).map((line) => line.trim()).filter((line) => line !== "");
  return { rows: lines.slice(0, MAX_TEXTS).map((line) => ({ id: null, text: line })), total: lines.length };
}
