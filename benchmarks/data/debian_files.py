#!/usr/bin/env python3
"""Makes a large set of short texts from Debian's lists of files, to measure time and memory on.

    /usr/lib/apt/apt-helper cat-file /var/lib/apt/lists/*Contents* | python3 benchmarks/data/debian_files.py --out DIR
    zcat Contents-amd64.gz Contents-all.gz | python3 benchmarks/data/debian_files.py --out DIR [--points 1100000]

The lists come with `apt-file update`, or from a mirror as dists/SUITE/main/Contents-*.gz. A text is the name of a file, cut
into words, and the last folder above it; its labels are the packages that ship it and the folders it is in. Points are chosen
by a hash of their text, the first of equal texts, at most ten per folder; labels need two points. Writes DIR/train.jsonl.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import re
import sys

MOST_PER_FOLDER = 10


def words_of(name):
    """A file's name in words: cut at punctuation, at digits and where small letters meet capital ones."""
    cut = re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z]+", " ", name)
    return [word.lower() for word in cut.split() if len(word) > 1]


def points_of(lines):
    """The text and the labels of every file whose name has two words."""
    for line in lines:
        path, _, packages = line.rstrip("\n").rpartition(" ")
        folder, _, name = path.strip().rpartition("/")
        words = words_of(name)
        if len(words) < 2:
            continue
        text = " ".join(words + words_of(folder.rpartition("/")[2]))
        parents = folder.split("/")
        folders = ["/".join(parents[:depth]) for depth in range(len(parents), 2, -1)][:2]
        yield text, (folders or [folder]) + [package.rpartition("/")[2] for package in packages.split(",")[:3]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--points", type=int, default=1_100_000)
    options = parser.parse_args()
    lines = (line.decode("utf-8", "replace") for line in sys.stdin.buffer)
    chosen = {}
    for text, labels in points_of(lines):
        chosen.setdefault(text, labels)
    order, per_folder = [], collections.Counter()
    for text in sorted(chosen, key=lambda text: hashlib.sha256(text.encode()).digest()):
        folder = chosen[text][0]
        per_folder[folder] += 1
        if per_folder[folder] <= MOST_PER_FOLDER:
            order.append(text)
    order = order[: options.points]
    counts = collections.Counter(label for text in order for label in set(chosen[text]))
    options.out.mkdir(parents=True, exist_ok=True)
    n_labels = set()
    with open(options.out / "train.jsonl", "w", encoding="utf-8") as out:
        for text in order:
            labels = sorted({label for label in chosen[text] if counts[label] > 1})
            if labels:
                n_labels.update(labels)
                out.write(json.dumps({"text": text, "labels": labels}) + "\n")
    print(f"{len(order)} texts, {len(n_labels)} labels", file=sys.stderr)


if __name__ == "__main__":
    main()
