"""An objective at vectors and batches of vectors, as other libraries hold points."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.optimize.objective import Objective, packed
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.derivatives import value_and_grad
from numgrad.transforms.mapping import vmap


def imported(name: str, library: str, module: str = "") -> Any:
    """A module of another library.

    Raises
    ------
    NumgradRuntimeError
        If it is not installed; ``name`` is the adapter's.
    """
    try:
        return import_module(module or library)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != (module or library).partition(".")[0]:
            raise
        raise NumgradRuntimeError(
            f"{name}: needs {library}, which is not installed; python -m pip install {library}"
        ) from None


def check_objective(name: str, objective: Any) -> Objective:
    """Raise for what is not made by ``ng.objective``."""
    if not isinstance(objective, Objective):
        raise NumgradTypeError(
            f"{name}: takes what ng.objective(f, start) makes, got a {type(objective).__name__}"
        )
    return objective


def shaped(objective: Objective, points: np.ndarray) -> list[np.ndarray]:
    """The arrays of points of shape (..., size), each of shape (..., *shape)."""
    packing, arrays = objective.unknowns.packing, []
    whole = zip(packing.slices, packing.real_dtypes, packing.dtypes, packing.shapes, strict=True)
    for elements, real, dtype, shape in whole:
        flat = np.ascontiguousarray(points[..., elements], real).view(dtype)
        arrays.append(flat.reshape(points.shape[:-1] + shape))
    return arrays


def values_at(objective: Objective) -> Callable[[Any], Any]:
    """The function from points of shape (..., size) to values of shape (...)."""
    one, several = objective.derivatives.value, _mapped(objective, objective.derivatives.plain)

    def values(points: Any) -> Any:
        points = _points(objective, points)
        if points.ndim == 1:
            return float(one(shaped(objective, points), *objective.args))
        if not points.size:
            return np.zeros(points.shape[:-1])
        flat = points.reshape(-1, points.shape[-1])
        result = _numbers(several(shaped(objective, flat), *objective.args))
        return result.astype(np.float64).reshape(points.shape[:-1])

    return values


def values_and_gradients_at(objective: Objective) -> Callable[[Any], tuple[Any, np.ndarray]]:
    """The function from points of shape (..., size) to values (...) and gradients (..., size)."""
    one = objective.derivatives.value_and_grad
    several = _mapped(objective, value_and_grad(objective.derivatives.plain))
    reals = objective.unknowns.packing.real_dtypes

    def both(points: Any) -> tuple[Any, np.ndarray]:
        points = _points(objective, points)
        lead = points.shape[:-1]
        if points.ndim == 1:
            value, gradients = one(shaped(objective, points), *objective.args)
            return float(value), packed(objective.unknowns, gradients)
        if not points.size:
            return np.zeros(lead), np.zeros(points.shape)
        flat = points.reshape(-1, points.shape[-1])
        values, gradients = several(shaped(objective, flat), *objective.args)
        rows = [
            np.ascontiguousarray(_numbers(g)).reshape(len(flat), -1).view(real)
            for g, real in zip(gradients, reals, strict=True)
        ]
        joined = np.concatenate(rows, axis=1, dtype=np.float64)
        return _numbers(values).astype(np.float64).reshape(lead), joined.reshape(points.shape)

    return both


def _mapped(objective: Objective, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of many points, compiled if the objective is."""
    mapped: Any = vmap(function, in_axes=(0, *(None for _ in objective.args)))
    if not objective.derivatives.compiled:
        return mapped
    from numgrad.compiler.api import jit

    return jit(mapped)


def _points(objective: Objective, points: Any) -> np.ndarray:
    points = np.array(points, np.float64)
    if points.shape[-1:] != objective.x0.shape:
        raise NumgradValueError(
            f"{objective.watch.name}: got points of shape {points.shape}; the last axis has the "
            f"{objective.x0.size} numbers of the start"
        )
    return points


def _numbers(result: Any) -> np.ndarray:
    return result.detach().numpy() if isinstance(result, Tensor) else np.asarray(result)
