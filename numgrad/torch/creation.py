"""Functions that make Tensors: of data, of constants, of random numbers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import reduce, wraps
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
from numgrad.tensors.creation import made_anew
from numgrad.torch import dtypes
from numgrad.torch.calls import pairs, write
from numgrad.torch.dtypes import as_numpy, get_default_dtype
from numgrad.torch.memory import arranged
from numgrad.torch.wrapping import Tensor, known, unwrap, wrapped


def check_options(
    name: str, device: Any = None, layout: Any = None, pin_memory: Any = False
) -> None:
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
        if state.ground.deferred:
            array = made_anew(array)
        array = Base(array, memory=INFERENCE if state.inference else None)
    x = wrapped(array)
    if requires_grad:
        x._tensor.requires_grad = True  # pyright: ignore
        known(x)
    return x


def maker(make: Callable[..., Any]) -> Callable[..., Tensor]:
    """A function of PyTorch's that makes a Tensor, of one that makes an array or a Tensor.

    It takes what all share: ``out``, ``dtype``, ``requires_grad`` and options of memory. ``make``
    gets NumPy's dtype, or None where none is given: floats of its array become the default ones.
    """
    name = make.__name__.rstrip("_")

    @wraps(make)
    def function(
        *args: Any, out: Any = None, dtype: Any = None, requires_grad: bool = False,
        device: Any = None, layout: Any = None, pin_memory: bool = False,
        memory_format: Any = None, names: Any = None, **rest: Any,
    ) -> Tensor:  # fmt: skip
        check_options(name, device, layout, pin_memory)
        d = as_numpy(dtype) or (None if out is None else out._tensor.dtype)
        try:
            made: Any = make(*args, dtype=d, **rest)
        except NumgradError:
            raise
        except (ValueError, MemoryError, OverflowError) as error:
            raise NumgradRuntimeError(f"{name}: {error}") from error
        if not isinstance(made, Tensor):
            array = np.asarray(made)
            d = d or (default(None, array.dtype.kind) if array.dtype.kind in "fc" else array.dtype)
            made = finished(array.astype(d, copy=False))
        elif d is not None and made._tensor.dtype != d:
            made = made.to(dtypes.OF[d])  # pyright: ignore
        if memory_format is not None:
            arranged(made._tensor, None, memory_format)
        if requires_grad:
            made.requires_grad = True
        if out is None:
            return made
        flat = made._tensor.ndim == 1 and made._tensor.size == out._tensor.size
        return write(name, out, made._tensor.reshape(out._tensor.shape) if flat else made._tensor)

    return function


def default(d: Any, kind: str = "f") -> Any:
    """A dtype of NumPy's, or in place of None the default one of floats, or of complex numbers."""
    known = get_default_dtype()
    return (known if kind == "f" else known.to_complex()).numpy if d is None else d


def makers(scope: dict[str, Any], text: str) -> list[Callable[..., Any]]:
    """Functions that make Tensors, of rows ``name(parameters): expression``.

    The expression has NumPy's ``dtype``, or None; names in braces are as in ``calls.table``.
    """
    made = []
    for line in re.split(r"\n(?=\S)", text.strip()):
        head, _, body = re.sub(r"\n\s+", " ", line).partition(": ")
        names, _, parameters = head.removesuffix(")").partition("(")
        parameters += ", dtype=None" if "*" in parameters else ", *, dtype=None"
        for name, own in pairs(names.strip("{}")):
            make = eval(f"lambda {parameters}: {body.replace('@', own)}", scope)
            make.__name__ = make.__qualname__ = name
            make.__module__ = "numgrad.torch"
            make.__doc__ = f"Return a new Tensor: ``{body.replace('@', own)}``."
            made.append(maker(make))
    return made


def by_example(made: Any, like: Tensor) -> Tensor:
    """A new Tensor; in ``vmap`` each example has one, where another stands for examples."""
    own = as_examples(made._tensor, like._tensor)
    return made if own is made._tensor else wrapped(own)


def like(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of a Tensor, whose shape and dtype its result has, of one of a shape."""

    def method(
        input: Any, *args: Any, dtype: Any = None, memory_format: Any = None, **rest: Any
    ) -> Tensor:
        made = function(input._tensor.shape, *args, dtype=dtype or input.dtype, **rest)
        arranged(made._tensor, input._tensor, memory_format)
        return by_example(made, input)

    method.__name__ = method.__qualname__ = f"{function.__name__}_like"
    method.__doc__ = f"``{function.__name__}`` in the shape and dtype of another Tensor."
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
    check_options("tensor", device, None, pin_memory)
    return finished(array_of(data, dtype), requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return data as a Tensor, which shares memory and history where that can be."""
    check_options("as_tensor", device)
    if isinstance(data, Tensor | Base):
        x = wrapped(data) if isinstance(data, Base) else data
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
    x = x.clone() if copy else x
    return x if requires_grad == x.requires_grad else x.detach().requires_grad_(requires_grad)


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
        array = np.frombuffer(memoryview(buffer), as_numpy(dtype) or np.uint8, count, offset)
    except (TypeError, ValueError) as error:
        raise NumgradValueError(f"frombuffer: {error}") from error
    if not array.size:
        raise NumgradValueError(f"frombuffer: there are no elements from byte {offset} on")
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


def number(value: Any) -> Any:
    """A Tensor of one element as a number; numbers as they are."""
    return value.item() if isinstance(value, Tensor | Base) else value  # pyright: ignore


zeros, ones, empty, full, scalar_tensor, eye, linspace, logspace, tril_indices, triu_indices = (
    makers(
        globals(),
        """
{zeros ones empty=zeros}(*args, size=None): np.@(
    dtypes.sizes(args if size is None else (size,)), default(dtype))
full(size, fill_value): finished(np.full(
    dtypes.sizes((size,)), number(fill_value),
    dtype or dtypes.common_dtype((unwrap(fill_value),))))
scalar_tensor(s): np.asarray(number(s)).astype(default(dtype))
eye(n, m=None): np.eye(n, m)
linspace(start, end, steps): np.linspace(number(start), number(end), steps)
logspace(start, end, steps, base=10.0): base ** np.linspace(number(start), number(end), steps)
{tril_indices triu_indices}(row, col, offset=0): np.array(np.@(row, offset, col), np.int64)
""",
    )
)
zeros_like, ones_like, empty_like, full_like = map(like, (zeros, ones, empty, full))


@maker
def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    """Return numbers at equal distances, the end left out.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> torch.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    start, end = (0, start) if end is None else (start, end)
    start, end, step = number(start), number(end), number(step)
    d = dtype or dtypes.common_dtype((start, end, step))
    if step == 0 or (end - start) * step < 0:
        raise NumgradRuntimeError(
            f"arange: bounds inconsistent with the sign of the step: {start}, {end}, {step}"
        )
    wide = np.float64 if d.kind == "f" or isinstance(start, float) else np.int64
    count = int(np.ceil((end - start) / step))
    return (start + step * np.arange(count, dtype=wide)).astype(d)


def range_(start: Any = 0, end: Any = None, step: Any = 1, **rest: Any) -> Tensor:
    """Return numbers at equal distances, the end included, in the default dtype."""
    warnings.warn("torch.range includes its end: use torch.arange", UserWarning, stacklevel=2)
    if rest.get("out") is None:
        rest.setdefault("dtype", get_default_dtype())
    return arange(start, end + step / 2, step, **rest)


@maker
def empty_strided(size: Any, stride: Any, *, dtype: Any = None) -> Any:
    """Return a Tensor that lies in memory as given."""
    d = default(dtype)
    need = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
    memory = np.zeros(max(need, 0), d)
    steps = [s * d.itemsize for s in stride]
    return np.lib.stride_tricks.as_strided(memory, tuple(size), steps)


def empty_permuted(size: Any, physical_layout: Any, **rest: Any) -> Tensor:
    """Return a Tensor whose axes lie in memory in an order."""
    order = list(physical_layout)
    memory = empty([size[k] for k in order], **rest)
    return memory.permute(np.argsort(order).tolist())  # pyright: ignore
