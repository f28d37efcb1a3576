#!/usr/bin/env python3
"""What `elias update` brings, and what it takes, against doing nothing and training from the start.

    python3 benchmarks/labels/update.py DATA --out DIR [--share 0.1] [--updates 1] [--points N]

DATA has train.jsonl and test.jsonl, such as `benchmarks/data/random_part.py` cuts from training files. A share of the training
points, drawn at random, are news; the others are old. One line per way:

- old: trained on the old points, and nothing done;
- update: that model after `elias update MODEL NEWS`, the news in so many parts, one after the other;
- update-with-old: the same with `--train OLD`;
- all: trained on all points.

Figures are percent on the test part: P@1, P@5, R@10, R@100, R@10 of labels that no old point has, calibration error (ECE) of the
five best answers; and user seconds, of an update all together.
"""

import argparse
import json
import pathlib
import random
import resource
import shutil
import subprocess

K = 100


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(path, records):
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def run(*command):
    """Runs a command; the user seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([str(part) for part in command], check=True, stderr=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def calibration_error(answers, test, n_bins=20):
    """Mean distance of probability and precision over bins of the five best answers, each by its size."""
    bins = [[0, 0.0, 0] for _ in range(n_bins)]
    for answer, point in zip(answers, test):
        for label in answer[:5]:
            if (probability := label.get("probability")) is not None:
                one = bins[min(n_bins - 1, int(probability * n_bins))]
                one[0] += 1
                one[1] += probability
                one[2] += label["label"] in point["labels"]
    n = sum(one[0] for one in bins)
    return sum(abs(one[1] - one[2]) for one in bins) / max(n, 1)


def measure(elias, model, test_path, test, old_labels, answers_path):
    run(elias, "predict", model, test_path, "--top-k", K, "--out", answers_path, "--overwrite")
    answers = [record["labels"] for record in read(answers_path)]
    sums = dict.fromkeys(("P@1", "P@5", "R@10", "R@100", "new R@10"), 0.0)
    n_new = 0
    for answer, point in zip(answers, test):
        names, true = [label["label"] for label in answer], set(point["labels"])
        for name, k in (("P@1", 1), ("P@5", 5)):
            sums[name] += len(true.intersection(names[:k])) / k
        for name, k in (("R@10", 10), ("R@100", 100)):
            sums[name] += len(true.intersection(names[:k])) / len(true)
        new = true - old_labels
        if new:
            n_new += 1
            sums["new R@10"] += len(new.intersection(names[:10])) / len(new)
    counts = {name: n_new if name == "new R@10" else len(test) for name in sums}
    figures = {name: round(100 * total / max(counts[name], 1), 2) for name, total in sums.items()}
    return {**figures, "ECE": round(100 * calibration_error(answers, test), 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--updates", type=int, default=1, help="updates, each with an equal part of the news")
    parser.add_argument("--points", type=int, help="use so many training points, drawn at random")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--elias", default="elias")
    parser.add_argument("--ways", nargs="*", default=["old", "update", "update-with-old", "all"])
    options = parser.parse_args()
    out, elias = options.out, options.elias
    out.mkdir(parents=True, exist_ok=True)
    train = [point for point in read(options.data / "train.jsonl") if point["labels"]]
    random.Random(options.seed).shuffle(train)
    del train[options.points or len(train) :]
    n_news = int(options.share * len(train))
    news, old = train[:n_news], train[n_news:]
    known = {label for point in train for label in point["labels"]}
    test = [{**point, "labels": [label for label in point["labels"] if label in known]} for point in read(options.data / "test.jsonl")]
    test = [point for point in test if point["labels"]]
    old_labels = {label for point in old for label in point["labels"]}
    files = {name: out / f"{name}.jsonl" for name in ("all", "old", "test")}
    for name, points in (("all", train), ("old", old), ("test", test)):
        write(files[name], points)
    parts = [news[at :: options.updates] for at in range(options.updates)]
    for at, part in enumerate(parts):
        write(out / f"news-{at}.jsonl", part)

    def fit(name):
        model = out / f"model-{name}"
        shutil.rmtree(model, ignore_errors=True)
        return model, run(elias, "train", files[name], "--out", model, "--seed", options.seed)

    def update(name, more):
        model = out / f"model-{name}"
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(out / "model-old", model)
        seconds = 0.0
        for at in range(options.updates):
            seconds += run(elias, "update", model, out / f"news-{at}.jsonl", *more)
        return model, seconds

    ways = {
        "old": lambda: fit("old"),
        "update": lambda: update("update", []),
        "update-with-old": lambda: update("update-with-old", ["--train", files["old"]]),
        "all": lambda: fit("all"),
    }
    for name in options.ways:
        model, seconds = ways[name]()
        figures = measure(elias, model, files["test"], test, old_labels, out / "answers.jsonl")
        print(json.dumps({"way": name, **figures, "seconds": round(seconds, 1)}), flush=True)


if __name__ == "__main__":
    main()
