#!/usr/bin/env python3
"""How fast Spark, Ray and Dask score with a model beside `elias predict`, on the same cores, alternating in one run.

    target/engines/venv/bin/python benchmarks/engines/rates.py MODEL DATA [--texts 1000000] [--chars 60] [--rounds 3]

DATA is a file or directory of JSON Lines with a test part; the first characters of its texts are repeated, each with a
number in front, until there are enough. `python/test-engines.sh` makes the environment and builds the command.
The command reads JSON Lines and writes them, the engines read Parquet and write it. A figure is texts per second; what
starting an engine and its first few batches take, or the command for one text, is not counted. Medians over the rounds,
and their share of the command's.
"""

import argparse
import gzip
import itertools
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import pyarrow
import pyarrow.parquet

ROOT = pathlib.Path(__file__).resolve().parents[2]
ELIAS = ROOT / "target" / "release" / "elias"
K = 5
N_FILES = 16
#: Texts that every engine scores before it is timed.
N_WARM = 20_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--chars", type=int, default=60, help="length at which texts are cut")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--engines", nargs="+", default=["spark", "ray", "dask"])
    parser.add_argument("--only", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        # A process of its own for one engine; `data` is where the texts are.
        print(f"seconds {ENGINES[arguments.only](arguments)}")
        return
    arguments.model = arguments.model.resolve()
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        write_texts(arguments, place)
        rates = {name: [] for name in ["command", *arguments.engines]}
        for _ in range(arguments.rounds):
            for name, values in rates.items():
                seconds = time_command(arguments, place) if name == "command" else time_engine(arguments, place, name)
                values.append(arguments.texts / seconds)
                shutil.rmtree(place / "answers", ignore_errors=True)
                print(f"{name:8} {values[-1]:8.0f} texts/s", flush=True)
    print(f"\n{arguments.texts} texts, {arguments.cores} cores, medians of {arguments.rounds}")
    command = statistics.median(rates["command"])
    for name, values in rates.items():
        rate = statistics.median(values)
        print(f"{name:8} {rate:8.0f} texts/s ({min(values):.0f} to {max(values):.0f}), {rate / command:.2f} of the command")


def write_texts(arguments, place):
    """The texts as JSON Lines, and as files of Parquet; a few of them for the warm-up."""
    path = arguments.data
    if path.is_dir():
        path = next(path.glob("test.jsonl*"))
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as lines:
        source = [json.loads(line)["text"][: arguments.chars] for line in lines]
    texts = [f"{number} {text}" for number, text in zip(range(arguments.texts), itertools.cycle(source))]
    print(f"{len(texts)} texts of {sum(map(len, texts)) / len(texts):.0f} characters", flush=True)
    with open(place / "texts.jsonl", "w") as file:
        file.writelines(json.dumps({"id": number, "text": text}) + "\n" for number, text in enumerate(texts))
    with open(place / "one.jsonl", "w") as file:
        file.write(json.dumps({"id": 0, "text": texts[0]}) + "\n")
    for name, wanted in (("texts", texts), ("warm", texts[:N_WARM])):
        table = pyarrow.table({"id": range(len(wanted)), "text": wanted})
        (place / name).mkdir()
        size = -(-len(wanted) // N_FILES)
        for part in range(N_FILES):
            pyarrow.parquet.write_table(table.slice(part * size, size), place / name / f"{part}.parquet")


def time_command(arguments, place):
    def run(texts):
        out = place / "answers"
        command = [ELIAS, "predict", arguments.model, place / texts, "--top-k", str(K), "--out", out]
        begun = time.perf_counter()
        subprocess.run([*command, "--threads", str(arguments.cores), "--quiet", "--overwrite"], check=True)
        seconds = time.perf_counter() - begun
        out.unlink()
        return seconds

    run("one.jsonl")
    return run("texts.jsonl") - run("one.jsonl")


def time_engine(arguments, place, name):
    command = [sys.executable, __file__, str(arguments.model), str(place), "--only", name, "--cores", str(arguments.cores)]
    quiet = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    }
    ran = subprocess.run(command, env=os.environ | quiet, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(ran.stderr)
    return float(next(line for line in ran.stdout.splitlines() if line.startswith("seconds ")).split()[1])


def timed(arguments, score):
    """Seconds for all texts, after a few have warmed up."""
    score(str(arguments.data / "warm"), str(arguments.data / "answers" / "warm"))
    begun = time.perf_counter()
    score(str(arguments.data / "texts"), str(arguments.data / "answers" / "texts"))
    return time.perf_counter() - begun


def spark(arguments):
    from pyspark.sql import SparkSession

    from elias_xmc.spark import predict

    builder = SparkSession.builder.master(f"local[{arguments.cores}]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "2g").getOrCreate()

    def score(texts, answers):
        predict(session.read.parquet(texts), arguments.model, k=K, keep=["id"]).write.parquet(answers)

    return timed(arguments, score)


def ray(arguments):
    import ray

    from elias_xmc.ray import predict

    ray.init(num_cpus=arguments.cores, include_dashboard=False, object_store_memory=1 << 30, _node_ip_address="127.0.0.1")

    def score(texts, answers):
        predict(ray.data.read_parquet(texts), arguments.model, k=K, keep=["id"]).write_parquet(answers)

    return timed(arguments, score)


def dask(arguments):
    import dask.dataframe
    import distributed

    from elias_xmc.dask import predict

    options = {"threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(n_workers=arguments.cores, **options) as cluster, distributed.Client(cluster):

        def score(texts, answers):
            predict(dask.dataframe.read_parquet(texts), arguments.model, k=K, keep=["id"]).to_parquet(answers)

        return timed(arguments, score)


ENGINES = {"spark": spark, "ray": ray, "dask": dask}

if __name__ == "__main__":
    main()
