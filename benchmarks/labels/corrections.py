#!/usr/bin/env python3
"""Corrections per second that `elias serve` keeps, and whether the next answer heeds them.

    python3 benchmarks/labels/corrections.py MODEL TEXTS.jsonl [--elias target/release/elias] [--connections 32] [--seconds 10]

A copy of the model is served. On every connection, one text after the other, each with a number of its own, is answered, the best
label is rejected, and every tenth time the text is answered again: the label must be gone from its place. Prints corrections per
second, their p50 and p99, the service's own time of keeping what waits together, and its CPU per correction; in the end the
journal must have them all, and a service that loads it must answer alike.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time

KEY = "measure"
K = 10


class Service:
    def __init__(self, elias, model):
        command = [elias, "serve", model, "--bind", "127.0.0.1:0", "--max-queue", "2000"]
        environment = {**os.environ, "ELIAS_LEARN_KEY": KEY}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        while "listening on" not in (line := self.process.stderr.readline()):
            if self.process.poll() is not None:
                raise SystemExit("the service does not start")
        self.address = line.rsplit("/", 1)[1].strip()

    def connect(self):
        return http.client.HTTPConnection(self.address, timeout=60)

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def post(connection, path, body):
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    connection.request("POST", path, json.dumps(body), headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    if response.status != 200:
        raise RuntimeError(f"{path}: {response.status} {answer}")
    return answer


def best(connection, text):
    return [label["label"] for label in post(connection, "/v1/predict", {"text": text, "k": K})["labels"]]


def correct(service, texts, number, deadline, times, wrong, failures):
    try:
        correct_all(service, texts, number, deadline, times, wrong)
    except (OSError, http.client.HTTPException, RuntimeError) as error:
        failures.append(error)


def correct_all(service, texts, number, deadline, times, wrong):
    connection, n = service.connect(), 0
    while time.monotonic() < deadline:
        text = f"{texts[(number * 7919 + n) % len(texts)]} correction{number}x{n}"
        is_checked = n % 10 == 0
        label = best(connection, text)[0] if is_checked else wrong
        began = time.monotonic()
        post(connection, "/v1/learn", {"text": text, "not": [label]})
        times.append(time.monotonic() - began)
        if is_checked and best(connection, text)[0] == label:
            raise RuntimeError(f"{label!r} is still the first answer to {text!r}")
        n += 1


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("model", type=pathlib.Path)
    arguments.add_argument("texts", type=pathlib.Path)
    arguments.add_argument("--elias", default="target/release/elias")
    arguments.add_argument("--connections", type=int, default=32)
    arguments.add_argument("--seconds", type=float, default=10)
    asked = arguments.parse_args()
    with open(asked.texts, encoding="utf-8") as file:
        texts = [json.loads(line)["text"][:2000] for line, _ in zip(file, range(5000))]
    with tempfile.TemporaryDirectory() as directory:
        model = shutil.copytree(asked.model, pathlib.Path(directory) / "model")
        service = Service(asked.elias, model)
        connection, times, failures = service.connect(), [], []
        wrong = best(connection, texts[0])[0]
        before, deadline = service.cpu_seconds(), time.monotonic() + asked.seconds
        work = [
            threading.Thread(target=correct, args=(service, texts, number, deadline, times, wrong, failures))
            for number in range(asked.connections)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        if failures:
            raise failures[0]
        cpu = service.cpu_seconds() - before
        times.sort()
        connection.request("GET", "/metrics")
        metrics = connection.getresponse().read().decode()
        total, n_batches = (float(re.search(rf"elias_learn_seconds_{name} (\S+)", metrics)[1]) for name in ("sum", "count"))
        answers = [post(connection, "/v1/predict", {"text": text, "k": K}) for text in texts[:200]]
        service.stop()
        n_kept = sum(path.read_bytes().count(b"\n") for path in model.glob("corrections.*.jsonl"))
        began = time.monotonic()
        again = Service(asked.elias, model)
        loaded = time.monotonic() - began
        connection = again.connect()
        alike = [post(connection, "/v1/predict", {"text": text, "k": K}) for text in texts[:200]] == answers
        again.stop()
    print(f"{len(times) / asked.seconds:.0f} corrections per second over {asked.connections} connections")
    print(f"p50 {1e3 * times[len(times) // 2]:.1f} ms, p99 {1e3 * times[len(times) * 99 // 100]:.1f} ms")
    print(f"{len(times) / n_batches:.1f} corrections kept together in {1e3 * total / n_batches:.2f} ms")
    print(f"{1e6 * cpu / len(times):.0f} us of CPU per correction, a tenth of which were answered twice")
    print(f"{n_kept} of {len(times)} in the journal, ready after {loaded:.1f} s, {'alike' if alike else 'NOT ALIKE'}")


if __name__ == "__main__":
    main()
