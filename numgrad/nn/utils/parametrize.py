"""Parameters that are functions of others: symmetric, normalized, of low rank, ...

Note [Parametrized modules]
---------------------------
``register_parametrization(module, "weight", f)`` moves the parameter to
``module.parametrizations.weight.original`` and gives the module a class of its own, derived from
its class, with a property ``weight`` that computes ``f(original)`` when it is read. So ``forward``
stays as it is, gradients go to ``original``, and ``state_dict`` has PyTorch's keys.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import Parameter, Tensor
from numgrad.core.namespaces import absent as _absent
from numgrad.errors import NumgradKeyError, NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.nn.container import ModuleDict, ModuleList
from numgrad.nn.module.members import Buffer
from numgrad.nn.module.module import Module
from numgrad.tensors.creation import asarray

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "type_before_parametrizations",
]  # fmt: skip


__getattr__ = _absent(__name__, __all__, {})


def __dir__() -> list[str]:
    return __all__


class _Cache:
    """Computed values of parametrized tensors, while ``cached`` is in force."""

    depth = 0
    values: ClassVar[dict[tuple[int, str], Any]] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once inside of a ``with`` block, however often it is read.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.nn.utils import parametrize
    >>> layer = ng.nn.utils.parametrizations.weight_norm(ng.nn.Linear(2, 3))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values = {}


class ParametrizationList(ModuleList):
    """The functions that a parametrized tensor is made by, and what they start from.

    Made by ``register_parametrization``. The tensor that is stored is ``original``, or
    ``original0``, ``original1``, ... where ``right_inverse`` of the last function gives several.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.utils.parametrizations.weight_norm(ng.nn.Linear(2, 3))
    >>> [name for name, _ in layer.parametrizations.weight.named_parameters()]
    ['original0', 'original1']
    """

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise NumgradValueError("ParametrizationList: takes at least one parametrization")
        super().__init__(modules)
        self.unsafe = unsafe
        try:
            new = _inverted(modules, original)
        except NotImplementedError:  # the weight itself is what the function is of
            new = original
        self.is_tensor = isinstance(new, Tensor)
        if not self.is_tensor and not isinstance(new, tuple | list):
            raise NumgradValueError(
                "register_parametrization: right_inverse must give a Tensor or several, got "
                f"{type(new).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        for name, tensor in zip(self._originals(), [new] if self.is_tensor else new, strict=True):
            if not isinstance(tensor, Tensor):
                raise NumgradTypeError(
                    "register_parametrization: right_inverse must give Tensors, got "
                    f"{type(tensor).__name__}"
                )
            if isinstance(original, Parameter):
                if self.is_tensor and not unsafe and tensor.dtype == original.dtype:
                    tensor = _put(original, tensor)  # an optimizer may know it
                else:
                    tensor = Parameter(tensor.detach(), requires_grad=original.requires_grad)
                self.register_parameter(name, tensor)
            else:
                self.register_buffer(name, tensor.detach())
        if not unsafe:
            with no_grad():
                _check_like("register_parametrization", self(), original)

    def _originals(self) -> list[str]:
        if self.is_tensor:
            return ["original"]
        return [f"original{k}" for k in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Store what makes the tensor ``value``: the inverses of all functions, the last first.

        Raises
        ------
        NumgradRuntimeError
            If one has none.
        """
        for parametrization in self:
            if not hasattr(parametrization, "right_inverse"):
                raise NumgradRuntimeError(
                    f"a tensor parametrized by {type(parametrization).__name__} cannot be assigned "
                    "to: give that a method right_inverse"
                )
        with no_grad():
            new = _inverted(list(self), asarray(value))
            for name, tensor in zip(
                self._originals(), [new] if self.is_tensor else new, strict=True
            ):
                original = getattr(self, name)
                _check_like("right_inverse", tensor, original)
                original.copy_(tensor)

    def forward(self) -> Any:
        """The tensor."""
        first, *others = self
        x = first(*[getattr(self, name) for name in self._originals()])
        for parametrization in others:
            x = parametrization(x)
        return x


def _inverted(parametrizations: Sequence[Any], value: Any) -> Any:
    with no_grad():
        new = value
        for parametrization in reversed(parametrizations):
            if hasattr(parametrization, "right_inverse"):
                new = parametrization.right_inverse(new)
    return new


def _put(parameter: Any, values: Any) -> Any:
    """The parameter with other values, maybe of another shape."""
    if values is parameter:
        return parameter
    if tuple(values.shape) != tuple(parameter.shape):
        return Parameter(values.detach(), requires_grad=parameter.requires_grad)
    with no_grad():
        parameter.copy_(values)
    return parameter


def _check_like(name: str, tensor: Any, other: Any) -> None:
    if not isinstance(tensor, Tensor):
        raise NumgradValueError(
            f"{name}: a parametrization must give a Tensor, got {type(tensor).__name__}"
        )
    if tensor.dtype != other.dtype or tuple(tensor.shape) != tuple(other.shape):
        raise NumgradValueError(
            f"{name}: a parametrization gives shape {tuple(tensor.shape)} and dtype {tensor.dtype} "
            f"for a tensor of shape {tuple(other.shape)} and dtype {other.dtype}; it must keep "
            "both, or unsafe=True be passed"
        )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrized tensors, or one of that name.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.utils.parametrizations.weight_norm(ng.nn.Linear(2, 3))
    >>> parametrized = ng.nn.utils.parametrize.is_parametrized
    >>> parametrized(layer), parametrized(layer, "bias")
    (True, False)
    """
    modules = module.__dict__.get("parametrizations")
    if not isinstance(modules, ModuleDict):
        return False
    return len(modules) > 0 if tensor_name is None else tensor_name in modules


def type_before_parametrizations(module: Module) -> type:
    """The class of a module, without what parametrizations make of it.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.utils.parametrizations.weight_norm(ng.nn.Linear(2, 3))
    >>> ng.nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    cls = type(module)
    return cls.__bases__[0] if is_parametrized(module) else cls


def _derived(module: Module) -> type:
    cls = type(module)

    def reduce(self: Any, protocol: Any) -> Any:
        raise NumgradRuntimeError(
            f"{cls.__name__}: a parametrized module cannot be pickled; save its state_dict()"
        )

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        twin: Any = object.__new__(type(self))
        memo[id(self)] = twin
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        # properties may be removed from one of both
        own = {k: v for k, v in vars(type(self)).items() if k not in ("__dict__", "__weakref__")}
        twin.__class__ = type(type(self).__name__, type(self).__bases__, own)
        return twin

    return type(
        f"Parametrized{cls.__name__}",
        (cls,),
        {"__reduce_ex__": reduce, "__deepcopy__": deepcopy, "__module__": cls.__module__},
    )


def _property(name: str) -> property:
    def read(self: Any) -> Any:
        parametrization = self.parametrizations[name]
        if not _Cache.depth:
            return parametrization()
        key = (id(self), name)
        if key not in _Cache.values:
            _Cache.values[key] = (self, parametrization())  # the module stays, and so its id
        return _Cache.values[key][1]

    def write(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a parameter or buffer of a module a function of what is stored.

    Parameters
    ----------
    module
        The module, whose class becomes one derived from it.
    tensor_name
        The name of the parameter or buffer; one that is parametrized already gets another function
        on top.
    parametrization
        A module whose ``forward`` makes the tensor of the stored one. Its ``right_inverse(value)``,
        where it has one, makes what is stored of a value that is assigned; it may give several
        tensors, which ``forward`` then takes.
    unsafe
        Whether the function may change shape and dtype.

    Returns
    -------
    Module
        ``module``.

    Raises
    ------
    NumgradValueError
        If there is no such tensor, or its shape or dtype would change.

    Examples
    --------
    >>> import numgrad as ng
    >>> class Symmetric(ng.nn.Module):
    ...     def forward(self, x):
    ...         return ng.triu(x) + ng.triu(x, 1).T
    >>> layer = ng.nn.Linear(3, 3)
    >>> layer = ng.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original']
    """
    name = "register_parametrization"
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        parametrizations: Any = module.parametrizations[tensor_name]
        if not unsafe:
            with no_grad():
                value = getattr(module, tensor_name)
                _check_like(name, parametrization(value), value)
        parametrizations.append(parametrization)
        parametrizations.unsafe = parametrizations.unsafe or unsafe
        return module
    members = module._parameters if tensor_name in module._parameters else module._buffers
    original = members.get(tensor_name)
    if original is None:
        raise NumgradValueError(
            f"{name}: {type(module).__name__} has no parameter or buffer {tensor_name!r}; those "
            f"there are {', '.join([*module._parameters, *module._buffers]) or 'none'}"
        )
    made = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.__class__ = _derived(module)
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = made  # pyright: ignore
    return module


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrized tensor an ordinary parameter or buffer again.

    Parameters
    ----------
    module
        The module, which gets its class back with the last of them.
    tensor_name
        The name of the tensor.
    leave_parametrized
        Whether it keeps the value it has, rather than that of ``original``.

    Returns
    -------
    Module
        ``module``.

    Raises
    ------
    NumgradKeyError
        If no such tensor is parametrized.
    NumgradValueError
        If several tensors are stored for it and ``leave_parametrized`` is False.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.utils.parametrizations.weight_norm(ng.nn.Linear(2, 3))
    >>> ng.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    Linear(in_features=2, out_features=3, bias=True)
    """
    name = "remove_parametrizations"
    if not is_parametrized(module, tensor_name):
        raise NumgradKeyError(
            f"{name}: {type(module).__name__} has no parametrized tensor {tensor_name!r}"
        )
    modules: Any = module.parametrizations
    parametrizations = modules[tensor_name]
    originals = [getattr(parametrizations, each) for each in parametrizations._originals()]
    learned = any(isinstance(original, Parameter) for original in originals)
    tensor: Any
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach()
        needs = any(original.requires_grad for original in originals)
        if not learned:
            tensor = Buffer(value)
        elif parametrizations.is_tensor and value.dtype == originals[0].dtype:
            tensor = _put(originals[0], value)
        else:
            tensor = Parameter(value, requires_grad=needs)
    elif parametrizations.is_tensor:
        (tensor,) = originals
    else:
        raise NumgradValueError(
            f"{name}: {tensor_name!r} is made of {parametrizations.ntensors} tensors; only "
            "its value can be left (leave_parametrized=True)"
        )
    delattr(type(module), tensor_name)
    del modules[tensor_name]
    if not modules:
        del module.parametrizations
        (module.__class__,) = type(module).__bases__
    if learned:
        module.register_parameter(tensor_name, tensor)
    else:
        module.register_buffer(tensor_name, tensor)
    return module
