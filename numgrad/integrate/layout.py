"""States and arguments of any nesting as vectors and lists of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.core.foreign import refuse_mask
from numgrad.core.op import OPS
from numgrad.core.tree import Nesting, align, flatten, leaves, paths, unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.argnums import check_function


def _numeric(x: Any) -> bool:
    return isinstance(x, Tensor | np.ndarray | np.generic | float | complex)


def _is_number(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.ndim == 0
    return isinstance(x, int | float | complex | np.generic | np.ndarray) and np.ndim(x) == 0


class RightSideArguments:
    """The arguments of the right-hand side: arrays among them, and what is none."""

    def __init__(self, args: tuple) -> None:
        leaves: list[Any] = []
        self.nesting = flatten(args, leaves)
        for leaf in leaves:
            refuse_mask("solve_ivp", leaf)
            if isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "biufc":
                raise NumgradTypeError(
                    f"solve_ivp: args has an array of dtype {leaf.dtype} in it; give numbers"
                )
        self.others = tuple(None if _numeric(leaf) else (leaf,) for leaf in leaves)
        self.tensors = [
            leaf if isinstance(leaf, Tensor) else Tensor(np.array(leaf))
            for leaf in leaves
            if _numeric(leaf)
        ]

    def given(self, tensors: Sequence[Any]) -> tuple:
        """The arguments with other arrays."""
        return arranged(self.nesting, self.others, tensors)


def arranged(nesting: Nesting, others: tuple, tensors: Sequence[Any]) -> tuple:
    """RightSideArguments of arrays and of others, which have None where arrays are."""
    remaining = iter(tensors)
    return unflatten(nesting, (next(remaining) if o is None else o[0] for o in others))


class Layout:
    """How a state is made of a vector."""

    def __init__(self, y0: Any) -> None:
        leaves: list[Any] = []
        if (
            type(y0) in (list, tuple) and len(y0) and all(map(_is_number, y0))
        ):  # as SciPy takes a vector
            y0 = OPS["stack"]([x if isinstance(x, Tensor) else Tensor(np.array(x)) for x in y0])
        self.nesting = flatten(y0, leaves)
        for place, leaf in zip(paths(self.nesting, "y0"), leaves, strict=True):
            refuse_mask("solve_ivp", leaf)
            if not isinstance(leaf, Tensor) and np.asarray(leaf).dtype.kind not in "biufc":
                raise NumgradTypeError(
                    f"solve_ivp: {place} is a {type(leaf).__name__}; give arrays or numbers"
                )
        tensors = [x if isinstance(x, Tensor) else Tensor(np.array(x)) for x in leaves]
        if not sum(t.size for t in tensors):
            raise NumgradValueError("solve_ivp: y0 has no array in it; give a state")
        kind = np.result_type(np.float64, *[t.dtype for t in tensors])
        self.shapes = tuple(tuple(t.shape) for t in tensors)
        self.real = tuple(t.dtype.kind != "c" for t in tensors)
        flat = [OPS["astype"](t, kind) if t.dtype != kind else t for t in tensors]
        flat = [t if t.ndim == 1 else OPS["reshape"](t, (t.size,)) for t in flat]
        self.vector: Tensor = flat[0] if len(flat) == 1 else OPS["concat"](flat)
        self.key = self.nesting, self.shapes, self.real

    def states(self, y: Tensor, ndim: int = 1) -> Any:
        """Vectors of all times, of shape (times, state), as states with times at last."""
        if ndim == 0:
            return unravelled(y[0], *self.key)
        return unravelled(y, *self.key, batch=True)

    def recorded_states(self, y: np.ndarray) -> Any:
        """States that SciPy has recorded at events, with times in front, as SciPy has them."""
        if self.nesting is None and len(self.shapes[0]) == 1:
            return y
        if not y.size:
            return y
        whole = unravelled(Tensor(y), *self.key, batch=True, front=True)
        return unflatten(self.nesting, (leaf._array for leaf in leaves(whole)))

    def events(self, events: Any, arguments: RightSideArguments) -> Any:
        """Events of a state as those of a vector."""
        if events is None:
            return None
        several = isinstance(events, list | tuple)
        functions = tuple(events) if several else (events,)
        for event in functions:
            check_function("solve_ivp: events", event)
        numbers = arguments.given([t._array for t in arguments.tensors if t is not None])

        def wrapped(event: Callable[..., Any]) -> Callable[..., Any]:
            def of_vector(t: float, y: np.ndarray) -> float:
                value = event(t, unravelled(Tensor(y), *self.key), *numbers)
                return float(value)

            for name in ("terminal", "direction"):
                if hasattr(event, name):
                    setattr(of_vector, name, getattr(event, name))
            return of_vector

        return [wrapped(event) for event in functions]


def unravelled(
    y: Any, nesting: Nesting, shapes: tuple, real: tuple, batch: bool = False, front: bool = False
) -> Any:
    """A state of a vector; with ``batch`` several, along the last axis or in front."""
    if nesting is None and len(shapes[0]) == 1:
        return OPS["swapaxes"](y, 0, 1) if batch and not front else y
    parts, start = [], 0
    for shape, is_real in zip(shapes, real, strict=True):
        stop = start + prod(shape)
        part = y[..., start:stop]
        if is_real and part.dtype.kind == "c":
            part = OPS["real"](part)
        lead = (part.shape[0],) if batch else ()
        part = OPS["reshape"](part, (*lead, *shape))
        parts.append(OPS["moveaxis"](part, 0, -1) if batch and not front else part)
        start = stop
    return unflatten(nesting, iter(parts))


def ravelled(out: Any, nesting: Nesting, shapes: tuple, kind: np.dtype) -> Tensor:
    """Result of the right-hand side, as a vector."""
    leaves: list[Any] = []
    if nesting is None:
        if isinstance(out, list | tuple):
            out = OPS["stack"]([x if isinstance(x, Tensor) else _array(x) for x in out])
        leaves = [out]
        where = None
    else:
        where = align(nesting, out, leaves, "y")
    if where is not None:
        raise NumgradValueError(
            f"solve_ivp: the function returned a {type(out).__name__} that is at {where} nested "
            "otherwise than y0; return the derivative of each part, nested as y0"
        )
    parts = []
    for part, shape in zip(leaves, shapes, strict=True):
        t = part if isinstance(part, Tensor) else _array(part)
        if tuple(t.shape) != shape:
            raise NumgradValueError(
                f"solve_ivp: the function returned shape {tuple(t.shape)} for a state of shape "
                f"{shape}; return the derivative of each element"
            )
        if t.dtype.kind == "c" and kind.kind != "c":
            raise NumgradTypeError(
                f"solve_ivp: the function returned dtype {t.dtype} for a real state; give a "
                "complex y0, such as y0.astype(complex)"
            )
        t = OPS["astype"](t, kind) if t.dtype != kind else t
        parts.append(t if t.ndim == 1 else OPS["reshape"](t, (t.size,)))
    return parts[0] if len(parts) == 1 else OPS["concat"](parts)


def _array(x: Any) -> Tensor:
    array = None if x is None else np.asarray(x)
    if array is None or array.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"solve_ivp: the function returned a {type(x).__name__}; return arrays or numbers"
        )
    return Tensor(array)
