"""A compiled call compared with an eager one: ``ng.config.check_jit``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.signature import Arguments
from numgrad.compiler.run.specialise import Specialisation
from numgrad.core.tree import flatten, paths
from numgrad.errors import NumgradAssertionError, warn
from numgrad.tensors.random_state import RandomState


def checked(arguments: Arguments, specialisation: Specialisation) -> Any:
    """Results of the compiled function; memory that it writes to is left as eager code leaves it.

    Raises
    ------
    NumgradAssertionError
        If the two differ by more than rounding.
    """
    parameters, layout = arguments.parameters, specialisation.layout
    if layout.touched:
        warn(
            f"check_jit: {parameters.name} calls Python code that changes something (a step of an "
            "optimizer), which cannot be undone to be repeated eagerly; it is not checked"
        )
        return specialisation.force(arguments)
    arrays = specialisation.force(arguments, run=False)
    memory = [(layout.inputs[n].name, arrays[n]) for n in layout.writes]
    leaves = [result.tensor for result in layout.gradients]
    before = _Content(memory, leaves)
    state = layout.state
    values = [] if state is None else state.now()
    random = RandomState(parameters.function, [leaf.given for leaf in arguments.leaves])
    out = specialisation.force(arguments)
    after = _Content(memory, leaves)
    outside = [] if state is None else state.now()
    before.restore()
    if state is not None:
        state.set(values)
    with random.restored():
        expected = parameters.call(arguments.rebuild([leaf.given for leaf in arguments.leaves]))
    _compare_trees(parameters.name, out, expected)
    _compare_trees(parameters.name, outside, [] if state is None else state.now())
    after.compare(parameters.name, _Content(memory, leaves))
    return out


class _Content:
    """Contents of memory that a function writes to, and in ``.grad`` of captured Tensors."""

    def __init__(self, memory: list[tuple[str, np.ndarray]], leaves: list[Tensor]) -> None:
        self.memory = [(name, array, array.copy()) for name, array in memory]
        self.gradients = [
            (t, t._grad, None if t._grad is None else t._grad._array.copy()) for t in leaves
        ]

    def restore(self) -> None:
        """Put everything back."""
        for _, array, content in self.memory:
            np.copyto(array, content)
        for tensor, gradient, content in self.gradients:
            tensor._grad = gradient
            if gradient is not None and content is not None:
                np.copyto(gradient._array, content)

    def compare(self, function: str, expected: _Content) -> None:
        """Raise if eager code left something else."""
        for (name, _, content), (*_, reference) in zip(self.memory, expected.memory, strict=True):
            _compare(function, f"what is written to {name}", content, reference)
        for (*_, content), (*_, reference) in zip(self.gradients, expected.gradients, strict=True):
            _compare(function, "the .grad of a Tensor it reads", content, reference)


def _compare_trees(name: str, out: Any, expected: Any) -> None:
    results: list[Any] = []
    references: list[Any] = []
    nesting, other = flatten(out, results), flatten(expected, references)
    if nesting != other:
        raise NumgradAssertionError(
            f"check_jit: {name} returned {type(out).__name__}, and eagerly "
            f"{type(expected).__name__}, nested differently"
        )
    for path, a, b in zip(paths(nesting, "the result"), results, references, strict=True):
        _compare(name, path, a, b)


def _compare(name: str, path: str, a: Any, b: Any) -> None:
    x, y = _numbers(a), _numbers(b)
    if x is None or y is None:
        if not (x is y and a == b):
            raise NumgradAssertionError(f"check_jit: {path} of {name} is {a!r}, eagerly {b!r}")
        return
    if x.shape != y.shape or x.dtype != y.dtype:
        raise NumgradAssertionError(
            f"check_jit: {path} of {name} has shape {x.shape} and dtype {x.dtype}, eagerly "
            f"{y.shape} and {y.dtype}"
        )
    problem = next(_deviations(x, y), None)
    if problem is not None:
        raise NumgradAssertionError(f"check_jit: {path} of {name} {problem}")


def _numbers(value: Any) -> np.ndarray | None:
    """An array of what may be rounded; None for anything else."""
    if isinstance(value, Tensor):
        return value._array
    if isinstance(value, bool) or not isinstance(
        value, np.ndarray | np.generic | int | float | complex
    ):
        return None
    return np.asarray(value)


def _deviations(x: np.ndarray, y: np.ndarray) -> Iterator[str]:
    if x.dtype.kind not in "fc":
        different = int(np.count_nonzero(x != y))
        if different:
            yield f"differs from eager code in {different} of {x.size} elements"
        return
    tolerance = float(np.finfo(x.dtype).eps) ** (2 / 3)
    finite = np.isfinite(y)
    if np.any(finite != np.isfinite(x)) or np.any(
        (x != y) & ~finite & ~(np.isnan(x) & np.isnan(y))
    ):
        yield "is infinite or NaN where eager code is not, or the other way round"
    if finite.any():
        deviation = np.abs(np.where(finite, x, 0) - np.where(finite, y, 0))
        scale = np.abs(np.where(finite, y, 0)).max()
        if deviation.max() > tolerance * max(scale, np.finfo(x.dtype).tiny):
            index = np.unravel_index(int(deviation.argmax()), deviation.shape)
            where = f" at {tuple(map(int, index))}" if index else ""
            yield (
                f"deviates from eager code by up to {deviation.max():.3g}{where} (largest element "
                f"{scale:.3g})"
            )
