"""Kernels of formulas that reduce over one axis: sums, softmax, variance, and their gradients.

Note [Passes]
-------------
Operands are contiguous and seen as ``(outer, length, inner)``, the reduced axis in the middle. A
formula is cut into passes over that axis. A reduction of what is known from the start belongs to
pass 1, one that needs the result of pass 1 (``sum(exp(x - max(x)))``) to pass 2, and so on; a full
output is written by a last pass. What depends on reduced values only is computed once for a row or
column, between the passes. Where a later pass needs an elementary function again (softmax), the
first one leaves its value in the output.

Note [Blocks of a reduction]
----------------------------
*Rows* (``inner == 1``): blocks of ``BLOCK`` elements; inside a block LLVM may reorder the
additions, which gives several SIMD lanes and the accuracy of pairwise summation. Partial results
are put together in block order with compensation. The pass over a block is a function compiled by
itself and never inlined, so that every caller adds in the same order.

*Columns*: tiles of up to ``TILE`` columns side by side in SIMD lanes, in chunks of ``CHUNK`` steps,
which are put together in the same way. A step is one row, or as many rows of a narrow array as fill
a tile. Nothing is reordered by LLVM here.

Threads share rows or tiles, or, where these are few, the blocks or chunks of one. Results are
bitwise the same for any number of threads, and the same as the serial kernel's.
"""

from __future__ import annotations

from collections.abc import Sequence

from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.expr import Emitter, Reader, Symbol, short
from numgrad.codegen.reduction_columns import ReductionColumns
from numgrad.codegen.reduction_loops import Rows
from numgrad.codegen.reduction_plan import ReductionOperand

__all__ = ["ReductionOperand", "axis_kernel"]


def axis_kernel(
    name: str,
    reader: Reader,
    output: Symbol,
    operands: Sequence[ReductionOperand],
    *,
    out_role: str,
    columns: bool,
    parallel: bool,
    nogil: bool = False,
    accumulate: bool = False,
    emitter: Emitter | None = None,
) -> Kernel:
    """Compile the passes that compute ``output`` from ``operands``.

    Parameters
    ----------
    name
        What the kernel is called.
    reader, output
        The formula read on ``reader.input(operand.name, operand.dtype)``.
    operands
        Inputs in the order in which the entry point takes them.
    out_role
        ``"full"`` or ``"reduced"``.
    columns
        Whether elements of the reduced axis lie apart; otherwise ``inner`` is 1.
    parallel
        Whether to share work among threads; results are the same bit by bit.
    nogil
        Whether other Python threads run meanwhile.
    accumulate
        Add to ``out`` rather than assign.

    Returns
    -------
    Kernel
        The entry point takes the operands (arrays raveled, scalars as typed numbers), the raveled
        output of ``output.dtype``, then the int64 ``outer``, ``length`` and, with ``columns``,
        ``inner``. The output must not share memory with an operand. An empty axis gives the
        identity of each reduction.
    """
    del reader  # symbols know theirs
    writer = (ReductionColumns if columns else Rows)(
        emitter or Emitter(), output, operands, out_role == "full", accumulate, parallel
    )
    body = writer.kernel()
    roles = "_".join(f"{short(o.dtype)}{o.role[0]}" for o in operands)
    flags = ("_c" if columns else "_r") + ("_p" if parallel else "") + ("_a" if accumulate else "")
    return compile_kernel(
        f"{name}_{roles}_{short(output.dtype)}{out_role[0]}{flags}"[:120],
        writer.emitter.header() + body,
        writer.signature(),
        parallel=parallel,
        nogil=nogil,
        externals=writer.emitter.externals,
    )
