"""Kernels of formulas over whole arrays, written by the generator of loops.

Note [Array formulas]
---------------------
An operation of a layer is NumPy code over arrays of a few axes, such as examples, groups, channels
and the rest, with ``np.sum`` and its like along some of them. The code is read once for each dtype,
set of operands and options, and becomes one kernel for all lengths (``nests.arrays``). What the
gradient formulas compute with Tensors and what a lowering writes for ``ng.jit`` is the same code.

Note [Texts of formulas]
------------------------
The text of a kernel says which object on disk is its own (``compile``), but reading the formula and
writing the text takes 3 ms, and loading the generator 7. So texts are kept too, by the sizes and
times of the files that they are made by: the generator and the module of the formula, in which the
functions that it calls stand as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import cache as memo, partial
from hashlib import sha256
from math import prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen import cache, threads
from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.dtypes import short
from numgrad.codegen.symbols import Operand

MOST = 1024
"""Combinations of lengths that a formula remembers."""


class FormulaPlan(NamedTuple):
    """How it is computed for some lengths: kernels, which results there are.

    ``entry`` is that of the kernel for one thread, where several would never pay.
    """

    serial: Callable[[], Callable[..., None]]
    parallel: Callable[[], Callable[..., None]]
    work_ns: float
    wanted: list[bool]
    entry: Callable[..., None] | None


class ArrayFormula:
    """A function of arrays in NumPy's notation, computed by a kernel: Note [Array formulas].

    It gets operands of all axes, of length 1 where they have none, numbers, None for operands that
    are left out, and options by keyword; it returns a tuple, with None for what is not wanted.

    Parameters
    ----------
    function
        The code.
    axes
        A letter for each axis.
    signature
        Operands and results with their axes, ``"x:nc weight:c eps -> y:nc mean:n"``; numbers have
        none. The dtype of a number may follow, ``"seed=uint64"``. Of ``"place#n"``, which a caller
        does not give, the formula gets the index along axes, as uint64.
    units
        The axes for whose length 1 there are kernels of their own.
    ns
        What an element takes, about.
    """

    def __init__(
        self, function: Callable[..., Any], axes: str, signature: str, units: str, ns: float
    ) -> None:
        self.function, self.name, self.ns = function, function.__name__.strip("_"), ns
        self.operands, self.results = (
            [Operand.of(text, axes) for text in side.split()] for side in signature.split("->")
        )
        self.units = [a in units for a in axes]
        self.arrays = [bool(operand.axes) for operand in self.operands if not operand.is_index]
        self._plans: dict[tuple, FormulaPlan] = {}
        self._variants: dict[tuple, tuple[Callable[[bool], Callable[..., None]], list[bool]]] = {}

    def __call__(
        self,
        dtype: np.dtype,
        extents: tuple[int, ...],
        shapes: Sequence[tuple[int, ...]],
        *operands: Any,
        **options: Any,
    ) -> list[Any]:
        """The results in these shapes; operands have the elements of their axes in C order."""
        arguments, numbers, results = [], [], []
        for is_array, a in zip(self.arrays, operands, strict=True):
            if a is None:
                continue
            if not is_array:
                numbers.append(a)
                continue
            if a.dtype is not dtype:
                a = np.asarray(a, dtype)
            arguments.append(a.ravel())
        key = (dtype.char, extents, *[a is None for a in operands], *options.values())
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST:
                self._plans.clear()
            absent = [a is None for a in operands]
            plan = self._plans[key] = self._plan(dtype, extents, absent, options)
        for is_wanted, shape in zip(plan.wanted, shapes, strict=False):
            if is_wanted:
                y = np.empty(shape, dtype)
                results.append(y)
                arguments.append(y if len(shape) == 1 else y.ravel())
            else:
                results.append(None)
        entry = plan.entry or threads.choose(plan.serial, plan.parallel, plan.work_ns)
        entry(*arguments, *numbers, *extents)
        return results

    def _plan(
        self, dtype: np.dtype, extents: tuple[int, ...], absent: list[bool], options: dict[str, Any]
    ) -> FormulaPlan:
        units = [own and n == 1 for own, n in zip(self.units, extents, strict=True)]
        key = (dtype, *units, *absent, *options.values())
        if key not in self._variants:
            self._variants[key] = self._variant(dtype, units, absent, options)
        entry, wanted = self._variants[key]
        work_ns = prod(extents) * self.ns
        alone = entry(False) if work_ns < threads.least_ns() else None
        return FormulaPlan(partial(entry, False), partial(entry, True), work_ns, wanted, alone)

    def _variant(
        self, dtype: np.dtype, units: list[bool], absent: list[bool], options: dict[str, Any]
    ) -> tuple[Callable[[bool], Callable[..., None]], list[bool]]:
        """The entry points for one and for several threads, and which results there are."""
        kernels: dict[bool, Kernel] = {}

        def entry(parallel: bool) -> Callable[..., None]:
            if parallel not in kernels:
                kernels[parallel] = make(parallel)
            return kernels[parallel].entry

        def make(parallel: bool) -> Kernel:
            name, source, signature, externals, _ = self._text(
                dtype, units, absent, options, parallel
            )
            return compile_kernel(
                name, source, signature, externals=externals, parallel=parallel, nogil=parallel
            )

        return entry, self._text(dtype, units, absent, options, False)[-1]

    def _text(
        self,
        dtype: np.dtype,
        units: list[bool],
        absent: list[bool],
        options: dict[str, Any],
        parallel: bool,
    ) -> list[Any]:
        """Name, source, signature and externals of a kernel, and which results there are.

        They are kept on disk: Note [Texts of formulas].
        """
        described = repr((self.name, dtype, units, absent, options, parallel))
        stamp = _stamp(self.function.__code__.co_filename)
        key = f"{self.name}-{sha256((described + stamp).encode()).hexdigest()[:24]}.json"
        kept = cache.load(key)
        if kept is not None:
            return json.loads(kept)
        # imported by who writes a kernel: ``import numgrad.nn`` needs no generator of loops
        from numgrad.codegen.nests.arrays import formula_kernel

        none = iter(absent)
        given = [None if not own.is_index and next(none) else own for own in self.operands]
        text, wanted = formula_kernel(
            f"{self.name}_{short(dtype)}", self.function, given, self.results, units, dtype,
            options, parallel=parallel,
        )  # fmt: skip
        result = [*text[:4], wanted]
        cache.save(key, json.dumps(result).encode())
        return result


@memo
def _stamp(module: str) -> str:
    """A stamp of the generator and of the module of a formula, by sizes and times of files."""
    folder = os.path.dirname(__file__)
    nests = os.path.join(folder, "nests")
    files = [os.path.join(f, name) for f in (folder, nests) for name in sorted(os.listdir(f))]
    status = [os.stat(path) for path in (*files, module) if path.endswith(".py")]
    return " ".join(f"{s.st_size} {s.st_mtime_ns}" for s in status)


def array_formula(
    axes: str, signature: str, *, units: str = "", ns: float = 1.0
) -> Callable[[Callable[..., Any]], ArrayFormula]:
    """Declare the kernels of a function of arrays: ``ArrayFormula`` says how."""
    return lambda function: ArrayFormula(function, axes, signature, units, ns)
