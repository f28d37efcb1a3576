// Addresses inside the page: "#/labels/12?model=NAME". They can be bookmarked, and the back button works.

// "#/labels/12?query=png" -> {path: ["labels", "12"], query: URLSearchParams}.
export function parseHash(hash) {
  const [path, ...query] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean);
  return { path: parts.map(decode), query: new URLSearchParams(query.join("?")) };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// The address of a path, with those values of the query that say something.
export function hashOf(path, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  const parts = path.map((part) => encodeURIComponent(part));
  return `#/${parts.join("/")}${search ? `?${search}` : ""}`;
}

// Changes the address without a new entry in the history: for typing.
export function replaceHash(hash) {
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

// A whole number at least 0 from a query.
export function natural(query, name, otherwise) {
  const value = query.get(name);
  return value !== null && /^\d{1,9}$/.test(value) ? Number(value) : otherwise;
}
