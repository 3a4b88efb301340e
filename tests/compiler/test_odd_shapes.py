"""Operations through jit on lengths 0 and 1, dtypes and layouts: as eager code, errors too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.elementwise import Elementwise
from numgrad.operations.linear_algebra.matrices import ComplexResultError
from tests.compiler.emulator import emulating
from tests.compiler.test_table import SWEPT, tensors, weighted
from tests.operations.cases import Case, cases
from tests.operations.reference import by_name

pytestmark = pytest.mark.filterwarnings("ignore:jit. .* plain NumPy made")

SHAPES: dict[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {
    "as declared": lambda shape: shape,
    "longer": lambda shape: tuple([n + (n > 1) for n in shape]),
    "ones": lambda shape: (1,) * len(shape),
    "zeros": lambda shape: (0,) * len(shape),
    "numbers": lambda shape: (),
    "one first": lambda shape: (1, *shape[1:]) if shape else (),
    "one last": lambda shape: (*shape[:-1], 1) if shape else (),
    "zero last": lambda shape: (*shape[:-1], 0) if shape else (),
}
KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "float64": lambda x: x,
    "float32": lambda x: x.astype(np.float32),
    "complex128": lambda x: x.astype(np.complex128),
    "int64": lambda x: np.asarray(np.rint(3 * x.real)).astype(np.int64),
    "bool": lambda x: np.asarray(x.real > 0.2),
    "fortran": np.asfortranarray,
}


def shaped(x: np.ndarray, how: str) -> np.ndarray:
    """The elements, repeated or left out, in another shape."""
    shape = SHAPES[how](x.shape)
    if not math.prod(shape):
        return np.zeros(shape, x.dtype)
    return np.resize(x if x.size else np.ones(1, x.dtype), shape)


def derivatives(case: Case) -> Callable[..., list[Any]]:
    """Results and gradients of a call."""

    def function(*given: Any) -> list[Any]:
        x = [
            g.detach().requires_grad_(bool(d) and g.dtype.kind in "fc")
            for g, d in zip(given, case.differentiable, strict=True)
        ]
        found = tensors(case.function(*x))
        leaves, loss = [t for t in x if t.requires_grad], weighted(found)
        if loss is not None and leaves:
            gradients = ng.autograd.grad(loss, leaves, allow_unused=True)
            found += [g for g in gradients if g is not None]
        return found

    return function


def outcome(function: Callable[..., list[Any]], given: Sequence[np.ndarray]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return [t.numpy(force=True) for t in function(*map(ng.tensor, given))]
    except Exception as error:
        return error


def compare(
    function: Any, fast: Any, given: Sequence[np.ndarray], *, narrower: bool = False
) -> None:
    expected, found = outcome(function, given), outcome(fast, given)
    if isinstance(found, ComplexResultError) and not isinstance(expected, Exception):
        # the dtype depends on numbers, which are not known while a function is compiled
        assert any(x.dtype.kind == "c" for x in expected)
        return
    if isinstance(found, Exception):
        # eager code fails too, or the trace refuses and says why; nothing fails for no reason
        fault = "ng.jit failed while" in str(found)
        wanted = ng.NumgradError if isinstance(expected, ng.NumgradError) else Exception
        refused = isinstance(found, ng.NumgradTraceError) and not fault
        assert refused or (isinstance(expected, Exception) and isinstance(found, wanted)), found
        return
    assert not isinstance(expected, Exception), expected
    for a, b in zip(found, expected, strict=True):
        b = b.astype(a.dtype) if narrower else b
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        single = b.dtype in (np.float32, np.complex64) or b.dtype.kind not in "fc"
        rtol = 2e-4 if single else 1e-8
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1e-3) if b.dtype.kind in "fc" else 1
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale)


def sweep(op: Any, kinds: Sequence[str], shapes: Sequence[str], most: int) -> None:
    each = list(cases(op, np.float64))
    for case in each[:: max(1, -(-len(each) // most))]:
        function = derivatives(case)
        for kind in kinds:
            with emulating(task=16, lanes=4, short=4):
                fast = ng.jit(function)  # one function for shapes in turn
                for how in shapes:
                    operands = [
                        KINDS[kind](shaped(x, how)) if x.dtype.kind in "fc" else shaped(x, how)
                        for x in case.operands
                    ]
                    compare(function, fast, operands, narrower=op.name in DTYPE_OF_NUMBERS)


DTYPE_OF_NUMBERS = {"poly"}
"""Real in eager code if roots come in pairs, which is not known while a function is compiled."""

PUBLIC = [
    op
    for op in SWEPT
    if not isinstance(op, Elementwise)
    and (not op.internal or op.name in ("getitem", "gather_along"))
]
SOME = ("take", "prod", "concat", "cumsum", "repeat")


@pytest.mark.parametrize("name", SOME)
def test_shapes_of_some(name):
    sweep(ng.ops[name].op, ["float64"], list(SHAPES), 1)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("op", **by_name(PUBLIC))
def test_shapes(op):
    sweep(op, ["float64"], list(SHAPES), 3)


@pytest.mark.slow
@pytest.mark.parametrize("op", **by_name(PUBLIC))
def test_dtypes_and_layouts(op):
    sweep(op, [k for k in KINDS if k != "float64"], ["as declared", "ones", "zero last"], 1)


NUMBERS = (2, 2.5, np.float32(2.5))


@pytest.mark.slow(cases=0)
def test_numbers_as_operands():
    x = np.array([0.5, 1.5, 2.5])
    for name in ("add", "power", "arctan2"):
        op = ng.ops[name].op
        for number in NUMBERS:
            for call in (lambda k, x, op=op: op(k, x), lambda k, x, op=op: op(x, k)):
                with emulating():
                    found, expected = ng.jit(call)(number, x), call(number, x)
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)
