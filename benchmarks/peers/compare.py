#!/usr/bin/env python3
"""One table of elias and its peers: quality, training time, prediction time, model size, peak memory.

    python3 benchmarks/peers/compare.py [DATA ...] [--systems elias,xr-linear,parabel,bonsai,napkinxc,fasttext]
                                        (elias-fast, elias-best: with the preset)
                                        [--label-names] [--word-pairs] [--seeds 42] [--members 1] [--limit 3600]
                                        [--work DIR]

DATA: directories with train.jsonl.gz and test.jsonl.gz (or without .gz). Makes its own virtual environment in the user's cache
directory (libpecos 1.2.8 with scipy < 1.11, omikuji 0.5.2, napkinxc 0.7.2, fasttext, scikit-learn). Every system gets
the same split; those that take features get the same tf-idf (scikit-learn's, equal to elias's to 1e-7). Each runs in
a process of its own, on two threads; all answers (100 per text) are measured by `elias evaluate --predictions`.
Peers have their recommended settings and the obvious knob tuned: beam 20 for XR-Linear, three trees for omikuji and
napkinXC, 25 epochs with word pairs for fastText (one against all up to 4,000 labels, its tree beyond). With
--label-names peers get what elias takes by itself: the name of every label as one more training point; with
--word-pairs, pairs of neighbouring words beside the words, half as long, as elias's ranker has them. With several
--seeds elias's row is the mean over them, and a row of spreads (half of the range) follows. A peer that crashes, or has
not trained and answered within --limit seconds, has a row that says so. With --work, figures (and elias's models) are
kept there, and what is there already is not measured again.
"""

import argparse
import gzip
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from common import DATA, build_elias, enter_environment

SETS = [str(DATA / name) for name in ("debian-deps", "tibkat-en", "tibcore-4k", "acl-authors", "gutenberg-lcsh", "bibtex")]
PACKAGES = ["libpecos==1.2.8", "scipy<1.11", "numpy<2", "omikuji==0.5.2", "napkinxc==0.7.2", "fasttext", "scikit-learn"]
SYSTEMS = ["elias", "xr-linear", "parabel", "bonsai", "napkinxc", "fasttext"]
COSTS = {"training_s": "training s", "ms_per_point": "ms per point", "model_mb": "model MB", "peak_mb": "peak MB"}
COLUMNS = ["p@1", "p@3", "p@5", "ndcg@3", "ndcg@5", "psp@1", "psp@3", "psp@5", "r@10", "r@20", "r@100"]
OPTIONS = {"names": "label_names", "pairs": "word_pairs"}
K = 100


def read(data, part):
    path = pathlib.Path(data) / f"{part}.jsonl.gz"
    plain = path.with_suffix("")
    with open(plain, encoding="utf-8") if plain.exists() else gzip.open(path, "rt", encoding="utf-8") as lines:
        points = [json.loads(line) for line in lines]
    return [point["text"] for point in points], [point["labels"] for point in points]


def words_of_name(name):
    """A name without its codes, identifiers also cut into words: the rule of src/data/label_texts.rs."""
    words = []
    for part in name.split():
        n_letters, n_digits = sum(map(str.isalpha, part)), sum(map(str.isdigit, part))
        if n_letters > n_digits and "://" not in part:
            cut = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", part).replace("_", " ")
            words += [part, cut] if cut != part else [part]
    return " ".join(words)


class Problem:
    """The split as tf-idf and label matrices."""

    def __init__(self, data, with_names, with_pairs):
        import numpy
        from scipy.sparse import csr_matrix, hstack
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.preprocessing import MultiLabelBinarizer, normalize

        train_texts, train_labels = read(data, "train")
        test_texts, _ = read(data, "test")
        if with_names:
            names = sorted({label for labels in train_labels for label in labels})
            named = [(words_of_name(name), [name]) for name in names if words_of_name(name)]
            train_texts = train_texts + [text for text, _ in named]
            train_labels = train_labels + [labels for _, labels in named]
        self.train_texts, self.test_texts = train_texts, test_texts
        parts = []
        for n_words, length in [(1, 1.0), (2, 0.5)][: 1 + with_pairs]:
            vectorizer = TfidfVectorizer(
                sublinear_tf=True, min_df=2, ngram_range=(n_words, n_words), dtype=numpy.float32
            )
            parts.append((length * vectorizer.fit_transform(train_texts), length * vectorizer.transform(test_texts)))
        joined = [normalize(hstack(of, format="csr")) for of in zip(*parts)]
        self.train, self.test = (csr_matrix(rows, dtype=numpy.float32) for rows in joined)
        binarizer = MultiLabelBinarizer(sparse_output=True)
        self.labels = csr_matrix(binarizer.fit_transform(train_labels), dtype=numpy.float32)
        self.names = list(binarizer.classes_)
        starts = self.labels.indptr
        self.label_ids = [self.labels.indices[a:b].tolist() for a, b in zip(starts, starts[1:])]


def timed(action):
    started = time.time()
    result = action()
    return result, time.time() - started


def folder_size(path):
    path = pathlib.Path(path)
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def train_xr_linear(problem):
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    embedding = LabelEmbeddingFactory.create(problem.labels, problem.train, method="pifa")
    chain = Indexer.gen(embedding, indexer_type="hierarchicalkmeans", threads=2)
    return XLinearModel.train(problem.train, problem.labels, C=chain, threads=2)


def xr_linear(problem, work):
    model, training = timed(lambda: train_xr_linear(problem))
    model.save(str(work / "model"))
    answers, predicting = timed(lambda: model.predict(problem.test, beam_size=20, only_topk=K, threads=2))
    return rows_of(answers), training, predicting


def rows_of(matrix):
    matrix = matrix.tocsr()
    for row in range(matrix.shape[0]):
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        yield sorted(zip(matrix.indices[part].tolist(), matrix.data[part].tolist()), key=lambda pair: -pair[1])


def omikuji(problem, work, hyper_parameters):
    import omikuji as peer

    path = work / "train.txt"
    # It refuses points without a word or a label.
    n_words = problem.train.shape[1]
    lengths = problem.train.indptr[1:] - problem.train.indptr[:-1]
    rows = [row for row, labels in enumerate(problem.label_ids) if labels and lengths[row]]
    with open(path, "w") as out:
        out.write(f"{len(rows)} {n_words} {len(problem.names)}\n")
        for row in rows:
            part = slice(problem.train.indptr[row], problem.train.indptr[row + 1])
            pairs = zip(problem.train.indices[part], problem.train.data[part])
            labels = ",".join(map(str, problem.label_ids[row]))
            out.write(labels + " " + " ".join(f"{word}:{value:.6f}" for word, value in sorted(pairs)) + "\n")
    settings = peer.Model.default_hyper_param()
    for name, value in hyper_parameters.items():
        setattr(settings, name, value)
    model, training = timed(lambda: peer.Model.train_on_data(str(path), settings, n_threads=2))
    model.save(str(work / "model"))

    def predict():
        answers = []
        for row in range(problem.test.shape[0]):
            part = slice(problem.test.indptr[row], problem.test.indptr[row + 1])
            pairs = sorted(zip(problem.test.indices[part].tolist(), problem.test.data[part].tolist()))
            answers.append(model.predict(pairs, beam_size=20, top_k=K))
        return answers

    answers, predicting = timed(predict)
    return answers, training, predicting


def parabel(problem, work):
    return omikuji(problem, work, {"n_trees": 3})


def bonsai(problem, work):
    # The settings that omikuji's README gives for Bonsai.
    return omikuji(problem, work, {"n_trees": 3, "cluster_balanced": False, "cluster_k": 100, "max_depth": 3})


def napkinxc(problem, work):
    from napkinxc.models import PLT

    model = PLT(str(work / "model"), ensemble=3, threads=2, verbose=False)
    _, training = timed(lambda: model.fit(problem.train, problem.label_ids))
    answers, predicting = timed(lambda: model.predict_proba(problem.test, top_k=K))
    return answers, training, predicting


def fasttext(problem, work):
    import fasttext as peer

    clean = lambda text: " ".join(text.split())
    with open(work / "train.txt", "w") as out:
        for text, labels in zip(problem.train_texts, problem.label_ids):
            out.write(" ".join(f"__label__{label}" for label in labels) + " " + clean(text).lower() + "\n")
    # What it recommends for several labels per text costs a product for each label; the tree is for more of them.
    loss = "ova" if len(problem.names) <= 4_000 else "hs"
    train = lambda: peer.train_supervised(
        str(work / "train.txt"), loss=loss, epoch=25, lr=0.5, dim=100, wordNgrams=2, bucket=1_000_000, thread=2, verbose=0
    )
    model, training = timed(train)
    model.save_model(str(work / "model"))
    predict = lambda: [model.f.predict(clean(text).lower() + "\n", K, 0.0, "strict") for text in problem.test_texts]
    answers, predicting = timed(predict)
    ids = lambda answer: [(int(label.removeprefix("__label__")), score) for score, label in answer]
    return map(ids, answers), training, predicting


def run_peer(system, data, out, with_names, with_pairs):
    """In a process of its own: trains, predicts, writes answers and figures."""
    problem = Problem(data, with_names, with_pairs)
    peer = {"xr-linear": xr_linear, "parabel": parabel, "bonsai": bonsai, "napkinxc": napkinxc, "fasttext": fasttext}
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        answers, training, predicting = peer[system](problem, work)
        with open(f"{out}.jsonl", "w") as file:
            for answer in answers:
                labels = [{"label": problem.names[label], "score": float(score)} for label, score in answer]
                file.write(json.dumps({"labels": labels}) + "\n")
        figures = {
            "training_s": training,
            "ms_per_point": 1e3 * predicting / len(problem.test_texts),
            "model_mb": folder_size(work / "model") / 1e6,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        }
    pathlib.Path(f"{out}.json").write_text(json.dumps(figures))


def run_elias(elias, data, out, more):
    model = f"{out}.model"
    training, peak = measured_run([elias, "train", data, "--out", model, "--overwrite", "--quiet", *more])
    measured = subprocess.run([elias, "evaluate", model, data, "--json", "--quiet"], check=True, capture_output=True)
    figures = json.loads(measured.stdout)
    bench = [elias, "bench", "predict", model, data, "--top-k", str(K), "--json", "--quiet"]
    rate = json.loads(subprocess.run(bench, check=True, capture_output=True).stdout)["queries_per_s"]
    return {
        **figures,
        "training_s": training,
        "ms_per_point": 1e3 / rate,
        "model_mb": folder_size(model) / 1e6,
        "peak_mb": peak,
    }


def measured_run(command):
    """Seconds and peak MB of a command."""
    before = time.time()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} failed")
    return time.time() - before, usage.ru_maxrss / 1e3


def measure_peer(elias, system, data, out, more, limit):
    command = [sys.executable, __file__, "--run", system, data, out, *more]
    # What a peer that is stopped leaves behind goes with it.
    with tempfile.TemporaryDirectory() as scratch:
        try:
            subprocess.run(command, check=True, timeout=limit, env={**os.environ, "TMPDIR": scratch})
        except subprocess.TimeoutExpired:
            return {"problem": f"not finished after {limit} s"}
        except subprocess.CalledProcessError as error:
            return {"problem": f"ended with code {error.returncode}"}
    command = [elias, "evaluate", "--predictions", f"{out}.jsonl", data, "--json", "--quiet"]
    measured = subprocess.run(command, check=True, capture_output=True)
    return {**json.loads(measured.stdout), **json.loads(pathlib.Path(f"{out}.json").read_text())}


def kept(path, measure):
    """Figures that were measured before, or are now."""
    if not path.exists():
        path.write_text(json.dumps(measure()))
    return json.loads(path.read_text())


def print_row(name, figures):
    if "problem" in figures:
        print(f"| {name} | {figures['problem']} |" + " |" * (len(COLUMNS) + len(COSTS) - 1), flush=True)
        return
    cells = [f"{figures[column]:.2f}" for column in COLUMNS]
    cells += [f"{figures[cost]:.{2 if cost == 'ms_per_point' else 0}f}" for cost in COSTS]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def print_seeds(name, rows):
    """Mean and, where there are several, spread."""
    of = lambda summary: {column: summary([row[column] for row in rows]) for column in [*COLUMNS, *COSTS]}
    print_row(name, of(lambda values: sum(values) / len(values)))
    if len(rows) > 1:
        print_row("± half of the range", of(lambda values: (max(values) - min(values)) / 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=SETS)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--set", action="append", default=[], help="passed on to elias train")
    parser.add_argument("--label-names", action="store_true", help="label names are training points of the peers, too")
    parser.add_argument("--word-pairs", action="store_true", help="peers read pairs of neighbouring words, too")
    parser.add_argument("--seeds", default="42", help="seeds of elias")
    parser.add_argument("--members", type=int, default=1, help="members of elias")
    parser.add_argument("--limit", type=int, default=3600, help="seconds that a peer has to train and answer")
    parser.add_argument("--work", help="where figures and models are kept; temporary unless given")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    enter_environment("peers", PACKAGES)
    if arguments.run:
        run_peer(*arguments.run, arguments.label_names, arguments.word_pairs)
        return
    elias = build_elias()
    more = [word for setting in arguments.set for word in ("--set", setting)]
    members = arguments.members
    more += ["--members", str(members)] if members > 1 else []
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(arguments.work or temporary)
        work.mkdir(parents=True, exist_ok=True)
        for data in arguments.data:
            name = pathlib.Path(data).name
            print(f"\n{name}\n")
            print("| system | " + " | ".join([*COLUMNS, *COSTS.values()]) + " |")
            print("|---" * (len(COLUMNS) + len(COSTS) + 1) + "|")
            for system in arguments.systems.split(","):
                if system in ("elias", "elias-fast", "elias-best"):
                    row = f"{system} x{members}" if members > 1 else system
                    preset = ["--preset", system.removeprefix("elias-")] if system != "elias" else []
                    out = lambda seed: str(work / f"{name}-{row}-{seed}").replace(" ", "")
                    run = lambda seed: run_elias(elias, data, out(seed), ["--seed", seed, *preset, *more])
                    seeds = arguments.seeds.split(",")
                    print_seeds(row, [kept(pathlib.Path(f"{out(s)}.figures.json"), lambda: run(s)) for s in seeds])
                    continue
                added = [word for word in ("names", "pairs") if getattr(arguments, OPTIONS[word])]
                row = " + ".join([system, *added])
                out = str(work / f"{name}-{row}").replace(" ", "")
                options = ["--" + OPTIONS[word].replace("_", "-") for word in added]
                measure = lambda: measure_peer(elias, system, data, out, options, arguments.limit)
                print_row(row, kept(pathlib.Path(f"{out}.figures.json"), measure))


if __name__ == "__main__":
    main()
