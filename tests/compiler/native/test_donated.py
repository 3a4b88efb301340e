"""Native functions that overwrite donated arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.tree import leaves

RNG = np.random.default_rng(3)
X, V = RNG.normal(size=6), RNG.normal(size=6)


def descend(x: Any, v: Any) -> Any:
    """A step with momentum, in place; the loss, and arrays as they were and are."""
    before = x.copy()
    loss, slope = ng.value_and_grad(lambda x: np.sum(np.cosh(x)))(x)
    v *= 0.5
    v -= 0.1 * slope
    x += v
    return loss, before, x


def swap(x: Any, v: Any) -> Any:
    old = x.copy()
    x[:] = v
    v[:] = old


def shift(x: Any, v: Any) -> Any:
    """Each element from its neighbours, which a kernel that wrote in place would spoil."""
    x[1:] = x[:-1] + np.cumsum(v)[1:] * x[::-1][1:]
    return x.sum()


@pytest.mark.slow
@pytest.mark.parametrize("function", [shift, swap, descend])
def test_donated_arrays_are_overwritten(function: Callable[..., Any], tmp_path: Path) -> None:
    fast = ng.jit(function, donate=("x", "v"))
    native = fast.native(X, V)
    assert native.overwritten == ({"x"} if function is shift else {"x", "v"})
    assert "double *x" in native.declaration
    assert "\n  overwrites x: float64" in repr(native)
    assert "const double *x" not in native.declaration
    ng.export(native, tmp_path / "model")
    for ours in (native, ng.load_native(tmp_path / "model")):
        given, expected, plain = (X.copy(), V.copy()), (X.copy(), V.copy()), (X.copy(), V.copy())
        made, theirs = ours(*given), fast(*expected)
        function(*plain)
        for a, b, c in zip(given, expected, plain, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-14)
        for a, b in zip(leaves(made), leaves(theirs), strict=True):
            np.testing.assert_array_equal(a, b)


def test_memory_must_be_the_callers() -> None:
    native = ng.jit(swap, donate=("x", "v")).native(X, V)
    fixed = X.copy()
    fixed.flags.writeable = False
    for wrong in (np.repeat(X, 2)[::2], fixed):
        with pytest.raises(ng.NumgradTypeError, match="x is overwritten; give a contiguous array"):
            native(wrong, V.copy())


@pytest.mark.slow(cases=0)
def test_arrays_of_numba_are_overwritten() -> None:
    x, v = X.copy(), V.copy()
    ng.jit(swap, donate=("x", "v")).native(X, V).njit(x, v)
    np.testing.assert_array_equal([x, v], [V, X])


def test_only_donated_arguments_are_overwritten() -> None:
    with pytest.raises(ng.NumgradError, match="donate"):
        ng.jit(swap, donate="x").native(X, V)
    total = ng.jit(lambda x: np.sum(x), donate="x").native(X)
    assert not total.overwritten
    scaled = ng.jit(lambda x: x.__imul__(2.0).sum(), donate="x").native(X)
    with pytest.raises(ng.NumgradTypeError, match="x is overwritten, and no callback"):
        scaled.low_level_callable("double(double)")
