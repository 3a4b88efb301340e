"""Random functions through ``ng.jit``: NumPy's values, gradients by finite differences.

Most run emulated (``tests.compiler.emulator``), which takes milliseconds and finds what machine
code does silently; some are compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import numgrad as ng
from tests.compiler import programs as p
from tests.compiler.emulator import emulating

pytestmark = pytest.mark.filterwarnings("ignore:jit. .* was (re)?traced")
LENGTHS = ((5, 4), (7, 3), (2, 6), (26, 5))
"""Lengths of the arguments; one compiled function serves several."""
WITH_ONES = ((5, 4), (1, 4), (5, 1), (1, 1), (5, 4))
"""Lengths that need functions of their own, in turn."""
tunings = st.fixed_dictionaries(
    {
        "task": st.sampled_from([3, 16, 4096]),
        "lanes": st.sampled_from([4, 8, 128]),
        "short": st.sampled_from([2, 4, 24]),
        "unrolled": st.sampled_from([2, 3, 12]),
        "piece": st.sampled_from([2, 7, 500]),
    }
)


def check(
    program: list[p.Step], seed: int, parallel: bool, single: bool = False, fixed: bool = False
) -> None:
    """Compare values at all lengths, and the gradient along a direction.

    With ``fixed``, a function is made for each length, in which small arrays are scalars.
    """
    lengths = WITH_ONES if seed % 5 == 4 else LENGTHS
    several = [p.arguments_of(seed, n, m) for n, m in lengths]
    if single:
        several = [[given[0].astype(np.float32), *given[1:]] for given in several]
    steps = p.settle(program, several)
    low = single or any(name == "float32" for name, *_ in steps)
    rtol = 2e-4 if low else 1e-9
    options: dict[str, Any] = {"parallel": parallel, "dynamic": not fixed}
    compiled = ng.jit(lambda *x: p.run(steps, *x), **options)
    for arguments in several:
        with np.errstate(all="ignore"):
            expected = p.run(steps, *arguments)
        for found, value in zip(compiled(*arguments), expected, strict=True):
            value = np.asarray(value)
            assert np.shape(found) == value.shape
            assert found.dtype == value.dtype
            scale = float(np.max(np.abs(value), initial=0))
            np.testing.assert_allclose(found, value, rtol=rtol, atol=rtol * max(scale, 1e-3))
    check_gradient(steps, several[seed % 3], options, 20 * rtol)


def check_gradient(
    steps: list[p.Step], arguments: list[Any], options: dict[str, Any], rtol: float
) -> None:
    """The gradient is eager code's, and along a direction that of finite differences."""
    if not isinstance(p.loss(steps, *arguments), np.floating):
        return  # no result depends on the arguments
    every = tuple(range(len(arguments)))
    gradient = ng.value_and_grad(lambda *x: p.loss(steps, *x), argnums=every)
    value, found = ng.jit(lambda *x: gradient(*x), **options)(*arguments)
    np.testing.assert_allclose(value, p.loss(steps, *arguments), rtol=rtol, atol=rtol)
    rng = np.random.default_rng(1)
    direction = [rng.normal(size=x.shape) for x in arguments]
    along = sum(float(np.sum(g * d)) for g, d in zip(found, direction, strict=True))
    size = sum(float(np.sum(np.abs(g * d))) for g, d in zip(found, direction, strict=True))

    def slope(h: float) -> float:
        ahead, behind = (
            p.loss(steps, *[x + s * d for x, d in zip(arguments, direction, strict=True)])
            for s in (h, -h)
        )
        return float(ahead - behind) / (2 * h)

    near = any(abs(along - slope(h)) <= max(1e-4, rtol) * (size + 1) for h in (1e-6, 2e-7))
    if not near:  # a kink between the points, or another gradient?
        _, expected = gradient(*arguments)
        for g, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(g, e, rtol=rtol, atol=rtol * (size + 1))


@settings(max_examples=12)
@given(p.programs, st.integers(0, 1000), st.booleans(), st.booleans(), st.booleans(), tunings)
def test_programs(program, seed, parallel, single, fixed, tuning):
    with emulating(**tuning):
        check(program, seed, parallel, single, fixed)


@pytest.mark.slow(cases=0)
@settings(max_examples=60)
@given(p.programs, st.integers(0, 1000), st.booleans(), st.booleans(), st.booleans(), tunings)
def test_many_programs(program, seed, parallel, single, fixed, tuning):
    with emulating(**tuning):
        check(program, seed, parallel, single, fixed)


COMPILED = {
    "reductions": [
        ("centre", 3, 0, 0), ("tanh", 0, 0, 0), ("softmax", 0, 0, 3), ("mul", 0, 0, 0),
        ("var", 0, 0, 9), ("logsumexp", 1, 0, 2), ("matmul transposed", 2, 3, 0),
    ],
    "views": [
        ("half", 3, 0, 0), ("reverse", 0, 0, 1), ("concat", 0, 0, 0), ("roll", 0, 0, 1),
        ("take", 0, 0, 0), ("merge", 0, 0, 0), ("cumsum", 0, 0, 0), ("max", 0, 0, 1),
    ],
}  # fmt: skip


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", ["reductions", pytest.param("views", marks=pytest.mark.slow)])
def test_compiled_programs(name):
    check(COMPILED[name], 3, False)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_programs_of_fixed_lengths(name):
    check(COMPILED[name], 3, False, fixed=True)


@pytest.mark.slow(cases=0)
@settings(max_examples=3)
@given(p.programs, st.integers(0, 1000), st.booleans(), st.booleans())
def test_more_compiled_programs(program, seed, parallel, single):
    check(program, seed, parallel, single)
