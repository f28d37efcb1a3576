"""Times the ranker against PECOS's MLModel.train on one problem, alternating, and compares what they reach.

Needs libpecos==1.2.8 "scipy<1.11" "numpy<2" scikit-learn. Build first: cargo build --release --example ranker_bench

    python compare.py problem --rounds 3

PECOS 1.2.8 leaves the intercepts of its logistic loss at zero (see the line "largest intercept"), so the two solve
the same logistic problem only with --bias 0. With --objective use --threshold 1e-6: pruning changes objectives, and
a threshold of 0 makes PECOS store zeros. Compare times at the default threshold.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

import numpy as np
import scipy.sparse as sparse
from pecos.xmc.base import MLModel, MLProblem
from sklearn.preprocessing import normalize

EXAMPLE = os.path.join(os.path.dirname(__file__), "../../target/release/examples/ranker_bench")


def raw(problem, name, kind, n_rows):
    return np.fromfile(os.path.join(problem, name), kind).reshape(n_rows, -1)


def csr(problem, name):
    return sparse.load_npz(os.path.join(problem, f"{name}.npz")).tocsr()


def features(bow, dense):
    return sparse.hstack([normalize(bow), sparse.csr_matrix(normalize(dense))], format="csr", dtype=np.float32)


def candidate_matrix(candidates, n_labels):
    indptr = np.arange(len(candidates) + 1) * candidates.shape[1]
    ones = np.ones(candidates.size, np.float32)
    return sparse.csr_matrix((ones, candidates.ravel().astype(np.int32), indptr), shape=(len(candidates), n_labels))


def objective(psi, relevant, used, weights, loss, bias=1.0):
    """Sum over labels of ½‖w‖² + Σ loss over their training points; weights is (V+d+1)×L."""
    total = 0.5 * float(weights.multiply(weights).sum())
    with_bias = sparse.hstack([psi, np.full((psi.shape[0], 1), bias, np.float32)], format="csr")
    by_label = weights.T.tocsr()
    rows, columns = used.nonzero()
    sign = np.where(np.asarray(relevant[rows, columns]).ravel() > 0, 1.0, -1.0)
    for start in range(0, len(rows), 20_000):
        part = slice(start, start + 20_000)
        margin = np.asarray(with_bias[rows[part]].multiply(by_label[columns[part]]).sum(axis=1)).ravel() * sign[part]
        if loss == "squared_hinge":
            total += float((np.maximum(0, 1 - margin) ** 2).sum())
        else:
            total += float(np.logaddexp(0, -margin).sum())
    return total


def precision(psi, candidates, relevant, weights, k=5):
    with_bias = sparse.hstack([psi, np.ones((psi.shape[0], 1), np.float32)], format="csr")
    by_label = weights.T.tocsr()
    hits = np.zeros(k)
    n_points = min(3000, len(candidates))
    for row in range(n_points):
        margin = np.asarray((by_label[candidates[row]] @ with_bias[row].T).todense()).ravel()
        best = candidates[row][np.argsort(-margin, kind="stable")[:k]]
        hits += np.cumsum(np.isin(best, relevant[row].indices))
    return [round(100 * hits[at - 1] / (n_points * at), 2) for at in (1, 3, 5)]


def train_ours(path, arguments, loss, out):
    command = [EXAMPLE, path, "--loss", loss, "--tolerance", str(arguments.tolerance), "--threads", str(arguments.threads)]
    command += ["--threshold", str(arguments.threshold), "--bias", str(arguments.bias), "--out", out]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def our_weights(out, n_words, n_labels):
    read = lambda name, kind: np.fromfile(os.path.join(out, name), kind)
    words = sparse.csr_matrix((read("weights", np.float32), read("columns", np.uint32).astype(np.int32), read("indptr", np.uint64).astype(np.int64)), shape=(n_labels, n_words))
    dense = read("dense", np.float32).reshape(n_labels, -1)
    intercepts = read("intercepts", np.float32).reshape(-1, 1)
    return sparse.hstack([words, sparse.csr_matrix(dense), sparse.csr_matrix(intercepts)], format="csr").T.tocsc()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--losses", nargs="+", default=["squared_hinge", "logistic"])
    parser.add_argument("--tolerance", type=float, default=0.1)
    parser.add_argument("--threshold", type=float, default=0.1)
    parser.add_argument("--bias", type=float, default=1.0, help="0 trains both without intercepts")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--objective", action="store_true", help="compare objectives; slow on large problems")
    arguments = parser.parse_args()

    problem = arguments.problem
    bow, relevant = csr(problem, "bow"), csr(problem, "labels")
    test_bow, test_relevant = csr(problem, "test_bow"), csr(problem, "test_labels")
    psi = features(bow, raw(problem, "dense.f32", np.float32, bow.shape[0]))
    test_psi = features(test_bow, raw(problem, "test_dense.f32", np.float32, test_bow.shape[0]))
    n_labels = relevant.shape[1]
    listed = candidate_matrix(raw(problem, "candidates.u32", np.uint32, bow.shape[0]), n_labels)
    used = ((listed + relevant) > 0).tocsr()
    test_candidates = raw(problem, "test_candidates.u32", np.uint32, test_bow.shape[0])
    pecos_problem = MLProblem(psi, relevant.tocsc(), C=sparse.identity(n_labels, dtype=np.float32, format="csc"), M=listed.tocsc())

    for loss in arguments.losses:
        solver = {"squared_hinge": "L2R_L2LOSS_SVC_DUAL", "logistic": "L2R_LR_DUAL"}[loss]
        parameters = MLModel.TrainParams(threshold=arguments.threshold, max_iter=100, eps=arguments.tolerance, solver_type=solver, Cp=1.0, Cn=1.0, bias=arguments.bias, threads=arguments.threads)
        pecos_seconds, our_seconds = [], []
        with tempfile.TemporaryDirectory() as out:
            for _ in range(arguments.rounds):
                ours = train_ours(arguments.problem, arguments, loss, out)
                our_seconds.append(ours["train_seconds"])
                started = time.time()
                model = MLModel.train(pecos_problem, train_params=parameters)
                pecos_seconds.append(time.time() - started)
            weights = our_weights(out, bow.shape[1], n_labels)
        theirs = sparse.csc_matrix(model.W)
        if arguments.bias == 0:  # PECOS then has no row for it; ours is all zeros
            theirs = sparse.vstack([theirs, sparse.csr_matrix((1, n_labels))], format="csc")
        intercepts = [float(np.abs(w.tocsr()[-1].toarray()).max()) for w in (weights, theirs)]
        ratio = np.median(pecos_seconds) / np.median(our_seconds)
        print(f"{loss}: ours {np.median(our_seconds):.2f} s, PECOS {np.median(pecos_seconds):.2f} s, {ratio:.2f} times as fast")
        print(f"  weights kept: ours {weights.nnz}, PECOS {theirs.nnz}; scoring {ours['score_microseconds']:.0f} µs a text, one thread")
        found = [precision(test_psi, test_candidates, test_relevant, w) for w in (weights, theirs)]
        print(f"  P@1/3/5 by margin: ours {found[0]}, PECOS {found[1]}")
        print(f"  largest intercept: ours {intercepts[0]:.3g}, PECOS {intercepts[1]:.3g}")
        if arguments.objective:
            values = [objective(psi, relevant, used, w, loss) for w in (weights, theirs)]
            print(f"  objective: ours {values[0]:.1f}, PECOS {values[1]:.1f}")


if __name__ == "__main__":
    main()
