#!/usr/bin/env python3
"""The subjects of a technical library (SemEval-2025 task 5, LLMs4Subjects), measured as the competition does, on dev.

    python3 benchmarks/subjects/run.py [DATA] [--rows de,de+en,words,merged,vectors] [--seeds 42] [--members 1]
                                       [--set KEY=VALUE ...] [--bonsai] [--work DIR]
                                       [--vectors DIR]

DATA: a directory with train.jsonl.gz, dev.jsonl.gz, labels-de.jsonl.gz and labels-en.jsonl.gz. Rows: `de`, the names of
the labels in German; `de+en`, in both languages; `words`, besides the words of the other language in every text, from the
word list of Debian's package trans-de-en (benchmarks/subjects/words.py); `vectors`, names in both
languages and the word vectors of --vectors; `merged`, the mean scores of the models of the other rows. F1@5 is the harmonic mean of P@5 and R@5 over all records and average recall the mean of R@5, R@10, ..., R@50,
as in the competition; F1@5 per record and nDCG@10 are as Annif's authors published them for dev. All are shares. With
several seeds a row is their mean, and the half of their range follows. With --bonsai, omikuji's Bonsai with three trees
is measured too, with the German names as training points and word pairs (benchmarks/peers/compare.py). With --work,
models and figures are kept there, and what is there already is not made again.
"""

import argparse
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import words
from common import DATA, ROOT, build_elias

COLUMNS = {"f1@5": "F1@5", "average_recall": "average recall", "point_f1@5": "F1@5 per record", "ndcg@10": "nDCG@10"}
K = 50


def lines_of(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


class Files:
    """What the rows need beside the data, written when it is first asked for."""

    def __init__(self, data, work, vectors):
        self.data, self.work, self.vectors = data, work, vectors

    def labels(self, languages):
        path = self.work / f"labels-{'-'.join(languages)}.jsonl"
        if not path.exists():
            texts = [gzip.open(self.data / f"labels-{language}.jsonl.gz", "rt").read() for language in languages]
            path.write_text("".join(texts))
        return path

    def words(self):
        path = self.work / "words.tsv"
        if not path.exists():
            words.write(self.data / "train.jsonl.gz", "/usr/share/trans/de-en", path)
        return path

    def options(self, row):
        return {
            "de": lambda: ["--labels", self.labels(["de"])],
            "de+en": lambda: ["--labels", self.labels(["de", "en"])],
            "vectors": lambda: ["--labels", self.labels(["de", "en"]), "--embeddings", self.vectors],
            "words": lambda: ["--labels", self.labels(["de", "en"]), "--synonyms", self.words()],
        }[row]()


def evaluate(elias, arguments):
    command = [elias, "evaluate", *arguments, "--at", f"5,10,{K}", "--json", "--quiet"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def train(elias, files, row, seed, more):
    """A model of the row and its figures."""
    model = files.work / f"{row}-{seed}"
    figures = files.work / f"{row}-{seed}.json"
    if not figures.exists():
        started = time.time()
        train = files.data / "train.jsonl.gz"
        command = [elias, "train", train, "--out", model, "--overwrite", "--quiet", "--seed", str(seed)]
        subprocess.run([*command, *files.options(row), *more], check=True)
        seconds = time.time() - started
        measured = evaluate(elias, [model, files.data / "dev.jsonl.gz"])
        figures.write_text(json.dumps({**measured, "seconds": seconds}))
    return json.loads(figures.read_text())


def answers_of(elias, files, row, seed):
    command = [elias, "predict", files.work / f"{row}-{seed}", files.data / "dev.jsonl.gz", "--top-k", str(2 * K), "--quiet"]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    return [
        {answer["label"]: answer["score"] for answer in json.loads(line)["labels"]} for line in process.stdout.splitlines()
    ]


def merged(elias, files, rows, seed):
    """The figures of the mean scores of several models."""
    of_models = [answers_of(elias, files, row, seed) for row in rows]
    path = files.work / f"merged-{seed}.jsonl"
    with open(path, "w") as out:
        for answers in zip(*of_models):
            labels = sorted({label for answer in answers for label in answer})
            mean = {label: sum(answer.get(label, 0.0) for answer in answers) / len(answers) for label in labels}
            best = sorted(mean.items(), key=lambda item: -item[1])[:K]
            out.write(json.dumps({"labels": [{"label": label, "score": score} for label, score in best]}) + "\n")
    figures = evaluate(elias, ["--predictions", path, files.data / "dev.jsonl.gz"])
    seconds = [json.loads((files.work / f"{row}-{seed}.json").read_text())["seconds"] for row in rows]
    return {**figures, "seconds": sum(seconds)}


def bonsai(elias, files):
    """The figures of Bonsai, which reads the names of the labels as texts."""
    data = files.work / "bonsai"
    data.mkdir(exist_ok=True)
    points = list(lines_of(files.data / "train.jsonl.gz"))
    known = {label for point in points for label in point["labels"]}
    names = [
        {"text": name["text"], "labels": [name["label"]]}
        for name in lines_of(files.data / "labels-de.jsonl.gz")
        if name["label"] in known
    ]
    for part, lines in [("train", points + names), ("test", lines_of(files.data / "dev.jsonl.gz"))]:
        with gzip.open(data / f"{part}.jsonl.gz", "wt", compresslevel=1) as out:
            for line in lines:
                out.write(json.dumps({"text": line["text"], "labels": line["labels"]}) + "\n")
    compare = ROOT / "benchmarks" / "peers" / "compare.py"
    command = [sys.executable, compare, data, "--systems", "bonsai", "--word-pairs", "--work", files.work / "peers"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    kept = files.work / "peers" / "bonsai-bonsai+pairs"
    figures = evaluate(elias, ["--predictions", f"{kept}.jsonl", data / "test.jsonl.gz"])
    return {**figures, "seconds": json.loads(pathlib.Path(f"{kept}.json").read_text())["training_s"]}


def print_row(name, figures):
    cells = [f"{figures[column] / 100:.4f}" for column in COLUMNS]
    print(f"| {name} | " + " | ".join([*cells, f"{figures['seconds'] / 60:.1f}"]) + " |", flush=True)


def print_seeds(name, of_seeds):
    columns = [*COLUMNS, "seconds"]
    print_row(name, {column: sum(row[column] for row in of_seeds) / len(of_seeds) for column in columns})
    if len(of_seeds) > 1:
        spread = lambda column: [row[column] for row in of_seeds]
        print_row("± half of the range", {column: (max(spread(column)) - min(spread(column))) / 2 for column in columns})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=pathlib.Path, default=DATA / "llms4subjects")
    parser.add_argument("--rows", default="de,de+en,words,merged")
    parser.add_argument("--seeds", default="42")
    parser.add_argument("--members", type=int, default=1, help="members of every model")
    parser.add_argument("--set", action="append", default=[], help="passed on to elias train")
    parser.add_argument("--bonsai", action="store_true")
    parser.add_argument("--vectors", type=pathlib.Path, help="of words or tokens, for the row `vectors`")
    parser.add_argument("--elias", help="the program; built unless given")
    parser.add_argument("--work", type=pathlib.Path, help="where models and figures are kept; temporary unless given")
    arguments = parser.parse_args()
    elias = arguments.elias or build_elias()
    more = [word for setting in arguments.set for word in ("--set", setting)]
    more += ["--members", str(arguments.members)] if arguments.members > 1 else []
    seeds, rows = arguments.seeds.split(","), arguments.rows.split(",")
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        files = Files(arguments.data, work, arguments.vectors)
        print("| | " + " | ".join([*COLUMNS.values(), "training min"]) + " |")
        print("|---" * (len(COLUMNS) + 2) + "|")
        models = [row for row in rows if row != "merged"]
        for row in models:
            print_seeds(row, [train(elias, files, row, seed, more) for seed in seeds])
        if "merged" in rows:
            print_seeds("merged", [merged(elias, files, models, seed) for seed in seeds])
        if arguments.bonsai:
            print_row("bonsai", bonsai(elias, files))


if __name__ == "__main__":
    main()
