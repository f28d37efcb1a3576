// CSV and its relatives: reading rows with quotes as RFC 4180 has them, and writing rows that spreadsheets open safely.

// What a file says that cannot be read, and where.
export class ReadError extends Error {}

// The rows of a table as lists of fields, each with the line it begins on. Blank lines are passed over.
export function parseCsv(text, separator = ",") {
  const rows = [];
  const end = text.length;
  let at = text.startsWith("\ufeff") ? 1 : 0;
  let line = 1;
  while (at < end) {
    const row = { line, fields: [] };
    let isOver = false;
    while (!isOver) {
      const field = text[at] === '"' ? quoted() : plain();
      row.fields.push(field);
      if (text[at] === separator) {
        at += 1;
      } else {
        isOver = true;
        endLine();
      }
    }
    const isBlank = row.fields.length === 1 && row.fields[0].trim() === "";
    if (!isBlank) rows.push(row);
  }
  return rows;

  function plain() {
    const start = at;
    while (at < end && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") at += 1;
    return text.slice(start, at);
  }

  function quoted() {
    const opened = line;
    let field = "";
    at += 1;
    for (;;) {
      const close = text.indexOf('"', at);
      if (close === -1) throw new ReadError(`Line ${opened}: a quotation mark is opened and never closed. Close it, or double it if it belongs to the text.`);
      const part = text.slice(at, close);
      field += part;
      for (let i = part.indexOf("\n"); i !== -1; i = part.indexOf("\n", i + 1)) line += 1;
      at = close + 1;
      if (text[at] !== '"') break;
      field += '"';
      at += 1;
    }
    if (at < end && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") {
      throw new ReadError(`Line ${line}: there is text after a closing quotation mark. Double the marks that belong to the text.`);
    }
    return field;
  }

  function endLine() {
    if (text[at] === "\r") at += 1;
    if (text[at] === "\n") at += 1;
    line += 1;
  }
}

// The separator of a table, by its first line: comma, semicolon or tab.
export function separatorOf(text) {
  const first = text.replace(/^[\ufeff\r\n]+/, "").split(/\r?\n/, 1)[0].replace(/"[^"]*"/g, "");
  const counts = [",", ";", "\t"].map((mark) => [first.split(mark).length, mark]);
  return counts.reduce((best, other) => (other[0] > best[0] ? other : best))[1];
}

// A table as CSV. The first line is for Excel, which reads UTF-8 only if it is told so.
export function writeCsv(rows) {
  return `\ufeff${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

// Numbers stay as they are. Where a spreadsheet would run a part of a text as a formula, an apostrophe comes before it:
// at the beginning, and after what it may take for the end of a cell, also behind characters that cannot be seen.
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = guard(value);
  return /[",\r\n\t]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function guard(text) {
  const start = /(?<=^|[;\t\r\n])(?=['\s\p{Cc}\p{Cf}\ufe00-\ufe0f]*[=+\-@＝＋－＠])/gu;
  const isNumber = (cell) => /^[-+]?\d+(\.\d+)?$/.test(cell.trim());
  return text.replaceAll(start, (_, at) => (isNumber(text.slice(at).split(/[;\t\r\n]/, 1)[0]) ? "" : "'"));
}
