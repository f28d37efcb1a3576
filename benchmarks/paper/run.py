#!/usr/bin/env python3
"""The paper's tables on any data set: one command each, the paper's recipe and ours side by side.

    python3 benchmarks/paper/run.py build-up DATA ... --work DIR [--recipes paper,elias] [--seeds 42] [--set KEY=VALUE ...]

DATA: directories with a train and a test part; choose on validation parts (`elias convert --cut-validation`,
benchmarks/data/). `--encoder DIR` takes a transformer, without it φ is a bag of words.

build-up  stage 1, + stage 2, + ranker, + score correction, 3 networks, 3 members: all eleven columns
lambda    λ from 0 to 5, the network alone
kappa     κ from 100 to 1000, the network alone
pruning   by threshold and by top k, scores renormalised as the authors count: a trained network, pruned
index     fixed clusters and the learned graph at equal budgets, the network alone
elements  the paper's recipe with one element of ours at a time, the network alone
deciles   recall by decile of training pairs, stage 1 and 2

Prints mean ± half of the range over the seeds. What is in DIR already is not trained again, so that an interrupted run goes on.
"""

import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from common import build_elias

# The table's λ is for means.
RECIPES = {
    "paper": ["recipe=paper", "ablation.reduction=mean"],
    "released": ["recipe=released"],
    "elias": [],
}
# The same training points for every recipe, and each network trained once; without what the paper does not have.
EQUAL = ["hold_out.refit=nothing", "hold_out.near_duplicates=2", "final_score.neighbours=false", "train.label_texts=off"]
ALONE = [*EQUAL, "ranker.enabled=false", "final_score.kind=tree"]
LEVELS = ["stage1", "stage2", "ranker", "calibrated", "networks", "ensemble"]
COLUMNS = ["p@1", "p@3", "p@5", "ndcg@3", "ndcg@5", "psp@1", "psp@3", "psp@5", "r@10", "r@20", "r@100"]
SHORT = ["p@1", "p@3", "p@5", "psp@5", "r@10", "r@100"]
ELEMENTS = [
    "ablation.reduction=sum",
    "ablation.second_moments=shared",
    "ablation.row_updates=touched",
    "ablation.update_every=1",
    "ablation.label_start=improbable",
    "ablation.label_restart=false",
    "ablation.edge_start=counts",
    "ablation.positives=all",
    "ablation.warmup_epochs=0",
    "ablation.average_every=0",
    "ablation.best_epoch=false",
    "ablation.parents=epoch",
    "ablation.searched=filled",
    "ablation.weight_decay=0.15",
]


class Runner:
    def __init__(self, options):
        self.options = options
        self.elias = options.elias or build_elias()
        self.encoder = ["--encoder", options.encoder] if options.encoder else []
        options.work.mkdir(parents=True, exist_ok=True)

    def train(self, data, settings, seed, measure):
        """Trains a model, unless what it measures is known already."""
        command = [self.elias, "train", data, "--seed", str(seed), *self.encoder]
        for setting in [*settings, *self.options.set]:
            command += ["--set", setting]
        key = " ".join(map(str, command[2:])) + measure.__name__
        name = hashlib.sha256(key.encode()).hexdigest()[:16]
        result = self.options.work / f"{name}.json"
        if result.exists():
            return json.loads(result.read_text())
        print(pathlib.Path(data).name, seed, *settings, file=sys.stderr, flush=True)
        model = self.options.work / name
        started = time.time()
        go_on = "--resume" if model.exists() else "--overwrite"
        subprocess.run([*command, "--out", model, go_on, "--quiet"], check=True)
        seconds = time.time() - started
        found = {"rows": measure(model, data), "seconds": seconds}
        result.write_text(json.dumps(found))
        shutil.rmtree(model)
        return found

    def evaluate(self, model, data, level, *more):
        command = [self.elias, "evaluate", model, data, "--stage", level, "--json", *more]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def figures(self, model, data, level):
        found = self.evaluate(model, data, level)
        return {column: found[column] for column in COLUMNS}

    def levels(self, model, data):
        return {level: self.figures(model, data, level) for level in LEVELS}

    def network(self, model, data):
        return {"": self.figures(model, data, "stage2")}

    def deciles(self, model, data):
        def recall(level):
            tenths = self.evaluate(model, data, level, "--by-decile=pairs")["by_decile"]
            return {str(at + 1): tenth["r@100"] for at, tenth in enumerate(tenths)}
        return {level: recall(level) for level in ["stage1", "stage2"]}

    def pruned(self, model, data):
        rows = {"all edges": self.figures(model, data, "stage2")}
        smaller = model.with_name(model.name + "-pruned")
        cuts = [("--threshold", at) for at in (0.05, 0.1, 0.25, 0.5)] + [("--top-k", k) for k in (50, 100, 200, 500)]
        for option, value in cuts:
            command = [self.elias, "prune", model, "--out", smaller, option, str(value), "--strict", "--overwrite"]
            if option == "--top-k":
                command.append("--renormalise")
            subprocess.run(command, check=True, capture_output=True)
            rows[f"{option[2:]} {value}"] = self.figures(smaller, data, "stage2")
        shutil.rmtree(smaller)
        return rows

    def rows(self, data, settings, measure):
        """The rows of all seeds."""
        seeds = map(int, self.options.seeds.split(","))
        return [self.train(data, settings, seed, measure) for seed in seeds]


def spread(values):
    mean = sum(values) / len(values)
    return f"{mean:.2f} ± {(max(values) - min(values)) / 2:.2f}" if len(values) > 1 else f"{mean:.2f}"


def print_rows(of_seeds, before, columns):
    for name in of_seeds[0]["rows"]:
        rows = [found["rows"][name] for found in of_seeds]
        cells = [spread([row[column] for row in rows]) for column in columns]
        print("|", " | ".join([*filter(None, [before, name]), *cells]), "|", flush=True)


def header(first, columns):
    print("|", " | ".join([*first, *(column.upper() for column in columns)]), "|")
    print("|" + "---|" * (len(first) + len(columns)))


def table(runner, name, data, recipe):
    base = RECIPES[recipe]
    alone = [*base, *ALONE]
    if name == "build-up":
        settings = [*base, *EQUAL, "train.keep_stage1=true", "ensemble.members=3"]
        header(["row"], COLUMNS)
        print_rows(runner.rows(data, settings, runner.levels), "", COLUMNS)
    elif name == "pruning":
        header(["edges"], SHORT)
        print_rows(runner.rows(data, alone, runner.pruned), "", SHORT)
    elif name == "deciles":
        tenths = [str(at) for at in range(1, 11)]
        header(["R@100 of tenth"], tenths)
        print_rows(runner.rows(data, [*alone, "train.keep_stage1=true"], runner.deciles), "", tenths)
    else:
        variants = {
            "lambda": [[f"train.lambda={at}"] for at in (0, 0.01, 0.05, 0.1, 0.5, 5)],
            "kappa": [[f"index.kappa={at}"] for at in (100, 200, 500, 1000)],
            "index": [["index.mode=fixed"], ["index.mode=learned"]],
            "elements": [[], *([element] for element in ELEMENTS)],
        }[name]
        header(["setting"], SHORT)
        for settings in variants:
            # Later settings win, so the recipe's own value may be among them.
            what = settings[0] if settings else "as it is"
            print_rows(runner.rows(data, [*alone, *settings], runner.network), what, SHORT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=["build-up", "lambda", "kappa", "pruning", "index", "elements", "deciles"])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--recipes", default="paper,elias")
    parser.add_argument("--seeds", default="42")
    parser.add_argument("--encoder", help="directory of a transformer")
    parser.add_argument("--elias", help="the command, if it is not to be built")
    parser.add_argument("--set", action="append", default=[], help="a setting of every training")
    options = parser.parse_args()
    runner = Runner(options)
    for data in options.data:
        for recipe in options.recipes.split(","):
            print(f"\n## {options.table}: {pathlib.Path(data).name}, recipe {recipe}, seeds {options.seeds}\n")
            table(runner, options.table, data, recipe)


if __name__ == "__main__":
    main()
