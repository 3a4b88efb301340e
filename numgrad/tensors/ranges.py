"""Numbers evenly spaced between ends, by a sum or by a factor; gradients flow to the ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.core.abstract import made
from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_index, as_operand
from numgrad.tensors.creation import finish, made_by, tensors_in
from numgrad.tensors.tensor import Tensor


def _spaced(
    name: str,
    between: Callable[[Any, Any, Any], Any],
    start: Any,
    stop: Any,
    num: Any,
    endpoint: bool,
    dtype: Any,
    axis: int,
) -> tuple[Tensor, Any]:
    """``between`` at fractions of the way, with both ends exact; and the fraction of a step."""
    num = as_index(name, num, "the number of samples")
    if num < 0:
        raise NumgradValueError(f"{name}: the number of samples must not be negative, got {num}")
    start, stop = OPS["broadcast_arrays"](start, stop)
    kind = np.result_type(start.dtype, stop.dtype, float(num))
    start, stop = (OPS["astype"](end, dtype=kind, copy=False) for end in (start, stop))
    steps = num - 1 if endpoint else num
    fractions = np.arange(num, dtype=kind) / max(steps, 1)
    lengths = (-1, *(1,) * len(start.shape))
    fractions = fractions.reshape(lengths)
    first, last = made(fractions == 0), made((np.arange(num) == num - 1).reshape(lengths))
    out = OPS["where"](first, start, between(start, stop, Tensor(made(fractions))))
    if endpoint and num > 1:
        out = OPS["where"](last, stop, out)
    if dtype is not None and np.dtype(dtype).kind in "iu":
        out = OPS["floor"](out)
    if dtype is not None:
        out = OPS["astype"](out, dtype=dtype, copy=False)
    if axis != 0:
        out = OPS["moveaxis"](out, 0, axis)
    return out, 1 / steps if steps > 0 else np.nan


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    requires_grad: bool = False,
    *,
    retstep: bool = False,
    axis: int = 0,
) -> Any:
    """``num`` evenly spaced numbers from ``start`` to ``stop``, with or without the latter.

    Gradients flow to ends that are Tensors.

    Parameters
    ----------
    start, stop
        Ends, numbers or arrays.
    num
        How many numbers.
    endpoint
        Whether ``stop`` is the last of them.
    dtype
        Dtype of the result.
    requires_grad
        Whether a result of plain ends is a leaf that records.
    retstep
        Whether to return the distance between neighbours too.
    axis
        Axis of the result along which they run, where ends are arrays.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.linspace(0, 1, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if not tensors_in([start, stop]):
        made = made_by(
            "linspace", np.linspace, start, stop, num,
            endpoint=endpoint, retstep=retstep, dtype=dtype, axis=axis,
        )  # fmt: skip
        array, *step = made if retstep else (made,)
        out = finish("linspace", array, requires_grad)
        return (out, *step) if retstep else out
    out, part = _spaced(
        "linspace", lambda a, b, t: a + (b - a) * t, start, stop, num, endpoint, dtype, axis
    )
    return (out, (as_operand(stop) - as_operand(start)) * part) if retstep else out


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """``base`` to powers evenly spaced from ``start`` to ``stop``; gradients flow to all three.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    start, stop, base = OPS["broadcast_arrays"](start, stop, base)
    powers = linspace(start, stop, num, endpoint)
    out = OPS["power"](base, powers)
    if dtype is not None:
        out = OPS["astype"](out, dtype=dtype, copy=False)
    return OPS["moveaxis"](out, 0, axis) if axis != 0 else out


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """Numbers from ``start`` to ``stop``, each the same multiple of the one before.

    Gradients flow to the ends. Complex numbers turn by the smaller angle.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.geomspace(1, 8, 4)
    tensor([1., 2., 4., 8.])
    """
    for end in (start, stop):
        known = as_operand(end)
        known = getattr(known, "_array", known)
        if isinstance(known, np.ndarray | np.generic) and (known == 0).any():
            raise NumgradValueError("geomspace: numbers in proportion cannot begin or end with 0")
        if known.dtype.kind not in "biufc":
            raise NumgradTypeError(f"geomspace: ends are numbers, got dtype {known.dtype}")
    if not tensors_in([start, stop]):
        made = made_by(
            "geomspace", np.geomspace, start, stop, num, endpoint=endpoint, dtype=dtype, axis=axis
        )
        return finish("geomspace", made, False)

    def between(a: Any, b: Any, t: Any) -> Any:
        return a * OPS["power"](b / a, t)

    return _spaced("geomspace", between, start, stop, num, endpoint, dtype, axis)[0]
