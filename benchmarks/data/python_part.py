#!/usr/bin/env python3
"""Cuts a part of py-module or py-api into training and validation points: whole packages, validated on modules of their own.

    python3 benchmarks/data/python_part.py PY_MODULE --out DIR --one-in 4 --validate 1500

A package is the first word of a text, a module what stands before its first colon or full stop. Labels with fewer than two
training points are left out. Reads the training file alone.
"""

import argparse
import collections
import gzip
import json
import pathlib
import zlib


def crc(text):
    return zlib.crc32(text.encode())


def module(point):
    text = point["text"]
    return text.split(":" if ":" in text[:80] else ".", 1)[0]


def write(path, points, labels):
    n_points = 0
    with open(path, "w", encoding="utf-8") as out:
        for point in points:
            known = [label for label in point["labels"] if label in labels]
            if known:
                out.write(json.dumps({**point, "labels": known}) + "\n")
                n_points += 1
    return n_points


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--one-in", type=int, required=True, help="one package in so many")
    parser.add_argument("--validate", type=int, required=True, help="about so many points")
    options = parser.parse_args()
    with gzip.open(options.data / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
        points = [json.loads(line) for line in lines]
    points = [point for point in points if crc(point["text"].split(" ", 1)[0]) % options.one_in == 0]
    sizes = collections.Counter(map(module, points))
    held_out, n_points = set(), 0
    for name in sorted(sizes, key=lambda name: crc("v" + name)):
        if n_points >= options.validate:
            break
        held_out.add(name)
        n_points += sizes[name]
    train = [point for point in points if module(point) not in held_out]
    counts = collections.Counter(label for point in train for label in point["labels"])
    labels = {label for label, n in counts.items() if n >= 2}
    options.out.mkdir(parents=True, exist_ok=True)
    n_train = write(options.out / "train.jsonl", train, labels)
    n_test = write(options.out / "test.jsonl", (p for p in points if module(p) in held_out), labels)
    print(f"{n_train} training points, {n_test} validation points, {len(labels)} labels")


if __name__ == "__main__":
    main()
