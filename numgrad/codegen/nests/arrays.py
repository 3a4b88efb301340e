"""Kernels of eager operations: terms over arrays that are handed over flat, in a fixed order.

Lengths of axes are arguments, in order, after the arrays; so one kernel serves every shape.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.dtypes import type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.nests.block_products import ProductCode
from numgrad.codegen.nests.kernel import KernelWriter
from numgrad.codegen.nests.polynomial import Length, add, constant, evaluate, multiply
from numgrad.codegen.nests.terms import BUFFER, ONE, Term, Terms, count, first_stored

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
    """Makes terms over arrays of one rank, whose axes are as long as the kernel is told.

    Attributes
    ----------
    whole
        The shape of which axis ``k`` is as long as argument ``k`` says.
    """

    def __init__(self, rank: int) -> None:
        super().__init__(UnknownLengths(), constant)
        self.whole: tuple[Length, ...] = tuple([(((("axis", k),), 1),) for k in range(rank)])
        self.operands: list[Term] = []

    def operand(self, dtype: np.dtype) -> Term:
        """The next array that the kernel takes."""
        operand = self.make(BUFFER, (), dtype, len(self.operands), self.whole)
        self.operands.append(operand)
        return operand

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
    """

    def __init__(self, terms: ArrayTerms, results: Sequence[Term], emitter: Emitter) -> None:
        self.operands, self.returned, self.rank = terms.operands, results, len(terms.whole)
        stored = list(first_stored(results).values())
        exported = {t.number for t in results}
        super().__init__(terms, stored, exported, emitter, _NO_PRODUCTS, tiled=True, inline=True)

    def _parameters(self) -> list[str]:
        super()._parameters()
        self.arrays, self.results = list(self.operands), list(self.returned)
        self.lengths = [f"n{k}" for k in range(self.rank)]
        return [*(f"x{t.number}" for t in (*self.arrays, *self.results)), *self.lengths]


def array_kernel(
    name: str,
    terms: ArrayTerms,
    results: Sequence[Term],
    *,
    parallel: bool,
    nogil: bool,
    emitter: Emitter | None = None,
) -> Kernel:
    """Compile the kernel of an eager operation.

    Returns
    -------
    Kernel
        The entry point takes the operands and the results, contiguous and with one axis, then the
        lengths of the axes that they have.
    """
    written = ArrayKernelWriter(terms, results, emitter or Emitter()).write()
    arrays = [f"{type_name(t.dtype)}[::1]" for t in (*written.arrays, *written.results)]
    return compile_kernel(
        f"{name}{'_p' if parallel else ''}",
        written.source(parallel=parallel),
        f"void({', '.join([*arrays, *['int64'] * len(written.lengths)])})",
        externals=written.emitter.externals,
        functions=written.emitter.namespace,
        parallel=parallel,
        nogil=nogil,
    )
