"""Any sequence of calls in one process gives what each of them gives alone.

Programs of a few calls on operands of changing shapes and layouts: leaves, their views, users'
arrays. What earlier calls of an operation decided is dropped before each program, so that its own
order counts. Truth is NumPy: values as they are, derivatives by complex steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import numgrad as ng
from numgrad.core.op import OPS
from tests.operations.arrangements import ARRANGED

SHAPES = ((3,), (1, 3), (3, 3), (3, 1), (), (1,))
LOOKS = ("C", "transposed", "stepped", "reversed", "broadcast", "inside")
H = 1e-30


def rows(a: Any, b: Any) -> Any:
    """A product of matrices, whatever the operands are."""
    return np.matmul(a + np.zeros((3, 3)), b + np.zeros((3, 3)))


def written(a: Any, b: Any) -> Any:
    """A result that is written to through a view."""
    out = a * np.ones((3, 3)) + 0 * np.sum(b)  # of the kind and dtype that takes b
    out[1:] += b
    return out.T


CALLS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "matmul": np.matmul,
    "rows": rows,
    "sum": lambda a, b: np.sum(a * b, axis=-1) if np.ndim(a) else a * b,
    "mean": lambda a, b: np.mean(a + b),
    "written": written,
    "where": lambda a, b: np.where(np.arange(3) > 0, a, b),
}
JITTED = {name: ng.jit(function) for name, function in CALLS.items()}


@dataclass(frozen=True)
class Operand:
    """One of the leaves or constants, by its shape, and how one looks at it."""

    shape: tuple[int, ...]
    look: str
    leaf: bool

    def base(self, number: int) -> np.ndarray:
        x = np.sin(1.0 + number + np.arange(np.prod(self.shape, dtype=int)) * 0.7)
        return ARRANGED[self.layout].store(np.array(x.reshape(self.shape)))

    @property
    def layout(self) -> str:
        return self.look if len(self.shape) >= ARRANGED[self.look].ndim else "C"

    def view(self, base: Any) -> Any:
        return ARRANGED[self.layout].look(base, self.shape)


def calls(names: Any, shapes: Any, looks: Any) -> st.SearchStrategy:
    """Programs; each further shape and layout brings kernels of its own."""
    leaf = st.sampled_from([True, True, False])
    operands = st.builds(Operand, st.sampled_from(shapes), st.sampled_from(looks), leaf)
    call = st.tuples(st.sampled_from(sorted(names)), operands, operands, st.booleans())
    return st.lists(call, min_size=3, max_size=8)


def run(program: list, table: dict, bases: list, jitted: dict | None) -> Any:
    """The weighted sum of all results; some results are operands of the next call."""
    total: Any = 0.0
    before: Any = 1.0
    for k, (name, left, right, chained) in enumerate(program):
        a, b = left.view(bases[2 * k]), right.view(bases[2 * k + 1])
        if chained:
            a = a * before
        function = table[name] if jitted is None else jitted[name]
        try:
            y = function(a, b)
        except (ValueError, TypeError):  # shapes that do not fit: also an operation that fails
            continue
        weights = np.cos(np.arange(np.prod(np.shape(y), dtype=int))).reshape(np.shape(y))
        total = total + np.sum(y * weights)
        before = np.sum(y) * 0.1
    return total


def check(program: list, table: dict, jitted: dict | None = None) -> None:
    for op in OPS.values():
        op.forget()
    bases = [x.base(k) for k, x in enumerate(x for _, *both, _ in program for x in both)]
    smooth = [x.leaf for _, *both, _ in program for x in both]
    tensors = [
        ng.tensor(x, requires_grad=True) if leaf else x
        for x, leaf in zip(bases, smooth, strict=True)
    ]
    value = run(program, table, tensors, jitted)
    expected = run(program, table, bases, None)
    found = value.numpy(force=True) if isinstance(value, ng.Tensor) else value
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    if not isinstance(value, ng.Tensor) or not value.requires_grad:
        return
    leaves = [t for t, leaf in zip(tensors, smooth, strict=True) if leaf]
    gradients = ng.autograd.grad(value, leaves, materialize_grads=True)
    rng = np.random.default_rng(0)
    along = [rng.standard_normal(x.shape) * leaf for x, leaf in zip(bases, smooth, strict=True)]
    moved = [x + 1j * H * d for x, d in zip(bases, along, strict=True)]
    slope = np.imag(run(program, table, moved, None)) / H
    directions = [d for d, leaf in zip(along, smooth, strict=True) if leaf]
    terms = [np.sum(g.numpy() * d) for g, d in zip(gradients, directions, strict=True)]
    np.testing.assert_allclose(np.sum(terms), slope, rtol=1e-9, atol=1e-10)


@pytest.mark.slow(cases=0)
@settings(max_examples=40)
@given(calls(["subtract", "matmul"], SHAPES[:3], LOOKS[:2]))
def test_a_call_gives_the_same_after_any_other(program):
    check(program, CALLS)


@pytest.mark.slow(cases=0)
@given(calls(CALLS, SHAPES, LOOKS))
def test_calls_on_all_kinds_of_operands(program):
    check(program, CALLS)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of arrays that plain NumPy made
@pytest.mark.slow(cases=0)
@settings(max_examples=6)
@given(calls(CALLS, SHAPES[:4], LOOKS[:2]))
def test_compiled_and_eager_calls_mixed(program):
    check(
        program,
        CALLS,
        {name: JITTED[name] if k % 2 else f for k, (name, f) in enumerate(CALLS.items())},
    )
