#!/usr/bin/env python3
"""Texts a second in batches: elias against PECOS XR-Linear, alternating in one run.

    python3 benchmarks/peers/throughput.py MODEL DATA [--rounds 3]

MODEL is an elias model trained on DATA (a directory with train.jsonl.gz and test.jsonl.gz). XR-Linear is trained here
with its defaults and predicts with beam 10, top 100, two threads, from ready tf-idf rows; elias predicts from ready
rows too, and from the texts, by its stage 2 alone and by the whole stack. Uses the environment of compare.py.
"""

import argparse
import collections
import json
import statistics
import subprocess
import time

import compare


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    compare.enter_environment("peers", compare.PACKAGES)
    elias = compare.build_elias()
    problem = compare.Problem(arguments.data)
    peer = compare.train_xr_linear(problem)

    def peer_rate():
        started = time.time()
        peer.predict(problem.test, beam_size=10, only_topk=100, threads=2)
        return problem.test.shape[0] / (time.time() - started)

    def elias_rates(stage):
        command = [elias, "bench", "predict", arguments.model, arguments.data, "--stage", stage]
        command += ["--top-k", "100", "--threads", "2", "--json", "--quiet"]
        figures = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return figures["queries_per_s_from_features"], figures["queries_per_s"]

    rates = collections.defaultdict(list)
    for _ in range(arguments.rounds):
        rates["XR-Linear, beam 10"].append(peer_rate())
        for name, stage in (("stage 2", "stage2"), ("whole stack", "ensemble")):
            from_features, from_texts = elias_rates(stage)
            rates[f"elias, {name}, from features"].append(from_features)
            rates[f"elias, {name}, from texts"].append(from_texts)
    base = rates["XR-Linear, beam 10"]
    for name, all_rates in rates.items():
        ratio = statistics.median(rate / of_peer for rate, of_peer in zip(all_rates, base))
        listed = ", ".join(f"{rate:.0f}" for rate in all_rates)
        print(f"{name}: {listed} texts a second; median ratio {ratio:.1f}")


if __name__ == "__main__":
    main()
