#!/usr/bin/env python3
"""Compares the times that elias announces with the times that trainings take.

    python3 benchmarks/growth/progress.py DATA... [--elias PROGRAM] [--set KEY=VALUE ...]

For each data set: the seconds that `--dry-run` prints, the whole time that the first line of progress after a tenth of the
work implies (seconds so far and seconds left), and the truth, both estimates also as a share of it. Run it on a machine that
does nothing else, or with the same load all the time.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import common

SECONDS = {"s": 1, "min": 60, "h": 3600}


def seconds(text, before):
    """The duration that follows some words, if the text has them."""
    found = re.search(before + r" ([\d.]+) (s|min|h)\b", text)
    return float(found[1]) * SECONDS[found[2]] if found else None


def train(command):
    """Seconds of a training, and the time that each line of progress implied, by the seconds at which it came."""
    announced = []
    started = time.monotonic()
    training = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in training.stderr:
        left = seconds(line, "about")
        if left is not None and " left" in line:
            elapsed = time.monotonic() - started
            announced.append((elapsed, elapsed + left))
    if training.wait() != 0:
        sys.exit(f"{command} failed")
    return time.monotonic() - started, announced


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--elias")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    options = parser.parse_args()
    elias = options.elias or common.build_elias()
    settings = [word for setting in options.settings for word in ("--set", setting)]
    print("| data | seconds | dry run | after a tenth |\n|---|---|---|---|")
    for data in options.data:
        command = [elias, "train", data, *settings]
        dry = subprocess.run([*command, "--dry-run"], check=True, capture_output=True, text=True).stdout
        predicted = seconds(dry, "time: about")
        with tempfile.TemporaryDirectory() as out:
            took, announced = train([*command, "--out", f"{out}/model"])
        cells = [f"{predicted:.0f} ({predicted / took:.2f})"]
        implied = [whole for elapsed, whole in announced if elapsed >= took / 10]
        cells.append(f"{implied[0]:.0f} ({implied[0] / took:.2f})" if implied else "")
        print(f"| {pathlib.Path(data).name} | {took:.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
