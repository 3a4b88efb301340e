"""Operands with labels: Series and frames of pandas and polars, arrays of xarray.

Note [Labels]
-------------
Operators and elementwise functions of these libraries match elements by label, others take numbers
by place, as NumPy does. A Tensor is an array to them: beside one labelled operand its elements
count by place.

- xarray keeps Tensors inside of its arrays, so operators and ufuncs are left to it: the result is a
  ``DataArray`` of a Tensor.
- pandas cannot. The result of a Tensor and a Series is an ``IndexedTensor``, which remembers the
  index, and what meets it in an elementwise operation must have an equal one, else an error names
  ``.to_numpy()``: nothing is aligned; so must masks in brackets and what is written to it. What is
  made of elements of one keeps their labels; after a reduction, or sorted, there are none. Brackets
  take labels where those of a Series do. A Series is a container of one array (Note [Containers]):
  a transform hands its function an ``IndexedTensor`` for it, and gradients and results come out as
  Series, Jacobians of vectors and Hessians as DataFrames (ndarrays under ``ng.jit``). Its methods
  are a Tensor's: ``std`` and ``var``, which would divide by another number, ask for it. Frames,
  whose reductions are by column, are refused, except in products of matrices, which match rows and
  columns, and where NumPy's functions take their numbers too.
- polars' columns have no labels; its frames are refused as those of pandas.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from numgrad.autograd.forward_ad import share_tangents
from numgrad.autograd.variable import Tensor, refresh
from numgrad.autograd.versions import shared_version
from numgrad.core import tree
from numgrad.core.elementwise import Elementwise
from numgrad.core.foreign import labelled_kind
from numgrad.core.interpreter import bind, state
from numgrad.core.op import Op
from numgrad.core.primitive import Composite
from numgrad.errors import NumgradKeyError, NumgradTypeError

_PRODUCTS = ("matmul", "vecdot")
_SAME_PLACES = (
    "astype", "copy", "cumprod", "cumsum", "log_softmax", "logcumsumexp", "permute_dims", "ravel",
    "real", "reshape", "running_extremes", "softmax", "squeeze", "where",
)  # fmt: skip
"""Operations besides elementwise ones whose results have the elements of operands in place."""
_MOVING = ("flip", "roll", "take")
"""Operations whose results have elements of an operand at other places."""
_BY_NUMBERS = "give its numbers with .to_numpy()"


class IndexedTensor(Tensor):
    """A Tensor of one axis that remembers the index of a Series of pandas: Note [Labels]."""

    __slots__ = ("_index",)
    _applies = True

    def apply(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        """Compute an operation on this and other operands."""
        return apply(op, args, params)

    def plain(self) -> Tensor:
        """The same Tensor without labels."""
        refresh(self)
        twin = Tensor(
            self._array, self._requires_grad, self._grad_fn, self._slot, shared_version(self)
        )
        share_tangents(self, twin)
        return twin

    def detach(self) -> Tensor:
        """The same without what recorded it."""
        return with_index(Tensor.detach(self), self._index)

    @property
    def index(self) -> Any:
        """The labels of the elements."""
        return self._index

    @property
    def iloc(self) -> Places:
        """Elements by place."""
        return Places(self)

    @property
    def loc(self) -> Labels:
        """Elements by label."""
        return Labels(self)

    def __getattr__(self, name: str) -> Any:
        if name[0] != "_" and name in self._index:
            return self[name]
        return super().__getattr__(name)  # pyright: ignore

    def std(self, *args: Any, **kwargs: Any) -> Any:
        """Standard deviation, which is told what to divide by."""
        _check_divisor("std", args, kwargs)
        return self.plain().std(*args, **kwargs)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        """Variance, which is told what to divide by."""
        _check_divisor("var", args, kwargs)
        return self.plain().var(*args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return Places(self)[self.places(index)]

    def places(self, index: Any) -> Any:
        """Where the elements are that brackets name, by labels or a mask."""
        check_mask(self, index)
        return _places(self._index, index)

    def __copy__(self) -> Tensor:
        return with_index(self.plain(), self._index)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return with_index(self.plain().__deepcopy__(memo), self._index)

    def __reduce__(self) -> Any:
        return self.plain().__reduce__()


class Places:
    """A Tensor whose brackets take places, as ``iloc`` of a Series."""

    def __init__(self, tensor: IndexedTensor) -> None:
        self.tensor = tensor

    def __getitem__(self, index: Any) -> Any:
        out = Tensor.__getitem__(self.tensor, index)
        if type(out) is Tensor and out.ndim == 1:
            return with_index(out, self.tensor._index[_as_numpy(index)])
        return out


class Labels:
    """A Tensor whose brackets take labels, or a mask, as ``loc`` of a Series."""

    def __init__(self, tensor: IndexedTensor) -> None:
        self.tensor = tensor

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):  # with its last label
            key = self.tensor._index.slice_indexer(key.start, key.stop, key.step)
            return Places(self.tensor)[key]
        return self.tensor[key]


def _check_divisor(name: str, args: tuple, kwargs: dict[str, Any]) -> None:
    if not args and kwargs.keys().isdisjoint(("correction", "ddof")):
        raise NumgradTypeError(
            f"{name}: of a Series of pandas it divides by n - 1, of a Tensor by n; say which by "
            f"correction=1 or 0, or take np.{name}(x)"
        )


def _places(index: Any, key: Any) -> Any:
    """Places of the elements that brackets of a Series with this index take; not those of a mask.

    Labels count where an index has numbers other than places, or a key is none.
    """
    if isinstance(key, slice):
        ends = [end for end in (key.start, key.stop) if end is not None]
        by_place = all(isinstance(end, int | np.integer) for end in ends)
        return key if by_place else index.slice_indexer(key.start, key.stop, key.step)
    kind = np.asarray(key.detach() if isinstance(key, Tensor) else key).dtype.kind
    by_label = index.dtype.kind in "iuf" and not _is_default(index)
    if key is None or key is Ellipsis or kind == "b" or (kind in "iu" and not by_label):
        return key
    if isinstance(key, list | np.ndarray | Tensor) or hasattr(key, "__array__"):
        places = index.get_indexer_for(_as_numpy(key))
        if (places < 0).any():
            raise NumgradKeyError(f"brackets of labels {_shown(index)}: {key!r} is not among them")
        return places
    try:
        return index.get_loc(key)
    except KeyError:
        raise NumgradKeyError(
            f"brackets of labels {_shown(index)}: {key!r} is not among them"
        ) from None


class SeriesLabels:
    """The index of a Series; what comes out has no name, which operations would not keep."""

    def __init__(self, index: Any) -> None:
        self.index = index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SeriesLabels) and self.index.identical(other.index)

    def __hash__(self) -> int:
        return hash((SeriesLabels, len(self.index)))

    def around(self, data: Any) -> Any:
        """A vector with these labels; of a Jacobian first the columns, then the rows.

        What has another shape is left as it is.
        """
        if tree.container_of(type(data)) not in (None, SERIES):  # blocks by a nesting of inputs
            return tree.map_leaves(self.around, data)
        shape, count = getattr(data, "shape", ()), len(self.index)
        if len(shape) == 2 and not isinstance(data, Tensor):
            pandas = sys.modules["pandas"]
            if isinstance(data, pandas.DataFrame):
                return data.set_axis(self.index, axis=0) if shape[0] == count else data
            return pandas.DataFrame(data, columns=self.index) if shape[1] == count else data
        if shape != (count,):
            return data
        if isinstance(data, Tensor):
            if data._requires_grad and data._grad_fn is None:
                data = data[...]  # gradients go to the leaf, which a Tensor of its own would be
            return _labelled("an argument", data, self.index)
        return sys.modules["pandas"].Series(data, self.index)


def _split(series: Any) -> tuple[SeriesLabels, tuple[Any]]:
    if isinstance(series, IndexedTensor):
        return SeriesLabels(series._index), (series.plain(),)
    return SeriesLabels(series.index), (np.asarray(series),)


def indices(nesting: tree.Nesting) -> Iterator[Any]:
    """The index of each array of a nesting; None of what came of no Series."""
    if nesting is None:
        yield None
        return
    _, keys, children = nesting
    if isinstance(keys, SeriesLabels):
        yield keys.index
        return
    for child in children:
        yield from indices(child)


SERIES = tree.Container(_split, lambda kind, labels, children: labels.around(*children), ("",))
tree.LABELLED["pandas.Series"] = tree._REGISTERED[IndexedTensor] = SERIES


def with_index(tensor: Tensor, index: Any) -> IndexedTensor:
    """A Tensor that was just made, with the index of its elements."""
    out = IndexedTensor(
        tensor._array, tensor._requires_grad, tensor._grad_fn, tensor._slot, tensor._memory
    )
    out._extra = tensor._extra
    out._index = index
    return out


def index_of(value: Any) -> Any:
    """The index of a Series or of an ``IndexedTensor``; None of anything else."""
    if isinstance(value, IndexedTensor):
        return value._index
    return value.index if labelled_kind(type(value)) == "pandas.Series" else None


def apply(op: Op, args: tuple, params: dict[str, Any]) -> Any:
    """Apply an operation to operands of which some have labels."""
    if isinstance(op, Composite):
        return op.expanded(args, params)
    if op.name == "matmul" and len(args) == 2:
        args, index = _of_frames(*args)
        out = bind(
            op, tuple(a.plain() if isinstance(a, IndexedTensor) else a for a in args), params
        )
        return out if index is None else _labelled(op.name, out, index)
    elementwise = isinstance(op, Elementwise) or op.name in _SAME_PLACES
    index = None
    if elementwise or op.name in _PRODUCTS:
        index = _common_index(op.name, args)
        _check_kinds(op.name, args, elementwise)
    plain = (a.plain() if isinstance(a, IndexedTensor) else numbers(op.name, a) for a in args)
    out = bind(op, tuple(plain), params)
    if op.name in _MOVING and isinstance(args[0], IndexedTensor) and out.ndim == 1:
        rest = [state.ground.numbers(a) if isinstance(a, Tensor) else a for a in args[1:]]
        if all(a is not None for a in rest):
            places = getattr(np, op.name)(np.arange(len(args[0])), *rest, **params)
            return with_index(out, args[0]._index[places])
    return out if index is None or not elementwise else _labelled(op.name, out, index)


def _of_frames(a: Any, b: Any) -> tuple[tuple[Any, Any], Any]:
    """Operands of a product without labels, and the labels of a vector that it makes.

    Those that are summed over match, as in pandas.
    """
    frames = [(labelled_kind(type(x)) or "") == "pandas.DataFrame" for x in (a, b)]
    inner = a.columns if frames[0] else index_of(a), b.index if frames[1] else index_of(b)
    if all(x is not None for x in inner) and not inner[0].equals(inner[1]):
        raise _different("matmul", *inner)
    _check_kinds("matmul", (a, b), False)
    index = None
    if frames[0] and np.ndim(b) == 1:
        index = a.index
    elif frames[1] and np.ndim(a) == 1:
        index = b.columns
    return (numbers("matmul", a), numbers("matmul", b)), index


def check_mask(tensor: IndexedTensor, mask: Any) -> None:
    """Raise if a mask in brackets has another index than the Tensor has."""
    if index_of(mask) is not None and mask.dtype == bool:
        _common_index("indexing with a mask", (tensor, mask))


def check_written(name: str, target: Tensor, *values: Any) -> None:
    """Raise if values that are to be written to a Tensor have another index than it has."""
    if isinstance(target, IndexedTensor):
        _common_index(name, (target, *values))


def numbers(name: str, value: Any) -> Any:
    """The array of an object with labels; anything else as it is."""
    kind = labelled_kind(type(value)) if hasattr(value, "__array__") else None
    if kind is None or isinstance(value, Tensor):
        return value
    if str(getattr(value, "dtype", "")) == "category":
        raise NumgradTypeError(
            f"{name}: a {kind} of dtype category is not numeric; convert it, as with "
            ".astype(float), or give its .cat.codes"
        )
    inner = unlabelled(value)
    return inner if isinstance(inner, Tensor) else _numeric(name, kind, value)


def _numeric(name: str, kind: str, value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.kind in "biufc":
        return array
    remedy = "; fill or drop what is missing" if array.dtype == object else ""
    raise NumgradTypeError(
        f"{name}: a {kind.rpartition('.')[2]} of dtype {array.dtype} is not numeric{remedy}"
    )


def unlabelled(value: Any) -> Any:
    """The Tensor in an array of xarray; anything else as it is."""
    if isinstance(value, Tensor) or not defers(value):
        return value
    inner = getattr(value, "data", None)
    return inner if isinstance(inner, Tensor) else value


def defers(value: Any) -> bool:
    """Whether operators and ufuncs with a Tensor are left to a value."""
    return (labelled_kind(type(value)) or "").startswith("xarray.")


def check_argument(name: str, value: Any) -> None:
    """Raise for an argument whose labels would matter to a function that gets it as a Tensor."""
    kind = labelled_kind(type(value))
    if kind is None or kind.startswith("xarray."):
        return
    if kind.endswith(".DataFrame"):
        raise NumgradTypeError(
            f"{name}: a {kind}, whose reductions are by column, would be a matrix; {_BY_NUMBERS}"
        )


def _is_default(index: Any) -> bool:
    """Whether labels are no more than places."""
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)


def _as_numpy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().numpy()
    return value.to_numpy() if hasattr(value, "to_numpy") else value


def _common_index(name: str, args: tuple) -> Any:
    """The index of all operands that have one."""
    common = None
    for index in map(index_of, args):
        if index is None or index is common:
            continue
        if common is not None and not index.equals(common):
            raise _different(name, common, index)
        common = index
    return common


def _different(name: str, one: Any, other: Any) -> NumgradTypeError:
    return NumgradTypeError(
        f"{name}: two operands come of Series of pandas with different indices, "
        f"{_shown(one)} and {_shown(other)}, and with Tensors nothing is aligned; "
        "reindex one like the other before, or give their numbers with .to_numpy() to "
        "match elements by place"
    )


def _shown(index: Any) -> str:
    text = ", ".join(map(str, index[:3]))
    return f"[{text}{', ...' if len(index) > 3 else ''}] of length {len(index)}"


def _check_kinds(name: str, args: tuple, elementwise: bool) -> None:
    """Raise for frames, and for several arrays of xarray that differ in their labels."""
    arrays = []
    for a in args:
        kind = labelled_kind(type(a)) or ""
        if kind.endswith("DataFrame") and elementwise:
            raise NumgradTypeError(
                f"{name}: a {kind} and a Tensor give an array, of which a reduction is one number "
                f"where that of a frame has one a column; {_BY_NUMBERS}, or take columns"
            )
        if kind == "xarray.Dataset":
            raise NumgradTypeError(f"{name}: an xarray.Dataset is no array; take its variables")
        if kind.startswith("xarray."):
            arrays.append(a)
    for a in arrays[1:]:
        first = arrays[0]
        if a.dims != first.dims or not _equal_coordinates(a, first):
            raise NumgradTypeError(
                f"{name}: operands of dimensions {first.dims} and {a.dims} of xarray differ in "
                "their labels; operators and NumPy's ufuncs match them by name, this function by "
                "place: write it with these, or give .to_numpy()"
            )


def _equal_coordinates(a: Any, b: Any) -> bool:
    theirs, ours = getattr(a, "indexes", {}), getattr(b, "indexes", {})
    return all(theirs[name].equals(ours[name]) for name in theirs if name in ours)


def _labelled(name: str, out: Any, index: Any) -> Any:
    """Results of an elementwise operation, with the index of their elements."""
    if isinstance(out, tuple):
        return tuple([_labelled(name, output, index) for output in out])
    if not isinstance(out, Tensor) or out.ndim != 1 or out.shape[0] != len(index):
        return out  # of a matrix beside a Series: by place, as there is no index for both axes
    if type(out) is not Tensor:
        if _is_default(index):
            return out
        raise NumgradTypeError(
            f"{name}: a Series of pandas beside an example of a batch would lose its index; "
            f"{_BY_NUMBERS}"
        )
    return with_index(out, index)


def priority_over_pandas(self: Any) -> int:
    """Number by which Series and frames leave their operators to Tensors.

    Raises
    ------
    NumgradTypeError
        If pandas asks for an assignment ``series += tensor``, which it could only end in an error
        about its own code.
    """
    asking = sys._getframe(1)
    while asking is not None and asking.f_code.co_name == "new_method":
        asking = asking.f_back
    if asking is not None and asking.f_code.co_name == "_inplace_method":
        target = type(asking.f_locals.get("self")).__name__
        raise NumgradTypeError(
            f"{target} += Tensor, or another operator that assigns: a {target} of pandas holds no "
            "Tensors; write a = a + t, which makes a Tensor"
        )
    return 10_000


def asked_by_brackets() -> bool:
    """Whether pandas calls the caller's ``__array__`` to look up labels, or places in ``iloc``."""
    frame: Any = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("pandas."):
        if frame.f_code.co_name in ("_get_indexer_strict", "_get_list_axis"):
            return True
        frame = frame.f_back
    return False
