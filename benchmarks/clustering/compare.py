#!/usr/bin/env python3
"""Clusters: mean cosine of labels to their cluster centre, and speed, against PECOS's hierarchical k-means.

    python3 benchmarks/clustering/compare.py [TRAIN.jsonl.gz ...] [--seeds 3]

Makes its own virtual environment (libpecos 1.2.8, which needs scipy < 1.11 and numpy < 2) in the user's cache
directory. Both sides get the same tf-idf rows, the same number of clusters, two-way splits and at most 20 rounds per
split; the cosine of both is computed here. Fails if our mean over the seeds is more than 1 % below PECOS's.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from common import DATA, build_benchmark, enter_environment, read_matrix

SETS = [DATA / name / "train.jsonl.gz" for name in ("debian-deps", "tibkat-en")]
PACKAGES = ["libpecos==1.2.8", "scipy<1.11", "numpy<2"]


def mean_cosine(centroids, cluster_of):
    """With unit rows, the cosines of a cluster's members to its centre sum to the length of the members' sum."""
    import numpy
    import scipy.sparse

    n_labels = len(cluster_of)
    members = scipy.sparse.csr_matrix((numpy.ones(n_labels), (cluster_of, numpy.arange(n_labels))))
    sums = members @ centroids
    return numpy.sqrt(sums.multiply(sums).sum(axis=1)).sum() / n_labels


def pecos_clusters(centroids, n_clusters, seed):
    import numpy
    from pecos.xmc import Indexer

    largest = -(-centroids.shape[0] // n_clusters)
    chain = Indexer.gen(
        centroids, indexer_type="hierarchicalkmeans", nr_splits=2, max_leaf_size=largest, seed=seed,
        spherical=True, max_iter=20, threads=len(os.sched_getaffinity(0)),
    )
    leaves = chain[-1].tocoo()
    assert leaves.shape[1] == n_clusters, f"PECOS made {leaves.shape[1]} clusters"
    cluster_of = numpy.zeros(centroids.shape[0], dtype=int)
    cluster_of[leaves.row] = leaves.col
    return cluster_of


def compare(data, cluster, n_seeds):
    import numpy
    from sklearn.preprocessing import normalize

    out = pathlib.Path(tempfile.mkdtemp(prefix="elias-clustering-"))
    centroids = None
    ours, theirs = [], []
    print(pathlib.Path(data).parent.name)
    for seed in range(n_seeds):
        command = [cluster, data, out, "default", str(seed)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        n_clusters, seconds = int(printed[0]), float(printed[1])
        if centroids is None:
            start = time.perf_counter()
            centroids = normalize(read_matrix(out, "labels").T.tocsr() @ read_matrix(out, "rows"))
            centroids = centroids.astype(numpy.float32).tocsr()
            centroids.sort_indices()
            pecos_centroid_seconds = time.perf_counter() - start
        cluster_of = numpy.fromfile(out / "cluster_of", dtype="<u4")
        ours.append(mean_cosine(centroids, cluster_of))
        start = time.perf_counter()
        pecos_cluster_of = pecos_clusters(centroids, n_clusters, seed)
        pecos_seconds = time.perf_counter() - start
        theirs.append(mean_cosine(centroids, pecos_cluster_of))
        sizes = numpy.bincount(cluster_of)
        print(
            f"  seed {seed}, {len(cluster_of)} labels, {n_clusters} clusters of {sizes.min()} to {sizes.max()}:"
            f" elias {ours[-1]:.4f} in {seconds:.2f} s,"
            f" PECOS {theirs[-1]:.4f} in {pecos_centroid_seconds + pecos_seconds:.2f} s, both with centroids"
        )
    ratio = numpy.mean(ours) / numpy.mean(theirs)
    print(f"  mean cosine {numpy.mean(ours):.4f} against {numpy.mean(theirs):.4f}: {100 * (ratio - 1):+.2f} %")
    return 0.99 <= ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    enter_environment("pecos", PACKAGES)
    cluster = build_benchmark("cluster")
    good = [compare(data, cluster, options.seeds) for data in options.data]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
