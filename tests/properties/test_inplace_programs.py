"""Random programs of views and in-place operations, against a model without a graph and PyTorch.

Programs that are not careful may fail with an error about versions, but only where PyTorch fails as
well. Where PyTorch alone fails, the gradient is that of the model.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings

import numgrad as ng
from tests.properties.inplace_steps import Numgrad, Torch
from tests.properties.inplace_strategy import programs
from tests.properties.memory_model import P


def weights(k, shape):
    return np.cos(1.0 + 3 * k + np.arange(int(np.prod(shape)))).reshape(shape)


def expected(live):
    """Gradients of the weighted sum of everything alive."""
    total = np.zeros(P)
    for k, place in enumerate(live):
        _, jacobian = place.read()
        w = weights(k, place.at.shape)[..., None]
        axes = tuple(range(place.at.ndim))
        total += (jacobian.real * w).sum(axis=axes)
        if place.complex:
            total += 0.5 * (jacobian.imag * w).sum(axis=axes)
    return total


def loss(live, array):
    total = 0.0
    for k, t in enumerate(live):
        w = array(weights(k, tuple(t.shape)))
        if "complex" in str(t.dtype):
            total = total + (t.real * w).sum() + 0.5 * (t.imag * w).sum()
        else:
            total = total + (t * w).sum()
    return total


def numgrad_run(program):
    leaves = [ng.tensor(numbers, requires_grad=True) for numbers in program.numbers]
    return leaves, program.run(leaves, Numgrad())


def gradient(leaves, total):
    found = ng.autograd.grad(total, leaves, retain_graph=True, materialize_grads=True)
    return np.concatenate([g.numpy().ravel() for g in found])


def replay(program):
    """The live tensors as the model has them at the end."""
    live = program.model()
    for step, recording in program.steps:
        step.in_model(live, recording)
    return live


def check_values(program, live, model):
    for t, place in zip(live, model, strict=True):
        np.testing.assert_allclose(
            t.numpy(force=True), place.read().value, rtol=1e-12, atol=1e-12, strict=True
        )
        assert t.requires_grad == place.follows


def check_careful(program):
    leaves, live = numgrad_run(program)
    model = replay(program)
    check_values(program, live, model)
    total = loss(live, np.asarray)
    wanted = expected(model)
    scale = np.abs(wanted).max() + 1
    np.testing.assert_allclose(gradient(leaves, total), wanted, rtol=1e-10, atol=1e-10 * scale)
    found = ng.autograd.grad(total, leaves, create_graph=True, materialize_grads=True)
    again = np.concatenate([g.numpy(force=True).ravel() for g in found])
    np.testing.assert_allclose(again, wanted, rtol=1e-10, atol=1e-10 * scale)


def check_as_torch(program):
    leaves, live = numgrad_run(program)
    model = replay(program)
    check_values(program, live, model)
    backend = Torch()
    torch = backend.torch
    theirs = [torch.tensor(n, dtype=torch.float64, requires_grad=True) for n in program.numbers]
    try:
        alive = program.run(theirs, backend)
        versions = [t._version for t in alive]
        total = loss(alive, lambda w: torch.tensor(w, dtype=torch.float64))
        grads = torch.autograd.grad(total, theirs, materialize_grads=True)
        grads = np.concatenate([g.numpy().ravel() for g in grads])
    except RuntimeError as error:
        grads, versions, reason = None, [], str(error)
        event(f"PyTorch refuses: {' '.join(reason.split()[:6])}")
    try:
        actual = gradient(leaves, loss(live, np.asarray))
    except ng.NumgradRuntimeError:
        event("numgrad refuses")
        assert grads is None, "numgrad raises and PyTorch does not"
        return
    wanted = expected(model)
    scale = np.abs(wanted).max() + 1
    np.testing.assert_allclose(actual, wanted, rtol=1e-10, atol=1e-10 * scale)
    if grads is not None:
        event("both")
        np.testing.assert_allclose(actual, grads, rtol=1e-10, atol=1e-10 * scale)
        assert [t._version for t in live] == versions


@pytest.mark.slow(cases=0)
@given(programs(torch=False, careful=True))
@settings(max_examples=60)
def test_careful_programs(program):
    check_careful(program)


@pytest.mark.slow(cases=0)
@given(programs(torch=True, careful=False))
@settings(max_examples=60)
def test_programs_as_in_torch(program):
    check_as_torch(program)


@pytest.mark.slow(cases=0)
@given(programs(torch=False, careful=True))
@settings(max_examples=400)
def test_many_careful_programs(program):
    check_careful(program)


@pytest.mark.slow(cases=0)
@given(programs(torch=True, careful=False))
@settings(max_examples=400)
def test_many_programs_as_in_torch(program):
    check_as_torch(program)
