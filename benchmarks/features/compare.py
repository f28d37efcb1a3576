#!/usr/bin/env python3
"""tf-idf: speed and values against scikit-learn, on the same texts and cores in one run.

    python3 benchmarks/features/compare.py [TRAIN.jsonl.gz] [--rounds 3] [--cores 2]

Makes its own virtual environment in the user's cache directory. Rounds alternate between the two sides; each time is
that of fitting and transforming texts that are already in memory. Both sides get the ASCII characters of the texts,
for which the words of elias are those of the pattern \\w+. Fails if a vector differs by more than 1e-5 or the
median speed-up is below 5.
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from common import DATA, build_benchmark, enter_environment, read_matrix


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default=DATA / "tibkat-en" / "train.jsonl.gz")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    enter_environment("sklearn", ["scikit-learn"])

    from sklearn.feature_extraction.text import TfidfVectorizer

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    vectorize = build_benchmark("vectorize")
    with gzip.open(options.data, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"].encode("ascii", "ignore").decode() for line in lines]
    print(f"{len(texts)} texts, {sum(len(text.encode()) for text in texts) / 1e6:.1f} MB")

    out = pathlib.Path(tempfile.mkdtemp(prefix="elias-features-"))
    data = out / "train.jsonl"
    with data.open("w") as lines:
        lines.writelines(json.dumps({"text": text, "labels": []}) + "\n" for text in texts)
    sklearn_seconds, our_seconds = [], []
    for _ in range(options.rounds):
        model = TfidfVectorizer(sublinear_tf=True, min_df=2, token_pattern=r"\w+")
        start = time.perf_counter()
        expected = model.fit_transform(texts)
        sklearn_seconds.append(time.perf_counter() - start)
        command = [vectorize, data, out, "3"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        our_seconds.append(statistics.median(float(line) for line in printed.split()))

    found = read_matrix(out, "rows")
    words = (out / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]
    same_words = words == list(model.get_feature_names_out())
    difference = abs(found - expected).max() if found.shape == expected.shape else float("inf")
    ratios = sorted(theirs / ours for theirs, ours in zip(sklearn_seconds, our_seconds))
    print(f"scikit-learn {statistics.median(sklearn_seconds):.2f} s, elias {statistics.median(our_seconds):.3f} s")
    print(f"speed-up {statistics.median(ratios):.1f} (from {ratios[0]:.1f} to {ratios[-1]:.1f})")
    print(f"same {len(words)} words: {same_words}; {found.nnz} values, greatest difference {difference:.1e}")
    sys.exit(not (same_words and difference <= 1e-5 and 5 <= statistics.median(ratios)))


if __name__ == "__main__":
    main()
