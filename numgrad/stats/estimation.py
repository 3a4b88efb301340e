"""Means of functions of random numbers, and parameters by maximum likelihood.

Note [Maximum likelihood]
-------------------------
SciPy's fit gives the start, Newton's method with exact derivatives goes on to where they are 0, and
gradients in the data are those of that minimum by the implicit function theorem. Where the
likelihood is largest at an end of the parameters' domain, as for the location of ``expon``, there
is no such place: SciPy's numbers are returned, and data that gradients should go to raise.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from numgrad.errors import NumgradRuntimeError, NumgradTraceError, NumgradValueError
from numgrad.implicit.equations import argmin
from numgrad.operations.shape import as_operand, reshape
from numgrad.random.generator import at_once
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.derivatives import grad, hessian


def numbers_of(name: str, x: Any) -> np.ndarray:
    """The numbers of an operand, which have to be known."""
    if not at_once():
        raise NumgradTraceError(
            f"{name}: looks at numbers, which compiled functions and batches do not have; call it "
            "outside, or one example at a time"
        )
    return np.asarray(x.detach()._array if isinstance(x, Tensor) else x)


def expected_of_density(
    family: Any, func: Any, args: tuple, named: dict[str, Any], lb: Any, ub: Any, options: Any
) -> Any:
    """The integral of a function times the density, in units of location and scale."""
    from numgrad.integrate.quadrature import quad

    name = f"{family.name}.expect"
    _, shapes, (loc, scale) = family._check_arguments("expect", args, named)
    low, high = family.support(*args, **named)
    if math.isfinite(family.reach):
        low, high = loc - family.reach * scale, loc + family.reach * scale
    low, high = low if lb is None else lb, high if ub is None else ub
    place, width, start, stop = (float(numbers_of(name, as_operand(a)))
                                 for a in (loc, scale, low, high))  # fmt: skip
    spots = _quantiles(family, [numbers_of(name, a) for a in shapes])
    inner = [spot for spot in spots if (start - place) / width < spot < (stop - place) / width]

    def integrand(z: Any, loc: Any, scale: Any, *shapes: Any) -> Any:
        density = family.pdf(z, *shapes)
        return density if func is None else func(loc + scale * z) * density

    if func is None:
        func = as_operand
    ends = [
        end if math.isinf(number) else (end - loc) / scale
        for end, number in ((low, start), (high, stop))
    ]
    bounds = [ends[0], *inner, ends[1]]
    parts = [
        quad(integrand, a, b, (loc, scale, *shapes), **options)[0] for a, b in pairwise(bounds)
    ]
    return sum(parts[1:], start=parts[0])


def _quantiles(family: Any, shapes: list[Any]) -> list[float]:
    """Where most numbers are, by which an integral is divided."""
    try:
        spots = [float(family.ppf(q, *shapes)) for q in (0.001, 0.5, 0.999)]
    except TypeError:  # there is no formula
        mean, deviation = float(family.mean(*shapes)), float(family.std(*shapes))
        spots = [mean - 3 * deviation, mean, mean + 3 * deviation]
    return [spot for spot in spots if math.isfinite(spot)]


def expected_of_mass(
    family: Any, func: Any, args: tuple, named: dict[str, Any], lb: Any, ub: Any
) -> Any:
    """The sum of a function times the probability."""
    name = f"{family.name}.expect"
    _, shapes, (loc,) = family._check_arguments("expect", args, named)
    values = [numbers_of(name, a) for a in shapes]
    place = float(numbers_of(name, loc))
    mean, deviation = float(family.mean(*values)), float(family.std(*values))
    ends = [float(end) for end in family.support(*values)]
    for k, (given, sign) in enumerate(((lb, -1.0), (ub, 1.0))):
        if given is not None:
            ends[k] = float(given) - place
        reach = 8.0 * deviation + 8.0
        while math.isinf(ends[k]):
            spot = math.floor(mean + sign * reach)
            size = 1.0 if func is None else abs(float(numbers_of(name, func(spot + place))))
            if float(family.pmf(spot, *values)) * max(size, 1.0) < 1e-22:
                ends[k] = spot
            reach *= 2
    whole = np.arange(math.ceil(ends[0]), math.floor(ends[1]) + 1.0)
    mass = family.pmf(whole, *shapes)
    at = whole + loc
    return np.sum((at if func is None else func(at)) * mass)


def fitted(family: Any, data: Any, args: tuple, named: dict[str, Any]) -> tuple[Any, ...]:
    """Shape parameters, location and scale of the largest likelihood: Note [Maximum likelihood]."""
    import scipy.stats

    name = f"{family.name}.fit"
    data = as_operand(data)
    data = reshape(data, (-1,)) if isinstance(data, Tensor) else data.reshape(-1)
    numbers = numbers_of(name, data).astype(np.float64)
    try:
        start = getattr(scipy.stats, family.name).fit(numbers, *args, **named)
    except (TypeError, ValueError) as error:
        raise NumgradValueError(f"{name}: {error}") from None
    held = _held(family, named)
    free = [k for k in range(len(start)) if k not in held]

    def parameters(z: Any) -> list[Any]:
        values: list[Any] = [float(value) for value in start]
        for position, k in enumerate(free):
            values[k] = z[position]
        return values

    def objective(z: Any, data: Any) -> Any:
        return -np.mean(family.logpdf(data, *parameters(z)))

    if not free:
        constant = as_operand if isinstance(data, Tensor) else np.float64
        return tuple(constant(value) for value in parameters(()))
    first = np.array([float(start[k]) for k in free])
    best = _minimum(lambda z: objective(z, numbers), first)
    followed = isinstance(data, Tensor) and (data.requires_grad or type(data) is not Tensor)
    if best is None:
        if followed:
            raise NumgradRuntimeError(
                f"{name}: the likelihood is largest at an end of what parameters may be, where the "
                f"fit has no derivative by the equations of its maximum; hold a parameter "
                "(floc=..., fscale=...), or detach the data"
            )
        return tuple(np.float64(value) for value in start)
    if not isinstance(data, Tensor):
        return tuple(np.float64(value) for value in parameters(best))
    solution = argmin(objective, best, (data,), solver=lambda f, start: start)
    return tuple(as_operand(value) for value in parameters(solution))


def _held(family: Any, named: dict[str, Any]) -> set[int]:
    """Positions of parameters that SciPy's keywords hold: ``floc``, ``f0``, ``fa``, ``fix_a``."""
    names = [*family.shapes, "loc", "scale"]
    held = {k for k, key in enumerate(names) if {f"f{key}", f"fix_{key}"} & named.keys()}
    if not named.get("superfit"):  # which asks SciPy for its method for all families
        held |= {names.index(key) for key in family.not_fitted}
    return held | {k for k in range(len(family.shapes)) if f"f{k}" in named}


def _minimum(objective: Any, z: np.ndarray) -> np.ndarray | None:
    """A minimum by Newton's method; None if derivatives do not vanish near the start."""
    slope, curvature = grad(objective), hessian(objective)
    value = float(objective(z))
    for _ in range(60):
        g, h = np.asarray(slope(z)), np.asarray(curvature(z))
        if not (np.all(np.isfinite(g)) and np.all(np.isfinite(h))):
            return None
        size, vectors = np.linalg.eigh(h)
        if size[-1] <= 0:
            return None
        step = -(vectors / np.maximum(np.abs(size), 1e-12 * size[-1])) @ (vectors.T @ g)
        if np.all(np.abs(step) <= 1e-9 * (1.0 + np.abs(z))):
            return z + step if size[0] > 0 else None
        for _ in range(40):
            tried = float(objective(z + step))
            if tried <= value + 1e-15 * abs(value):
                break
            step = step / 2
        else:
            return None
        z, value = z + step, tried
    return None
