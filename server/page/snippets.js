// The current request as a command or a program, to paste elsewhere. The API key is named, never shown.

// In single quotes, a POSIX shell changes nothing.
export function shellQuote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// A request is {method, url, body?, hasKey}; `body` is an object of strings, numbers and lists of them.
export function asCurl({ url, body, hasKey }) {
  const lines = [`curl -sS ${shellQuote(url)}`];
  if (hasKey) lines.push('-H "Authorization: Bearer $ELIAS_API_KEY"');
  if (body) lines.push("-H 'Content-Type: application/json'", `--data-raw ${shellQuote(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

// Uses Python's standard library only.
export function asPython({ url, body, hasKey }) {
  const imports = ["json", ...(hasKey ? ["os"] : []), "urllib.request"];
  const headers = [];
  if (body) headers.push('"Content-Type": "application/json"');
  if (hasKey) headers.push('"Authorization": "Bearer " + os.environ["ELIAS_API_KEY"]');
  const values = [pythonString(url)];
  if (body) values.push("data=json.dumps(body).encode()");
  if (headers.length) values.push(`headers={${headers.join(", ")}}`);
  return [
    ...imports.map((name) => `import ${name}`),
    "",
    ...(body ? [`body = ${pythonValue(body)}`] : []),
    `request = urllib.request.Request(${values.join(", ")})`,
    "with urllib.request.urlopen(request) as response:",
    "    answer = json.load(response)",
    "print(json.dumps(answer, indent=2, ensure_ascii=False))",
    "",
  ].join("\n");
}

// JSON writes strings, numbers and lists as Python does: its escapes are a subset of Python's.
function pythonValue(value) {
  if (Array.isArray(value)) return `[${value.map(pythonValue).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value).map(([name, part]) => `${pythonString(name)}: ${pythonValue(part)}`).join(", ")}}`;
  }
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return JSON.stringify(value);
}

function pythonString(text) {
  return JSON.stringify(text);
}
