#!/usr/bin/env python3
"""What the learned index brings at equal budgets: the same epochs, rates and encoder, another index.

    python3 benchmarks/ablation/run.py DATA ... --work DIR [--seeds 42,43,44] [--only fixed,learned] [--clusters 1]
                                       [--beams 20] [--sizes 2000] [--set KEY=VALUE ...]

DATA: directories with a train and a test part; choose settings on one that `elias convert --cut-validation` cut from a
training file, and read a test file once. Without ranker, calibration, names and neighbours: the index alone.

fixed    every label stays in the cluster it starts in, for all epochs
overlap  the edges that A starts from, weights ln of the counts MᵀY, never trained
counted  the same, counted again in every epoch
random   learned from random weights, positives outside of the shortlist in L_s alone: as in the paper
once     learned from ln of the counts MᵀY
learned  the same, counted again in every epoch: the default
ova      no index: all labels are scored and trained (up to 15,000 labels)

Each with the paper's number of clusters, 2^⌈log2(L/100)⌉, and four times as many, beams 20 and 5, K 2000 and 500, unless
told otherwise.
Prints mean ± spread (half of the range) over the seeds, then the recall of true labels inside the shortlist.
What is in DIR already is not trained again, so that an interrupted run goes on.
"""

import argparse
import hashlib
import itertools
import json
import math
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from common import build_elias

KINDS = {
    "fixed": ["index.mode=fixed"],
    "overlap": ["index.mode=learned", "ablation.edge_start=counts", "rates.edges=0"],
    "counted": ["index.mode=learned", "ablation.edge_start=recounts", "rates.edges=0"],
    "random": ["index.mode=learned", "ablation.edge_start=random", "ablation.positives=shortlisted"],
    "once": ["index.mode=learned", "ablation.edge_start=counts"],
    "learned": ["index.mode=learned", "ablation.edge_start=recounts"],
    "ova": ["index.mode=ova"],
}
METRICS = ["p@1", "p@3", "p@5", "psp@1", "psp@5", "r@10", "r@100"]
MAX_OVA_LABELS = 15_000
BARE = ["--ranker", "off", "--calibration", "off", "--neighbours", "off", "--label-text", "off"]


def json_of(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def counts(elias, data):
    """The number of labels, and the paper's number of clusters for it."""
    plan = subprocess.run([elias, "train", data, "--out", "unused", "--dry-run", *BARE],
                          check=True, capture_output=True, text=True).stdout
    n_labels = next(int(line.split()[-1]) for line in plan.splitlines() if line.startswith("L:"))
    return n_labels, 2 ** math.ceil(math.log2(max(n_labels / 100, 1)))


def measure(elias, data, settings, seed, work):
    """Trains one model and measures it, unless that was done before."""
    command = [elias, "train", data, *BARE, "--seed", str(seed)]
    for setting in settings:
        command += ["--set", setting]
    name = hashlib.sha256(" ".join(map(str, command[2:])).encode()).hexdigest()[:16]
    result = work / f"{name}.json"
    if result.exists():
        return json.loads(result.read_text())
    print(pathlib.Path(data).name, seed, *settings, file=sys.stderr, flush=True)
    model = work / name
    started = time.time()
    go_on = "--resume" if model.exists() else "--overwrite"
    subprocess.run([*command, "--out", model, go_on, "--quiet"], check=True)
    seconds = time.time() - started
    figures = json_of([elias, "evaluate", model, data, "--stage", "stage2", "--json"])
    shortlist = json_of([elias, "evaluate", model, data, "--stage", "shortlist", "--json"])
    row = {"metrics": {name: figures[name] for name in METRICS}, "ms": figures["ms_per_query_p50"],
           "seconds": seconds, "shortlist": shortlist}
    result.write_text(json.dumps(row))
    shutil.rmtree(model)
    return row


def spread(values):
    mean = sum(values) / len(values)
    return f"{mean:.2f} ± {(max(values) - min(values)) / 2:.2f}" if len(values) > 1 else f"{mean:.2f}"


def cells(options, n_labels, n_clusters):
    """Name and settings of every index that is compared."""
    for kind in options.only.split(","):
        if kind == "ova":
            if n_labels <= MAX_OVA_LABELS:
                yield (kind, "", "", ""), KINDS[kind]
            continue
        grid = itertools.product(*(map(int, axis.split(",")) for axis in (options.clusters, options.beams, options.sizes)))
        for factor, beam, size in grid:
            sizes = {"n_clusters": factor * n_clusters, "beam_size": beam, "shortlist_size": size}
            yield (kind, *sizes.values()), [*KINDS[kind], *(f"index.{key}={value}" for key, value in sizes.items())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", default="42,43,44")
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--clusters", default="1,4")
    parser.add_argument("--beams", default="20,5")
    parser.add_argument("--sizes", default="2000,500")
    parser.add_argument("--set", action="append", default=[], help="a setting of every training")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    elias = build_elias()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    for data in options.data:
        n_labels, n_clusters = counts(elias, data)
        print(f"\n## {pathlib.Path(data).name}: {n_labels:,} labels, seeds {options.seeds}\n")
        print("| index | C | beam | K |", " | ".join(name.upper() for name in METRICS), "| ms per text | seconds |")
        print("|" + "---|" * (len(METRICS) + 6))
        curves = []
        for name, settings in cells(options, n_labels, n_clusters):
            rows = [measure(elias, data, [*settings, *options.set], seed, options.work) for seed in seeds]
            shown = [spread([row["metrics"][metric] for row in rows]) for metric in METRICS]
            times = [f"{min(row['ms'] for row in rows):.2f}", f"{min(row['seconds'] for row in rows):.0f}"]
            print("|", " | ".join([*map(str, name), *shown, *times]), "|", flush=True)
            curves.append((name, [row["shortlist"] for row in rows]))
        print_curves(curves)


def print_curves(curves):
    first = curves[0][1][0]
    for beam, beam_size in enumerate(first["beam_sizes"]):
        if beam_size not in (5, 20):
            continue
        print(f"\nTrue labels inside the shortlist, beam {beam_size}, by its size:\n")
        print("| index | C | trained with beam | K |", " | ".join(map(str, first["shortlist_sizes"])), "|")
        print("|" + "---|" * (len(first["shortlist_sizes"]) + 4))
        for name, shortlists in curves:
            of_seeds = [shortlist["indices"][0]["by_beam"][beam] for shortlist in shortlists]
            print("|", " | ".join([*map(str, name), *(spread(values) for values in zip(*of_seeds))]), "|")


if __name__ == "__main__":
    main()
