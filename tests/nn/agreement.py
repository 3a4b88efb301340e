"""A call held to PyTorch's, and to itself in forward mode, in batches and compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import numgrad as ng


def differentiable(array: np.ndarray) -> bool:
    return array.dtype.kind in "fc"


def outputs_of(result: Any) -> list[Any]:
    if isinstance(result, tuple | list):
        return [part for each in result for part in outputs_of(each)]
    return [] if result is None else [result]


def weighted(y: Any, lib: Any) -> Any:
    weights = np.cos(1.0 + np.arange(int(np.prod(tuple(y.shape))))).reshape(tuple(y.shape))
    return (y * lib.tensor(weights)).sum()


def found_by(lib: Any, call: Callable[..., Any], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Values, gradients, and gradients of the squares of these."""
    inputs = [lib.tensor(a, requires_grad=True) if differentiable(a) else lib.tensor(a)
              for a in arrays]  # fmt: skip
    wanted = [x for x, a in zip(inputs, arrays, strict=True) if differentiable(a)]
    outputs = outputs_of(call(*inputs))
    found = [np.asarray(y.detach()) for y in outputs]
    real = [y for y in outputs if y.requires_grad]
    if not wanted:
        return found
    total = sum(weighted(y, lib) for y in real)
    first = lib.autograd.grad(total, wanted, create_graph=True, allow_unused=True)
    first = [lib.tensor(np.zeros(x.shape)) if g is None else g
             for g, x in zip(first, wanted, strict=True)]  # fmt: skip
    found += [np.asarray(g.detach()) for g in first]
    squares = [(g * g).sum() for g in first if g.requires_grad]
    try:
        second = lib.autograd.grad(sum(squares), wanted, allow_unused=True) if squares else ()
    except RuntimeError:  # PyTorch has no second derivative here
        return found
    second = second or [None] * len(wanted)
    return found + [
        np.zeros(x.shape) if g is None else np.asarray(g.detach())
        for g, x in zip(second, wanted, strict=True)
    ]


def agrees_with_torch(
    torch: Any,
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    arrays: Sequence[np.ndarray],
    tolerance: float = 1e-9,
) -> None:
    """Values, first and second gradients."""
    with warnings.catch_warnings(action="ignore"):
        expected = found_by(torch, theirs, arrays)
        found = found_by(ng, ours, arrays)
    assert len(found) >= len(expected)
    for a, b in zip(found, expected, strict=False):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def agrees_with_itself(
    call: Callable[..., Any], arrays: Sequence[np.ndarray], compiled: bool = True
) -> None:
    """Forward mode, batches and ``ng.jit`` give what eager code and gradients give."""
    places = [k for k, a in enumerate(arrays) if differentiable(a)]

    def total(*reals: Any) -> Any:
        inputs = [*arrays]
        for k, x in zip(places, reals, strict=True):
            inputs[k] = x
        return sum(weighted(y, ng) for y in outputs_of(call(*inputs)) if y.dtype.kind in "fc")

    def everything(*reals: Any) -> Any:
        inputs = [*arrays]
        for k, x in zip(places, reals, strict=True):
            inputs[k] = x
        real = [y for y in outputs_of(call(*inputs)) if y.dtype.kind in "fc"]
        return ng.concat([y.reshape(-1) for y in real])

    reals = [ng.tensor(arrays[k]) for k in places]
    numbers = tuple(range(len(reals)))
    gradients = ng.grad(total, argnums=numbers)(*reals)
    back = ng.jacrev(everything, argnums=numbers)(*reals)
    forth = ng.jacfwd(everything, argnums=numbers)(*reals)
    seed = np.concatenate(
        [np.cos(1.0 + np.arange(y.size)) for y in outputs_of(call(*arrays)) if y.dtype.kind in "fc"]
    )
    for a, b, g in zip(back, forth, gradients, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(
            np.tensordot(seed, a.numpy(), 1), g.numpy(), rtol=1e-9, atol=1e-11
        )
    if compiled:
        value, derived = ng.jit(ng.value_and_grad(total, argnums=numbers))(*reals)
        np.testing.assert_allclose(value.item(), total(*reals).item(), rtol=1e-10, atol=1e-11)
        for a, b in zip(derived, gradients, strict=True):
            np.testing.assert_allclose(
                a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-11
            )
