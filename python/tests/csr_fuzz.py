"""Sparse matrices whose arrays were made up: each is refused with an `EliasError` or taken for what it says.

`check` is what `test_errors.py` calls with Hypothesis's cases. As a program it makes cases of its own for as long as it
is told, without the compiled half: `python csr_fuzz.py N_INPUTS [SEED]`. A crash ends the program, whose last seed is
then on stderr.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy
from scipy.sparse import bsr_matrix, coo_matrix, csc_matrix, csr_matrix, lil_matrix

CLASSES = {"csr": csr_matrix, "csc": csc_matrix, "coo": coo_matrix, "bsr": bsr_matrix, "lil": lil_matrix}


def broken(kind: str, shape: tuple[int, int], lists: list[Any]) -> Any:
    """A matrix with arrays that its constructor never saw."""
    matrix = CLASSES[kind](shape)
    names = ("row", "col", "data") if kind == "coo" else ("indptr", "indices", "data")
    for name, values in zip(names, lists):
        setattr(matrix, name, values)
    return matrix


def dense(parts: tuple[Any, Any, Any, int]) -> Any:
    """What the parts of a matrix say, by the definition."""
    indptr, indices, data, n_cols = parts
    found = numpy.zeros((len(indptr) - 1, n_cols), dtype=numpy.float64)
    for row in range(len(indptr) - 1):
        columns = indices[indptr[row] : indptr[row + 1]]
        assert (columns[1:] > columns[:-1]).all(), "sorted, and each column once"
        found[row, columns] = data[indptr[row] : indptr[row + 1]]
    return found


def expected(kind: str, shape: tuple[int, int], lists: list[Any]) -> Any:
    """The sum of the entries, if the arrays are in order; else None."""
    first, second, data = lists
    found = numpy.zeros(shape)
    if kind == "coo":
        if not len(first) == len(second) == len(data):
            return None
        places = list(zip(first.tolist(), second.tolist()))
    else:
        major = shape[1] if kind == "csc" else shape[0]
        ends = first.tolist()
        is_right = len(ends) == major + 1 and ends[0] == 0 and ends == sorted(ends) and ends[-1] <= len(second)
        if not is_right or len(second) != len(data):
            return None
        of = [line for line in range(major) for _ in range(ends[line + 1] - ends[line])]
        places = list(zip(of, second.tolist()))
        places = [place[::-1] for place in places] if kind == "csc" else places
    for (row, column), value in zip(places, data):
        if not (0 <= row < shape[0] and 0 <= column < shape[1]):
            return None
        found[row, column] += value
    return found


def check(csr_parts: Any, error: type[Exception], kind: str, shape: tuple[int, int], lists: list[Any]) -> bool:
    """Whether a matrix was taken; what was taken is right, and what is in order is not refused."""
    truth = expected(kind, shape, lists)
    try:
        parts = csr_parts(broken(kind, shape, lists))
    except error:
        assert truth is None, "it was in order"
        return False
    assert truth is not None, "it was broken"
    assert numpy.allclose(dense(parts), truth)
    return True


def case(choose: random.Random) -> tuple[str, tuple[int, int], list[Any]]:
    """A matrix that is in order, with a few things changed."""
    kind = choose.choice(["csr", "csc", "coo"])
    shape = (choose.randint(0, 4), choose.randint(0, 4))
    major, minor = (shape[1], shape[0]) if kind == "csc" else shape
    counts = [choose.randint(0, 3) if minor else 0 for _ in range(major)]
    n_values = sum(counts)
    if kind == "coo":
        first = [line for line, count in enumerate(counts) for _ in range(count)]
    else:
        first = [sum(counts[:line]) for line in range(major + 1)]
    second = [choose.randrange(minor) for _ in range(n_values)]
    values = [choose.choice([1.0, 2.0, 0.5, -1.0, 0.0]) for _ in range(n_values)]
    for _ in range(choose.choice([0, 0, 1, 1, 2, 3])):
        numbers = choose.choice([first, second, values])
        what, odd = choose.randrange(4), choose.choice([-1, 0, 1, 2, 5, 2**31 - 1, -(2**31), 10**6])
        if what == 0 and numbers:
            numbers[choose.randrange(len(numbers))] = odd
        elif what == 1:
            numbers.insert(choose.randint(0, len(numbers)), odd)
        elif what == 2 and numbers:
            del numbers[choose.randrange(len(numbers))]
        elif numbers:
            choose.shuffle(numbers)
    integers = choose.choice([numpy.int32, numpy.int64])
    return kind, shape, [numpy.array(first, integers), numpy.array(second, integers), numpy.array(values, float)]


def main(n_inputs: int, seed: int) -> None:
    import pathlib
    import types

    # The half that is written in Python, alone.
    source = pathlib.Path(__file__).parents[1] / "elias_xmc"
    package = types.ModuleType("elias_xmc")
    package.__path__ = [str(source)]
    compiled: Any = types.ModuleType("elias_xmc._elias")
    compiled.Core = compiled.Dataset = object
    sys.modules.update({"elias_xmc": package, "elias_xmc._elias": compiled})
    from elias_xmc._errors import EliasError
    from elias_xmc._inputs import csr_parts

    n_taken = 0
    for number in range(n_inputs):
        if number % 100_000 == 0:
            print(f"seed {seed}: {number} inputs, {n_taken} taken", file=sys.stderr, flush=True)
        choose = random.Random(f"{seed} {number}")
        n_taken += check(csr_parts, EliasError, *case(choose))
    print(f"{n_inputs} inputs, {n_taken} taken, 0 findings")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
