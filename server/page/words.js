// Which words of a text carry weight. Words are cut as the model cuts them: runs of letters, digits, underscores and
// marks on letters, in lower case; a Han character is a word by itself.

const HAN = "\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";
const WORD = new RegExp(
  `[${HAN}]|(?![${HAN}])[\\p{Alphabetic}\\p{N}_](?:(?![${HAN}])[\\p{Alphabetic}\\p{N}\\p{M}_\\u200c\\u200d])*`,
  "gu",
);

// The words of a text with their places.
export function tokens(text) {
  return Array.from(text.matchAll(WORD), (found) => ({
    start: found.index,
    end: found.index + found[0].length,
    word: found[0],
    lowered: found[0].toLowerCase(),
  }));
}

// The text in pieces, each with the weight of its word; null where nothing is said. A term of several words shares its
// weight among them. Joined, the pieces are the text.
export function weigh(text, terms) {
  const words = tokens(text);
  const weights = new Map();
  for (const [term, weight] of terms) {
    const parts = term.split(" ");
    for (let i = 0; i + parts.length <= words.length; i += 1) {
      const run = words.slice(i, i + parts.length);
      if (!run.every((word, j) => word.lowered === parts[j] || word.word === parts[j])) continue;
      run.forEach((_, j) => weights.set(i + j, (weights.get(i + j) ?? 0) + weight / parts.length));
    }
  }
  const pieces = [];
  let at = 0;
  for (const [i, weight] of Array.from(weights).sort((a, b) => a[0] - b[0])) {
    if (words[i].start > at) pieces.push({ text: text.slice(at, words[i].start), weight: null });
    pieces.push({ text: text.slice(words[i].start, words[i].end), weight });
    at = words[i].end;
  }
  if (at < text.length) pieces.push({ text: text.slice(at), weight: null });
  return pieces;
}

// The terms of an answer, averaged over the members that have a ranker, the strongest first.
export function termsOf(answer) {
  const rankers = answer.members.map((member) => member.ranker).filter(Boolean);
  const sums = new Map();
  for (const ranker of rankers) {
    for (const [word, weight] of ranker.words) sums.set(word, (sums.get(word) ?? 0) + weight / rankers.length);
  }
  return Array.from(sums)
    .filter(([, weight]) => weight !== 0)
    .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
}
