"""A kernel in compiled functions, in batches, and in both, compared with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import numgrad as ng
from tests.codegen.adjoint import hyperdual
from tests.codegen.adjoint.judge import compare, like_example, tuple_of


def judge_transforms(
    kernel: Callable[..., Any],
    truth: hyperdual.Derivatives,
    directions: Sequence[Any],
    arguments: Sequence[Any],
    *,
    tolerance: float = 1e-9,
) -> None:
    """Compare what transforms make of a kernel with exact derivatives.

    Values, gradients, tangents and tangents of gradients, and the backward of a recorded call.
    """
    places = [k for k, a in enumerate(arguments) if hyperdual.differentiable(a)]
    moving = [k for k, t in enumerate(truth.tangents) if t is not None]
    if not places or not moving:
        return
    primals = [np.asarray(arguments[k]) for k in places]
    tangents = [like_example(directions[k], p) for k, p in zip(places, primals, strict=True)]

    def outputs(*given: Any) -> tuple[Any, ...]:
        values = list(arguments)
        for k, value in zip(places, given, strict=True):
            values[k] = value
        results = tuple_of(kernel(*values))
        return tuple(results[k] for k in moving)

    weights = tuple(
        like_example(truth.weights[k], y) for k, y in zip(moving, outputs(*primals), strict=True)
    )

    def gradients(*given: Any) -> tuple[Any, ...]:
        return tuple_of(ng.vjp(outputs, *given)[1](weights))

    def tangents_of(*given: Any) -> tuple[Any, ...]:
        return tuple_of(ng.jvp(outputs, given, tangents)[1])

    def products(*given: Any) -> tuple[Any, ...]:
        return tuple_of(ng.jvp(gradients, given, tangents)[1])

    def bends(*given: Any) -> tuple[Any, ...]:
        """The gradient of a function that is not linear in the outputs."""
        return tuple_of(ng.grad(loss, argnums=tuple(range(len(given))))(*given))

    def loss(*given: Any) -> Any:
        pairs = zip(outputs(*given), weights, strict=True)
        return sum(np.sum((y * np.conj(w)).real + 0.1 * (y * np.conj(y)).real) for y, w in pairs)

    exact_outputs = [truth.outputs[k] for k in moving]
    bent = tuple_of(
        ng.vjp(outputs, *primals)[1](
            tuple(
                like_example(w + 0.2 * np.asarray(y), w)
                for w, y in zip(weights, exact_outputs, strict=True)
            )
        )
    )
    wanted = {
        outputs: exact_outputs,
        gradients: [truth.gradients[k] for k in places],
        tangents_of: [truth.tangents[k] for k in moving],
        products: [truth.products[k] for k in places],
        bends: bent,
    }
    batch = [np.stack([p, p, p]) for p in primals]
    for function, exact_values in wanted.items():
        name = function.__name__
        size = max(1.0, *(float(np.max(np.abs(x), initial=0.0)) for x in exact_values))
        limit = 10 * tolerance if function is products else tolerance
        forms = {
            "compiled": tuple_of(ng.jit(function)(*primals)),
            "batched": [x[1] for x in tuple_of(ng.vmap(function)(*batch))],
            "batched and compiled": [x[2] for x in tuple_of(ng.jit(ng.vmap(function))(*batch))],
        }
        for form, seen in forms.items():
            for k, (s, w) in enumerate(zip(seen, exact_values, strict=True)):
                compare(f"{name} {k}, {form}", s, w, limit, size)
    leaves = [ng.tensor(p, requires_grad=True) for p in primals]
    value = ng.jit(loss)(*leaves)
    if value.requires_grad:
        value.backward()
        for k, (leaf, w) in enumerate(zip(leaves, bent, strict=True)):
            seen = np.zeroslike_example(w) if leaf.grad is None else leaf.grad
            compare(f"gradient {k} of a recorded call", seen, w, tolerance, 1.0)
