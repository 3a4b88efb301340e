"""Members of ``torch.Tensor`` that follow from no table: attributes, conversions, history."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.autograd.variable import Parameter as BaseParameter, Tensor as Base, root
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import (
    NumgradAttributeError,
    NumgradError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.operations.region import Region
from numgrad.torch import creation, dtypes, indexing, random
from numgrad.torch.calls import axis_of, table
from numgrad.torch.dtypes import OF, Size, as_numpy
from numgrad.torch.memory import MemoryMembers
from numgrad.torch.missing import said
from numgrad.torch.wrapping import (
    Parameter,
    Tensor,
    as_runtime_error,
    known,
    named,
    refuse_transformed,
    same,
    unwrap,
    user_function,
    wrapped,
)


def _constant(value: Any, text: str) -> property:
    return property(lambda self: value, doc=text)


_ATTRIBUTES = "ndim itemsize nbytes is_leaf output_nr retains_grad _version"
_METHODS = (
    "is_inference __dlpack__ __dlpack_device__ backward item tolist __bool__ __index__ __len__"
)
_IN_PLACE = "detach_ zero_ fill_diagonal_"
"""Members that are those of the Tensor inside; methods that write to it."""


class TensorMembers:
    """Attributes and methods; each is set on ``Tensor``."""

    _tensor: Any

    # ------------------------------------------------------------------------------- what it is

    shape = property(lambda self: Size(self._tensor.shape), doc="Lengths of axes.")
    dtype = property(lambda self: OF[self._tensor.dtype], doc="Type of elements.")
    device = _constant(dtypes.device("cpu"), "Where it is: on the CPU.")
    layout = _constant(dtypes.strided, "How it lies in memory.")
    is_cpu = _constant(True, "Whether it is on the CPU.")
    is_cuda = _constant(False, "Whether it is on a GPU.")
    is_mps = is_xpu = is_meta = is_mkldnn = is_vulkan = is_sparse = is_cuda
    is_sparse_csr = is_quantized = is_nested = is_cuda
    names = property(lambda self: (None,) * self._tensor.ndim, doc="Names of axes: none.")
    name = _constant(None, "Its name: none.")

    def size(self, dim: int | None = None) -> Any:
        """Length of an axis, or of all."""
        shape = Size(self._tensor.shape)
        return shape if dim is None else shape[axis_of("size", self._tensor, dim)]

    def dim(self) -> int:
        """Number of axes."""
        return self._tensor.ndim

    ndimension = dim

    # ------------------------------------------------------------------------------- history

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded."""
        return self._tensor.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._tensor.requires_grad = value
        known(self)  # pyright: ignore

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set whether operations on it are recorded."""
        refuse_transformed("Tensor.requires_grad_()")
        self._tensor.requires_grad_(requires_grad)
        return known(self)  # pyright: ignore

    @property
    def grad(self) -> Any:
        """The gradient that backwards have summed up, or None."""
        g = self._tensor.grad
        return None if g is None else same(g)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._tensor.grad = unwrap(value)
        if value is not None:
            known(value)

    @grad.deleter
    def grad(self) -> None:
        self._tensor.grad = None

    def __delattr__(self, name: str) -> None:
        member = getattr(type(self), name, None)
        if name in ("_grad_fn", "_backward_hooks") or (
            isinstance(member, property) and member.fdel is None
        ):
            raise NumgradRuntimeError(f"{name}: cannot be deleted; only .grad and your own can be")
        object.__delattr__(self, name)

    @property
    def grad_fn(self) -> Any:
        """The node that made it, or None."""
        from numgrad.torch.autograd.graph import node_of

        return node_of(self._tensor.grad_fn)

    def _is_view(self) -> bool:
        return self._tensor._is_view() and not self._tensor.is_inference()

    def retain_grad(self) -> None:
        """Keep the gradient of a result, as leaves do."""
        refuse_transformed("Tensor.retain_grad()")
        self._tensor.retain_grad()

    def register_hook(self, hook: Callable[..., Any]) -> Any:
        """Call a function with the gradient, which it may replace; returns a handle."""
        return self._tensor.register_hook(user_function(hook))

    def register_post_accumulate_grad_hook(self, hook: Callable[..., Any]) -> Any:
        """Call a function with the Tensor after its gradient was accumulated."""
        return self._tensor.register_post_accumulate_grad_hook(lambda t: hook(same(t)))

    @property
    def data(self) -> Any:
        """The values over the same memory, without history."""
        return wrapped(Base(state.ground.detached(self._tensor)))

    @data.setter
    def data(self, value: Any) -> None:
        self._tensor.data = unwrap(value)

    def detach(self) -> Any:
        """The values over the same memory, which no graph leads to."""
        return wrapped(self._tensor.detach())

    # --------------------------------------------------------------------------- conversions

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The array whose memory it shows."""
        return self._tensor.numpy(force=force or not state.grad_enabled)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        return np.array(array, dtype) if copy else np.asarray(array, dtype)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        array = np.asarray(array)
        return wrapped(Base(array.astype(np.uint8) if array.dtype == bool else array))

    def __int__(self) -> int:
        return int(self.item())  # pyright: ignore

    def __float__(self) -> float:
        return float(self.item())  # pyright: ignore

    def __complex__(self) -> complex:
        return complex(self.item())  # pyright: ignore

    def __iter__(self) -> Iterator[Any]:
        len(self._tensor)  # which those without axes lack
        return iter(self.unbind(0))  # pyright: ignore

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, Tensor | complex | float | int | np.generic):
            raise NumgradRuntimeError(
                f"Tensor.__contains__ takes Tensors and numbers, got {type(value).__name__}"
            )
        return bool((self == value).any())  # pyright: ignore

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from numgrad.torch.printing import shown

        return shown(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        if not self._tensor.ndim:
            return self.item().__format__(spec)
        return object.__format__(self, spec) if spec else str(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        twin = object.__new__(type(self))
        x, owner = self._tensor, root(self._tensor)._array
        twin._tensor = copy.deepcopy(x, {})
        if type(owner) is np.ndarray:  # views share the copied memory
            place: Any = ("memory", id(owner))
            if place not in memo:
                memo[place] = owner.copy("K")
            twin._tensor._array = Region(owner, x._array).find(memo[place])
        memo[id(self)] = twin
        vars(twin).update(copy.deepcopy(vars(self), memo))
        return known(twin)  # pyright: ignore

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        x = self._tensor
        kind = _KINDS.get(type(self), type(self))
        return _rebuilt, (kind, x.numpy(force=True), x.requires_grad, vars(self).copy())

    def type(self, dtype: Any = None, non_blocking: bool = False, **_: Any) -> Any:
        """The name of its class of Tensors, or the Tensor in a dtype."""
        if dtype is None:
            return f"torch.{_CLASSES[self.dtype]}"  # pyright: ignore
        if isinstance(dtype, str):
            classes = {name: d for d, name in _CLASSES.items()}
            if dtype.rpartition(".")[2] not in classes:
                raise NumgradValueError(f"invalid type: {dtype!r}; known are {[*classes]}")
            dtype = classes[dtype.rpartition(".")[2]]
        return self.to(getattr(dtype, "dtype", dtype))

    def to(self, *args: Any, **options: Any) -> Any:
        """The Tensor in a dtype, on a device, or as another one is."""
        where, d, other = [options.get(name) for name in ("device", "dtype", "other")]
        flags = [each for each in args if isinstance(each, bool)]  # non_blocking, copy
        for each in args:
            if isinstance(each, Tensor):
                other = each
            elif isinstance(each, dtypes.dtype):
                d = each
            elif each is not None and not isinstance(each, bool):
                where = each
        if where is not None:
            dtypes.device(where)
        x, form = self._tensor, options.get("memory_format")
        target = other._tensor.dtype if other is not None else as_numpy(d)
        if target is not None and target != x.dtype:
            out = wrapped(converted(x, target))
        else:
            out = self.clone() if options.get("copy", flags[1:] == [True]) else self  # pyright: ignore
        return out if form in (None, dtypes.preserve_format) else out.contiguous(form)

    def type_as(self, other: Any) -> Any:
        """The Tensor in the dtype of another."""
        return self.to(other.dtype)

    # of a shape, since calls with integers are those that machine code learns

    def expand_as(self, other: Any) -> Any:
        """Show it in the shape of another, by broadcasting."""
        return self.expand(other.shape)  # pyright: ignore[reportAttributeAccessIssue]

    def view_as(self, other: Any) -> Any:
        """Show it in the shape of another."""
        return self.view(other.shape)  # pyright: ignore[reportAttributeAccessIssue]

    def reshape_as(self, other: Any) -> Any:
        """Arrange its elements in the shape of another."""
        return self.reshape(other.shape)  # pyright: ignore[reportAttributeAccessIssue]

    def cpu(self, memory_format: Any = None) -> Any:
        """The Tensor on the CPU: itself."""
        return self

    def share_memory_(self) -> Any:
        """Move the values to memory that processes made by ``fork`` share."""
        from numgrad.torch.multiprocessing import share_memory

        return share_memory(self)  # pyright: ignore

    def is_shared(self) -> bool:
        """Whether processes made by ``fork`` share the values."""
        from numgrad.torch.multiprocessing import is_shared

        return is_shared(self)  # pyright: ignore

    # ------------------------------------------------------------------------------- writing

    def copy_(self, src: Any, non_blocking: bool = False) -> Any:
        """Write the numbers of another, which are cast."""
        value = src._tensor if isinstance(src, Tensor) else Base(np.asarray(src))
        try:
            self._tensor.copy_(converted(value, self._tensor.dtype))
        except NumgradError as error:
            as_runtime_error(error)
            raise
        return self

    def fill_(self, value: Any) -> Any:
        """Write one number everywhere."""
        target = self._tensor
        if isinstance(value, Tensor):
            target.copy_(ng.broadcast_to(converted(value._tensor, target.dtype), target.shape))
        elif type(value) is float and target.dtype.kind == "f":
            target.fill_(value)
        else:
            target.fill_(np.asarray(value).astype(target.dtype)[()])
        return self

    def apply_(self, callable: Callable[..., Any]) -> Any:
        """Replace each element by what a function gives for it."""
        values = np.frompyfunc(callable, 1, 1)(self._tensor._array)
        return self.copy_(values.astype(self._tensor.dtype))

    def map_(self, tensor: Any, callable: Callable[..., Any]) -> Any:
        """Replace each element by what a function gives for it and that of another."""
        values = np.frompyfunc(callable, 2, 1)(self._tensor._array, tensor._tensor._array)
        return self.copy_(values.astype(self._tensor.dtype))

    __getitem__ = indexing.getitem
    __setitem__ = indexing.setitem

    def __delitem__(self, index: Any) -> None:
        raise NumgradTypeError("Tensor does not support deleting items")

    # -------------------------------------------------------------------------- further forms

    def new(self, *args: Any, device: Any = "cpu") -> Any:
        """A Tensor of a shape, or of data in a list, in the dtype of this one."""
        return legacy(self.dtype, args)  # pyright: ignore

    def polygamma_(self, n: int) -> Any:
        """The polygamma function of an order, in place."""
        return self.copy_(self.polygamma(n))

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(f"'Tensor' object has no attribute {name!r}")
        text = f"torch.Tensor has no attribute {name!r}: {said(name)}"
        raise NumgradAttributeError(text, name=name)


def converted(x: Any, d: np.dtype[Any]) -> Any:
    """A Tensor in a dtype of NumPy's; of complex numbers the real part, with a warning."""
    if x.dtype == d:
        return x
    if x.dtype.kind == "c" and d.kind not in "cb":
        text = "Casting complex values to real discards the imaginary part"
        warnings.warn(text, UserWarning, stacklevel=4)
        x = ng.real(x)
    return OPS["astype"](x, dtype=d)


_KINDS: dict[Any, str] = {Tensor: "Tensor", Parameter: "Parameter"}
"""Classes that pickles name, whose modules are called as PyTorch's."""


def _rebuilt(kind: Any, array: np.ndarray, requires_grad: bool, attributes: dict[str, Any]) -> Any:
    """The Tensor of a pickle."""
    kind = next((cls for cls, name in _KINDS.items() if name == kind), kind)
    x = object.__new__(kind)
    is_parameter = issubclass(kind, Parameter)
    x._tensor = (
        BaseParameter(Base(array), requires_grad) if is_parameter else Base(array, requires_grad)
    )
    vars(x).update(attributes)
    return known(x)


_CLASSES = {d: f"{name}Tensor" for name, d in dtypes.PREFIXES.items()}


class TensorClass:
    """``torch.FloatTensor`` and its kin: makes Tensors of a dtype, of sizes or of data."""

    def __init__(self, d: dtypes.dtype) -> None:
        self.dtype, self.__name__ = d, _CLASSES[d]

    def __call__(self, *args: Any) -> Tensor:
        """Make a Tensor of sizes or of data."""
        return legacy(self.dtype, args)

    def __instancecheck__(self, x: Any) -> bool:
        """Whether an object is a Tensor of the dtype."""
        return isinstance(x, Tensor) and x.dtype is self.dtype  # pyright: ignore

    def __repr__(self) -> str:
        return f"<class 'torch.{self.__name__}'>"


def legacy(d: dtypes.dtype, args: tuple) -> Tensor:
    """A Tensor of sizes, or of data, as ``torch.Tensor(...)`` makes it."""
    if not args:
        return creation.empty(0, dtype=d)
    if all(isinstance(n, int) for n in args) or (len(args) == 1 and isinstance(args[0], Size)):
        return creation.empty(*args, dtype=d)
    if isinstance(args[0], Tensor):
        return args[0].detach() if args[0].dtype is d else args[0].to(d)  # pyright: ignore
    return creation.tensor(args[0], dtype=d)


def _new(cls: type, *args: Any, **options: Any) -> Any:
    """``torch.Tensor(...)``."""
    dtypes.device(options.get("device", "cpu"))
    x = object.__new__(cls)
    given = (options["data"],) if "data" in options else args
    x._tensor = legacy(dtypes.get_default_dtype(), given)._tensor
    return x


def _new_of(name: str) -> Callable[..., Any]:
    make = getattr(creation, name)

    def method(self: Any, *args: Any, dtype: Any = None, **options: Any) -> Any:
        return creation.by_example(make(*args, dtype=dtype or self.dtype, **options), self)

    return named(method, f"new_{name}", f"``torch.{name}`` in its dtype, if none is given.")


def _caster(name: str, d: dtypes.dtype) -> Callable[..., Any]:
    def method(self: Any, memory_format: Any = None) -> Any:
        x = self._tensor
        return self if x.dtype == d.numpy else wrapped(converted(x, d.numpy))

    return named(method, name, f"The Tensor in {d!r}.")


_CASTS = {
    **dtypes.ALIASES, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool_,
    "bfloat16": dtypes.bfloat16,
}  # fmt: skip


def install() -> None:
    """Set all members on ``Tensor`` that need no rows."""
    for name in _ATTRIBUTES.split():
        setattr(Tensor, name, property(attrgetter(f"_tensor.{name}")))
    for name in _METHODS.split():
        setattr(Tensor, name, _delegated(name, False))
    for name in _IN_PLACE.split():
        setattr(Tensor, name, _delegated(name, True))
    own = {"__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__qualname__"}
    for name, member in [*vars(MemoryMembers).items(), *vars(TensorMembers).items()]:
        if name not in own:
            setattr(Tensor, name, member)
    for name, d in _CASTS.items():
        setattr(Tensor, name, _caster(name, d))
    for name in ("tensor", "full", "empty_strided", "zeros", "ones", "empty"):
        setattr(Tensor, f"new_{name}", _new_of(name))
    for name, method in random.METHODS.items():
        setattr(Tensor, name, method)
    Tensor.__new__ = staticmethod(_new)  # pyright: ignore
    Tensor.__module__ = Parameter.__module__ = "numgrad.torch"


def _delegated(name: str, in_place: bool) -> Callable[..., Any]:
    """The method of the Tensor inside; in place it returns the Tensor."""
    inside = getattr(Base, name)

    def method(self: Any, *args: Any, **options: Any) -> Any:
        if args or options:
            args = tuple(map(unwrap, args))
            options = {key: unwrap(value) for key, value in options.items()}
        try:
            result = inside(self._tensor, *args, **options)
        except NumgradError as error:
            as_runtime_error(error)
            raise
        return self if in_place else result

    return named(method, name, inside.__doc__)


TENSOR_CLASSES = [TensorClass(d) for d in _CLASSES]
"""``torch.FloatTensor`` and its kin."""


def is_tensor(obj: Any) -> bool:
    """Whether an object is a Tensor."""
    return isinstance(obj, Tensor)


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of a result of two Tensors or numbers.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    return OF[dtypes.common_dtype((unwrap(tensor1), unwrap(tensor2)))]


TABLE = """
[same 1 facts]
numel(input): input.size
{is_complex=c is_floating_point=f}(input): input.dtype.kind == "@"
is_signed(input): input.dtype.kind not in "ub"
is_same_size(input, other): tuple(input.shape) == tuple(other.shape)
{is_conj is_neg}(input): False
[same 1]
is_nonzero(input): bool(wrapped(input))
equal(input, other): np.array_equal(input.numpy(force=True), other.numpy(force=True))
[equal 2]
[same 1 property]
real(input): ng.real(input) if input.dtype.kind == "c" else input
imag(input): ng.imag(input)
[same 1 method]
to_dense(input, dtype=None, *, masked_grad=None): input
{cuda pin_memory}(input, *args, **options): dtypes.device("cuda")
[same 1 method facts]
nelement(input): input.size
element_size(input): input.itemsize
get_device(input): -1
{is_pinned is_coalesced}(input): False
[same 1 method]
is_set_to(input, tensor): input._array.__array_interface__ == tensor._array.__array_interface__
"""
table("", globals(), TABLE)
