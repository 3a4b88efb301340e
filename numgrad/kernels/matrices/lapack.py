"""LAPACK's functions (and two of BLAS) over stacks of matrices, called from kernels.

SciPy exports them to compiled code; kernels refer to them by the linker's names: Note [External
functions] in ``linker``. Matrices are column-major there: what is row-major counts as its
transpose. It is SciPy's library for products too: NumPy brings another, whose threads would keep
the cores busy for milliseconds after each call.

Note [Signatures]
-----------------
A function's arguments, all of them addresses, are words: ``c0`` a letter of ``codes``, ``s0`` a
number of ``sizes``, else an array. ``T`` has the dtype of the matrices, ``R`` the real one, ``N``
int32; the digit is the number of axes of an array with a part for each matrix, ``.`` means one
array for all, ``*`` room to work, a row for each task. Tasks share the matrices of a stack.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.device import ExternalFunction
from numgrad.codegen.dtypes import short, type_name
from numgrad.codegen.linker import external_symbol

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_REAL = {
    "getrf": "s0 s0 T3 s0 N2 N1",
    "potrf": "c0 s0 T3 s0 N1",
    "trsm": "c0 c1 c2 c3 s1 s0 T. T3 s0 T3 s1",
    "trsv": "c0 c1 c2 s0 T3 s0 T3 s1",
    "geqrf": "s0 s1 T3 s0 T2 T* s2 N1",
    "orgqr": "s0 s1 s3 T3 s0 T2 T* s2 N1",
}
_COMPLEX = {
    **_REAL,
    "ungqr": _REAL["orgqr"],
}
"""Note [Signatures]."""

SERIAL = 64
"""Rows from which matrices are handled one after the other, with the threads LAPACK has itself."""
_TASKS = 16


def _home(name: str) -> str:
    return f"scipy.linalg.cython_{'blas' if name in ('trsm', 'trsv') else 'lapack'}"


def _declare(letter: str, name: str, words: str) -> ExternalFunction:
    symbol = external_symbol(f"{_home(name)}:{letter}{name}")
    # they return nothing; what is read instead is not used
    return ExternalFunction(symbol, f"int32({', '.join(['int64'] * len(words.split()))})")


for _letter, _table in (("s", _REAL), ("d", _REAL), ("c", _COMPLEX), ("z", _COMPLEX)):
    for _name, _words in _table.items():
        globals()[f"{_letter}{_name}"] = _declare(_letter, _name, _words)


@cache
def _kernel(name: str, dtype: np.dtype, parallel: bool) -> Callable[..., None]:
    words = (_COMPLEX if dtype.kind == "c" else _REAL)[name].split()
    types = {"T": type_name(dtype), "R": f"float{dtype.itemsize * 8}", "N": "int32"}
    if dtype.kind == "c":
        types["R"] = f"float{dtype.itemsize * 4}"
    names, signature, given = [], [], []
    for word in words:
        kind, place = word
        if kind in "cs":
            given.append(f"{'codes' if kind == 'c' else 'sizes'}[{place}:].ctypes.data")
            continue
        names.append(f"x{len(names)}")
        axes = {".": 1, "*": 2}.get(place) or int(place)
        signature.append(f"{types[kind]}[{':,' * (axes - 1)}::1]")
        index = {".": "", "*": "[task]", "1": "[i:]"}.get(place, "[i]")
        given.append(f"{names[-1]}{index}.ctypes.data")
    own = f"{_LETTERS[dtype.name]}{name}"
    source = (
        "from numba import prange\n"
        f"from {__name__} import {own} as function\n\n"
        f"def kernel(codes, sizes, count, tasks, {', '.join(names)}):\n"
        f"    for task in {'prange' if parallel else 'range'}(tasks):\n"
        "        for i in range(task * count // tasks, (task + 1) * count // tasks):\n"
        f"            function({', '.join(given)})\n"
    )
    return compile_kernel(
        f"lapack_{name}_{short(dtype)}{'_p' if parallel else ''}",
        source,
        f"void(int64[::1], int32[::1], int64, int64, {', '.join(signature)})",
        parallel=parallel,
        nogil=True,
        externals=[f"{_home(name)}:{own}"],
    ).entry


@cache
def _codes(letters: str) -> np.ndarray:
    return np.array([ord(letter) for letter in letters or " "], np.int64)


def run(
    name: str, dtype: np.dtype, codes: str, sizes: tuple[int, ...], *arrays: np.ndarray
) -> None:
    """Call a function that needs no room to work for each of a stack, one after the other."""
    count = max(len(x) for x in arrays if x.ndim > 1)
    kernel = _kernel(name, dtype, False)
    kernel(_codes(codes), np.array(sizes, np.int32), count, 1, *arrays)


def run_with_room(
    name: str, dtype: np.dtype, codes: str, sizes: tuple[int, ...], work_ns: float, *arrays: Any
) -> None:
    """Call a function for each of a stack; of numbers among ``arrays`` room is made for a task.

    Such a number is a pair of a dtype and a length. Small matrices are shared among threads, by the
    nanoseconds that one takes.
    """
    count = max(len(x) for x in arrays if type(x) is np.ndarray and x.ndim > 1)
    given = _codes(codes), np.array(sizes, np.int32), count

    def variant(parallel: bool) -> Callable[..., None]:
        kernel, tasks = _kernel(name, dtype, parallel), min(count, _TASKS) if parallel else 1
        return lambda: kernel(*given, tasks, *(_room(x, tasks) for x in arrays))

    small = max(sizes[:2]) < SERIAL
    work_ns = work_ns * count if small and count > 1 else 0.0
    threads.choose(partial(variant, False), partial(variant, True), work_ns)()


def _room(x: Any, tasks: int) -> np.ndarray:
    return np.empty((tasks, x[1]), x[0]) if type(x) is tuple else x
