#!/usr/bin/env python3
"""How fast the Python package is beside the command line, on the same texts and threads, alternating in one run.

    target/python/venv/bin/python benchmarks/python/speed.py MODEL DATA [--rounds 5] [--threads 2]

DATA is a file or directory of JSON Lines with a test part. `python/test.sh` makes the environment; the command is built
with `cargo build --release`. Rates are texts per second for ten labels each, medians over the rounds:

- predict: lists of `Prediction`; predict_csr: a SciPy matrix; predict_arrow: a record batch
- bench: `elias bench predict`, the library's call alone, without names and without writing
- command: `elias predict --out FILE`, less the time it takes for one text, which is mostly loading

One text: the median time of `model.predict(text)` less that of the Rust call in the same process, on the same texts.
"""

import argparse
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import pyarrow

import elias_xmc

ROOT = pathlib.Path(__file__).resolve().parents[2]
ELIAS = ROOT / "target" / "release" / "elias"
K = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--copies", type=int, default=4, help="how often the texts are repeated")
    arguments = parser.parse_args()
    points = read_points(arguments.data)
    texts = [point["text"] for point in points]
    model = elias_xmc.load(arguments.model, verify=True)
    rates = measure_rates(arguments, model, texts * arguments.copies)
    for name, values in rates.items():
        print(f"{name:14} {statistics.median(values):9.0f} texts/s   {min(values):.0f} to {max(values):.0f}")
    for name in ("predict", "predict_csr", "predict_arrow"):
        for peer in ("bench", "command"):
            shares = [own / other for own, other in zip(rates[name], rates[peer])]
            print(f"{name} / {peer}: {statistics.median(shares):.3f}")
    measure_one(arguments, model, points)


def read_points(path):
    if path.is_dir():
        path = next(path.glob("test.jsonl*"))
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def measure_rates(arguments, model, texts):
    batch = pyarrow.record_batch({"text": texts})
    threads = arguments.threads
    rates = {name: [] for name in ("predict", "predict_csr", "predict_arrow", "bench", "command")}
    with tempfile.TemporaryDirectory() as directory:
        inputs = pathlib.Path(directory) / "texts.jsonl"
        inputs.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        one = pathlib.Path(directory) / "one.jsonl"
        one.write_text(json.dumps({"text": texts[0]}) + "\n")
        out = pathlib.Path(directory) / "answers.jsonl"

        def command(path):
            arguments_ = [ELIAS, "predict", arguments.model, path, "--top-k", str(K), "--threads", str(threads)]
            subprocess.run([*arguments_, "--quiet", "--out", out, "--overwrite"], check=True)

        def bench():
            arguments_ = [ELIAS, "bench", "predict", arguments.model, inputs, "--top-k", str(K)]
            done = subprocess.run([*arguments_, "--threads", str(threads), "--quiet", "--json"], check=True, capture_output=True)
            return json.loads(done.stdout)["queries_per_s"]

        model.predict(texts[:1000], K, threads=threads)
        for _ in range(arguments.rounds):
            rates["predict"].append(len(texts) / seconds(lambda: model.predict(texts, K, threads=threads)))
            rates["bench"].append(bench())
            rates["predict_csr"].append(len(texts) / seconds(lambda: model.predict_csr(texts, K, threads=threads)))
            rates["command"].append(len(texts) / (seconds(lambda: command(inputs)) - seconds(lambda: command(one))))
            rates["predict_arrow"].append(len(texts) / seconds(lambda: model.predict_arrow(batch, K, threads=threads)))
    return rates


def measure_one(arguments, model, points):
    """The same texts that the Rust side times: spread evenly, at most 2000."""
    texts = [point["text"] for point in points]
    labels = [point["labels"] for point in points]
    stride = max(1, -(-len(texts) // 2000))
    spread = texts[::stride]
    overheads = []
    for _ in range(arguments.rounds):
        rust = model.evaluate(texts, labels, latency=True, threads=1)["ms_per_query_p50"]
        times = [seconds(lambda: model.predict(text, K)) for text in spread]
        python = 1e3 * statistics.median(times)
        overheads.append(1e3 * (python - rust))
        print(f"one text: {1e3 * python:.1f} µs from Python, {1e3 * rust:.1f} µs from Rust", file=sys.stderr)
    print(f"one text: {statistics.median(overheads):.1f} µs over the Rust call")


def seconds(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
