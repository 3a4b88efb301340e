"""Layers held to those of PyTorch with the same parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import numgrad as ng


def copy_parameters(ours: Any, theirs: Any) -> None:
    """Give our module the state of theirs, by name."""
    state = {name: ng.tensor(value.detach().numpy()) for name, value in theirs.state_dict().items()}
    ours.load_state_dict(state)


def flattened(outputs: Any) -> list[Any]:
    """The Tensors of nested tuples; None is left out."""
    if isinstance(outputs, tuple | list):
        return [part for output in outputs for part in flattened(output)]
    return [] if outputs is None else [outputs]


def compare(
    torch: Any,
    ours: Any,
    theirs: Any,
    inputs: Sequence[np.ndarray],
    tolerance: float = 1e-11,
    call: Any = lambda module, *inputs: module(*inputs),
) -> None:
    """Outputs, gradients of inputs and parameters, and buffers after a call of both modules."""
    given = [ng.tensor(x, requires_grad=True) for x in inputs]
    peers = [torch.tensor(x, requires_grad=True) for x in inputs]
    outputs, expected = flattened(call(ours, *given)), flattened(call(theirs, *peers))
    rng = np.random.default_rng(5)
    seeds = [rng.standard_normal(y.shape).astype(y.dtype) for y in outputs]
    assert len(outputs) == len(expected)
    for y, peer in zip(outputs, expected, strict=True):
        close(y, peer, tolerance)
    ng.autograd.backward(outputs, seeds)
    torch.autograd.backward(expected, [torch.tensor(seed) for seed in seeds])
    for x, peer in zip(given, peers, strict=True):
        close(x.grad, peer.grad, tolerance)
    wanted = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        close(parameter.grad, wanted[name].grad, tolerance)
        parameter.grad = wanted[name].grad = None
    found = dict(ours.named_buffers())
    for name, buffer in theirs.named_buffers():
        close(found[name], buffer, tolerance)


def close(actual: Any, expected: Any, tolerance: float) -> None:
    """Equality up to rounding, of values, shapes and dtypes."""
    assert (actual is None) == (expected is None)
    if expected is None:
        return
    actual, expected = actual.detach().numpy(), expected.detach().numpy()
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
