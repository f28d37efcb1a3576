#!/usr/bin/env python3
"""Cuts a random part of a training file off for validation, near duplicates as they come.

    python3 benchmarks/data/random_part.py DATA --out DIR --validate 3000

`elias convert --cut-validation` leaves near duplicates out; a split at random, as many test files are, has them. Every label
keeps a training point. Reads the training file alone.
"""

import argparse
import collections
import gzip
import json
import pathlib
import random


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--validate", type=int, required=True, help="at most so many points")
    options = parser.parse_args()
    with gzip.open(options.data / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    labels = [json.loads(line)["labels"] for line in lines]
    counts = collections.Counter(label for of_point in labels for label in of_point)
    order = list(range(len(lines)))
    random.seed(5)
    random.shuffle(order)
    held_out = set()
    for point in order:
        if len(held_out) == options.validate:
            break
        if labels[point] and all(counts[label] > 1 for label in labels[point]):
            held_out.add(point)
            counts.subtract(labels[point])
    options.out.mkdir(parents=True, exist_ok=True)
    for part in ("train", "test"):
        with open(options.out / f"{part}.jsonl", "w", encoding="utf-8") as out:
            out.writelines(line + "\n" for at, line in enumerate(lines) if (at in held_out) == (part == "test"))


if __name__ == "__main__":
    main()
