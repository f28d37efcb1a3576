#!/usr/bin/env python3
"""One table of backends inside Annif: quality by `annif eval`, times, size, peak memory.

    python3 benchmarks/annif/compare.py [DATA ...] [--projects elias,omikuji-parabel,omikuji-bonsai,fasttext]
                                        [--work DIR] [--again] [--environment DIR]

DATA: directories with train.jsonl.gz and test.jsonl.gz, whose labels are a code and a name (`gnd:4031833-3 Comet`).
They become a vocabulary (CSV: all labels of both parts, named by their code where they have no name) and two corpora
(TSV), as a user of Annif has them. Every project is trained with `annif train` and measured with `annif eval`, each in
a process of its own on two cores (`--jobs 2`). omikuji has Annif's defaults (Parabel) and the usual
values for Bonsai, fastText the larger model of Annif's wiki, all with the snowball stemmer; elias has its defaults and texts as they are (project elias-snowball: with that stemmer; project
tfidf: Annif's simplest backend). Makes its own virtual environment in the user's cache directory (Annif 1.4 with
omikuji and fastText, and elias-xmc, built from this tree when elias is run); --environment names another that has them.
Figures are kept in --work, and what is there already is not measured again without --again.
"""

import argparse
import csv
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from common import CACHE, DATA, ROOT

SETS = [str(DATA / name) for name in ("tibcore-4k", "tibkat-en")]
PACKAGES = ["annif[omikuji,fasttext]==1.4.*"]
JOBS = "2"
# fastText as the larger model of the page "Backend: fastText" in Annif's wiki; its n-grams of characters suit Finnish
# and are left out here.
PEER = "analyzer=snowball(english)\nlimit=100\n"
PROJECTS = {
    "elias": "backend=elias\n",
    "elias-snowball": "backend=elias\nanalyzer=snowball(english)\n",
    "omikuji-parabel": "backend=omikuji\n" + PEER,
    "omikuji-bonsai": "backend=omikuji\ncluster_balanced=False\ncluster_k=100\nmax_depth=3\n" + PEER,
    "fasttext": "backend=fasttext\ndim=430\nlr=0.74\nepoch=75\nminCount=3\nloss=hs\nchunksize=24\n" + PEER,
    "tfidf": "backend=tfidf\n" + PEER,
}
METRICS = ["Precision@1", "Precision@3", "Precision@5", "F1@5", "NDCG@5", "NDCG@10"]


def read(data, part):
    path = pathlib.Path(data) / f"{part}.jsonl.gz"
    plain = path.with_suffix("")
    with open(plain, encoding="utf-8") if plain.exists() else gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            point = json.loads(line)
            yield " ".join(point["text"].split()), point["labels"]


def uri(label):
    code = label.split(" ")[0]
    return re.sub(r"^gnd:", "https://d-nb.info/gnd/", code)


def name(label):
    code, _, words = label.partition(" ")
    return words or code


def convert(data, work):
    """Writes vocabulary, corpora and projects.cfg."""
    names = {}
    for part in ("train", "test"):
        with gzip.open(work / f"{part}.tsv.gz", "wt", encoding="utf-8") as corpus:
            for text, labels in read(data, part):
                names.update((uri(label), name(label)) for label in labels)
                print(text, " ".join(f"<{uri(label)}>" for label in labels), sep="\t", file=corpus)
    with open(work / "vocabulary.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["uri", "label_en"])
        rows.writerows(sorted(names.items()))
    sections = [f"[{project}]\nlanguage=en\nvocab=subjects\n{settings}" for project, settings in PROJECTS.items()]
    (work / "projects.cfg").write_text("\n".join(sections))


def make_environment(environment, with_elias):
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    if with_elias:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", ROOT / "python"], check=True)


def sentence_splitter(python):
    """A directory with the part of NLTK that Annif's analyzers need.

    Annif would download it from GitHub; llama-index-core, a package on PyPI, has it inside.
    """
    directory = CACHE / "nltk"
    if not directory.exists():
        with tempfile.TemporaryDirectory() as temporary:
            command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", temporary, "llama-index-core"]
            subprocess.run(command, check=True)
            (wheel,) = pathlib.Path(temporary).glob("*.whl")
            zipfile.ZipFile(wheel).extractall(temporary)
            shutil.copytree(pathlib.Path(temporary) / "llama_index/core/_static/nltk_cache", directory)
    return directory


def run(command, env, work):
    """Runs a command; seconds it took and the peak memory of its largest process, in MiB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=env, cwd=work)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def measure(project, work, environment):
    annif = environment / "bin" / "annif"
    env = os.environ | {"ANNIF_DATADIR": str(work / "data"), "NLTK_DATA": str(sentence_splitter(environment / "bin" / "python"))}
    if project.startswith("elias"):
        env["ANNIF_CONFIG"] = "elias_xmc.annif.Config"
    if not (work / "data" / "vocabs").exists():
        run([annif, "load-vocab", "subjects", "vocabulary.csv"], env, work)
    train_seconds, train_memory = run([annif, "train", "--jobs", JOBS, project, "train.tsv.gz"], env, work)
    state = work / "data" / "projects" / project
    size = sum(path.stat().st_size for path in state.rglob("*") if path.is_file() and "-train" not in path.name)
    metrics = work / f"{project}.metrics.json"
    eval_seconds, _ = run([annif, "eval", "--jobs", JOBS, "--metrics-file", metrics, project, "test.tsv.gz"], env, work)
    return {
        "metrics": json.loads(metrics.read_text()),
        "train_seconds": train_seconds,
        "eval_seconds": eval_seconds,
        "model_mib": size / 2**20,
        "train_memory_mib": train_memory,
    }


def show(data, work):
    print(f"\n## {data}\n")
    print("|", " | ".join(["project", *METRICS, "train, s", "eval, s", "model, MiB", "memory, MiB"]), "|")
    print("|" + "---|" * (len(METRICS) + 5))
    for project in PROJECTS:
        path = work / f"{project}.json"
        if path.exists():
            figures = json.loads(path.read_text())
            cells = [f"{figures['metrics'][metric]:.4f}" for metric in METRICS]
            cells += [f"{figures[key]:.0f}" for key in ("train_seconds", "eval_seconds", "model_mib", "train_memory_mib")]
            print("|", " | ".join([project, *cells]), "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=SETS)
    parser.add_argument("--projects", default="elias,omikuji-parabel,omikuji-bonsai,fasttext")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--again", action="store_true", help="measure again what the work directory has")
    parser.add_argument("--environment", type=pathlib.Path)
    options = parser.parse_args()
    projects = [project for project in options.projects.split(",") if project]
    unknown = [project for project in projects if project not in PROJECTS]
    if unknown:
        parser.error(f"no such project: {', '.join(unknown)}; there are {', '.join(PROJECTS)}")
    environment = options.environment or CACHE / "annif"
    if options.environment is None:
        make_environment(environment, any(project.startswith("elias") for project in projects))
    with tempfile.TemporaryDirectory() as temporary:
        for data in options.data:
            work = (options.work or pathlib.Path(temporary)).resolve() / pathlib.Path(data).name
            work.mkdir(parents=True, exist_ok=True)
            wanted = [project for project in projects if options.again or not (work / f"{project}.json").exists()]
            if wanted:
                convert(data, work)
            for project in wanted:
                figures = measure(project, work, environment)
                (work / f"{project}.json").write_text(json.dumps(figures, indent=2))
            show(data, work)


if __name__ == "__main__":
    main()
