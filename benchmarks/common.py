"""What the scripts here share: their virtual environments, the programs they run, the matrices that these write."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = ROOT / ".." / "shared" / "data"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "elias-benchmarks"
INSIDE = "ELIAS_BENCHMARK_PYTHON"


def enter_environment(name, packages):
    """Starts the script again inside a virtual environment that has these packages, unless it is in one already."""
    if INSIDE in os.environ:
        return
    environment = CACHE / name
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    os.environ[INSIDE] = "1"
    os.execv(python, [str(python), *sys.argv])


def build_elias():
    subprocess.run(["cargo", "build", "--release", "--quiet", "--bin", "elias"], cwd=ROOT, check=True)
    return ROOT / "target" / "release" / "elias"


def build_benchmark(name):
    command = ["cargo", "build", "--release", "--quiet", "-p", "elias-benchmarks", "--bin", name]
    subprocess.run(command, cwd=ROOT, check=True)
    return ROOT / "target" / "release" / name


def read_matrix(directory, name):
    import numpy
    import scipy.sparse

    read = lambda part, kind: numpy.fromfile(directory / f"{name}.{part}", dtype=kind)
    shape = tuple(int(n) for n in read("shape", "<u8"))
    return scipy.sparse.csr_matrix(
        (read("values", "<f4"), read("indices", "<u4").astype("i4"), read("indptr", "<u8").astype("i8")), shape=shape
    )
