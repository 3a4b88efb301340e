"""Unknowns of an equation: a nesting of arrays, which solvers see as one vector of float64."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.modes import enable_grad, no_grad
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.interpreter import state
from numgrad.core.tree import Nesting, flatten, unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.linearization import Linearization, filled

Residual = Callable[[Sequence[Tensor]], list[Tensor]]
"""Function of the parts of the unknowns: the parts that are to be zero."""


class UnknownParts:
    """The nesting of the start, and the shapes and dtypes of its arrays."""

    def __init__(self, name: str, start: Any, called: str = "x0", *, real: bool = True) -> None:
        self.name = name
        leaves: list[Any] = []
        self.nesting: Nesting = flatten(as_array(name, start), leaves)
        self.leaves = [_floating(name, called, leaf, real) for leaf in leaves]
        self.shapes = [tuple(x.shape) for x in self.leaves]
        self.dtypes = [x.dtype for x in self.leaves]
        if not any(int(x.size) for x in self.leaves):
            raise NumgradValueError(
                f"{name}: there is nothing to solve for, {called} has no numbers; give a start"
            )

    def nested(self, leaves: Sequence[Any]) -> Any:
        """Arrays in the nesting of the start."""
        return unflatten(self.nesting, iter(leaves))

    def checked(self, tree: Any, who: str) -> list[np.ndarray]:
        """Numbers that somebody returned, as arrays like those of the start."""
        leaves: list[Any] = []
        nesting = flatten(tree, leaves)
        arrays = [np.asarray(x._array if isinstance(x, Tensor) else x) for x in leaves]
        shapes = [a.shape for a in arrays]
        if nesting != self.nesting or shapes != self.shapes:
            raise NumgradValueError(
                f"{self.name}: {who} returned arrays of shapes {shapes}, the start has "
                f"{self.shapes}; return what is nested and shaped like the start"
            )
        pairs = zip(arrays, self.dtypes, strict=True)
        return [a.astype(dtype, copy=True) for a, dtype in pairs]

    # ----------------------------------------------------------------------------------- vectors

    def vector(self, arrays: Sequence[Any]) -> np.ndarray:
        """All numbers one after the other."""
        return np.concatenate([np.asarray(a).ravel() for a in arrays])

    def arrays(self, vector: np.ndarray) -> list[np.ndarray]:
        """Arrays with the numbers of a vector."""
        ends = np.cumsum([0, *[int(np.prod(shape)) for shape in self.shapes]])
        return [
            vector[a:b].reshape(shape).astype(dtype)
            for a, b, shape, dtype in zip(
                ends[:-1], ends[1:], self.shapes, self.dtypes, strict=True
            )
        ]

    def value(self, residual: Residual, vector: np.ndarray) -> np.ndarray:
        """The residual at a vector."""
        with no_grad():
            residuals = residual([Tensor(a) for a in self.arrays(vector)])
        return self.vector([tensor._array for tensor in residuals]).astype(np.float64)

    def jacobian(self, residual: Residual, vector: np.ndarray) -> np.ndarray:
        """The derivative of the residual at a vector."""
        z = [Tensor(a, True) for a in self.arrays(vector)]
        with enable_grad():
            residuals = residual(z)
        linear = Linearization(residuals, z)
        rows = [linear.rows(k) for k in range(len(residuals))]
        return np.concatenate(
            [
                np.concatenate(
                    [
                        filled(g, r.shape + x.shape, x.dtype)._array.reshape(int(r.size), -1)
                        for g, x in zip(row, z, strict=True)
                    ],
                    axis=1,
                )
                for row, r in zip(rows, residuals, strict=True)
            ]
        ).astype(np.float64)


def as_array(name: str, x: Any) -> Any:
    """A list or tuple of numbers, or of such lists, as an array, as SciPy takes it; else itself.

    Raises
    ------
    NumgradValueError
        If the lists are no rows of one array.
    """

    def plain(value: Any) -> bool:
        if type(value) in (list, tuple):
            return all(map(plain, value))
        return isinstance(value, int | float | complex | np.number)

    if type(x) not in (list, tuple) or not x or not plain(x):
        return x
    try:
        return np.array(x)
    except ValueError as error:
        raise NumgradValueError(
            f"{name}: lists of numbers that are no rows of one array, {x!r}; make an array of each "
            "to solve for several"
        ) from error


def _floating(name: str, called: str, leaf: Any, real: bool) -> Tensor:
    """An array of the start, as a Tensor of floating numbers."""
    if not isinstance(leaf, Tensor):
        array = np.asarray(leaf)
        if array.dtype.kind in "biu":
            array = array.astype(np.float64)
        if array.dtype.kind not in "fc":
            raise NumgradTypeError(
                f"{name}: {called} contains a {type(leaf).__name__} of dtype {array.dtype}; give "
                "floating numbers, in any nesting"
            )
        check_dtype(name, array.dtype)
        leaf = Tensor(array)
    elif leaf.dtype.kind in "biu":
        leaf = leaf.detach().astype(np.float64)
    if real and leaf.dtype.kind == "c":
        raise NumgradTypeError(
            f"{name}: {called} has dtype {leaf.dtype}; the unknowns are real: solve for the real "
            "and imaginary parts"
        )
    numbers = state.ground.numbers(leaf)
    if numbers is not None and not np.isfinite(numbers).all():
        raise NumgradValueError(
            f"{name}: {called} has NaN or infinities; start from finite numbers"
        )
    return leaf
