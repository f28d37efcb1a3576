#!/usr/bin/env python3
"""How well labels are found that no training text has.

    python3 benchmarks/subjects/unseen.py DATA --out DIR [--draws 1] [--share 0.1] [--set KEY=VALUE]

DATA has train.jsonl and test.jsonl, such as `benchmarks/data/random_part.py` cuts from training files. A share of the labels is
drawn and taken out of the training texts, which stay. Their names are given to `elias train --labels`. Measured on the
test part, for exactly the drawn labels, among the answers for *all* labels: R@10, R@100, P@5 (the share of the
five best answers that are drawn labels and right, of the points that have one), by

- words: tf-idf cosine of text and label name, over all labels;
- model: the model that knows the drawn labels by their names alone;
- trained: the same training with the texts of the drawn labels.

The last lines have the figures of the other labels, which must not suffer from those beside them.
"""

import argparse
import collections
import json
import math
import pathlib
import random
import re
import subprocess

K = 100


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(path, records):
    with open(path, "w", encoding="utf-8") as out:
        for record in records:
            out.write(json.dumps(record, ensure_ascii=False) + "\n")


def words_of(text):
    # Codes are no words.
    text = re.sub(r"\bgnd:\S+", " ", text.lower())
    return re.findall(r"\w+", text)


def by_words(train, test, labels):
    """The K labels with the highest cosine of tf-idf rows, for each text."""
    n_texts = collections.Counter(word for point in train for word in set(words_of(point["text"])))
    idf = lambda word: math.log(1 + len(train) / (1 + n_texts[word]))

    def row(text):
        counts = collections.Counter(words_of(text))
        weights = {word: (1 + math.log(n)) * idf(word) for word, n in counts.items()}
        length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1
        return {word: weight / length for word, weight in weights.items()}

    postings = collections.defaultdict(list)
    for label in labels:
        for word, weight in row(label).items():
            postings[word].append((label, weight))
    rankings = []
    for point in test:
        cosines = collections.Counter()
        for word, value in row(point["text"]).items():
            for label, weight in postings.get(word, ()):
                cosines[label] += value * weight
        rankings.append([label for label, _ in cosines.most_common(K)])
    return rankings


def predict(elias, model, texts, out):
    command = [elias, "predict", model, texts, "--top-k", str(K), "--out", out]
    subprocess.run([str(part) for part in command], check=True)
    answers = read(out)
    return [[answer["label"] for answer in record["labels"]] for record in answers]


def measure(rankings, test, wanted):
    """R@10, R@100 and P@5 of some labels among all answers."""
    found_10 = found_100 = right = n_true = n_points = 0
    for ranking, point in zip(rankings, test):
        true = wanted.intersection(point["labels"])
        if not true:
            continue
        n_points += 1
        n_true += len(true)
        found_10 += len(true.intersection(ranking[:10]))
        found_100 += len(true.intersection(ranking[:100]))
        right += len(true.intersection(ranking[:5]))
    percent = lambda a, b: round(100 * a / max(b, 1), 2)
    return {"R@10": percent(found_10, n_true), "R@100": percent(found_100, n_true), "P@5": percent(right, 5 * n_points)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--elias", default="elias")
    parser.add_argument("--prefix", nargs="*", default=[], help="a command to run trainings with")
    parser.add_argument("--set", action="append", default=[])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    train, test = read(options.data / "train.jsonl"), read(options.data / "test.jsonl")
    labels = sorted({label for point in train for label in point["labels"]})
    names = options.out / "labels.jsonl"
    write(names, [{"label": label, "text": label} for label in labels])
    settings = [part for value in options.set for part in ("--set", value)]
    words = by_words(train, test, labels)

    def fit(data, model):
        if not (model / "manifest.json").exists():
            command = [*options.prefix, options.elias, "train", data, "--labels", names, "--out", model, *settings]
            subprocess.run([str(part) for part in command], check=True)
        return predict(options.elias, model, options.data / "test.jsonl", options.out / "answers.jsonl")

    trained = fit(options.data / "train.jsonl", options.out / "trained")
    for draw in range(options.draws):
        drawn = set(random.Random(draw).sample(labels, int(options.share * len(labels))))
        rest = set(labels) - drawn
        texts = [{**point, "labels": [label for label in point["labels"] if label in rest]} for point in train]
        part = options.out / f"train-{draw}.jsonl"
        write(part, [point for point in texts if point["labels"]])
        model = fit(part, options.out / f"model-{draw}")
        for name, rankings in (("words", words), ("model", model), ("trained", trained)):
            print(json.dumps({"draw": draw, "labels": "drawn", "by": name, **measure(rankings, test, drawn)}), flush=True)
        for name, rankings in (("model", model), ("trained", trained)):
            print(json.dumps({"draw": draw, "labels": "others", "by": name, **measure(rankings, test, rest)}), flush=True)


if __name__ == "__main__":
    main()
