"""Builds one ranking problem from a data set and saves it in a directory.

Words are tf-idf, embeddings a truncated SVD of them, and candidates the labels whose centroid in the embedding
is most similar to the point. That is no model anyone should use; it gives both rankers the same realistic input.

    python make_problem.py ../shared/data/debian-deps problem
"""

import argparse
import gzip
import json
import os

import numpy as np
import scipy.sparse as sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize


def read(path):
    with gzip.open(path, "rt") as lines:
        points = [json.loads(line) for line in lines]
    return [point["text"] for point in points], [point["labels"] for point in points]


def label_matrix(labels, names):
    rows = [row for row, of_row in enumerate(labels) for _ in of_row]
    columns = [names[label] for of_row in labels for label in of_row]
    shape = (len(labels), len(names))
    matrix = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def best_labels(dense, centroids, k):
    best = []
    for start in range(0, len(dense), 1024):
        similarity = dense[start : start + 1024] @ centroids.T
        top = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(similarity, top, axis=1), axis=1)
        best.append(np.take_along_axis(top, order, axis=1).astype(np.uint32))
    return np.concatenate(best)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("problem")
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--candidates", type=int, default=100)
    arguments = parser.parse_args()

    texts, labels = read(f"{arguments.data}/train.jsonl.gz")
    test_texts, test_labels = read(f"{arguments.data}/test.jsonl.gz")
    names = {name: idx for idx, name in enumerate(sorted({name for of_row in labels for name in of_row}))}
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    bow = vectorizer.fit_transform(texts)
    test_bow = vectorizer.transform(test_texts)
    svd = TruncatedSVD(arguments.dimensions, n_iter=2, random_state=0)
    dense = normalize(svd.fit_transform(bow)).astype(np.float32)
    test_dense = normalize(svd.transform(test_bow)).astype(np.float32)
    relevant = label_matrix(labels, names)
    test_relevant = label_matrix(test_labels, names)
    centroids = normalize(relevant.T @ dense).astype(np.float32)

    os.makedirs(arguments.problem, exist_ok=True)
    inside = lambda name: os.path.join(arguments.problem, name)
    matrices = {"bow": bow, "test_bow": test_bow, "labels": relevant, "test_labels": test_relevant}
    for name, matrix in matrices.items():
        matrix.sort_indices()
        sparse.save_npz(inside(f"{name}.npz"), matrix, compressed=False)
    dense.tofile(inside("dense.f32"))
    test_dense.tofile(inside("test_dense.f32"))
    best_labels(dense, centroids, arguments.candidates).tofile(inside("candidates.u32"))
    best_labels(test_dense, centroids, arguments.candidates).tofile(inside("test_candidates.u32"))
    print(f"{bow.shape[0]} points, {bow.shape[1]} words, {len(names)} labels, {bow.nnz / bow.shape[0]:.1f} words a point")


if __name__ == "__main__":
    main()
