"""The unknowns of a solver: a nesting as the caller gave it, and the vector that SciPy sees."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.codegen.dtypes import check_dtype, native
from numgrad.core.interpreter import state
from numgrad.core.tree import Nesting, align, flatten, paths, unflatten
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.implicit.unknowns import as_array
from numgrad.tensors.eager import check_array_kind
from numgrad.tensors.labels import indices
from numgrad.tensors.tensor import Tensor


class Packing:
    """Where the elements of each array or Tensor are in a vector; complex ones are pairs.

    The vector is of ``dtype``, float64 unless given.
    """

    def __init__(self, tensors: Sequence[Any], dtype: np.dtype | None = None) -> None:
        self.dtype = np.dtype(np.float64) if dtype is None else dtype
        self.tensors = list(tensors)
        self.shapes = [t.shape for t in tensors]
        self.dtypes = [t.dtype for t in tensors]
        self.real_dtypes = [np.finfo(dtype).dtype for dtype in self.dtypes]
        sizes = [t.size * (2 if t.dtype.kind == "c" else 1) for t in tensors]
        ends = np.cumsum([0, *sizes]).tolist()
        self.slices = [slice(*pair) for pair in pairwise(ends)]
        self.size: int = ends[-1]
        self.is_complex = any(dtype.kind == "c" for dtype in self.dtypes)

    def pack(self, arrays: Iterable[Any]) -> np.ndarray:
        """One array for each Tensor, shaped like it, as a new vector; None counts as zeros."""
        vector = np.zeros(self.size, self.dtype)
        for k, array in enumerate(arrays):
            if array is not None:
                flat = np.ascontiguousarray(array, self.dtypes[k]).reshape(-1)
                vector[self.slices[k]] = flat.view(self.real_dtypes[k])
        return vector

    def leaf(self, k: int) -> int:
        """Number of the array that element ``k`` of the vector belongs to."""
        return next(p for p, elements in enumerate(self.slices) if k < elements.stop)

    def offset(self, k: int) -> int:
        """Where in its array, flat, it is."""
        leaf = self.leaf(k)
        return (k - self.slices[leaf].start) // (2 if self.dtypes[leaf].kind == "c" else 1)

    def name(self, k: int, names: Sequence[str]) -> str:
        """Element ``k`` of the vector as a reader would write it, given names of the arrays."""
        leaf, offset = self.leaf(k), self.offset(k)
        index = np.unravel_index(offset, self.shapes[leaf])
        return names[leaf] + (f"[{', '.join(map(str, index))}]" if index else "")

    def unpack(self, vector: np.ndarray) -> list[np.ndarray]:
        """New arrays, of the shapes and dtypes of the Tensors."""
        arrays = []
        for k, elements in enumerate(self.slices):
            with np.errstate(over="ignore"):  # float32 has an infinity for what is too large
                flat = vector[elements].astype(self.real_dtypes[k])
            arrays.append(flat.view(self.dtypes[k]).reshape(self.shapes[k]))
        return arrays

    def values(self) -> np.ndarray:
        """The present values of the Tensors as a new vector."""
        return self.pack(t.detach().numpy() for t in self.tensors)

    def store(self, arrays: Iterable[np.ndarray]) -> None:
        """Write values to the Tensors, unrecorded."""
        with no_grad():
            for tensor, array in zip(self.tensors, arrays, strict=True):
                tensor.copy_(array)


class Unknowns:
    """The start of a solver, and how its vectors become what the caller's functions take.

    A list or tuple of numbers is an array, as in SciPy; other containers are kept.

    Attributes
    ----------
    x0
        The start as a vector of float64.
    nesting
        Of the start; None for a single array.
    names
        The arrays as a reader would write them.
    is_array
        Whether the start is a single array, or Series of pandas, whose labels name its numbers.
    constants
        Arrays that functions of the unknowns are given besides.
    """

    constants: tuple[np.ndarray, ...] = ()

    referenced: frozenset[str] = frozenset()
    """Names of parameters that others are tied to."""

    restrictions: tuple[dict[Any, Any], dict[Any, Any]] = ({}, {})
    """Names of what is fixed at the start, and ties by name."""

    def __init__(self, name: str, x0: Any, called: str = "x0") -> None:
        if state.ground.deferred or state.interpreters:
            raise NumgradRuntimeError(
                f"{name}: solves with numbers, so it cannot run inside of a function that ng.jit "
                "or ng.vmap transforms; call it outside"
            )
        leaves: list[Any] = []
        self.nesting: Nesting = flatten(as_array(name, x0), leaves)
        self.names = list(paths(self.nesting, called))
        self.is_array = self.names == [called]
        self._indices = list(indices(self.nesting))
        self.tensors = [isinstance(leaf, Tensor) for leaf in leaves]
        self.scalars = [not hasattr(leaf, "shape") for leaf in leaves]
        arrays = [_numbers(name, *pair) for pair in zip(self.names, leaves, strict=True)]
        self.packing = Packing(arrays)
        self.x0 = self.packing.pack(arrays)
        if not self.x0.size:
            raise NumgradValueError(
                f"{name}: there is nothing to solve for, {called} has no numbers; give a start"
            )
        finite = np.isfinite(self.x0)
        if not finite.all():
            k = int(np.argmin(finite))
            raise NumgradValueError(
                f"{name}: {self.element(k)} is {self.x0[k]}; start from finite numbers"
            )
        self.single = len(arrays) == 1 and arrays[0].dtype == np.float64
        self._shape = arrays[0].shape
        self._nested = self.nesting is not None
        self._called = called

    def labels(self) -> list[str]:
        """Names of the arrays as a caller writes them: keys, fields, else ``x`` for ``x0``."""
        if self.is_array:
            return [self._called.removesuffix("0")]
        bare = (path.lstrip(".") for path in paths(self.nesting, ""))
        return [_TOP_KEY.sub(r"\1", path) for path in bare]

    @cached_property
    def element_labels(self) -> list[str]:
        """Names of the numbers that are solved for: those of the arrays, with an index."""
        if self.is_array and self._indices[0] is not None:
            return list(map(str, self._indices[0]))
        labels = self.labels()
        return [self._element(k, labels) for k in range(self.packing.size)]

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Where in the vector each array, and each element, is, by its name."""
        places: dict[str, list[int]] = {}
        for k, label in enumerate(self.element_labels):
            places.setdefault(label, []).append(k)
        if self.is_array and self._indices[0] is not None:
            return places
        for label, elements in zip(self.labels(), self.packing.slices, strict=True):
            places[label] = list(range(elements.start, elements.stop))
        return places

    def placed(self, name: str, label: Any) -> list[int]:
        """Where in the vector a parameter is that a caller names, or numbers in one array."""
        if isinstance(label, int) and self.is_array:
            if self._indices[0] is not None:
                label = str(label)
            elif 0 <= label < self.packing.size:
                return [label]
        if label not in self.places:
            known = list(self.places)
            raise NumgradValueError(
                f"{name}: there is no parameter {label!r}; there are {', '.join(known[:12])}"
                + (", ..." if len(known) > 12 else "")
            )
        return self.places[label]

    def element(self, k: int) -> str:
        """An element of the vector as a reader would write it."""
        return self._element(k, self.names)

    def _element(self, k: int, names: Sequence[str]) -> str:
        leaf = self.packing.leaf(k)
        if (index := self._indices[leaf]) is None:
            return self.packing.name(k, names)
        return f"{names[leaf]}[{index[self.packing.offset(k)]!r}]"

    def arrays(self, x: np.ndarray) -> list[np.ndarray]:
        """Arrays with the numbers of a vector, which nobody writes to any more."""
        return [x.reshape(self._shape)] if self.single else self.packing.unpack(x)

    def at(self, x: np.ndarray, requires_grad: bool = True) -> list[Tensor]:
        """Leaves with the numbers of such a vector."""
        return [Tensor(array, requires_grad) for array in self.arrays(x)]

    def shown(self, x: np.ndarray) -> Any:
        """A vector as the caller gave the start."""
        x = np.array(x, np.float64)
        kinds = zip(self.arrays(x), self.tensors, self.scalars, strict=True)
        return self.nested(
            [Tensor(a) if tensor else a[()] if scalar else a for a, tensor, scalar in kinds]
        )

    @property
    def whole(self) -> "Unknowns":
        """All numbers that the caller named, solved for or not."""
        return self

    @property
    def slots(self) -> np.ndarray:
        """Where the numbers that are solved for are in the vector of all."""
        return np.arange(self.packing.size)

    @property
    def structure(self) -> Any:
        """What decides how functions are called, besides shapes; it has a hash."""
        return self.nesting

    def expanded(self, x: np.ndarray) -> np.ndarray:
        """All numbers, of a vector of those that are solved for."""
        return x

    def derivative(self, x: np.ndarray) -> np.ndarray | None:
        """Of ``expanded``, a row for each number; None if that is the identity."""
        return None

    def tie_of(self, k: int) -> str | None:
        """How number ``k`` of all is held: an expression, "fixed", or None if it is free."""
        return None

    def restricted(self, name: str, low: np.ndarray, high: np.ndarray) -> tuple[Any, Any]:
        """Bounds of what is solved for, of those of all numbers."""
        return low, high

    def nested(self, leaves: Sequence[Any], constants: Sequence[Any] = ()) -> Any:
        """Leaves in the caller's containers."""
        return unflatten(self.nesting, iter(leaves)) if self._nested else leaves[0]

    def vector(self, name: str, x: Any) -> np.ndarray:
        """Read a point of a solver or the caller: a vector, or a nesting like the start."""
        if isinstance(x, np.ndarray) and x.shape == self.x0.shape and x.dtype == np.float64:
            return x
        values: list[Any] = []
        array = None if self._nested and not hasattr(x, "shape") else as_array(name, x)
        if array is not None and np.shape(array) == self.x0.shape:
            values = [array]
            return np.array(_numbers(name, "x", array), np.float64)
        where = align(self.nesting, x if self._nested else array, values, "x")
        if where is not None and np.ndim(plain := as_array(name, x)) == 1:
            if len(plain) == self.x0.size:  # a list as a vector
                return np.array(_numbers(name, "x", plain), np.float64)
            raise NumgradValueError(
                f"{name}: got a vector of {len(plain)} numbers, the start has {self.x0.size}"
            )
        if where is not None:
            raise NumgradValueError(
                f"{name}: at {where} the nesting is another than that of the start; give one like "
                f"{self.outline()}, or the vector of its {self.x0.size} numbers"
            )
        arrays = [_numbers(name, "x", leaf) for leaf in values]
        for array, shape, called in zip(arrays, self.packing.shapes, self.names, strict=True):
            if array.shape != shape:
                raise NumgradValueError(
                    f"{name}: got shape {array.shape} where the start, {called}, has shape {shape}"
                )
        return self.packing.pack(arrays)

    def outline(self) -> str:
        """The nesting with shapes for arrays."""
        shapes = zip(self.packing.dtypes, self.packing.shapes, strict=True)
        return repr(self.nested([f"<{dtype}{list(shape)}>" for dtype, shape in shapes]))


_TOP_KEY = re.compile(r"^\['([^']*)'\]")


def _numbers(name: str, called: str, leaf: Any) -> np.ndarray:
    """An array to solve for; integers become float64."""
    check_array_kind(name, leaf)
    array = leaf.detach().numpy() if isinstance(leaf, Tensor) else np.asarray(leaf)
    if array.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"{name}: {called} is a {type(leaf).__name__} of dtype {array.dtype}; give numbers, "
            "arrays or Tensors to solve for, in any nesting, and all else through args"
        )
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    array = native(array)
    check_dtype(name, array.dtype)
    return array
