"""Named parameters of which some are fixed or tied, and the free ones that a solver varies.

Note [Free parameters]
----------------------
Solvers see the vector of the free parameters. What is fixed or tied is put beside them where the
caller's function is called (``nested``), in terms of operations: so gradients, Jacobians and
Hessians by the free parameters are exact, also compiled and in constraints, and no solver knows.
Fixed numbers are arguments of the compiled function: another value compiles nothing anew, on which
profiles rely. The covariance of all parameters is ``D C D.T`` with the derivative ``D`` of all by
the free ones (delta method; Casella and Berger, Statistical Inference, 5.5.4).
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.core.op import OPS
from numgrad.core.tree import unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.optimize.derivatives import refuse_differentiated, solutions_are_followed
from numgrad.optimize.ties import Tie, tie
from numgrad.optimize.unknowns import Packing, Unknowns
from numgrad.tensors.labels import unlabelled
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.derivatives import jacobian

FREE, FIXED, PLACES = -1, -2, -3
"""Owners of elements that are not tied; others have the number of their tie."""


def free_unknowns(name: str, whole: Unknowns, fixed: Any, ties: Any) -> Unknowns:
    """The unknowns of a solver, of whose start some are fixed or tied: by name, as callers do."""
    if not fixed and not ties:
        return whole
    return FreeUnknowns(name, whole, _fixed_by_name(name, whole, fixed), ties or {})


def _fixed_by_name(name: str, whole: Unknowns, fixed: Any) -> dict[Any, Any]:
    """What is fixed at what; names alone are fixed at the start, which None says too."""
    if fixed is not None and (isinstance(fixed, str) or not isinstance(fixed, Iterable)):
        raise NumgradTypeError(
            f"{name}: fixed is {fixed!r}; give values by name, {{'a': 1.0}}, or a list of names to "
            "keep at their start"
        )
    return dict(fixed) if isinstance(fixed, Mapping) else dict.fromkeys(fixed or ())


def from_start(
    name: str, unknowns: Unknowns, start: np.ndarray, fixed: Mapping[Any, Any] | None = None
) -> Unknowns:
    """The same unknowns from another start of all numbers, of which further ones may be fixed."""
    whole = copy(unknowns.whole)
    whole.x0 = np.array(start)
    already, ties = unknowns.restrictions
    return free_unknowns(name, whole, already | dict(fixed or {}), ties)


class FreeUnknowns(Unknowns):
    """Unknowns that are a part of others: Note [Free parameters]."""

    def __init__(
        self, name: str, whole: Unknowns, fixed: Mapping[Any, Any], ties: Mapping[Any, Any]
    ) -> None:
        self._name, self._whole, self.nesting = name, whole, whole.nesting
        packing = whole.packing
        if ties and packing.is_complex:
            raise NumgradTypeError(
                f"{name}: ties are of real parameters, and some are complex; give real and "
                "imaginary parts"
            )
        start = packing.unpack(whole.x0)
        owner = np.full(packing.size, FREE)
        for label, value in fixed.items():
            self._claim(name, label, owner, FIXED)
            k, element = self._place(name, label)
            part = start[k] if element is None else start[k].reshape(-1)[element : element + 1]
            if value is not None:
                part[...] = _fixed_numbers(name, label, value, part)
        for number, label in enumerate(ties):
            self._claim(name, label, owner, number)
        if not (owner == FREE).any():
            raise NumgradValueError(
                f"{name}: every parameter is fixed or tied, so there is nothing to solve for; "
                "leave one free"
            )
        self._ties = [
            tie(name, self._target(name, label), text, whole.places) for label, text in ties.items()
        ]
        self._places = {
            label: self._place(name, label)
            for each in self._ties
            for label in (each.target, *each.references)
        }
        self.referenced = frozenset(label for each in self._ties for label in each.references)
        self.restrictions = dict.fromkeys(fixed), dict(ties)
        self._owner, self._slots = owner, np.flatnonzero(owner == FREE)
        self._order = self._sorted(name)
        arrays, constants, self._parts = [], [], []
        for array, elements in zip(start, packing.slices, strict=True):
            part = _Part(array, owner[elements][:: 2 if array.dtype.kind == "c" else 1])
            self._parts.append(part)
            for kind, pieces in ((FREE, arrays), (FIXED, constants)):
                if kind in part.kinds:
                    whole_piece = part.places is None
                    pieces.append(array if whole_piece else array.reshape(-1)[part.owners == kind])
            if part.places is not None:
                constants.append(part.places)
        self.constants = tuple(constants)
        self.packing = Packing(arrays)
        self.x0 = self.packing.pack(arrays)
        self.single = len(arrays) == 1 and arrays[0].dtype == np.float64
        self._shape = arrays[0].shape
        self.names = [f"part {k} of the free parameters" for k in range(len(arrays))]
        whole.x0 = self.expanded(self.x0)
        if not np.isfinite(whole.x0).all():
            k = int(np.argmin(np.isfinite(whole.x0)))
            raise NumgradValueError(
                f"{name}: {whole.element(k)} is {whole.x0[k]} by what it is fixed at or tied to; "
                "start from finite numbers"
            )

    def __reduce__(self) -> Any:
        return FreeUnknowns, (self._name, self._whole, *self.restrictions)

    @property
    def whole(self) -> Unknowns:
        """All numbers, of which these are a part."""
        return self._whole

    @property
    def slots(self) -> np.ndarray:
        """Where the free numbers are in the vector of the whole."""
        return self._slots

    @cached_property
    def element_labels(self) -> list[str]:
        """Names of the free numbers."""
        return [self.whole.element_labels[k] for k in self.slots]

    @property
    def structure(self) -> Any:
        """What decides how functions are called, besides shapes; it has a hash."""
        ties = tuple((each.target, each.identity) for each in self._ties)
        return self.nesting, self._owner.tobytes(), tuple(self.whole.packing.shapes), ties

    def element(self, k: int) -> str:
        """An element of the vector as a reader would write it."""
        return self.whole.element(int(self.slots[k]))

    def vector(self, name: str, x: Any) -> np.ndarray:
        """Read a point of a solver or the caller: a vector, or a nesting like the whole start."""
        if isinstance(x, np.ndarray) and x.shape == self.x0.shape and x.dtype == np.float64:
            return x
        return self.whole.vector(name, x)[self.slots]

    def shown(self, x: np.ndarray) -> Any:
        """A vector as the caller gave the start, with what is fixed and tied."""
        return self.whole.shown(self.expanded(x))

    def tie_of(self, k: int) -> str | None:
        """How number ``k`` of all is held: an expression, "fixed", or None if it is free."""
        owner = self._owner[k]
        if owner < 0:
            return "fixed" if owner == FIXED else None
        made_of = self._ties[owner].identity
        return made_of if isinstance(made_of, str) else getattr(made_of, "__name__", "a function")

    def outline(self) -> str:
        """The nesting with shapes for arrays."""
        return self.whole.outline()

    def expanded(self, x: np.ndarray) -> np.ndarray:
        """All numbers, of a vector of those that are solved for."""
        with no_grad():
            leaves = self._complete(list(map(Tensor, self.arrays(x))), self.constants)
        return self.whole.packing.pack(map(_numbers_of, leaves))

    def derivative(self, x: np.ndarray) -> np.ndarray:
        """Of ``expanded``, a row for each number."""
        rows = np.zeros((self.whole.packing.size, self.packing.size))
        rows[self.slots, np.arange(self.slots.size)] = 1
        tied = np.flatnonzero(self._owner >= 0)
        if tied.size:

            def values(arrays: Sequence[Any]) -> Any:
                leaves = self._complete(arrays, self.constants)
                flat = [OPS["reshape"](leaf, (-1,)) for leaf in leaves]
                return OPS["take"](OPS["concat"](flat), tied)

            blocks = jacobian(values)(self.arrays(np.array(x)))
            columns = [_numbers_of(block).reshape(tied.size, -1) for block in blocks]
            rows[tied] = np.concatenate(columns, axis=1)
        return rows

    def nested(self, leaves: Sequence[Any], constants: Sequence[Any] = ()) -> Any:
        """Free leaves, and what is fixed and tied, in the caller's containers."""
        complete = self._complete(leaves, constants or self.constants)
        return complete[0] if self.nesting is None else unflatten(self.nesting, iter(complete))

    def restricted(self, name: str, low: np.ndarray, high: np.ndarray) -> tuple[Any, Any]:
        """Bounds of the free numbers, of those of all."""
        tied = (self._owner >= 0) & (np.isfinite(low) | np.isfinite(high))
        if tied.any():
            raise NumgradValueError(
                f"{name}: {self.whole.element_labels[int(np.argmax(tied))]} is tied, and follows "
                "others; bound those, or tie one of them to a parameter that is bounded (for "
                "b >= a: b = a + gap with gap >= 0)"
            )
        return low[self.slots], high[self.slots]

    # ------------------------------------------------------------------------- what belongs where

    def _claim(self, name: str, label: Any, owner: np.ndarray, kind: int) -> None:
        elements = self.whole.placed(name, label)
        if (owner[elements] != FREE).any():
            raise NumgradValueError(
                f"{name}: {label} is fixed or tied twice; each parameter is one of fixed, tied and "
                "free"
            )
        owner[elements] = kind

    def _target(self, name: str, label: Any) -> str:
        """The name of what is tied, which may be given by its index."""
        if str(label) in self.whole.places:
            return str(label)
        return self.whole.element_labels[int(self.whole.placed(name, label)[0])]

    def _place(self, name: str, label: Any) -> tuple[int, int | None]:
        """Number of the array of that name; or of that with such an element, and which it is."""
        labels, packing = self.whole.labels(), self.whole.packing
        if label in labels:
            return labels.index(label), None
        place = self.whole.placed(name, label)[0]
        return packing.leaf(place), packing.offset(place)

    def _sorted(self, name: str) -> list[int]:
        """Ties in an order in which each comes after those that it refers to."""
        places = self.whole.places
        needs = [
            {int(k) for label in each.references for k in self._owner[places[label]] if k >= 0}
            for each in self._ties
        ]
        order: list[int] = []
        while len(order) < len(needs):
            ready = [k for k, need in enumerate(needs) if k not in order and need <= set(order)]
            if not ready:
                circle = [each.target for k, each in enumerate(self._ties) if k not in order]
                raise NumgradValueError(
                    f"{name}: the ties of {', '.join(circle)} lead back to themselves; tie "
                    "parameters to such as are free or fixed in the end"
                )
            order += ready
        return order

    def _complete(self, free: Sequence[Any], constants: Sequence[Any]) -> list[Any]:
        """All arrays, of the free ones and what is fixed."""
        given = {FREE: iter(free), FIXED: map(_tensor, constants)}
        pieces = []
        for part in self._parts:
            own = {kind: next(given[kind]) for kind in (FREE, FIXED) if kind in part.kinds}
            if part.places is not None:
                own[PLACES] = next(given[FIXED])
            pieces.append(own)
        for number in self._order:
            each = self._ties[number]
            values = {}
            for label in each.references:
                k, element = self._places[label]
                values[label] = self._parts[k].value(pieces[k], element)
            k = self._places[each.target][0]
            pieces[k][number] = self._parts[k].tied(each, number, values)
        return [part.value(own) for part, own in zip(self._parts, pieces, strict=True)]


class _Part:
    """An array of the whole, whose elements are free, fixed or tied.

    Attributes
    ----------
    owners
        By element FREE, FIXED or the number of a tie.
    kinds
        Those that there are.
    places
        Where each element is in the pieces one after the other; None if there is one piece.
    """

    def __init__(self, array: np.ndarray, owners: np.ndarray) -> None:
        self.shape, self.dtype, self.owners = array.shape, array.dtype, owners
        self.kinds: list[int] = np.unique(owners).tolist() or [FREE]
        segments = [np.flatnonzero(owners == kind) for kind in self.kinds]
        self.places = None if len(segments) == 1 else np.argsort(np.concatenate(segments))

    def value(self, pieces: Mapping[int, Any], element: int | None = None) -> Any:
        """The array, or one of its elements, of the pieces by kind."""
        if element is not None:
            kind = int(self.owners[element])
            rank = int(np.count_nonzero(self.owners[:element] == kind))
            return OPS["reshape"](pieces[kind], (-1,))[rank]
        if self.places is None:
            return pieces[self.kinds[0]]
        flat = [OPS["reshape"](pieces[kind], (-1,)) for kind in self.kinds]
        return OPS["reshape"](OPS["take"](OPS["concat"](flat), pieces[PLACES]), self.shape)

    def tied(self, each: Tie, number: int, values: Mapping[str, Any]) -> Any:
        """The piece that a tie computes, in the shape and dtype of its elements."""
        value = _tensor(unlabelled(each.compute(values)))
        count = int(np.count_nonzero(self.owners == number))
        shape = self.shape if self.places is None else (count,)
        if value.dtype != self.dtype:
            value = value.astype(self.dtype)
        if value.shape == shape:
            return value
        try:
            return OPS["broadcast_to"](value, shape)
        except ValueError:
            raise NumgradValueError(
                f"the tie of {each.target} gives shape {value.shape}, and the parameter has shape "
                f"{shape}; give one number, or as many as it has"
            ) from None


def _tensor(value: Any) -> Any:
    return value if isinstance(value, Tensor) else Tensor(np.asarray(value, order="C"))


def _numbers_of(value: Any) -> np.ndarray:
    return value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)


def _fixed_numbers(name: str, label: Any, value: Any, array: np.ndarray) -> np.ndarray:
    """Numbers that a parameter is fixed at, of the shape of the array that has them."""
    if solutions_are_followed():
        refuse_differentiated(name, f"{label} is fixed at", value)
    numbers = _numbers_of(value)
    if numbers.dtype.kind not in ("biufc" if array.dtype.kind == "c" else "biuf"):
        raise NumgradTypeError(f"{name}: {label} is fixed at {value!r}; give real numbers")
    try:
        return np.broadcast_to(numbers, array.shape)
    except ValueError:
        raise NumgradValueError(
            f"{name}: {label} is fixed at an array of shape {numbers.shape}, and has shape "
            f"{array.shape}; give one number, or as many as it has"
        ) from None
