"""What looks at numbers where there are none that could be seen: in a batch, and in a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradRuntimeError, NumgradTraceError, NumgradTypeError

W = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 4.0]])
OBSERVED = np.arange(6.0).reshape(2, 3) ** 2

CHECKED: dict[str, Any] = {
    "average": lambda w: np.average(w, weights=w),
    "quantile": lambda w: np.quantile(w, w / 5),
    "weighted": lambda w: np.quantile(w, 0.3, weights=w, method="inverted_cdf"),
    "cov": lambda w: np.cov(OBSERVED, aweights=w),
    "poly": np.poly,
    "piecewise": lambda w: np.piecewise(w, [w < 2, w >= 2], [np.sin, np.cos]),
}
REFUSED: dict[str, Any] = {
    "polydiv": lambda w: np.polydiv(w, w[:2]),
    "real_if_close": lambda w: np.real_if_close(w + 0j),
    "repeat": lambda w: np.repeat(w, w.astype(int)),
    "trim_zeros": np.trim_zeros,
    "histogram": lambda w: ng.histogram(w, range=w[:2])[0],
    "csd": lambda w: ng.signal.csd(w, w, window=w)[1],
    "sosfiltfilt": lambda w: ng.signal.sosfiltfilt(np.concatenate([w, w])[None], np.arange(20.0)),
}


@pytest.mark.parametrize("name", CHECKED)
def test_checks_of_numbers_are_left_out_in_a_batch(name: str) -> None:
    function = CHECKED[name]
    found = ng.vmap(function)(W)
    np.testing.assert_allclose(found, np.stack([function(w) for w in W]))


@pytest.mark.parametrize("name", REFUSED)
def test_what_depends_on_numbers_is_refused_by_name(name: str) -> None:
    with pytest.raises(NumgradRuntimeError, match=name):
        ng.vmap(REFUSED[name])(W)
    with pytest.raises(NumgradTraceError, match=name):
        ng.jit(REFUSED[name])(W[0])


def test_percentile_names_what_was_given() -> None:
    with pytest.raises(ValueError, match="100, got 101"):
        np.percentile(ng.tensor([1.0, 2.0]), 101)


def test_interp_sorts_equal_points_as_numpy() -> None:
    xp = np.tile(np.arange(7.0), 30)
    fp = np.random.default_rng(0).normal(size=xp.size)
    x = np.linspace(-1, 8, 50)
    found = ng.interp(x, xp, fp, period=3.0).numpy()
    np.testing.assert_array_equal(found, np.interp(x, xp, fp, period=3.0))


def test_unknown_parameters_are_named_by_every_interpreter() -> None:
    unknown: Any = {"window": "hann"}

    def function(a: Any) -> Any:
        return ng.signal.resample(a, 16, **unknown)

    a = ng.tensor(np.arange(8.0))
    for call in (
        lambda: function(a),
        lambda: ng.jvp(function, (a,), (a,)),
        lambda: ng.vmap(function)(W),
        lambda: ng.jit(function)(a),
    ):
        with pytest.raises(NumgradTypeError, match=r"resample: .*window"):
            call()


def test_a_view_of_one_number_is_an_array() -> None:
    x = ng.tensor(2.0, requires_grad=True)
    y = ng.flip(x, axis=()) * np.ones(2)
    y.sum().backward()
    assert x.grad == 2.0


def test_python_numbers_are_weak_beside_operands_of_ufuncs() -> None:
    x = np.ones(3, np.float32)

    def function(x: Any) -> tuple[Any, ...]:
        counts = x.astype(np.int16)
        return (
            np.nextafter(x, 0.0), np.ldexp(x, 2), np.divmod(x, 2)[1], np.gcd(counts, 4),
            np.lcm(4, counts), np.divmod(counts, 2)[0],
        )  # fmt: skip

    expected = [(y.dtype, y.tolist()) for y in function(x)]
    assert [(y.dtype, y.tolist()) for y in function(ng.tensor(x))] == expected
    assert [(y.dtype, y.tolist()) for y in ng.jit(function)(x)] == expected
    assert [(y.dtype, y[0].tolist()) for y in ng.vmap(function)(x[None])] == expected


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_the_nearest_element_has_a_derivative_of_zero_in_the_place(padding: str) -> None:
    x = ng.tensor(np.arange(4.0).reshape(1, 1, 2, 2), requires_grad=True)
    grid = ng.tensor([[[[0.3, 5.0], [-0.5, 0.2]]]], requires_grad=True)
    y = ng.nn.functional.grid_sample(x, grid, mode="nearest", padding_mode=padding)
    y.sum().backward()
    np.testing.assert_array_equal(grid.grad, np.zeros(grid.shape))
    assert x.grad is not None
