"""Kernels of eager operations: terms over arrays that are handed over flat, in a fixed order.

Lengths of axes are arguments, in order, after all others; so one kernel serves every shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.dtypes import type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.nests.block_products import ProductCode
from numgrad.codegen.nests.kernel import KernelWriter
from numgrad.codegen.nests.polynomial import Terms as Length
from numgrad.codegen.nests.polynomial import add, constant, evaluate, multiply
from numgrad.codegen.nests.terms import BUFFER, ONE, SCALAR, Term, Terms, count, first_stored

USUAL_LENGTH = 1000
"""The length of an axis that loops are arranged for."""
_NO_PRODUCTS = ProductCode("", "", str, {}, 0)


class UnknownLengths:
    """Lengths of axes of which nothing is known."""

    def hint_of(self, terms: Length) -> int:
        """The value of a polynomial for axes of the usual length."""
        return evaluate(terms, _UsualLengths())

    def exceeds(self, length: Length, number: int) -> bool:
        """Whether a length is certain to be more than a number."""
        return False


class _UsualLengths(dict[int, int]):
    def __missing__(self, axis: int) -> int:
        return USUAL_LENGTH


class ArrayTerms(Terms):
    """Makes terms over arrays of some axes, which are as long as the kernel is told.

    Parameters
    ----------
    rank
        Number of axes.
    units
        Which of them have length 1.

    Attributes
    ----------
    whole
        The shape of which axis ``k`` is as long as argument ``k`` says.
    """

    def __init__(self, rank: int, units: Sequence[bool] = ()) -> None:
        super().__init__(UnknownLengths(), constant)
        self.whole: tuple[Length, ...] = tuple(
            [ONE if any(units[k : k + 1]) else (((("axis", k),), 1),) for k in range(rank)]
        )
        self.operands: list[Term] = []
        self.numbers: list[Term] = []

    def operand(self, dtype: np.dtype, axes: Sequence[int] | None = None) -> Term:
        """The next array that the kernel takes, with length 1 along other axes than its own.

        Without any it is the next number.
        """
        if axes is None:
            axes = range(len(self.whole))
        if not axes:
            number = self.make(SCALAR, (), dtype, len(self.numbers))
            self.numbers.append(number)
            return number
        shape = tuple([self.whole[a] for a in axes])
        operand = self.make(BUFFER, (), dtype, len(self.operands), shape)
        self.operands.append(operand)
        return self.insert(operand, tuple([a for a in range(len(self.whole)) if a not in axes]))

    def reverse(self, x: Term, axis: int) -> None:
        """Let the elements of an array in memory lie in reversed order along an axis."""
        strides: list[Length] = [count(x.shape[a + 1 :]) for a in range(len(x.shape))]
        offset = multiply(add(x.shape[axis], ONE, -1), strides[axis])
        strides[axis] = multiply(strides[axis], constant(-1))
        x.layout = tuple(strides), offset


class ArrayKernelWriter(KernelWriter):
    """Writes the kernel of an eager operation.

    Parameters
    ----------
    terms
        Those of the operation, with all operands.
    results
        What it computes.
    emitter
        Writes functions of single elements.
    once
        Terms that are kept in memory besides, as long as they are read.
    """

    def __init__(
        self,
        terms: ArrayTerms,
        results: Sequence[Term],
        emitter: Emitter,
        once: Sequence[Term] = (),
    ) -> None:
        self.operands, self.numbers = terms.operands, terms.numbers
        self.returned, self.rank = results, len(terms.whole)
        stored = list(first_stored([*results, *once]).values())
        exported = {t.number for t in results}
        super().__init__(terms, stored, exported, emitter, _NO_PRODUCTS, tiled=True, inline=True)

    def _parameters(self) -> list[str]:
        super()._parameters()
        self.arrays, self.results = list(self.operands), list(self.returned)
        self.scalars, self.lengths = list(self.numbers), [f"n{k}" for k in range(self.rank)]
        names = [f"x{t.number}" for t in (*self.arrays, *self.results)]
        return [*names, *(f"r{t.number}" for t in self.scalars), *self.lengths]


class KernelText(NamedTuple):
    """What ``compile_kernel`` takes."""

    name: str
    source: str
    signature: str
    externals: list[str]
    functions: dict[str, Any]

    def compile(self, *, parallel: bool, nogil: bool) -> Kernel:
        """Compile it, or load what was compiled."""
        name, source, signature, externals, functions = self
        return compile_kernel(
            name, source, signature,
            externals=externals, functions=functions, parallel=parallel, nogil=nogil,
        )  # fmt: skip


def array_kernel(
    name: str,
    terms: ArrayTerms,
    results: Sequence[Term],
    *,
    parallel: bool,
    emitter: Emitter | None = None,
    once: Sequence[Term] = (),
) -> KernelText:
    """The text of the kernel of an eager operation.

    Returns
    -------
    KernelText
        Its entry point takes the operands and the results, contiguous and with one axis, then
        numbers and the lengths of the axes.
    """
    written = ArrayKernelWriter(terms, results, emitter or Emitter(), once).write()
    arguments = [f"{type_name(t.dtype)}[::1]" for t in (*written.arrays, *written.results)]
    arguments += [type_name(t.dtype) for t in written.scalars]
    return KernelText(
        f"{name}{'_p' if parallel else ''}",
        written.source(parallel=parallel),
        f"void({', '.join([*arguments, *['int64'] * len(written.lengths)])})",
        sorted(written.emitter.externals),
        written.emitter.namespace,
    )
