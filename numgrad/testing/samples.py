"""Sample inputs of an operation, from what its declaration says.

Elementwise operations say where they are smooth (``domain``) and where they are not (``special``),
operations along axes take any operand, others list ``samples``: pairs of operand shapes and
parameters.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import Op

AXES: tuple[tuple[tuple[int, ...], Any], ...] = (
    ((7,), 0),
    ((3, 4), None),
    ((3, 4), 0),
    ((3, 4), -1),
    ((2, 3, 4), 1),
    ((2, 3, 4), (0, 2)),
    ((2, 1, 3, 1, 2), (1, 4)),
)
"""Shapes and axes that reach every way an operation along axes is computed."""

BROADCASTS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((3, 1), (1, 4)),
    ((), (3,)),
    ((2, 3), (2, 1)),
    ((2, 1, 3, 1, 2), (3, 1, 1)),
)
"""Pairs of shapes that broadcast."""


@dataclass(frozen=True)
class Sample:
    """Operands and parameters of one call."""

    args: tuple[np.ndarray, ...]
    params: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = " ".join(f"{a.dtype}{a.shape}" for a in self.args)
        return f"{shapes} {self.params}"


def draw(op: Op, shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """An operand inside the operation's domain; integers and complex numbers of like size.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.testing.samples import draw
    >>> draw(ng.ops["log"].op, (2,)).min() > 0.2
    np.True_
    """
    dtype = np.dtype(dtype)
    rng = np.random.default_rng([seed, *shape])
    low, high = op.domain
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        low, high = int(np.ceil(low)), int(np.floor(high))
        if dtype.kind == "u":
            low = max(low, 0)
        return rng.integers(low, max(high, low) + 1, shape).astype(dtype)
    margin = (high - low) * 0.02
    x = rng.uniform(low + margin, high - margin, shape)
    if dtype.kind == "c":
        x = x + 1j * rng.uniform(low + margin, high - margin, shape)
    return np.asarray(x, dtype)


def samples(op: Op, dtype: Any = np.float64) -> Iterator[Sample]:
    """Calls of an operation that its gradients are checked on.

    Operations that are neither elementwise nor along axes and declare no ``samples`` yield none.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.testing.samples import samples
    >>> [s.args[0].shape for s in samples(ng.ops["tanh"].op)]
    [(3, 4), ()]
    """
    if isinstance(op, AxisOp):
        for shape, axis in AXES:
            yield Sample((draw(op, shape, dtype),), {"axis": axis})
        return
    if isinstance(op, Elementwise):
        count = len(op.inputs)
        patterns: Sequence[tuple] = [((3, 4),), ((),)]
        if count == 2:
            patterns = BROADCASTS
        elif count > 2:
            patterns = [((3, 4),) * count, ((3, 1), *((4,),) * (count - 1))]
        for shapes in patterns:
            yield Sample(tuple(draw(op, s, dtype, k) for k, s in enumerate(shapes)))
        return
    for shapes, params in op.samples:
        yield Sample(tuple(draw(op, s, dtype, k) for k, s in enumerate(shapes)), dict(params))


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "transposed": lambda x: np.asfortranarray(x),
    "stepped": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "reversed": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
}
"""Arrangements in memory of the same elements that are not contiguous."""
