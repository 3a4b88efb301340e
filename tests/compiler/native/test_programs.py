"""Native functions of other tests' programs: operations of the table, drawn graphs and kernels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.tree import leaves
from tests.codegen.adjoint.writer import Writer
from tests.operations.cases import TABLE, cases
from tests.operations.reference import by_name

BY_LIBRARIES = {"fourier", "half_spectrum", "real_signal", "inv", "solve", "det", "slogdet",
                "cholesky"}  # fmt: skip
"""Operations that ``ng.jit`` leaves to libraries, whose bits differ."""


def same(function: Any, arguments: Any) -> bool:
    """Compare with ``ng.jit``; False if it is refused."""
    fast = ng.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            native = fast.native(*arguments)
        except ng.NumgradNotImplementedError:
            return False
        ours, theirs = native(*arguments), fast(*arguments)
    close = any(node.name in BY_LIBRARIES for node in fast.graph(*arguments).nodes)
    for a, b in zip(leaves(ours), leaves(theirs), strict=True):
        if close:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_array_equal(a, b, strict=True)
    return True


def _value_and_gradient(function: Any, smooth: Any) -> Any:
    """A function with the gradient of a weighted sum of its results."""

    def number(*x: Any) -> Any:
        outs = function(*x)
        outs = outs if isinstance(outs, tuple | list) else [outs]
        total: Any = 0.0
        for out in outs:
            if getattr(out, "dtype", np.dtype(int)).kind in "fc":
                weights = np.cos(np.arange(float(out.size))).reshape(out.shape)
                total = total + ng.sum(ng.real(out * weights))
        return total

    where = tuple([k for k, d in enumerate(smooth) if d])

    def both(*x: Any) -> Any:
        return function(*x), ng.grad(number, argnums=where)(*x) if where else None

    return both


SAMPLE = ("cumprod", "sort", "take")
NO_GRAPH = ("region", "region_backward", "copy_slices", "multiply_at", "polydiv", "trim_zeros")
"""Operations that ``ng.jit`` itself refuses, as these tests call them."""
SWEPT = sorted([op for op in TABLE if op.name not in NO_GRAPH], key=lambda o: o.name not in SAMPLE)


@pytest.mark.slow(cases=len(SAMPLE))
@pytest.mark.filterwarnings("ignore:jit. .* plain NumPy made")
@pytest.mark.parametrize("op", **by_name(SWEPT))
def test_operations_have_the_bits_of_jit(op: Any) -> None:
    for case in list(cases(op, np.float64))[: 1 if op.name in SAMPLE else 3]:
        function = _value_and_gradient(case.function, case.differentiable)
        same(function, case.operands)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("seed", range(100, 130))
def test_drawn_kernels_have_the_bits_of_jit(seed: int) -> None:
    program = Writer(seed, small=True).write()
    kernel: Any = ng.kernel(program.function(), writes=program.writes)
    arguments = [a.copy() if isinstance(a, np.ndarray) else a for a in program.draw(0)]
    smooth = [np.asarray(a).dtype.kind == "f" for a in arguments]
    with np.errstate(all="ignore"):
        same(_value_and_gradient(kernel, smooth), arguments)
