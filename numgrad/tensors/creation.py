"""Making Tensors: from data, filled, evenly spaced, and joined by ``ng.r_`` and ``ng.c_``.

The default dtype is float64, as in NumPy; gradients flow to the ends of what is evenly spaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import numpy as np

from numgrad.autograd.batching.selected import as_examples
from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.modes import no_grad
from numgrad.autograd.versions import INFERENCE, Version
from numgrad.codegen.dtypes import check_dtype, convert, native
from numgrad.core.abstract import SHAPE, AbstractArray, AbstractLength, made, refuse_abstract
from numgrad.core.foreign import refuse_mask
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import leaves, map_leaves
from numgrad.errors import (
    NumgradError,
    NumgradOverflowError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.operations.shape import as_index, as_operand
from numgrad.tensors.attributes import check_differentiable
from numgrad.tensors.eager import check_array_kind
from numgrad.tensors.tensor import Tensor


def finish(name: str, array: Any, requires_grad: bool) -> Tensor:
    """The Tensor over an array that was made."""
    check_dtype(name, array.dtype)
    if requires_grad:
        check_differentiable(array.dtype)
    made = state.ground.made(array)
    return Tensor(made, bool(requires_grad), memory=INFERENCE if state.inference else None)


def _to_array(name: str, data: Any, dtype: Any, copy: bool | None) -> np.ndarray:
    check_array_kind(name, data)
    data = _untangle(data)
    try:
        if isinstance(data, np.ndarray) and dtype is not None and copy is not False:
            data = convert(data, np.dtype(dtype), copy=False)
        array = np.array(data, dtype=dtype, copy=copy)
    except ValueError as error:
        raise NumgradValueError(
            f"{name}: the nested sequence is ragged; every row must have the same length ({error})"
            if isinstance(data, list) and copy is not False
            else f"{name}: {error}"
        ) from None
    except OverflowError as error:
        raise NumgradOverflowError(f"{name}: {error}") from None
    except TypeError as error:
        raise NumgradTypeError(f"{name}: {error}") from None
    if copy is not False:
        array = native(array)
    check_dtype(name, array.dtype)
    return array


def _untangle(data: Any) -> Any:
    """Nested sequences with Tensors replaced by their arrays."""
    if isinstance(data, list | tuple) and tensors_in(data):
        return map_leaves(lambda d: d._array if isinstance(d, Tensor) else d, list(data))
    return data._array if isinstance(data, Tensor) else data


def tensors_in(data: Any) -> list[Tensor]:
    """The Tensors in a nesting, of which most have none."""
    if isinstance(data, Tensor):
        return [data]
    if not isinstance(data, list | tuple):
        refuse_mask("", data)
        return []
    try:
        return [t for item in data if type(item) is not float for t in tensors_in(item)]
    except RecursionError:  # for the error that names it
        return [leaf for leaf in leaves(data) if isinstance(leaf, Tensor)]


def _is_differentiated(data: Any) -> bool:
    """Whether something differentiable is in a nesting: then its numbers alone lose a gradient."""
    return any(
        (item.requires_grad and state.grad_enabled) or state.interpreters
        for item in tensors_in(data)
    )


def _stacked(name: str, data: Any) -> Tensor:
    """A nesting as one Tensor, through which gradients flow."""
    if isinstance(data, list | tuple):
        parts = [_stacked(name, item) for item in data]
        shapes = sorted({tuple(item.shape) for item in parts})
        if len(shapes) > 1:
            raise NumgradValueError(
                f"{name}: the nested sequence is ragged; every row must have the same length, got "
                f"shapes {shapes[0]} and {shapes[1]}"
            )
        return OPS["stack"](parts)
    if isinstance(data, Tensor):
        return data
    if not state.ground.reads(data):
        data = _to_array(name, data, None, None)
    return Tensor(state.ground.lift(data))


def _refuse_gradients(name: str, data: Any) -> None:
    """Raise if a leaf made of ``data`` would lose a gradient."""
    for item in tensors_in(data):
        needs = item.requires_grad and state.grad_enabled
        if needs or (state.interpreters and has_tangent(item)):
            raise NumgradRuntimeError(
                f"{name}: makes a leaf, and its data has a Tensor of shape {item.shape} that "
                f"{'requires grad' if needs else 'has a tangent'}; use ng.asarray or np.stack, "
                "through which gradients flow, clone(), or detach() to drop them on purpose"
            )


def made_by(name: str, make: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call NumPy; its errors name the function that was called."""
    try:
        return make(*args, **options)
    except NumgradError:
        refuse_abstract(f"{name}: a length", *args)
        raise
    except (ValueError, OverflowError, ZeroDivisionError, MemoryError) as error:
        raise NumgradValueError(f"{name}: {error}; got {_shown(args)}") from None
    except TypeError as error:
        refuse_abstract(f"{name}: a length", *args)
        raise NumgradTypeError(f"{name}: {error}; got {_shown(args)}") from None


def _shown(args: tuple) -> str:
    return ", ".join(repr(a) if len(repr(a)) < 60 else type(a).__name__ for a in args)


def _refuse_unknown(name: str, keywords: dict[str, Any]) -> None:
    if "volatile" in keywords:
        raise NumgradTypeError(
            f"{name}: volatile is what inference_mode was called in 2017; compute under "
            "ng.inference_mode() or ng.no_grad() instead"
        )
    if keywords:
        raise NumgradTypeError(f"{name}: no parameter is called {next(iter(keywords))!r}")


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False, **unknown: Never) -> Tensor:
    """A new Tensor with a copy of ``data``.

    Parameters
    ----------
    data
        A number, nested sequence, ndarray or Tensor.
    dtype
        A NumPy dtype; by default that of ``data`` (float64 for Python floats, int64 for ints).
    requires_grad
        Record operations on it, so that ``backward`` gives its gradient.

    Notes
    -----
    The result is a leaf, so ``data`` may not contain Tensors that require grad or have a tangent;
    ``asarray`` and ``np.stack`` make a Tensor of those through which gradients flow.

    Raises
    ------
    NumgradValueError
        If a nested sequence is ragged.
    NumgradTypeError
        If the data is not numeric or of a dtype without kernels, such as float16.
    NumgradRuntimeError
        If ``requires_grad`` is set for integers or bool, or a gradient would be lost.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.tensor([1, 2.5], requires_grad=True)
    tensor([1. , 2.5], requires_grad=True)
    """
    if unknown:
        _refuse_unknown("tensor", unknown)
    if state.ground.reads(data):
        return _copied("tensor", data, dtype, requires_grad)
    _refuse_gradients("tensor", data)
    return finish("tensor", _to_array("tensor", data, dtype, True), requires_grad)


def asarray(data: Any, dtype: Any = None, copy: bool | None = None) -> Tensor:
    """A Tensor of ``data``; of an ndarray of that dtype without copying its memory.

    A Tensor is returned as it is where no conversion or copy is asked for. Gradients flow through
    it, and through nested sequences with Tensors in them, which are stacked.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> a = np.zeros(2)
    >>> t = ng.asarray(a)
    >>> a[0] = 1.0
    >>> t
    tensor([1., 0.])
    """
    if isinstance(data, Tensor) and not copy and (dtype is None or data.dtype == dtype):
        return data
    as_it_is = isinstance(data, np.ndarray) and not copy and dtype in (None, data.dtype)
    if as_it_is and state.ground.deferred:
        state.ground.reads(data)  # which notes where; its memory is that of the result
    if (not as_it_is and state.ground.reads(data)) or _is_differentiated(data):
        out = _stacked("asarray", data)
        if copy is False and (out is not data or (dtype is not None and out.dtype != dtype)):
            raise NumgradValueError("asarray: with copy=False nothing can be stacked or converted")
        if dtype is not None and out.dtype != dtype:
            return OPS["astype"](out, dtype=dtype)
        return out.clone() if copy and (out is data or isinstance(data, np.ndarray)) else out
    array = _to_array("asarray", data, dtype, copy)
    shared = isinstance(data, np.ndarray) and np.may_share_memory(array, data)
    if state.ground.deferred:
        own = made_anew(array)
        array, shared = own, shared and own is array
    return Tensor(array, memory=Version(foreign=True) if shared else None)


def made_anew(array: Any) -> Any:
    """An array that a traced function makes, as one of each call; one around it as it is."""
    return array if state.ground.found(array) else state.ground.made(array)


def from_numpy(array: np.ndarray) -> Tensor:
    """A Tensor over the memory of an ndarray.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.from_numpy(np.arange(3.0))
    tensor([0., 1., 2.])
    """
    if not isinstance(array, np.ndarray):
        raise NumgradTypeError(f"from_numpy: needs an ndarray, got {type(array).__name__}")
    check_dtype("from_numpy", array.dtype)
    return asarray(array)


def zeros(shape: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A Tensor of zeros.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.zeros((2, 2))
    tensor([[0., 0.],
            [0., 0.]])
    """
    array = made_by("zeros", state.ground.zeros, shape, dtype or np.float64)
    return finish("zeros", array, requires_grad)


def ones(shape: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A Tensor of ones.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.ones(3, requires_grad=True)
    tensor([1., 1., 1.], requires_grad=True)
    """
    array = made_by("ones", state.ground.ones, shape, dtype or np.float64)
    return finish("ones", array, requires_grad)


def empty(shape: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A Tensor whose elements are whatever the memory held.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.empty((2, 3)).shape
    (2, 3)
    """
    array = made_by("empty", state.ground.empty, shape, dtype or np.float64)
    return finish("empty", array, requires_grad)


def full(shape: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A Tensor with ``fill_value`` everywhere; its dtype by default that of the value.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.full(3, 0.5)
    tensor([0.5, 0.5, 0.5])
    """
    return _full("full", shape, fill_value, dtype, requires_grad)


def _full(name: str, shape: Any, value: Any, dtype: Any, requires_grad: bool) -> Tensor:
    if not _is_differentiated(value):
        array = made_by(name, state.ground.filled, shape, _untangle(value), dtype)
        return finish(name, array, requires_grad)
    lengths = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    out = OPS["copy"](OPS["broadcast_to"](asarray(value, dtype), lengths))
    return out.requires_grad_() if requires_grad and not out.requires_grad else out


def eye(
    n: int, m: int | None = None, k: int = 0, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """A matrix with ones on the diagonal ``k`` and zeros elsewhere.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    return finish("eye", made_by("eye", np.eye, n, m, k, dtype or np.float64), requires_grad)


def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """Evenly spaced numbers from ``start`` up to, not including, ``stop``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.arange(3)
    tensor([0, 1, 2])
    """
    if stop is None:
        start, stop = 0, start
    bounds = (start, stop, step)
    if any([isinstance(b, AbstractLength) for b in bounds]):
        return _symbolic_range(*bounds, dtype)
    for b in bounds:
        if isinstance(array := getattr(b, "_array", None), AbstractArray):
            array.refuse("arange: a bound", SHAPE)
    _refuse_gradients("arange", bounds)
    return finish("arange", made_by("arange", np.arange, *bounds, dtype=dtype), requires_grad)


def _symbolic_range(start: Any, stop: Any, step: Any, dtype: Any) -> Tensor:
    """``arange`` with bounds that are symbols."""
    if any(type(b) is float and b.is_integer() for b in (start, stop, step)):
        dtype = np.float64 if dtype is None else dtype
        start, stop, step = (
            int(b) if type(b) is float and b.is_integer() else b for b in (start, stop, step)
        )
    if not all(isinstance(b, int | AbstractLength) for b in (start, stop, step)):
        raise NumgradTypeError(
            "arange: the length of an axis and numbers that are not integers do not mix while a "
            "function is compiled; use ng.arange(n) * step + start"
        )
    count = -((start - stop) // step)
    out = OPS["iota"](length=count if count > 0 else 0) * step + start
    return out if dtype is None else OPS["astype"](out, dtype=dtype)


def _copied(name: str, data: Any, dtype: Any, requires_grad: bool) -> Tensor:
    """A copy, without a history, of what holds numbers that are read at each call."""
    with no_grad():
        if isinstance(data, list | tuple):
            data = OPS["stack"]([_copied(name, item, None, False) for item in data])
        out = OPS["copy"](data)
        out = out if dtype is None else OPS["astype"](out, dtype=dtype)
    return finish(name, state.ground.lift(out).copy(), requires_grad)


def _like(name: str, x: Any, dtype: Any) -> tuple[tuple[int, ...], np.dtype]:
    array = x if isinstance(x, Tensor) else made_by(name, state.ground.lift, x)
    return array.shape, made_by(name, np.dtype, dtype) if dtype is not None else array.dtype


def zeros_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros with the shape and dtype of ``x``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.zeros_like([1, 2])
    tensor([0, 0])
    """
    made = state.ground.zeros(*_like("zeros_like", x, dtype))
    return as_examples(finish("zeros_like", made, requires_grad), x)


def ones_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones with the shape and dtype of ``x``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.ones_like([0.5, 2.0])
    tensor([1., 1.])
    """
    made = state.ground.ones(*_like("ones_like", x, dtype))
    return as_examples(finish("ones_like", made, requires_grad), x)


def empty_like(x: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Uninitialised memory with the shape and dtype of ``x``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.empty_like([1, 2]).dtype
    dtype('int64')
    """
    shape, kind = _like("empty_like", x, dtype)
    return as_examples(finish("empty_like", state.ground.empty(shape, kind), requires_grad), x)


def full_like(x: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """``fill_value`` everywhere, with the shape and dtype of ``x``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.full_like([0.5, 2.0], 7)
    tensor([7., 7.])
    """
    shape, kind = _like("full_like", x, dtype)
    return as_examples(_full("full_like", shape, fill_value, kind, requires_grad), x)


# ---------------------------------------------------------------------------- evenly spaced numbers


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
    out, fraction = _spaced(
        "linspace", lambda a, b, t: a + (b - a) * t, start, stop, num, endpoint, dtype, axis
    )
    return (out, (as_operand(stop) - as_operand(start)) * fraction) if retstep else out


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
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
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


# ------------------------------------------------------------------------------- joined in brackets


class Concatenator:
    """Joins arrays, numbers and slices for ranges, in brackets, along an axis.

    A slice ``a:b:s`` is a range, ``a:b:nj`` has ``n`` numbers including ``b``. A text in front
    gives the axis, the least number of axes, and the place of the axes there are, as in NumPy.

    Attributes
    ----------
    axis
        Axis to join along.
    rank
        Least number of axes of what is joined.
    place
        Axis that an operand's first axis becomes where axes are added; -1 adds them in front.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.r_[ng.tensor([1.0, 2.0]), 0.0, 5:7]
    tensor([1., 2., 0., 5., 6.])
    >>> ng.c_[ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0])]
    tensor([[1., 3.],
            [2., 4.]])
    """

    __slots__ = ("axis", "name", "place", "rank")

    def __init__(self, name: str, axis: int, rank: int, place: int) -> None:
        self.name, self.axis, self.rank, self.place = name, axis, rank, place

    def __repr__(self) -> str:
        return f"<numgrad.{self.name}>"

    def __len__(self) -> int:
        return 0

    def __getitem__(self, items: Any) -> Tensor:
        items = items if isinstance(items, tuple) else (items,)
        axis, rank, position = self.axis, self.rank, self.place
        if items and isinstance(items[0], str):
            axis, rank, position = self._directive(items[0])
            items = items[1:]
        if not items:
            raise NumgradValueError(f"{self.name}: there is nothing in the brackets to join")
        parts, kinds = [], []
        for item in items:
            if isinstance(item, str):
                raise NumgradTypeError(f"{self.name}: a text may stand first only, got {item!r}")
            array = _range(item) if isinstance(item, slice) else as_operand(item)
            kinds.append(item if type(item) in (int, float, complex) else array.dtype)
            parts.append(_with_axes(array, rank, position))
        dtype = np.result_type(*kinds)
        parts = [OPS["astype"](array, dtype=dtype, copy=False) for array in parts]
        return OPS["concat"](parts, axis=axis)

    def _directive(self, text: str) -> tuple[int, int, int]:
        parts = [self.axis, self.rank, self.place]
        try:
            numbers = [int(field) for field in text.split(",")]
            parts[: len(numbers)] = numbers
            axis, rank, position = parts
        except ValueError:
            raise NumgradValueError(
                f"{self.name}: the text {text!r} is not understood; it has up to three integers "
                "as in '0,2,1', and matrices ('r', 'c') are not made"
            ) from None
        return axis, rank, position


def _range(item: slice) -> Any:
    start = 0 if item.start is None else item.start
    step = 1 if item.step is None else item.step
    if isinstance(step, complex):
        return linspace(start, item.stop, int(abs(step)))
    if item.stop is None:
        raise NumgradTypeError("a range needs an end: write start:stop or start:stop:step")
    if any(isinstance(end, Tensor) for end in (start, item.stop, step)):
        raise NumgradTypeError("the ends of a range start:stop:step are numbers, not Tensors")
    return arange(start, item.stop, step)


def _with_axes(x: Any, rank: int, position: int) -> Any:
    """``x`` with axes of length 1 added, so that its own come to lie at ``place``."""
    own = len(x.shape)
    added = rank - own
    if added <= 0:
        return x
    first = position % rank if position >= 0 else position + added + 1
    first = min(max(first, 0), added) if own else 0
    return OPS["reshape"](x, (1,) * first + tuple(x.shape) + (1,) * (added - first))


r_ = Concatenator("r_", 0, 1, -1)
c_ = Concatenator("c_", -1, 2, 0)
