"""Kernels of science: all modes against exact derivatives, and these against differences."""

import inspect
import textwrap
from functools import cache

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint import hyperdual
from tests.codegen.adjoint.judge import judge, tuple_of
from tests.codegen.adjoint.programs import covering, features
from tests.codegen.adjoint.science import CASES

KINKS = {"needleman_wunsch", "kepler", "newton_roots"}
"""Where equal operands of a maximum, or a last step of exactly nothing, change no derivative."""


@cache
def drawn(name):
    """A case, its arguments, exact derivatives along a direction."""
    case = CASES[name]
    arguments = case.draw()
    rng = np.random.default_rng(1)

    def like(value):
        out = rng.normal(size=np.shape(value))
        return out + 1j * rng.normal(size=np.shape(value)) if np.iscomplexobj(value) else out

    directions = [
        like(a) * 0.1 * (0.05 + np.abs(a)) if hyperdual.differentiable(a) else None
        for a in arguments
    ]
    truth = hyperdual.run(case.function, arguments, case.written, like, directions)
    return case, arguments, truth, directions


def judged(name, **options):
    case, arguments, truth, directions = drawn(name)
    kernel = ng.kernel(case.function, writes=case.writes)
    judge(kernel, truth, directions, arguments, tolerance=1e-9, **options)


def constructs(name):
    return features(textwrap.dedent(inspect.getsource(CASES[name].function)))


ORDER = covering(CASES, constructs)
"""The first 23 have every construct that is in some."""


@pytest.mark.slow(cases=23)
@pytest.mark.parametrize("name", ORDER)
def test_derivatives(name):
    judged(name, second=name in ORDER[:13])


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", ORDER[13:])
def test_second_derivatives(name):
    judged(name)


@pytest.mark.parametrize("name", CASES)
def test_exact_derivatives_are_those_of_differences(name):
    """First derivatives against differences of values, second ones against those of gradients."""
    case, arguments, truth, directions = drawn(name)
    assert truth.margin > 1e-7 or name in KINKS

    def moved(step):
        return [
            a if d is None else a + step * d for a, d in zip(arguments, directions, strict=True)
        ]

    def value(step):
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in moved(step)]
        outputs = [*tuple_of(case.function(*given)), *(given[k] for k in case.written)]
        pairs = zip(truth.weights, outputs, strict=True)
        return sum(np.sum((np.conj(w) * out).real) for w, out in pairs)

    h = 2e-5
    wanted = (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)
    along = sum(
        np.sum((np.conj(g) * d).real)
        for g, d in zip(truth.gradients, directions, strict=True)
        if g is not None
    )
    assert along == pytest.approx(wanted, rel=2e-7, abs=1e-9 * (1 + abs(value(0.0)) / h * 1e-3))
    h = 1e-6
    ends = [
        hyperdual.run(case.function, moved(s * h), case.written, truth.weights).gradients
        for s in (1, -1)
    ]
    for product, after, before in zip(truth.products, *ends, strict=True):
        if product is not None:
            scale = 1 + np.max(np.abs(after))
            np.testing.assert_allclose(
                product, (after - before) / (2 * h), rtol=1e-5, atol=1e-8 * scale
            )
