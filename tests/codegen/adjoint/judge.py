"""Compares all derivatives of a kernel with exact ones of the plain Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import numgrad as ng
from tests.codegen.adjoint import hyperdual

MARGIN = 1e-4
"""Programs that come nearer to a tie or jump than this say nothing."""
LARGEST = 1e4
"""Nor do those whose derivatives are larger, where rounding is too."""


class Disagreement(AssertionError):
    """A derivative that is wrong."""


def exact(
    function: Callable[..., Any], arguments: Sequence[Any], written: Sequence[int], seed: int
) -> tuple[hyperdual.Derivatives, list[Any]] | None:
    """Derivatives of a plain function along a random direction; None if ill-conditioned."""
    rng = np.random.default_rng(seed)

    def like(value: Any) -> Any:
        shape = np.shape(value)
        out = rng.normal(size=shape)
        return out + 1j * rng.normal(size=shape) if np.iscomplexobj(value) else out

    directions = [
        like(a) * 0.5 * (0.2 + np.abs(a)) if hyperdual.differentiable(a) else None
        for a in arguments
    ]
    try:
        with np.errstate(all="ignore"):  # numbers that are too large are left to the sizes below
            truth = hyperdual.run(function, arguments, written, like, directions)
    except (OverflowError, ValueError, ZeroDivisionError, UnboundLocalError):
        return None
    sizes = [
        np.max(np.abs(x), initial=0.0) for x in (*truth.gradients, *truth.products) if x is not None
    ]
    if truth.margin < MARGIN or not max(sizes, default=0.0) < LARGEST:
        return None
    return truth, directions


def compare(what: str, seen: Any, wanted: Any, tolerance: float, scale: float = 1.0) -> float:
    """The relative difference; an error if it is above the tolerance."""
    seen, wanted = np.asarray(seen), np.asarray(wanted)
    if seen.shape != wanted.shape:
        raise Disagreement(f"{what}: shape {seen.shape}, not {wanted.shape}")
    if not seen.size:
        return 0.0
    error = np.max(np.abs(seen - wanted)) / max(scale, np.max(np.abs(wanted)))
    if not error <= tolerance:
        raise Disagreement(f"{what}: off by {error:.1e}\n{seen!r}\ninstead of\n{wanted!r}")
    return float(error)


def tuple_of(outputs: Any) -> tuple[Any, ...]:
    if outputs is None:
        return ()
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def judge(
    kernel: Callable[..., Any],
    truth: hyperdual.Derivatives,
    directions: Sequence[Any],
    arguments: Sequence[Any],
    *,
    tolerance: float = 1e-9,
    second: bool = True,
) -> None:
    """All modes of a kernel against exact derivatives.

    Forward mode against the exact one, and against reverse mode; reverse mode against the exact
    one; forward over reverse mode against exact second derivatives; and arguments are as they were.
    """
    before = [np.array(a) for a in arguments]
    places = [k for k, a in enumerate(arguments) if hyperdual.differentiable(a)]
    primals = [np.asarray(arguments[k]) for k in places]

    def call(*given: Any) -> tuple[Any, ...]:
        values = list(arguments)
        for k, value in zip(places, given, strict=True):
            values[k] = value
        return tuple_of(kernel(*values))

    moving = [k for k, t in enumerate(truth.tangents) if t is not None]

    def differentiable_outputs(*given: Any) -> tuple[Any, ...]:
        outputs = call(*given)
        return tuple(outputs[k] for k in moving)

    plain = call(*primals)
    if len(plain) != len(truth.outputs):
        raise Disagreement(f"{len(plain)} outputs, not {len(truth.outputs)}")
    for k, (seen, wanted) in enumerate(zip(plain, truth.outputs, strict=True)):
        compare(f"output {k}", seen, wanted, tolerance)
    if not places or not moving:
        return

    weights = tuple(like_example(truth.weights[k], plain[k]) for k in moving)
    tangents = [like_example(directions[k], p) for k, p in zip(places, primals, strict=True)]
    _, pullback = ng.vjp(differentiable_outputs, *primals)
    gradients = tuple_of(pullback(weights))
    size = max(1.0, *(float(np.max(np.abs(truth.gradients[k]), initial=0.0)) for k in places))
    for k, seen in zip(places, gradients, strict=True):
        compare(f"gradient of argument {k}", seen, truth.gradients[k], tolerance, size)

    _, pushed = ng.jvp(differentiable_outputs, primals, tangents)
    for k, seen in zip(moving, pushed, strict=True):
        compare(f"tangent of output {k}", seen, truth.tangents[k], tolerance)
    forward = sum(_inner(w, t) for w, t in zip(weights, pushed, strict=True))
    reverse = sum(_inner(g, d) for g, d in zip(gradients, tangents, strict=True))
    compare("forward mode against reverse mode", forward, reverse, tolerance, size)

    if second:

        def gradient(*given: Any) -> tuple[Any, ...]:
            return tuple_of(ng.vjp(differentiable_outputs, *given)[1](weights))

        _, products = ng.jvp(gradient, primals, tangents)
        size = max(1.0, *(float(np.max(np.abs(truth.products[k]), initial=0.0)) for k in places))
        for k, seen in zip(places, products, strict=True):
            compare(
                f"second derivative of argument {k}", seen, truth.products[k], 10 * tolerance, size
            )
    for k, (was, now) in enumerate(zip(before, arguments, strict=True)):
        if not np.array_equal(was, now, equal_nan=was.dtype.kind in "fc"):
            raise Disagreement(f"argument {k} was changed")


def like_example(value: Any, example: Any) -> np.ndarray:
    """A vector of the dtype of what it goes with."""
    dtype = np.asarray(example).dtype
    value = np.asarray(value)
    return (value if dtype.kind == "c" else value.real).astype(dtype)


def _inner(a: Any, b: Any) -> float:
    return float(np.sum(np.conj(np.asarray(a, complex)) * np.asarray(b, complex)).real)
