"""Kernels that do the same with each matrix of a stack, shared among threads.

``run_with_room`` and its like call one function of LAPACK (or BLAS) for each, by address.
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

import importlib
from collections.abc import Callable
from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.device import ExternalFunction
from numgrad.codegen.dtypes import short, type_name
from numgrad.codegen.linker import external_symbol
from numgrad.codegen.symbols import real_dtype
from numgrad.kernels.products import gemm
from numgrad.kernels.products.blas import lapack_external

SERIAL = 64
"""Rows from which matrices are handled one after the other, with the threads LAPACK has itself."""


_INT32 = np.dtype(np.int32)
_NUMBERS = {"int": "int64", "bool": "boolean"}


class StackKernel:
    """A function of the library for one matrix, made a kernel for stacks.

    Parameters
    ----------
    place
        The function's module and name: ``module:name``. It takes a part of each array, then the
        numbers, last whether to leave threads to others, and returns 0 or what went wrong.
    kinds
        What it is given, in words: ``T3`` stands for a stack of matrices of the dtype, row-major,
        ``T3.`` for one of any strides, ``R`` for the real dtype, ``C`` for the complex one, ``N``
        for int32; ``int`` and ``bool`` are numbers.
    lapack
        What it calls of LAPACK; with ``in_double`` in double precision, whatever the dtype.
    products
        Of what it takes products: ``T`` or ``C``.
    """

    def __init__(
        self, home: str, kinds: str, lapack: str = "", products: str = "T", in_double: bool = False
    ) -> None:
        self.module, _, self.name = home.partition(":")
        self.kinds, self.lapack = kinds.split(), lapack.split()
        self.products, self.in_double = products, in_double
        self.serial: dict[np.dtype, Callable[..., int]] = {}

    def __call__(
        self, dtype: np.dtype, rows: int, work_ns: float, *arguments: Any
    ) -> np.ndarray | None:
        """Run; what went wrong for each, or None if nothing did.

        Matrices of many ``rows`` are taken one after the other, smaller ones shared among threads
        by the nanoseconds that one takes.
        """
        return self.bound(dtype, len(arguments[0]), rows, work_ns)(*arguments)

    def bound(
        self, dtype: np.dtype, count: int, rows: int, work_ns: float
    ) -> Callable[..., np.ndarray | None]:
        """A function of the arguments of a call for stacks of ``count``."""
        if count == 1 or rows >= SERIAL:
            run = self.serial.get(dtype) or self.prepare(dtype)

            def alone(*arguments: Any) -> np.ndarray | None:
                info = np.empty(count, _INT32)
                return info if run(info, *arguments) else None

            return alone
        kernel = partial(_kernel, self, dtype)
        serial, parallel = partial(kernel, False), partial(kernel, True)

        def shared(*arguments: Any) -> np.ndarray | None:
            info = np.empty(count, _INT32)
            run = threads.choose(serial, parallel, work_ns * count)
            return info if run(info, *arguments) else None

        return shared

    def over(
        self, dtype: np.dtype, batch: tuple[int, ...], rows: int, work_ns: float
    ) -> Callable[..., Any]:
        """A function of arrays with axes of that shape in front of each matrix, often none.

        It returns 0 if nothing went wrong, else the outcome of the matrix, or a list of all.
        """
        if not batch:
            return _single(self, dtype)
        return with_batch(self.bound(dtype, prod(batch), rows, work_ns), batch)

    def prepare(self, dtype: np.dtype) -> Callable[..., int]:
        """The kernel that leaves threads to LAPACK."""
        kernel = self.serial[dtype] = _kernel(self, dtype, False)
        return kernel

    def types(self, dtype: np.dtype, single: bool = False) -> list[str]:
        """The types of the kernel's arguments besides ``info``."""
        real = real_dtype(dtype)
        types = {
            "T": type_name(dtype),
            "R": type_name(real),
            "C": f"complex{2 * 8 * real.itemsize}",
            "N": "int32",
        }
        texts = []
        for kind in self.kinds:
            if kind in _NUMBERS:
                texts.append(_NUMBERS[kind])
                continue
            axes = ":," * (int(kind[1]) - 1 - single) + (":" if kind.endswith(".") else "::1")
            texts.append(f"{types[kind[0]]}[{axes}]")
        return texts

    def externals(self, dtype: np.dtype) -> list[str]:
        """The functions of LAPACK and BLAS that it calls."""
        products = np.result_type(dtype, np.complex64) if self.products == "C" else dtype
        computing = np.result_type(dtype, np.float64) if self.in_double else dtype
        of_lapack = [lapack_external(name, computing) for name in self.lapack]
        return [*of_lapack, gemm.external("gemm", products.name)]


def with_batch(
    run: Callable[..., np.ndarray | None], batch: tuple[int, ...]
) -> Callable[..., list[int] | int]:
    """``StackKernel.over`` of what takes stacks with one axis of matrices."""
    lead, count = len(batch), prod(batch)
    if lead == 1:

        def call(*arguments: Any) -> list[int] | int:
            info = run(*arguments)
            return 0 if info is None else info.tolist()

        return call

    def reshaped(*arguments: Any) -> list[int] | int:
        flat = [
            x.reshape(count, *x.shape[lead:]) if type(x) is np.ndarray else x for x in arguments
        ]
        info = run(*flat)
        return 0 if info is None else info.tolist()

    return reshaped


@cache
def _single(stack: StackKernel, dtype: np.dtype) -> Callable[..., int]:
    """The kernel for one matrix alone, by itself as it is called most often."""
    names = ", ".join(f"x{k}" for k in range(len(stack.kinds)))
    source = (
        f"from {stack.module} import {stack.name}\n\n"
        f"def kernel({names}):\n"
        f"    return {stack.name}({names}, 0)\n"
    )
    importlib.import_module(stack.module)
    return compile_kernel(
        f"{stack.name}_{short(dtype)}_1",
        source,
        f"int64({', '.join(stack.types(dtype, single=True))})",
        externals=stack.externals(dtype),
    ).entry


@cache
def _kernel(stack: StackKernel, dtype: np.dtype, parallel: bool) -> Callable[..., int]:
    names = [f"x{k}" for k in range(len(stack.kinds))]
    arguments = [
        n if kind in _NUMBERS else f"{n}[i]" for n, kind in zip(names, stack.kinds, strict=True)
    ]
    source = (
        "from numba import prange\n"
        f"from {stack.module} import {stack.name}\n\n"
        f"def kernel(info, {', '.join(names)}):\n"
        f"    for i in {'prange' if parallel else 'range'}(info.shape[0]):\n"
        f"        info[i] = {stack.name}({', '.join(arguments)}, {int(parallel)})\n"
        "    failed = 0\n"
        "    for i in range(info.shape[0]):\n"
        "        if info[i] != 0:\n"
        "            failed += 1\n"
        "    return failed\n"
    )
    importlib.import_module(stack.module)
    return compile_kernel(
        f"{stack.name}_{short(dtype)}{'_p' if parallel else ''}",
        source,
        f"int64(int32[::1], {', '.join(stack.types(dtype))})",
        parallel=parallel,
        externals=stack.externals(dtype),
    ).entry


_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_REAL = {
    "getrf": "s0 s0 T3 s0 N2 N1",
    "potrf": "c0 s0 T3 s0 N1",
    "trsm": "c0 c1 c2 c3 s1 s0 T. T3 s0 T3 s1",
    "trsv": "c0 c1 c2 s0 T3 s0 T3 s1",
    "geqrf": "s0 s1 T3 s0 T2 T* s2 N1",
    "orgqr": "s0 s1 s3 T3 s0 T2 T* s2 N1",
}
_COMPLEX = {**_REAL, "ungqr": _REAL["orgqr"]}
"""Note [Signatures]."""

_TASKS = 16


def _home(name: str) -> str:
    return f"scipy.linalg.cython_{'blas' if name in ('trsm', 'trsv') else 'lapack'}"


def _declare(letter: str, name: str, types: str) -> ExternalFunction:
    symbol = external_symbol(f"{_home(name)}:{letter}{name}")
    # they return nothing; what is read instead is not used
    return ExternalFunction(symbol, f"int32({', '.join(['int64'] * len(types.split()))})")


for _letter, _table in (("s", _REAL), ("d", _REAL), ("c", _COMPLEX), ("z", _COMPLEX)):
    for _name, _words in _table.items():
        globals()[f"{_letter}{_name}"] = _declare(_letter, _name, _words)


@cache
def _lapack_kernel(name: str, dtype: np.dtype, parallel: bool) -> Callable[..., None]:
    entries = (_COMPLEX if dtype.kind == "c" else _REAL)[name].split()
    types = {"T": type_name(dtype), "R": f"float{dtype.itemsize * 8}", "N": "int32"}
    if dtype.kind == "c":
        types["R"] = f"float{dtype.itemsize * 4}"
    names, signature, arguments = [], [], []
    for entry in entries:
        kind, slot = entry
        if kind in "cs":
            arguments.append(f"{'codes' if kind == 'c' else 'sizes'}[{slot}:].ctypes.data")
            continue
        names.append(f"x{len(names)}")
        axes = {".": 1, "*": 2}.get(slot) or int(slot)
        signature.append(f"{types[kind]}[{':,' * (axes - 1)}::1]")
        index = {".": "", "*": "[task]", "1": "[i:]"}.get(slot, "[i]")
        arguments.append(f"{names[-1]}{index}.ctypes.data")
    symbol = f"{_LETTERS[dtype.name]}{name}"
    source = (
        "from numba import prange\n"
        f"from {__name__} import {symbol} as function\n\n"
        f"def kernel(codes, sizes, count, tasks, {', '.join(names)}):\n"
        f"    for task in {'prange' if parallel else 'range'}(tasks):\n"
        "        for i in range(task * count // tasks, (task + 1) * count // tasks):\n"
        f"            function({', '.join(arguments)})\n"
    )
    return compile_kernel(
        f"lapack_{name}_{short(dtype)}{'_p' if parallel else ''}",
        source,
        f"void(int64[::1], int32[::1], int64, int64, {', '.join(signature)})",
        parallel=parallel,
        nogil=True,
        externals=[f"{_home(name)}:{symbol}"],
    ).entry


@cache
def _codes(letters: str) -> np.ndarray:
    return np.array([ord(letter) for letter in letters or " "], np.int64)


def run(
    name: str, dtype: np.dtype, codes: str, sizes: tuple[int, ...], *arrays: np.ndarray
) -> None:
    """Call a function that needs no room to work for each of a stack, one after the other."""
    count = max(len(x) for x in arrays if x.ndim > 1)
    kernel = _lapack_kernel(name, dtype, False)
    kernel(_codes(codes), np.array(sizes, np.int32), count, 1, *arrays)


def run_with_room(
    name: str, dtype: np.dtype, codes: str, sizes: tuple[int, ...], work_ns: float, *arrays: Any
) -> None:
    """Call a function for each of a stack; of numbers among ``arrays`` room is made for a task.

    Such a number is a pair of a dtype and a length. Small matrices are shared among threads, by the
    nanoseconds that one takes.
    """
    count = max(len(x) for x in arrays if type(x) is np.ndarray and x.ndim > 1)
    arguments = _codes(codes), np.array(sizes, np.int32), count

    def variant(parallel: bool) -> Callable[..., None]:
        kernel, tasks = _lapack_kernel(name, dtype, parallel), min(count, _TASKS) if parallel else 1
        return lambda: kernel(*arguments, tasks, *(_room(x, tasks) for x in arrays))

    small = max(sizes[:2]) < SERIAL
    work_ns = work_ns * count if small and count > 1 else 0.0
    threads.choose(partial(variant, False), partial(variant, True), work_ns)()


def _room(x: Any, tasks: int) -> np.ndarray:
    return np.empty((tasks, x[1]), x[0]) if type(x) is tuple else x
