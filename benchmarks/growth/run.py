#!/usr/bin/env python3
"""CPU seconds of every phase of a training as texts or labels grow, with the exponent of each: a table of docs/performance.md.

    python3 benchmarks/growth/run.py texts|labels [--out ROWS.jsonl] [--set KEY=VALUE ...]

texts: 10,000 to 1,000,000 texts with 30,000 labels; labels: 30,000 to 3,000,000 labels of 1,000,000 texts. Data is synthetic
(benchmarks/src/bin/growth.rs). Epochs end after some steps, so stages are shown as milliseconds per step; the other phases
are whole. Rows that the file has already are not measured again.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common

SIZES = {
    "texts": [(10_000, 30_000), (100_000, 30_000), (1_000_000, 30_000)],
    "labels": [(1_000_000, 30_000), (1_000_000, 300_000), (1_000_000, 3_000_000)],
}
STEPS = 40
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
    parser.add_argument("what", choices=SIZES)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    options = parser.parse_args()
    program = common.build_benchmark("growth")
    known = options.out.read_text().splitlines() if options.out and options.out.exists() else []
    known = [json.loads(line) for line in known]
    rows = []
    for size in SIZES[options.what]:
        found = [row for row in known if row["size"] == list(size) and row["settings"] == options.settings]
        row = found[0] if found else measure(program, size, options.settings)
        if options.out and not found:
            with options.out.open("a") as out:
                print(json.dumps(row), file=out)
        rows.append(row)
    sizes = [row[{"texts": "points", "labels": "labels"}[options.what]] for row in rows]
    print("| | " + " | ".join(f"{size:,}" for size in sizes) + " | exponent |")
    print("|---" * (len(sizes) + 2) + "|")
    print("| clusters | " + " | ".join(f"{row['clusters']:,}" for row in rows) + " | |")
    for name in rows[0]["seconds"]:
        values = [figures(row)[name] for row in rows]
        unit = "ms per step" if name in STAGES else "s"
        cells = " | ".join(f"{value:.2f}" if value < 10 else f"{value:.0f}" for value in values)
        print(f"| {name}, {unit} | {cells} | {exponent(sizes, values):.2f} |")


if __name__ == "__main__":
    main()
