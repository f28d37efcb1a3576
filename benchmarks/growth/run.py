#!/usr/bin/env python3
"""CPU seconds of every phase of a training as texts or labels grow, with the exponent of each: a table of docs/performance.md.

    python3 benchmarks/growth/run.py texts 10000 100000 1000000 --labels 30000 [--out ROWS.jsonl] [--set KEY=VALUE ...]
    python3 benchmarks/growth/run.py labels 30000 300000 3000000 --texts 1000000 [--out ROWS.jsonl] [--set KEY=VALUE ...]

Data is synthetic (benchmarks/src/bin/growth.rs) and needs a text for every four labels. Epochs end after some steps, so
stages are shown as milliseconds per step; the other phases are whole. Rows that the file has already are not measured again.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common

STEPS = 20
STAGES = ("stage 1", "stage 2")


def measure(program, size, settings):
    command = [program, *map(str, size), str(STEPS), "stage1.epochs=1", "stage2.epochs=1", *settings]
    row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {"size": list(size), "settings": settings, **row}


def figures(row):
    """Seconds of a phase, or milliseconds per step of a stage."""
    return {
        name: 1000 * seconds / row["steps"][name] if name in STAGES else seconds
        for name, seconds in row["seconds"].items()
    }


def exponent(sizes, values):
    """The slope of the line through the logarithms, by least squares."""
    if min(values) <= 0:
        return math.nan
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("texts", "labels"), help="what grows")
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--texts", type=int, default=1_000_000, help="how many, where labels grow")
    parser.add_argument("--labels", type=int, default=30_000, help="how many, where texts grow")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    options = parser.parse_args()
    program = common.build_benchmark("growth")
    known = options.out.read_text().splitlines() if options.out and options.out.exists() else []
    known = [json.loads(line) for line in known]
    rows = []
    for grown in options.sizes:
        size = (grown, options.labels) if options.what == "texts" else (options.texts, grown)
        found = [row for row in known if row["size"] == list(size) and row["settings"] == options.settings]
        row = found[0] if found else measure(program, size, options.settings)
        if options.out and not found:
            with options.out.open("a") as out:
                print(json.dumps(row), file=out)
        rows.append(row)
    sizes = options.sizes
    print(f"| {options.what} | " + " | ".join(f"{size:,}" for size in sizes) + " | exponent |")
    print("|---" * (len(sizes) + 2) + "|")
    print("| clusters | " + " | ".join(f"{row['clusters']:,}" for row in rows) + " | |")
    for name in rows[0]["seconds"]:
        values = [figures(row)[name] for row in rows]
        unit = "ms per step" if name in STAGES else "s"
        cells = " | ".join(f"{value:.2f}" if value < 10 else f"{value:.0f}" for value in values)
        print(f"| {name}, {unit} | {cells} | {exponent(sizes, values):.2f} |")


if __name__ == "__main__":
    main()
