#!/usr/bin/env python3
"""A list for `elias train --synonyms` from the German-English word list of Debian's package trans-de-en.

    apt-get install trans-de-en
    python3 benchmarks/subjects/words.py TRAIN --out words.tsv [--list /usr/share/trans/de-en]

TRAIN is a training file in JSON Lines, plain or .gz. A line of the list has German entries and their English ones; both
directions are written. Left out are phrases of more than three words, entries that the training texts do not have, not
even as the beginning or the end of a word, and words that are in more than 5 % of the texts. Of several translations the
one that most texts have is kept: three double the length of a text.
"""

import argparse
import bisect
import collections
import gzip
import json
import re

MAX_WORDS = 3
MIN_PART = 4
MAX_SHARE = 0.05
REMARKS = re.compile(r"\{[^}]*\}|\[[^]]*\]|\([^)]*\)|<[^>]*>|/[^/;|]*/")
WORD = re.compile(r"\w+")
ABBREVIATIONS = {"etw", "sth", "sb", "jdn", "jdm", "jds", "jd", "so", "to", "the", "a", "an", "der", "die", "das", "sich"}


def words_of(text):
    return tuple(word for word in WORD.findall(text.lower()))


def phrases_of(side):
    """The alternatives of one side of a line."""
    for part in REMARKS.sub(" ", side).split(";"):
        words = words_of(part)
        while words and words[0] in ABBREVIATIONS:
            words = words[1:]
        is_usable = 0 < len(words) <= MAX_WORDS and not any(word in ABBREVIATIONS for word in words)
        if is_usable and any(len(word) > 2 for word in words):
            yield words


def pairs_of(lines):
    for line in lines:
        german, separator, english = line.partition(" :: ")
        if line.startswith("#") or not separator:
            continue
        # Forms of a word are in the same order on both sides.
        for one, other in zip(german.split("|"), english.split("|")):
            for first in phrases_of(one):
                for second in phrases_of(other):
                    yield first, second


def document_counts(path):
    """The number of texts that have each word, and the number of texts."""
    counts, n_texts = collections.Counter(), 0
    with (gzip.open(path, "rt", encoding="utf-8") if str(path).endswith(".gz") else open(path, encoding="utf-8")) as lines:
        for line in lines:
            counts.update(set(words_of(json.loads(line)["text"])))
            n_texts += 1
    return counts, n_texts


class Beginnings:
    """The beginnings of words."""

    def __init__(self, words):
        self.words = sorted(words)

    def has(self, beginning):
        place = bisect.bisect_left(self.words, beginning)
        return place < len(self.words) and self.words[place].startswith(beginning)


def synonyms(pairs, counts, n_texts):
    """Both directions of the pairs: phrase and translations, each the words of a phrase."""
    frequency = lambda words: min(counts[word] for word in words)
    beginnings, ends = Beginnings(counts), Beginnings(word[::-1] for word in counts)
    is_part = lambda word: len(word) >= MIN_PART and (beginnings.has(word) or ends.has(word[::-1]))
    translations = collections.defaultdict(list)
    for pair in pairs:
        for phrase, other in [pair, pair[::-1]]:
            is_common = len(phrase) == 1 and counts[phrase[0]] > MAX_SHARE * n_texts
            is_read = frequency(phrase) > 0 or len(phrase) == 1 and is_part(phrase[0])
            if phrase != other and is_read and not is_common and frequency(other) > 1:
                translations[phrase].append(other)
    for phrase, others in sorted(translations.items()):
        # The first of equals, in the order of the list.
        yield " ".join(phrase), " ".join(max(others, key=frequency))


def write(train, word_list, out):
    counts, n_texts = document_counts(train)
    n_lines = 0
    with open(word_list, encoding="utf-8") as lines, open(out, "w", encoding="utf-8") as file:
        for phrase, other in synonyms(pairs_of(lines), counts, n_texts):
            file.write(f"{phrase}\t{other}\n")
            n_lines += 1
    return n_lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("--out", required=True)
    parser.add_argument("--list", default="/usr/share/trans/de-en")
    arguments = parser.parse_args()
    print(write(arguments.train, arguments.list, arguments.out), "lines")


if __name__ == "__main__":
    main()
