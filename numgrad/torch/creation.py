"""Functions that make Tensors: of data, of constants, of random numbers."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.autograd.variable import Tensor as Base
from numgrad.errors import NumgradNotImplementedError, NumgradRuntimeError, NumgradTypeError
from numgrad.torch import dtypes
from numgrad.torch.dtypes import as_numpy, get_default_dtype
from numgrad.torch.wrapping import Tensor, known, unwrap, wrapped


def sizes(args: tuple) -> tuple[int, ...]:
    """A shape, written as several integers or as one sequence."""
    if len(args) == 1 and isinstance(args[0], tuple | list):
        args = tuple(args[0])
    shape = tuple([int(n) for n in args])
    if any(n < 0 for n in shape):
        raise NumgradRuntimeError(
            f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}"
        )
    return shape


def options(
    name: str, device: Any = None, layout: Any = None, pin_memory: Any = False,
    memory_format: Any = None, names: Any = None,
) -> None:  # fmt: skip
    """Check the options that all functions share, of which the CPU has one value each."""
    if device is not None:
        dtypes.device(device)
    if layout is not None and layout is not dtypes.strided:
        raise NumgradNotImplementedError(
            f"{name}: Tensors are strided; for products with sparse matrices see ng.sparse"
        )
    if pin_memory:
        raise NumgradRuntimeError(f"{name}: memory is pinned for GPUs, and there is none")


def finished(array: Any, requires_grad: bool = False) -> Tensor:
    """A new Tensor of an array."""
    x = wrapped(array if isinstance(array, Base) else Base(array))
    if requires_grad:
        x._tensor.requires_grad = True  # pyright: ignore
        known(x)
    return x


def array_of(data: Any, dtype: Any = None, copy: bool = True) -> np.ndarray:
    """Data as an array in PyTorch's dtype: floats in the default one, arrays in their own."""
    if isinstance(data, Tensor):
        data = data._tensor
    if isinstance(data, Base):
        data = data._array
    d = as_numpy(dtype)
    if isinstance(data, np.ndarray | np.generic):
        array = np.array(data, d) if copy else np.asarray(data, d)
    else:
        array = np.array(_plain(data))
        if array.dtype.kind in "OSU":
            raise NumgradTypeError(f"tensor: cannot make a Tensor of {type(data).__name__}")
        if d is None:
            d = _inferred(data, array)
        array = array.astype(d)
    if array.dtype not in dtypes.OF:
        raise NumgradTypeError(
            f"can't convert np.ndarray of type {array.dtype}; the supported types are float64, "
            "float32, complex64, complex128, int64, int32, int16, int8, uint8 and bool"
        )
    return array


def _plain(data: Any) -> Any:
    if isinstance(data, Tensor | Base):
        array = unwrap(data)._array
        return array
    if isinstance(data, list | tuple):
        return [_plain(each) for each in data]
    return data


def _inferred(data: Any, array: np.ndarray) -> Any:
    """The default dtype of Python's floats; of nested arrays and Tensors their own."""
    leaf = data
    while isinstance(leaf, list | tuple) and leaf:
        leaf = leaf[0]
    if isinstance(leaf, Tensor | Base | np.ndarray | np.generic):
        return array.dtype
    if array.dtype.kind == "f":
        return get_default_dtype().numpy
    if array.dtype.kind == "c":
        return get_default_dtype().to_complex().numpy
    return array.dtype


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return a Tensor with a copy of data.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> torch.tensor([[1.0, 2.0]]).dtype
    torch.float32
    """
    options("tensor", device, None, pin_memory)
    return finished(array_of(data, dtype), requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return data as a Tensor, which shares memory and history where that can be."""
    options("as_tensor", device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)  # pyright: ignore
    if isinstance(data, Base):
        x = wrapped(data)
        return x if dtype is None else x.to(dtype)  # pyright: ignore
    return finished(array_of(data, dtype, copy=False))


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return data as a Tensor, which shares memory where that can be and ``copy`` lets it."""
    x = as_tensor(obj, dtype, device)
    if copy:
        x = x.clone()  # pyright: ignore
    return x.detach().requires_grad_() if requires_grad else x  # pyright: ignore


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """Return a Tensor that shares the memory of an array."""
    if not isinstance(ndarray, np.ndarray):
        raise NumgradTypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    array_of(ndarray[:0] if ndarray.ndim else ndarray)
    return wrapped(ng.from_numpy(ndarray))


def _filler(name: str, fill: Callable[..., Any]) -> Callable[..., Tensor]:
    """A function of a shape, in several integers or one sequence."""

    def function(
        *size: Any, out: Any = None, dtype: Any = None, requires_grad: bool = False, **rest: Any
    ) -> Tensor:
        if "size" in rest:
            size = (rest.pop("size"),)
        rest.pop("generator", None)
        options(name, **rest)
        shape = sizes(size)
        d = as_numpy(dtype) or (get_default_dtype().numpy if out is None else out._tensor.dtype)
        made = finished(fill(shape, d), requires_grad)
        return made if out is None else _written(name, out, made)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return a new Tensor of a shape: ``{name}``."
    return function


def _written(name: str, out: Any, made: Any) -> Any:
    from numgrad.torch.calls import ROWS, write

    return write(ROWS[""]["clone"], out, made._tensor)


zeros = _filler("zeros", lambda shape, d: np.zeros(shape, d))
ones = _filler("ones", lambda shape, d: np.ones(shape, d))
empty = _filler("empty", lambda shape, d: np.zeros(shape, d))


def full(
    size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, requires_grad: bool = False,
    **rest: Any,
) -> Tensor:  # fmt: skip
    """Return a new Tensor of one value, whose dtype is the value's unless one is given."""
    options("full", **rest)
    value = unwrap(fill_value)
    if isinstance(value, Base):
        value = value._array
    d = as_numpy(dtype)
    if d is None:
        d = value.dtype if hasattr(value, "dtype") else dtypes.category_of_number(value)
    made = finished(
        np.full(sizes((size,)) if not isinstance(size, int) else (size,), value, d), requires_grad
    )
    return made if out is None else _written("full", out, made)


def _like(name: str, fill: Callable[..., Any]) -> Callable[..., Tensor]:
    def function(
        input: Any, *args: Any, dtype: Any = None, requires_grad: bool = False, **rest: Any
    ) -> Tensor:
        rest.pop("generator", None)
        args = (*args, *[rest.pop(k) for k in ("fill_value", "low", "high") if k in rest])
        options(name, **rest)
        x = input._tensor
        return finished(fill(tuple(x.shape), as_numpy(dtype) or x.dtype, *args), requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return a new Tensor of the shape and dtype of another: ``{name}``."
    return function


zeros_like = _like("zeros_like", lambda shape, d: np.zeros(shape, d))
ones_like = _like("ones_like", lambda shape, d: np.ones(shape, d))
empty_like = _like("empty_like", lambda shape, d: np.zeros(shape, d))
full_like = _like("full_like", lambda shape, d, value: np.full(shape, unwrap(value), d))


def _of_numbers(values: tuple) -> Any:
    """The dtype of a range of numbers: int64 of integers, else the default one."""
    kinds = [value.dtype.kind if hasattr(value, "dtype") else type(value) for value in values]
    whole = all(kind in ("i", "u", int, bool) for kind in kinds)
    return np.dtype(np.int64) if whole else get_default_dtype().numpy


def arange(
    start: Any, end: Any = None, step: Any = 1, *, out: Any = None, dtype: Any = None,
    requires_grad: bool = False, **rest: Any,
) -> Tensor:  # fmt: skip
    """Return numbers at equal distances, the end left out.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> torch.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    options("arange", **rest)
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if isinstance(v, Tensor) else v for v in (start, end, step))  # pyright: ignore
    if step == 0 or (end - start) * step < 0:
        raise NumgradRuntimeError(
            f"arange: bounds inconsistent with the sign of the step: {start}, {end}, {step}"
        )
    d = as_numpy(dtype) or _of_numbers((start, end, step))
    count = int(np.ceil((end - start) / step))
    wide = np.float64 if d.kind == "f" or isinstance(start, float) else np.int64
    array = (start + step * np.arange(count, dtype=wide)).astype(d)
    made = finished(array, requires_grad)
    return made if out is None else _written("arange", out, made)


def range_(start: Any = 0, end: Any = None, step: Any = 1, **rest: Any) -> Tensor:
    """Return numbers at equal distances, the end included, in the default dtype."""
    rest.setdefault("dtype", get_default_dtype())
    return arange(start, end + step / 2, step, **rest)


def _spaced(name: str, points: Callable[..., Any]) -> Callable[..., Tensor]:
    def function(
        start: Any, end: Any, steps: int, *args: Any, out: Any = None, dtype: Any = None,
        requires_grad: bool = False, **rest: Any,
    ) -> Tensor:  # fmt: skip
        base = {"base": rest.pop("base")} if "base" in rest else {}
        options(name, **rest)
        low, high = unwrap(start), unwrap(end)
        low, high = (v.item() if isinstance(v, Base) else v for v in (low, high))  # pyright: ignore
        d = as_numpy(dtype)
        if d is None:
            d = get_default_dtype().numpy
            if isinstance(low, complex) or isinstance(high, complex):
                d = get_default_dtype().to_complex().numpy
        array = points(low, high, steps, *args, **base)
        made = finished(np.asarray(array).astype(d), requires_grad)
        return made if out is None else _written(name, out, made)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return so many numbers from a start to an end: ``{name}``."
    return function


linspace = _spaced("linspace", np.linspace)
logspace = _spaced("logspace", lambda a, b, n, base=10.0: base ** np.linspace(a, b, n))


def eye(
    n: int,
    m: int | None = None,
    *,
    out: Any = None,
    dtype: Any = None,
    requires_grad: bool = False,
    **rest: Any,
) -> Tensor:
    """Return a matrix with ones on its diagonal."""
    options("eye", **rest)
    made = finished(np.eye(n, m, dtype=as_numpy(dtype) or get_default_dtype().numpy), requires_grad)
    return made if out is None else _written("eye", out, made)


def scalar_tensor(s: Any, **rest: Any) -> Tensor:
    """Return a number as a Tensor of the default dtype."""
    rest.setdefault("dtype", get_default_dtype())
    return tensor(s, **rest)


def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, requires_grad: bool = False, **rest: Any
) -> Tensor:
    """Return a Tensor that lies in memory as given."""
    options("empty_strided", **rest)
    d = as_numpy(dtype) or get_default_dtype().numpy
    need = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
    memory = np.zeros(max(need, 0), d)
    steps = [s * d.itemsize for s in stride]
    return finished(np.lib.stride_tricks.as_strided(memory, tuple(size), steps), requires_grad)


def empty_permuted(size: Any, physical_layout: Any, **rest: Any) -> Tensor:
    """Return a Tensor whose axes lie in memory in an order."""
    order = list(physical_layout)
    memory = empty([size[k] for k in order], **rest)
    return memory.permute(np.argsort(order).tolist())  # pyright: ignore


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = dtypes.int64, **rest: Any
) -> Tensor:
    """Return rows and columns of the lower triangle."""
    options("tril_indices", **rest)
    return finished(np.array(np.tril_indices(row, offset, col), as_numpy(dtype)))


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = dtypes.int64, **rest: Any
) -> Tensor:
    """Return rows and columns of the upper triangle."""
    options("triu_indices", **rest)
    return finished(np.array(np.triu_indices(row, offset, col), as_numpy(dtype)))


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of a vector, columns."""
    return wrapped(ng.vander(x._tensor, N, increasing).astype(x._tensor.dtype))


def broadcast_shapes(*shapes: Any) -> Any:
    """Return the shape of Tensors of some shapes together."""
    given = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    try:
        return dtypes.Size(np.broadcast_shapes(*given))
    except ValueError as error:
        raise NumgradRuntimeError(
            "Shape mismatch: objects cannot be broadcast to a single shape"
        ) from error


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python's or NumPy's."""
    return isinstance(value, numbers.Number)
