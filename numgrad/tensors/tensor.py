"""``Tensor`` completed: properties, conversions, operators, indexing, methods of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import index as as_index
from typing import Any

import numpy as np

from numgrad import operations as _operations  # fills the table
from numgrad.autograd import hooks
from numgrad.autograd.engine import backward as engine
from numgrad.autograd.forward_ad import has_tangent, share_tangents
from numgrad.autograd.node import Node, show_saved
from numgrad.autograd.row_sparse import RowSparseTensor, as_tensor
from numgrad.autograd.variable import (
    INFERENCE,
    NO_GRAD_VIEW,
    Parameter,
    Tensor,
    gradient_of,
    refresh,
    root,
    set_gradient,
    shared_version,
    version_of,
)
from numgrad.core.abstract import BRANCH, NDARRAY, AbstractArray, AbstractLength
from numgrad.core.interpreter import install_eager, state
from numgrad.core.op import OPS, Call, Meta, Op
from numgrad.errors import (
    NumgradAttributeError,
    NumgradIndexError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
    warn,
)
from numgrad.operations.index import getitem, is_basic
from numgrad.tensors import inplace_methods as methods
from numgrad.tensors.eager import EagerInterpreter

assert _operations is not None


# --------------------------------------------------------------------------------- attributes


def _get_grad(self: Tensor) -> Tensor | RowSparseTensor | None:
    """Gradient accumulated by ``backward``; None before the first."""
    found = gradient_of(self)
    if found is None and self._requires_grad and self.grad_fn is not None:
        if hooks.retains_grad(self):
            return None
        warn(
            "the .grad of a tensor that is the result of an operation is not kept; call "
            "retain_grad() before backward, use autograd.grad, or look at the leaf",
            UserWarning,
        )
    return found


def _set_grad(self: Tensor, value: Any) -> None:
    if value is None:
        set_gradient(self, None)
        return
    if not isinstance(value, Tensor | RowSparseTensor):
        raise NumgradTypeError(f"grad: must be a Tensor or None, got {type(value).__name__}")
    if value is self:
        raise NumgradRuntimeError("grad: a tensor cannot be its own gradient")
    if value._array.shape != self._array.shape:
        raise NumgradRuntimeError(
            f"grad: has shape {value._array.shape}, the tensor {self._array.shape}"
        )
    if value._array.dtype != self._array.dtype:
        raise NumgradRuntimeError(
            f"grad: has dtype {value._array.dtype}, the tensor {self._array.dtype}"
        )
    set_gradient(self, value)


def _delete_grad(self: Tensor) -> None:
    set_gradient(self, None)


def _get_grad_fn(self: Tensor) -> Any:
    refresh(self)
    return self._grad_fn


def _get_requires_grad(self: Tensor) -> bool:
    """Whether operations on this tensor are recorded."""
    refresh(self)
    return self._requires_grad


def _set_requires_grad(self: Tensor, value: bool) -> None:
    value = bool(value)
    if value == self._requires_grad:
        return
    if self._grad_fn is not None:
        raise NumgradRuntimeError(
            "requires_grad: can be changed on leaves only, and this tensor is the result of "
            f"{self._grad_fn.name()}; use detach() for a leaf with its values"
        )
    if value:
        check_differentiable(self._array.dtype)
        if _is_inference(self) and not state.inference:
            raise NumgradRuntimeError(
                "requires_grad: the tensor was made in inference mode and cannot be recorded; "
                "clone() it outside"
            )
    self._requires_grad = value


def check_differentiable(dtype: np.dtype) -> None:
    """Raise unless tensors of ``dtype`` can require grad."""
    if dtype.kind not in "fc":
        raise NumgradRuntimeError(
            f"requires_grad: tensors of dtype {dtype} have no gradients; use a floating or complex "
            "dtype, for example dtype=ng.float64"
        )


def _requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set ``requires_grad`` and return the tensor."""
    if not (requires_grad and self._requires_grad):
        _set_requires_grad(self, requires_grad)
    return self


def _delete_requires_grad(self: Tensor) -> None:
    raise NumgradRuntimeError("requires_grad: cannot be deleted; set it to False")


def _version(self: Tensor) -> int:
    """Number of in-place changes to this tensor's memory."""
    version = version_of(self)
    if version is INFERENCE:
        raise NumgradRuntimeError(
            "_version: tensors made in inference mode count no versions; clone() it outside"
        )
    return 0 if version is None else version.count


def _base(self: Tensor) -> Tensor | None:
    """The tensor whose memory a view shows; None if this is no view."""
    owner = root(self)
    return None if owner is self else owner


def _is_view(self: Tensor) -> bool:
    """Whether the tensor shows the memory of another."""
    return root(self) is not self


def _is_inference(self: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return version_of(self) is INFERENCE


def _get_data(self: Tensor) -> Tensor:
    """The values without history, over the same memory, without a version: prefer ``detach()``."""
    global _warned_of_data
    if self._requires_grad and not _warned_of_data:
        _warned_of_data = True
        warn(
            ".data hides changes from the check that a backward finds what was saved, so gradients "
            "may be wrong silently; detach() has the same values and keeps the check",
            UserWarning,
        )
    return Tensor(self._array)


_warned_of_data = False


def _set_data(self: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise NumgradTypeError(f"data: must be a Tensor, got {type(value).__name__}")
    if self._requires_grad:
        check_differentiable(value._array.dtype)
    self._array = value._array


def _creator(self: Tensor) -> Any:
    """Raise: see ``grad_fn``."""
    raise NumgradAttributeError("creator: what grad_fn was called in 2017; use grad_fn")


def _delete_data(self: Tensor) -> None:
    raise NumgradRuntimeError("data: cannot be deleted; drop the tensor itself")


def _detach(self: Tensor) -> Tensor:
    """A tensor over the same memory that no graph leads to."""
    return Tensor(state.ground.lift(self), memory=shared_version(self))


def _backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of this tensor into ``.grad`` of the leaves it depends on.

    Parameters are those of ``ng.autograd.backward``.
    """
    if gradient is None and inputs is None and not create_graph and engine.is_loss(self):
        engine.backward_from_loss(self, retain_graph)
    else:
        engine.backward(self, gradient, retain_graph, create_graph, inputs)


# -------------------------------------------------------------------------------- conversions


def _refuse_loss(self: Tensor, what: str, carrier: str, instead: str) -> None:
    """Raise if numbers alone would lose a gradient or a tangent."""
    if self.requires_grad and state.grad_enabled:
        seen = "requires grad"
    elif state.interpreters and has_tangent(self):
        seen = "has a tangent (forward mode)"
    else:
        return
    raise NumgradRuntimeError(
        f"{what}: the tensor of shape {self._array.shape} {seen}, which {carrier} cannot carry; "
        f"{instead} drops it on purpose"
    )


_KEEPS_ARRAY = (
    "np.stack or ng.asarray makes a Tensor of several, ng.zeros one to write into, operations take "
    "Tensors as they are, and .detach()"
)
_KEEPS_NUMBER = (
    "np.sqrt and its like take Tensors where math.sqrt does not, ng.zeros makes a Tensor to write "
    "into where np.zeros does not, and .item() or .detach()"
)


def _numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The ndarray itself, sharing memory; with ``force`` also where a gradient is lost."""
    if not force:
        _refuse_loss(self, "numpy", "an ndarray", _KEEPS_ARRAY)
    if isinstance(self._array, AbstractArray):
        self._array.refuse("numpy()", NDARRAY)
    return self._array


def _array_protocol(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    _refuse_loss(self, "conversion to an ndarray", "an ndarray", _KEEPS_ARRAY)
    return np.array(self._array, dtype=dtype, copy=copy)


def _item(self: Tensor) -> Any:
    """The one element as a Python number, without its gradient."""
    if self._array.size != 1:
        raise NumgradValueError(
            f"item: the tensor has shape {self._array.shape}; only one element makes a number"
        )
    return self._array.item()


def _tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers, without their gradients."""
    return self._array.tolist()


def _clone(self: Tensor) -> Tensor:
    """A copy, through which gradients flow."""
    return OPS["positive"](self) if self.dtype.kind != "b" else Tensor(self._array.copy())


def _scalar(self: Tensor, kind: type) -> Any:
    if self._array.size != 1:
        raise NumgradTypeError(
            f"{kind.__name__}(): the tensor has shape {self._array.shape}; only one element makes "
            "a number, reduce it or take one"
        )
    if isinstance(self._array, AbstractArray):
        return kind(self._array)
    _refuse_loss(self, f"{kind.__name__}()", f"a Python {kind.__name__}", _KEEPS_NUMBER)
    return kind(self._array.item())


def _bool(self: Tensor) -> bool:
    if self._array.size != 1:
        raise NumgradValueError(
            f"bool(): a tensor of shape {self._array.shape} is neither true nor false as a whole; "
            "use any() or all()"
        )
    if isinstance(self._array, AbstractArray):
        return bool(self._array)
    return bool(self._array.item())


def _index(self: Tensor) -> int:
    if self._array.dtype.kind not in "iu" or self._array.size != 1:
        raise NumgradTypeError("only an integer tensor of one element can be an index")
    if isinstance(self._array, AbstractArray):
        return int(self._array)
    return int(self._array.item())


def _len(self: Tensor) -> int:
    if not self._array.ndim:
        raise NumgradTypeError("len(): a 0-d tensor has no length")
    return self._array.shape[0]


def _iter(self: Tensor) -> Iterator[Tensor]:
    if not self._array.ndim:
        raise NumgradTypeError("a 0-d tensor cannot be iterated over")
    return (self[k] for k in range(self._array.shape[0]))


def _contains(self: Tensor, value: Any) -> bool:
    if isinstance(self._array, AbstractArray):
        self._array.refuse("the operator in", BRANCH)
    try:
        return bool((self._array == (value._array if isinstance(value, Tensor) else value)).any())
    except (ValueError, OverflowError) as error:
        raise NumgradValueError(
            f"in: a {type(value).__name__} cannot be compared with a tensor of shape "
            f"{self._array.shape}: {error}"
        ) from None


def _repr(self: Tensor) -> str:
    array = self._array
    if isinstance(array, AbstractArray):
        return f"tensor({array!r})"
    text = np.array2string(array, separator=", ", prefix="tensor(")
    parts = [text]
    if array.size == 0:
        parts.append(f"shape={array.shape}")
    if array.dtype not in (np.float64, np.int64, np.bool_) or array.size == 0:
        parts.append(f"dtype={array.dtype}")
    node = self.grad_fn
    if node is not None:
        parts.append(f"grad_fn=<{node.name()}>")
    elif _is_invalid(self):
        parts.append("grad_fn=<Invalid>")
    elif self._requires_grad:
        parts.append("requires_grad=True")
    text = f"tensor({', '.join(parts)})"
    return f"Parameter containing:\n{text}" if isinstance(self, Parameter) else text


def _is_invalid(self: Tensor) -> bool:
    """Whether this is a view from no_grad of something differentiable that was changed since."""
    owner = root(self)
    return self._slot == NO_GRAD_VIEW and owner._requires_grad and _version(owner) > 0


def _format(self: Tensor, spec: str) -> str:
    if isinstance(self._array, AbstractArray):
        return repr(self)
    if not spec:
        return repr(self)
    if self._array.size != 1:
        raise NumgradTypeError(
            f"format {spec!r}: the tensor has shape {self._array.shape}, and a format is for one "
            "number; format its elements one by one, or use np.array2string(t.detach().numpy())"
        )
    try:
        return format(self._array.item(), spec)
    except ValueError as error:
        raise NumgradValueError(f"format {spec!r} of dtype {self._array.dtype}: {error}") from None


def _round(self: Tensor, ndigits: Any = None) -> Any:
    try:
        return OPS["round"](self, as_index(ndigits or 0))
    except (TypeError, OverflowError):
        raise NumgradTypeError(f"round: ndigits is an integer, got {ndigits!r}") from None


def _reduce(self: Tensor) -> tuple:
    return _rebuild, (self._array, self._requires_grad, type(self))


def _rebuild(array: np.ndarray, requires_grad: bool, kind: type[Tensor] = Tensor) -> Tensor:
    twin = kind.__new__(kind)  # the constructors of subclasses take other arguments
    Tensor.__init__(twin, array, requires_grad)
    return twin


def _copy(self: Tensor) -> Tensor:
    twin = _rebuild(self._array, self._requires_grad, type(self))
    twin._grad_fn, twin._slot, twin._memory = self._grad_fn, self._slot, shared_version(self)
    share_tangents(self, twin)
    return twin


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if self._grad_fn is not None:
        raise NumgradRuntimeError(
            "deepcopy: the tensor is the result of "
            f"{self._grad_fn.name()}; only leaves can be copied, use detach() or clone()"
        )
    if state.interpreters and has_tangent(self):
        raise NumgradRuntimeError(
            "deepcopy: the tensor has a tangent (forward mode), which belongs to the level; use "
            "clone() to keep it, or detach()"
        )
    twin = _rebuild(self._array.copy(), self._requires_grad, type(self))
    memo[id(self)] = twin
    if self._grad is not None:
        twin._grad = as_tensor(self._grad._array.copy())
    return twin


# ----------------------------------------------------------------------------------- indexing


class SliceCall(Call):
    """A basic index, as the hot path of ``__getitem__`` records it."""

    __slots__ = ("dtype", "index", "shape")
    op = OPS["getitem"]
    aux = ()

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, index: Any) -> None:
        self.shape, self.dtype, self.index = shape, dtype, index

    @property
    def metas(self) -> tuple[Meta]:
        return (Meta(self.shape, self.dtype),)

    @property
    def params(self) -> dict[str, Any]:
        return {"index": self.index}

    @property
    def results(self) -> tuple[Meta]:
        outline = np.broadcast_to(np.empty((), self.dtype), self.shape)
        return (Meta(np.shape(outline[self.index]), self.dtype),)

    def differentiable(self, k: int) -> bool:
        return self.dtype.kind in "fc"

    def backward(self, mask: int, g: np.ndarray, saved: Any) -> tuple[list[Any], int]:
        out = np.zeros(self.shape, self.dtype)
        out[self.index] = g
        return [out], 1


def _getitem(self: Tensor, index: Any) -> Any:
    mode = state.mode
    if (type(index) is not slice and not is_basic(index)) or not mode:
        return getitem(self, index)
    array = self._array
    try:
        out = array[index]
    except IndexError as error:
        raise NumgradIndexError(
            f"getitem: an array of shape {array.shape} has no {index!r}: {error}"
        ) from None
    if type(out) is not np.ndarray:
        out = array[(*index, Ellipsis)] if type(index) is tuple else array[index, ...]
    owner = self._memory
    if owner is None:
        owner = self
    else:
        refresh(self)
        owner = root(self)
    if not (self._requires_grad and mode == 2):
        traced = mode == 2 and self._slot != NO_GRAD_VIEW
        return Tensor(out, False, None, 0 if traced else NO_GRAD_VIEW, owner)
    node = self._grad_fn
    if node is None:
        node = self
    elif self._slot:
        node = (node, self._slot - 1)
    call = SliceCall(array.shape, array.dtype, index)
    return Tensor(out, True, Node(call, 1, (node,), ()), 0, owner)


# ---------------------------------------------------------------------------------- operators


def _operator(op: Op) -> Callable[..., Any]:
    """``a <op> b``, which leaves the right operand its say if it is no number or array."""
    enter = op.entry

    def method(self: Tensor, other: Any) -> Any:
        kind = type(other)
        if kind is Tensor or kind is float or kind is int or _acceptable(other):
            return enter(self, other)
        return NotImplemented

    return method


def _reflected(op: Op) -> Callable[..., Any]:
    enter = op.entry

    def method(self: Tensor, other: Any) -> Any:
        return enter(other, self) if _acceptable(other) else NotImplemented

    return method


def _acceptable(value: Any) -> bool:
    return isinstance(
        value,
        Tensor | np.ndarray | int | float | complex | np.generic | list | tuple | AbstractLength,
    ) or hasattr(value, "__pandas_priority__")


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _pow(self: Tensor, other: Any, modulus: Any = None) -> Any:
    if modulus is not None:
        raise NumgradTypeError(
            "pow: of Tensors there is no power modulo a number; write np.remainder(t**n, modulus)"
        )
    # exponents with an exact and faster operation of their own
    if type(other) in (int, float):
        if other == 2:
            return OPS["square"](self)
        if other == 1:
            return OPS["positive"](self)
        if self._array.dtype.kind == "f":
            if other == 0.5:
                return OPS["sqrt"](self)
            if other == -1:
                return OPS["reciprocal"](self)
    elif not _acceptable(other):
        return NotImplemented
    return OPS["power"](self, other)


def _divmod(self: Tensor, other: Any) -> tuple:
    return self // other, self % other


def _matmul(op: Op) -> tuple[Callable, Callable]:
    return _operator(op), _reflected(op)


# ----------------------------------------------------------------------------------- assembly


def _array_property(name: str, doc: str) -> property:
    def get(self: Tensor) -> Any:
        return getattr(self._array, name)

    return property(get, doc=doc)


def _view_property(name: str, doc: str) -> property:
    def get(self: Tensor) -> Any:
        return OPS[name](self)

    return property(get, doc=doc)


def _complete() -> None:
    """Attach everything to ``Tensor``: methods of the table first, then what is special."""
    for op in list(OPS.values()):
        attach(op)
    members: dict[str, Any] = {
        "__module__": "numgrad",
        "__array_priority__": 1000.0,
        "__pandas_priority__": 10000,  # Series and DataFrame leave their operators to Tensors
        "grad_fn": property(_get_grad_fn, doc="Node that made this tensor; None for a leaf."),
        "_version": property(_version),
        "grad": property(_get_grad, _set_grad, _delete_grad),
        "requires_grad": property(_get_requires_grad, _set_requires_grad, _delete_requires_grad),
        "requires_grad_": _requires_grad_,
        "retain_grad": hooks.retain_grad,
        "retains_grad": property(hooks.retains_grad),
        "register_hook": hooks.register_hook,
        "register_post_accumulate_grad_hook": hooks.register_post_accumulate_grad_hook,
        "_base": property(_base),
        "_is_view": _is_view,
        "is_inference": _is_inference,
        "data": property(_get_data, _set_data, _delete_data),
        "creator": property(_creator),
        "detach_": methods.detach_,
        "copy_": methods.copy_,
        "fill_": methods.fill_,
        "zero_": methods.zero_,
        "__setitem__": methods.setitem,
        "__imatmul__": methods.matmul_augmented,
        "output_nr": property(
            lambda self: max(self._slot - 1, 0), doc="Which output of ``grad_fn`` this is."
        ),
        "is_sparse": False,
        "is_leaf": property(
            lambda self: _get_grad_fn(self) is None, doc="Whether no operation made it."
        ),
        "detach": _detach,
        "backward": _backward,
        "numpy": _numpy,
        "item": _item,
        "tolist": _tolist,
        "shape": _array_property("shape", "Lengths of the axes."),
        "ndim": _array_property("ndim", "Number of axes."),
        "size": _array_property("size", "Number of elements."),
        "dtype": _array_property("dtype", "NumPy dtype of the elements."),
        "itemsize": _array_property("itemsize", "Bytes of one element."),
        "nbytes": _array_property("nbytes", "Bytes of all elements."),
        "strides": _array_property("strides", "Bytes between neighbours along each axis."),
        "T": _view_property("permute_dims", "The axes in reverse order."),
        "mT": _view_property("matrix_transpose", "The last two axes exchanged."),
        "real": _view_property("real", "Real part."),
        "imag": _view_property("imag", "Imaginary part."),
        "clone": _clone,
        "__array__": _array_protocol,
        "__float__": lambda self: _scalar(self, float),
        "__int__": lambda self: _scalar(self, int),
        "__complex__": lambda self: _scalar(self, complex),
        "__bool__": _bool,
        "__round__": _round,
        "__index__": _index,
        "__len__": _len,
        "__iter__": _iter,
        "__contains__": _contains,
        "__repr__": _repr,
        "__format__": _format,
        "__reduce__": _reduce,
        "__copy__": _copy,
        "__deepcopy__": _deepcopy,
        "__getitem__": _getitem,
        "__pow__": _pow,
        "__divmod__": _divmod,
        "__hash__": object.__hash__,
    }
    for name, member in members.items():
        setattr(Tensor, name, member)


def attach(op: Op) -> None:
    """Give ``Tensor`` the operator and method of an operation, and nodes what they save."""
    show_saved((*op.inputs, *op.auxiliaries))
    if op.dunder is not None:
        if len(op.inputs) == 1:
            setattr(Tensor, f"__{op.dunder}__", _method(op))
        else:
            setattr(Tensor, f"__{op.dunder}__", _operator(op))
            if op.dunder not in _COMPARISONS:
                setattr(Tensor, f"__r{op.dunder}__", _reflected(op))
                if methods.has_inplace_form(op):
                    setattr(Tensor, f"__i{op.dunder}__", methods.augmented(op, _acceptable))
    if op.method:
        for name in (op.name, *op.aliases):
            setattr(Tensor, name, _method(op))
    if methods.has_inplace_form(op):
        for name in methods.inplace_names(op):
            setattr(Tensor, name, methods.inplace_method(op, name))


def _method(op: Op) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **params: Any) -> Any:
        return op(self, *args, **params)

    method.__name__ = method.__qualname__ = op.name
    method.__doc__ = op.__doc__
    return method


class _Eager(EagerInterpreter):
    """The eager interpreter, which gives Tensor the methods of operations that users register."""

    def attach(self, op: Op) -> None:
        if not hasattr(Tensor, op.name):
            attach(op)


install_eager(_Eager())
_complete()
