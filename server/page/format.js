// Numbers as people read them.

const whole = new Intl.NumberFormat("en");

// "1 text", "10,000 texts".
export function count(n, one, many = `${one}s`) {
  return `${whole.format(n)} ${n === 1 ? one : many}`;
}

// "10,000".
export function number(n) {
  return whole.format(n);
}

// A share as a percentage: "48%", "0.3%", "< 0.1%". A larger share never looks smaller, and only 1 is "100%".
export function percent(share) {
  const value = 100 * share;
  if (value >= 99.95 && value < 100) return "> 99.9%";
  if (value === 0) return "0%";
  if (value < 0.1) return "< 0.1%";
  const isFine = value < 10 || value >= 99.5;
  return `${isFine ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)}%`;
}

// A score: "0.532", "0.0041".
export function score(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && size < 0.0001) return value.toExponential(1);
  return value.toFixed(size !== 0 && size < 0.01 ? 4 : 3).replace("-", "−");
}

// A number with its sign: "+1.20", "−0.31".
export function signed(value) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(Math.abs(value) < 0.1 ? 3 : 2)}`;
}

// "12 kB", "3.4 MB".
export function bytes(n) {
  if (n < 1000) return count(n, "byte");
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)} kB`;
  return `${(n / 1e6).toFixed(n < 1e7 ? 1 : 0)} MB`;
}

// Words in a row: "a", "a and b", "a, b and c". Takes and gives nodes or strings.
export function listed(items) {
  const last = items.length - 1;
  return items.flatMap((item, i) => (i === 0 ? [item] : [i === last ? " and " : ", ", item]));
}

// The first `n` characters of a text, on one line. Emoji and accents stay whole where the browser can tell.
export function shorten(text, n) {
  const line = text.slice(0, 4 * n).replace(/\s+/gu, " ").trim();
  if (line.length <= n && text.length <= 4 * n) return line;
  const cut = Array.from(line).slice(0, n - 1).join("");
  return `${cut.trimEnd()}…`;
}
