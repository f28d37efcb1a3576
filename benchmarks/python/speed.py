#!/usr/bin/env python3
"""How fast the Python package is beside the command line, on the same texts and threads, alternating in one run.

    target/python/venv/bin/python benchmarks/python/speed.py MODEL DATA [--rounds 5] [--threads 2]

DATA is a file or directory of JSON Lines with a test part. `python/test.sh` makes the environment; the command is built
with `cargo build --release`. Figures are texts per second and, since other work on the machine changes those, CPU microseconds per text; for ten
labels each, medians over the rounds:

- predict: lists of `Prediction`; predict_csr: a SciPy matrix; predict_arrow: a record batch
- command: `elias predict --out FILE`, less what it takes for one text, which is mostly loading
- bench: `elias bench predict`, the library's call alone, without names and without writing; it has no CPU figure

One text: the median time of `model.predict(text)` less that of the Rust call in the same process, on the same texts, both
in the quietest round; and the same for a model of four texts, whose answers take next to nothing.
"""

import argparse
import gzip
import json
import pathlib
import resource
import statistics
import subprocess
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
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    points = read_points(arguments.data)
    texts = [point["text"] for point in points]
    model = elias_xmc.load(arguments.model, verify=True)
    rates, costs = measure_rates(arguments, model, texts)
    for name, values in rates.items():
        cost = f"{1e6 * statistics.median(costs[name]):7.1f} µs CPU" if costs[name] else ""
        print(f"{name:14} {statistics.median(values):7.0f} texts/s ({min(values):.0f} to {max(values):.0f}) {cost}")
    measure_one(arguments, model, texts, [point["labels"] for point in points])
    texts = ["ripe red apple", "fast red car", "ripe green pear", "fast green bike"]
    labels = [["fruit", "red"], ["vehicle", "red"], ["fruit", "green"], ["vehicle", "green"]]
    small = elias_xmc.train(texts, labels, stage1_epochs=50)
    measure_one(arguments, small, texts * 500, labels * 500)


def read_points(path):
    if path.is_dir():
        path = next(path.glob("test.jsonl*"))
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def measure_rates(arguments, model, texts):
    batch = pyarrow.record_batch({"text": texts})
    threads = arguments.threads
    names = ("predict", "predict_csr", "predict_arrow", "command", "bench")
    rates, costs = {name: [] for name in names}, {name: [] for name in names}
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
            for name, work in (
                ("predict", lambda: model.predict(texts, K, threads=threads)),
                ("predict_csr", lambda: model.predict_csr(texts, K, threads=threads)),
                ("predict_arrow", lambda: model.predict_arrow(batch, K, threads=threads)),
            ):
                wall, cpu = measure(work)
                rates[name].append(len(texts) / wall)
                costs[name].append(cpu / len(texts))
            wall, cpu = measure(lambda: command(inputs), resource.RUSAGE_CHILDREN)
            wall_of_one, cpu_of_one = measure(lambda: command(one), resource.RUSAGE_CHILDREN)
            rates["command"].append(len(texts) / (wall - wall_of_one))
            costs["command"].append((cpu - cpu_of_one) / len(texts))
            rates["bench"].append(bench())
    return rates, costs


def measure_one(arguments, model, texts, labels):
    """On the texts that the Rust side times: spread evenly, at most 2000."""
    spread = texts[:: max(1, -(-len(texts) // 2000))]
    python, rust = [], []
    for _ in range(arguments.rounds):
        rust.append(1e3 * model.evaluate(texts, labels, latency=True, threads=1)["ms_per_query_p50"])
        times = [seconds(lambda: model.predict(text, K)) for text in spread]
        python.append(1e6 * statistics.median(times))
    print(f"one text: {min(python):.1f} µs, {min(rust):.1f} µs from Rust: {min(python) - min(rust):.1f} µs more")


def measure(work, who=resource.RUSAGE_SELF):
    """Seconds of time, and of the processors."""
    before = resource.getrusage(who)
    wall = seconds(work)
    after = resource.getrusage(who)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
