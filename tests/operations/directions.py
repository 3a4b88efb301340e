"""First and second derivatives along a random direction: one number for each, by differences.

``gradcheck`` has a difference for each element; here are two for a call, so that all calls that an
operation declares can be tried.
"""

import numpy as np

import numgrad as ng
from tests.operations.cases import Case

STEP = 1e-6
LOOSE = 1e-5  # of what the parts of a derivative add up to


def check_along_a_direction(case: Case) -> None:
    """Compare kernels of gradients with formulas, and both with differences, once and again."""
    rng = np.random.default_rng(3)
    moved = [k for k, d in enumerate(case.differentiable) if d]
    ways = {k: _draw(rng, case.operands[k]) for k in moved}

    def at(t):
        values = [a + t * ways[k] if k in ways else a for k, a in enumerate(case.operands)]
        given = [ng.tensor(a, requires_grad=k in ways) for k, a in enumerate(values)]
        found = case.function(*given)
        found = found if isinstance(found, tuple | list) else (found,)
        return [given[k] for k in moved], [y for y in found if y.requires_grad]

    def gradients(t, seeds, **options):
        inputs, outputs = at(t)
        return ng.autograd.grad(outputs, inputs, seeds, materialize_grads=True, **options)

    inputs, outputs = at(0.0)
    seeds = [ng.tensor(_draw(rng, y), requires_grad=True) for y in outputs]
    by_kernels = gradients(0.0, [w.detach() for w in seeds])
    by_formulas = ng.autograd.grad(
        outputs, inputs, seeds, create_graph=True, materialize_grads=True
    )
    for x, a, b in zip(inputs, by_kernels, by_formulas, strict=True):
        assert a.dtype == b.dtype == x.dtype
        np.testing.assert_allclose(a.detach(), b.detach(), rtol=1e-9, atol=1e-11)

    _compare(by_formulas, list(ways.values()), lambda t: _inner(seeds, at(t)[1]))

    turns = [_draw(rng, w) for w in seeds]
    weights = [_draw(rng, g) for g in by_formulas]
    total = _inner_of_tensors(weights, by_formulas)

    def slope(t):
        shifted = [w.numpy(force=True) + t * d for w, d in zip(seeds, turns, strict=True)]
        return _inner(weights, gradients(t, shifted))

    try:
        second = ng.autograd.grad(total, [*inputs, *seeds], materialize_grads=True)
    except ng.NumgradNotImplementedError:  # a second derivative that is declared to be missing
        return
    _compare(second, [*ways.values(), *turns], slope)


def _draw(rng, like):
    found = rng.standard_normal(like.shape)
    if like.dtype.kind == "c":
        found = found + 1j * rng.standard_normal(like.shape)
    return found.astype(like.dtype)


def _plain(value):
    return value.numpy(force=True) if isinstance(value, ng.Tensor) else value


def _inner(weights, values):
    return _inner_of_tensors(map(_plain, weights), map(_plain, values))


def _inner_of_tensors(weights, values):
    return sum(np.sum(np.real(np.conj(w) * v)) for w, v in zip(weights, values, strict=True))


def _compare(gradients, directions, function):
    actual = _inner(gradients, directions)
    expected = (function(STEP) - function(-STEP)) / (2 * STEP)
    parts = [np.abs(_plain(g) * d).sum() for g, d in zip(gradients, directions, strict=True)]
    assert abs(actual - expected) <= LOOSE * max(sum(parts), 1e-2), (actual, expected)
