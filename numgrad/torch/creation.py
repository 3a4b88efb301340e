"""Functions that make Tensors: of data, of constants, of random numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import reduce, wraps
from inspect import Parameter, signature
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.autograd.batching.selected import as_examples
from numgrad.autograd.variable import Tensor as Base
from numgrad.autograd.versions import INFERENCE
from numgrad.core.interpreter import state
from numgrad.errors import (
    NumgradError,
    NumgradNotImplementedError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.torch import dtypes
from numgrad.torch.dtypes import as_numpy, get_default_dtype, sizes
from numgrad.torch.memory import arranged
from numgrad.torch.wrapping import Tensor, known, unwrap, wrapped

_SHARED = [
    Parameter(name, Parameter.KEYWORD_ONLY, default=value, annotation="Any")
    for name, value in (("out", None), ("dtype", None), ("device", None), ("requires_grad", False))
]
_OPTIONS = ("device", "layout", "pin_memory", "memory_format", "names")


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
    if not isinstance(array, Base):
        array = Base(array, memory=INFERENCE if state.inference else None)
    x = wrapped(array)
    if requires_grad:
        x._tensor.requires_grad = True  # pyright: ignore
        known(x)
    return x


def maker(make: Callable[..., Any]) -> Callable[..., Tensor]:
    """A function of PyTorch's that makes a Tensor, of one that makes an array or a Tensor.

    It takes what all share: ``out``, ``dtype``, ``requires_grad`` and the ``options``; ``make``
    gets NumPy's dtype as ``d``, or None where none is given.
    """
    name, own = make.__name__.rstrip("_"), signature(make)

    @wraps(make)
    def function(
        *args: Any, out: Any = None, dtype: Any = None, requires_grad: bool = False, **rest: Any
    ) -> Tensor:
        given = {key: rest.pop(key) for key in _OPTIONS if key in rest} if rest else {}
        options(name, **given)
        d = as_numpy(dtype) or (None if out is None else out._tensor.dtype)
        try:
            values = make(*args, d=d, **rest)
        except NumgradError:
            raise
        except (ValueError, MemoryError, OverflowError) as error:
            raise NumgradRuntimeError(f"{name}: {error}") from error
        if not isinstance(values, Tensor):
            values = finished(np.asarray(values))
        made: Any = values
        if d is not None and values._tensor.dtype != d:
            made = made.to(dtypes.OF[d])
        if "memory_format" in given:
            arranged(made._tensor, None, given["memory_format"])
        if requires_grad:
            made.requires_grad = True
        return made if out is None else _written(name, out, made)

    parameters = [p for key, p in own.parameters.items() if key != "d"] + _SHARED
    vars(function)["__signature__"] = own.replace(
        parameters=sorted(parameters, key=lambda p: p.kind), return_annotation="Tensor"
    )
    return function


def default(d: Any) -> Any:
    """A dtype of NumPy's, or the default one of floats in place of None."""
    return get_default_dtype().numpy if d is None else d


def _written(name: str, out: Any, made: Any) -> Any:
    from numgrad.torch.calls import write

    if made._tensor.size == out._tensor.size and made._tensor.ndim == 1:
        made = made.reshape(out._tensor.shape)
    return write(name, out, made._tensor)


def of_shape(name: str, fill: Callable[..., Any]) -> Callable[..., Tensor]:
    """A function of a shape, in several integers or one sequence."""

    def make(*args: Any, size: Any = None, generator: Any = None, d: Any = None) -> Any:
        return fill(sizes(args if size is None else (size,)), default(d), generator)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Return a new Tensor of a shape: ``{name}``."
    return maker(make)


def by_example(made: Any, like: Tensor) -> Tensor:
    """A new Tensor; in ``vmap`` each example has one, where another stands for examples."""
    own = as_examples(made._tensor, like._tensor)
    return made if own is made._tensor else wrapped(own)


def like(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of a Tensor, whose shape and dtype its result has."""

    def method(
        input: Any, *args: Any, dtype: Any = None, memory_format: Any = None, **rest: Any
    ) -> Tensor:
        made = function(input._tensor.shape, *args, dtype=dtype or input.dtype, **rest)
        arranged(made._tensor, input._tensor, memory_format)
        return by_example(made, input)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return a new Tensor of the shape and dtype of another: ``{name}``."
    return method


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
        plain = _plain(data)
        array = np.array(plain)
        if array.dtype.kind == "O" and d is not None and d.kind == "f":
            array = np.array(plain, d)  # integers that no integer dtype holds
        if array.dtype.kind in "OSU":
            raise NumgradTypeError(f"tensor: cannot make a Tensor of {type(data).__name__}")
        if d is None:
            d = _inferred(plain, array)
        if d.kind in "iu" and array.dtype.kind in "iu" and array.size:
            limits = np.iinfo(d)
            if array.min() < (limits.min or -limits.max) or array.max() > limits.max:
                raise NumgradRuntimeError(f"tensor: a value does not fit into {dtypes.OF[d]!r}")
        array = array.astype(d)
    if array.dtype not in dtypes.OF:
        raise NumgradTypeError(
            f"can't convert np.ndarray of type {array.dtype}; the supported types are float64, "
            "float32, complex64, complex128, int64, int32, int16, int8, uint8 and bool"
        )
    return array


_PLAIN = frozenset((float, int, complex, bool))


def _plain(data: Any) -> Any:
    if isinstance(data, Tensor | Base):
        return unwrap(data)._array
    if isinstance(data, list | tuple) and not _PLAIN.issuperset(map(type, data)):
        return [_plain(each) for each in data]
    return data


def _inferred(data: Any, array: np.ndarray) -> Any:
    """The common dtype of Python's floats, in the default one, and of nested arrays."""
    if array.dtype.kind not in "fc":
        return array.dtype
    d = get_default_dtype()
    of_numbers = {float: d.numpy, complex: d.to_complex().numpy, int: np.dtype("int64")}
    known = [of_numbers.get(kind, kind) for kind in _kinds(data)]
    return reduce(dtypes.promoted, map(np.dtype, known)) if known else d.numpy


def _kinds(data: Any) -> set[Any]:
    """Dtypes of arrays in nested lists, and classes of Python's numbers."""
    if not isinstance(data, list | tuple):
        return {getattr(data, "dtype", type(data))}
    kinds = set(map(type, data))
    return kinds if kinds <= _PLAIN else set().union(*map(_kinds, data))


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
    if copy is False and isinstance(obj, np.generic):
        raise NumgradRuntimeError("asarray: cannot alias NumPy scalars; leave copy=False out")
    if isinstance(obj, bytes | bytearray | memoryview):
        obj = frombuffer(obj, dtype=dtype or get_default_dtype())
    x: Any = as_tensor(obj, dtype, device)
    if copy:
        x = x.clone()
    if requires_grad != x.requires_grad:
        x = x.detach()
        x.requires_grad = requires_grad
    return x


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Return a Tensor of one dimension over the memory of an object, such as a bytearray.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> torch.frombuffer(bytearray(b"abc"), dtype=torch.uint8)
    tensor([97, 98, 99], dtype=torch.uint8)
    """
    try:
        view = memoryview(buffer)
        array = np.frombuffer(view, as_numpy(dtype) or np.uint8, count, offset)
    except TypeError as error:
        raise NumgradValueError("frombuffer: object does not implement Python's buffers") from error
    except ValueError as error:
        raise NumgradValueError(f"frombuffer: {error}") from error
    if not array.size:
        raise NumgradValueError(f"frombuffer: no elements in {view.nbytes} bytes from {offset} on")
    if not array.flags.writeable:
        warnings.warn("frombuffer: the buffer is not writable", UserWarning, stacklevel=2)
    return finished(array, requires_grad)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """Return a Tensor over the memory of another library's, by DLPack."""
    if isinstance(ext_tensor, Tensor):
        return ext_tensor.detach()  # pyright: ignore
    return finished(np.from_dlpack(ext_tensor))


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """Return a Tensor that shares the memory of an array."""
    if not isinstance(ndarray, np.ndarray):
        raise NumgradTypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    array_of(ndarray[:0] if ndarray.ndim else ndarray)
    if min(ndarray.strides, default=0) < 0:
        raise NumgradValueError("from_numpy: a stride is negative; copy the array: array.copy()")
    if not ndarray.flags.writeable:
        warnings.warn("from_numpy: the array is not writable", UserWarning, stacklevel=2)
    return wrapped(ng.from_numpy(ndarray))


zeros = of_shape("zeros", lambda shape, d, _: np.zeros(shape, d))
ones = of_shape("ones", lambda shape, d, _: np.ones(shape, d))
empty = of_shape("empty", lambda shape, d, _: np.zeros(shape, d))


@maker
def full(size: Any, fill_value: Any, *, d: Any = None) -> Any:
    """Return a new Tensor of one value, whose dtype is the value's unless one is given."""
    value = unwrap(fill_value)
    value = value._array if isinstance(value, Base) else value
    if isinstance(value, str):
        raise NumgradTypeError("full: fill_value must be a number, got a str")
    if d is None:
        d = value.dtype if hasattr(value, "dtype") else dtypes.category_of_number(value)
    return np.full(sizes((size,)), value, d)


zeros_like, ones_like = like("zeros_like", zeros), like("ones_like", ones)
empty_like, full_like = like("empty_like", empty), like("full_like", full)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor | Base) else value  # pyright: ignore


@maker
def arange(start: Any, end: Any = None, step: Any = 1, *, d: Any = None) -> Any:
    """Return numbers at equal distances, the end left out.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> torch.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    start, end = (0, start) if end is None else (start, end)
    whole = all(_is_whole(value) for value in (start, end, step))
    start, end, step = _number(start), _number(end), _number(step)
    if step == 0 or (end - start) * step < 0:
        raise NumgradRuntimeError(
            f"arange: bounds inconsistent with the sign of the step: {start}, {end}, {step}"
        )
    d = d or (np.dtype(np.int64) if whole else default(d))
    wide = np.float64 if d.kind == "f" or isinstance(start, float) else np.int64
    count = int(np.ceil((end - start) / step))
    return (start + step * np.arange(count, dtype=wide)).astype(d)


def _is_whole(value: Any) -> bool:
    if isinstance(value, Tensor | Base):
        return unwrap(value).dtype.kind in "iu"
    return isinstance(value, int | np.integer)


def range_(start: Any = 0, end: Any = None, step: Any = 1, **rest: Any) -> Tensor:
    """Return numbers at equal distances, the end included, in the default dtype."""
    warnings.warn("torch.range includes its end: use torch.arange", UserWarning, stacklevel=2)
    if rest.get("out") is None:
        rest.setdefault("dtype", get_default_dtype())
    return arange(start, end + step / 2, step, **rest)


@maker
def linspace(start: Any, end: Any, steps: int, *, d: Any = None) -> Any:
    """Return so many numbers from a start to an end, at equal distances."""
    low, high = _number(start), _number(end)
    points = np.linspace(low, high, steps)
    if d is None:
        d = get_default_dtype()
        d = (d.to_complex() if points.dtype.kind == "c" else d).numpy
    return points.astype(d)


@maker
def logspace(start: Any, end: Any, steps: int, base: Any = 10.0, *, d: Any = None) -> Any:
    """Return the powers of a base by so many numbers at equal distances."""
    powers = base ** np.linspace(_number(start), _number(end), steps)
    if d is None and powers.dtype.kind == "c":
        d = get_default_dtype().to_complex().numpy
    return powers.astype(default(d))


@maker
def eye(n: int, m: int | None = None, *, d: Any = None) -> Any:
    """Return a matrix with ones on its diagonal."""
    return np.eye(n, m, dtype=default(d))


def scalar_tensor(s: Any, **rest: Any) -> Tensor:
    """Return a number as a Tensor of the default dtype."""
    rest.setdefault("dtype", get_default_dtype())
    return tensor(s, **rest)


@maker
def empty_strided(size: Any, stride: Any, *, d: Any = None) -> Any:
    """Return a Tensor that lies in memory as given."""
    d = default(d)
    need = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
    memory = np.zeros(max(need, 0), d)
    steps = [s * d.itemsize for s in stride]
    return np.lib.stride_tricks.as_strided(memory, tuple(size), steps)


def empty_permuted(size: Any, physical_layout: Any, **rest: Any) -> Tensor:
    """Return a Tensor whose axes lie in memory in an order."""
    order = list(physical_layout)
    memory = empty([size[k] for k in order], **rest)
    return memory.permute(np.argsort(order).tolist())  # pyright: ignore


def _triangle(name: str, places: Callable[..., Any]) -> Callable[..., Tensor]:
    def make(row: int, col: int, offset: int = 0, *, d: Any = None) -> Any:
        return np.array(places(row, offset, col), np.int64)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Return rows and columns of a triangle: ``{name}``."
    return maker(make)


tril_indices = _triangle("tril_indices", np.tril_indices)
triu_indices = _triangle("triu_indices", np.triu_indices)
