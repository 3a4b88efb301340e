"""Layers and losses: numgrad's, as modules of this room.

Note [Views of layers]
----------------------
Parameters of a module are wrappers, to be seen, replaced, pruned and parametrized; the forward of a
layer of numgrad computes with Tensors. So a layer of this room has no forward of its own: it calls
that of numgrad's class on a ``View`` of itself, an object of a class derived from numgrad's whose
attributes are those of the module, unwrapped when they are read and wrapped when they are set.
Submodules appear as views too, and calling one calls the module, with its hooks.
"""

from __future__ import annotations

import copy
import inspect
from types import CellType, FunctionType
from typing import Any, ClassVar

from numgrad import nn
from numgrad.autograd.variable import Tensor as Base
from numgrad.errors import NumgradError
from numgrad.nn.applied import Applied
from numgrad.nn.module.members import KINDS
from numgrad.torch import dtypes
from numgrad.torch.calls import cast, check_equal
from numgrad.torch.nn.module import Module, containers, hooks
from numgrad.torch.specialization import GIVEN, specialize
from numgrad.torch.wrapping import (
    Tensor,
    as_runtime_error,
    face_function,
    same,
    unwrap,
    user_function,
    wrap,
)

_get, _new = object.__getattribute__, object.__new__


class View:
    """Attributes of a module as code of numgrad sees them: Note [Views of layers]."""

    _face: Any

    def __getattribute__(self, name: str) -> Any:
        face = _get(self, "__dict__")["_face"]
        attributes = face.__dict__
        if name == "__dict__":
            return attributes
        if name in attributes:
            return inner(attributes[name])
        if name.startswith(("register_", "_register_")):
            method = getattr(face, name)
            return lambda *args: method(*map(outer, args))
        return _get(self, name)

    def __getattr__(self, name: str) -> Any:
        return inner(getattr(_get(self, "__dict__")["_face"], name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_get(self, "__dict__")["_face"], name, outer(value))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: D102
        return unwrap(_get(self, "__dict__")["_face"](*wrap(args), **wrap(kwargs)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return view(copy.deepcopy(_get(self, "__dict__")["_face"], memo))


class _AnyModule(View, nn.Module):
    """A module of a user's."""


def view(face: Any) -> Any:
    """The view of a module."""
    seen = _new(getattr(type(face), "_view", _AnyModule))
    _get(seen, "__dict__")["_face"] = face
    return seen


def inner(value: Any) -> Any:
    """A value of a module of this room as numgrad's code sees it."""
    if isinstance(value, Tensor):
        return value._tensor
    if isinstance(value, Module):
        return view(value)
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(map(inner, value))
    if isinstance(value, dict):
        return {key: inner(each) for key, each in value.items()}
    return value.numpy if kind is dtypes.dtype else value


def outer(value: Any) -> Any:
    """A value of a module of numgrad's as it is in one of this room."""
    if isinstance(value, Base):
        return same(value)
    if isinstance(value, View):
        return _get(value, "__dict__")["_face"]
    if isinstance(value, nn.Module):
        return of_layer(value)
    kind = type(value)
    return kind(map(outer, value)) if kind is tuple or kind is list else value


LAYERS: dict[type, type[Layer]] = {}
"""Classes of this room by numgrad's."""


def of_layer(layer: nn.Module) -> Any:
    """The module of this room with the members of one of numgrad's."""
    face = _new(LAYERS[type(layer)])
    Module.__init__(face)
    adopt(face, layer)
    return face


def adopt(face: Any, layer: nn.Module) -> None:
    """Give a module the members and attributes of one of numgrad's."""
    state = layer.__getstate__()
    for kind in KINDS:
        registry = getattr(face, kind)
        for name, member in state.pop(kind).items():
            value = outer(member)
            if value is not None:
                value = hooks.registered(kind[1:-1], face, name, value)
            registry[name] = value
    for name, value in state.items():
        if name not in ("_module_hooks", "_is_hooked", "_state_hooks"):
            face.__dict__[name] = outer(value)


def _argument(value: Any) -> Any:
    if isinstance(value, FunctionType) or (
        callable(value) and not isinstance(value, type | Module)
    ):
        return user_function(value)
    return inner(value)


_RULES = {
    "one": "linear bilinear prelu layer_norm group_norm instance_norm batch_norm grid_sample "
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "binary_cross_entropy BCELoss scaled_dot_product_attention",
    "common": "mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss poisson_nll_loss kl_div "
    "multilabel_soft_margin_loss binary_cross_entropy_with_logits pairwise_distance "
    "hinge_embedding_loss MSELoss L1Loss SmoothL1Loss HuberLoss SoftMarginLoss "
    "PoissonNLLLoss KLDivLoss MultiLabelSoftMarginLoss BCEWithLogitsLoss PairwiseDistance "
    "CosineSimilarity HingeEmbeddingLoss rms_norm RMSNorm softmax log_softmax softmin gelu silu "
    "elu leaky_relu sigmoid softplus logsigmoid selu mish softsign tanhshrink celu "
    "local_response_norm",
    "any": "Embedding EmbeddingBag",
}
DTYPES = {name: rule for rule, names in _RULES.items() for name in names.split()}
"""Names of functions and layers: ``one`` dtype of all operands, or they get a ``common`` one."""


def of_dtypes(
    name: str, rule: str, given: list[Any], named: dict[str, Any], kinds: str = "fciu",
    own: Any = None,
) -> None:  # fmt: skip
    """Give operands, in place, the dtypes that a function or layer takes.

    ``own`` is the dtype of a layer's parameters, ``kinds`` are those of dtypes that are compared
    in all operands but the first: further ones of a layer may be indices.

    Raises
    ------
    NumgradRuntimeError
        If they need one dtype and have others.
    """
    tensors = [a for a in (*given, *named.values()) if isinstance(a, Base)]
    present = {a.dtype for a in tensors} | ({own} if own is not None else set())
    if len(present) < 2 and all(d.kind == "f" for d in present):  # most often by far
        return
    if rule == "one":
        rest = [a.dtype for a in tensors[1:] if a.dtype.kind in kinds]
        check_equal(name, {tensors[0].dtype, *rest, own or tensors[0].dtype})
    elif rule == "common":
        d = dtypes.common_dtype(tensors)
        d = d if d.kind in "fc" else dtypes.get_default_dtype().numpy
        given[:] = [cast(a, d) if isinstance(a, Base) else a for a in given]
        named.update({key: cast(a, d) for key, a in named.items() if isinstance(a, Base)})


def without_legacy(options: dict[str, Any]) -> dict[str, Any]:
    """Options with the reduction that ``size_average`` and ``reduce`` of old programs mean."""
    average, reduced = (options.pop(name, None) for name in ("size_average", "reduce"))
    options.pop("_stacklevel", None)
    if average is not None or reduced is not None:
        whole = "sum" if average is False else "mean"
        options["reduction"] = "none" if reduced is False else whole
    return options


class Layer(Module):
    """Base of modules whose computation is that of a class of numgrad's."""

    _layer: ClassVar[type[nn.Module]] = nn.Module
    _view: ClassVar[type] = _AnyModule
    _has_dtype: ClassVar[bool] = False
    _rule: ClassVar[str | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        device = kwargs.pop("device", None)
        if device is not None and str(device) != "meta":
            dtypes.device(device)
        options = {name: _argument(value) for name, value in without_legacy(kwargs).items()}
        if type(self)._has_dtype:
            if options.get("dtype") is None:
                options["dtype"] = dtypes.get_default_dtype().numpy
        else:
            options.pop("dtype", None)
        try:
            layer = self._layer(*map(_argument, args), **options)
        except NumgradError as error:
            as_runtime_error(error)
            raise
        adopt(self, layer)
        reset = getattr(type(self), "reset_parameters", None)
        if reset is not None and not hasattr(reset, "_of_layer"):
            self.reset_parameters()  # one of a subclass

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute as numgrad's layer does."""
        given = [a._tensor if type(a) is Tensor else unwrap(a) for a in args]
        named = unwrap(kwargs) if kwargs else kwargs
        if self._rule in ("one", "common"):
            own = [p._tensor.dtype for p in self._parameters.values() if p is not None]
            of_dtypes(type(self).__name__, self._rule, given, named, "fc", own[0] if own else None)
        try:
            return wrap(self._layer.forward(view(self), *given, **named))
        except NumgradError as error:
            as_runtime_error(error)
            raise


def _of_function(cls: type[nn.Module], functions: Any) -> Any:
    """``forward`` of a layer that applies a function, with that of this room; None of others."""
    own: Any = cls.forward
    if cls is nn.Linear:
        return lambda self, input: functions.linear(input, self.weight, self.bias)
    if not issubclass(cls, Applied) or own.__code__.co_freevars != ("_given",):
        return None
    name = own.__closure__[0].cell_contents.__name__
    if name not in functions.LEARNED:
        return None
    cell = CellType(getattr(functions, name))
    return FunctionType(own.__code__, own.__globals__, "forward", own.__defaults__, (cell,))


def _method(cls: type, name: str, function: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return outer(getattr(cls, name)(view(self), *map(_argument, args), **unwrap(kwargs)))

    method.__name__, method.__doc__ = name, function.__doc__
    method._of_layer = True  # pyright: ignore[reportFunctionMemberAccess]
    return method


def _made(cls: type, name: str) -> classmethod:
    def make(face: Any, *args: Any, **kwargs: Any) -> Any:
        return of_layer(getattr(cls, name)(*map(_argument, args), **unwrap(kwargs)))

    return classmethod(make)


def _view_class(name: str, cls: type) -> type:
    return type(name, (View, cls), {"__slots__": ()})  # errors name the class


def layer_class(name: str, cls: type[nn.Module], bases: tuple[type, ...]) -> type[Layer]:
    """The class of this room for one of numgrad's."""
    namespace: dict[str, Any] = {"__doc__": cls.__doc__, "__module__": "numgrad.torch.nn"}
    for base in reversed(cls.__mro__[: cls.__mro__.index(nn.Module)]):
        for key, value in vars(base).items():
            if isinstance(value, FunctionType):  # what it reads of a module: Note [Sources]
                namespace[f"__of_{key}__"] = value
            if key.startswith("__") and key not in ("__getitem__", "__len__", "__iter__"):
                continue
            if key == "forward":
                continue
            if isinstance(value, FunctionType):
                namespace[key] = _method(cls, key, value)
            elif isinstance(value, staticmethod):
                namespace[key] = staticmethod(face_function(getattr(cls, key)))
            elif isinstance(value, classmethod):
                namespace[key] = _made(cls, key)
            elif isinstance(value, property):
                namespace[key] = property(lambda self, key=key: outer(getattr(view(self), key)))
            elif isinstance(value, int | str | tuple | bool) and not key.startswith("__"):
                namespace[key] = value
    signature = inspect.signature(cls)
    namespace["_layer"], namespace["__signature__"] = cls, signature
    namespace["_view"] = _view_class(name, cls)
    namespace["_has_dtype"] = "dtype" in signature.parameters
    namespace["_rule"] = DTYPES.get(name, "one" if namespace["_has_dtype"] else None)
    made: Any = type(name, bases, namespace)
    LAYERS[cls] = made
    return made


class _BatchNorm(Layer):
    """Base of batch normalizations, whose older states have no ``num_batches_tracked``."""

    _version = 2

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, metadata: dict[str, Any], *args: Any
    ) -> None:
        tracked = self._buffers.get("num_batches_tracked")
        if tracked is not None and (metadata.get("version") or 1) < 2:
            state_dict.setdefault(f"{prefix}num_batches_tracked", tracked)
        super()._load_from_state_dict(state_dict, prefix, metadata, *args)


_GROUPS = {
    "_ConvNd": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "_BatchNorm": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm",
    "_InstanceNorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d",
    "_DropoutNd": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "RNNBase": "RNN LSTM GRU",
    "RNNCellBase": "RNNCell LSTMCell GRUCell",
    "_Loss": "*Loss",
}
"""Classes that PyTorch's modules have as bases, which programs ask for with ``isinstance``."""


_CONTAINERS = "Sequential ModuleList ModuleDict ParameterList ParameterDict"


def _causal_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """The mask of a position's future, -inf above the diagonal, in the default dtype."""
    d = (dtype or dtypes.get_default_dtype()).numpy
    return wrap(nn.Transformer.generate_square_subsequent_mask(sz, device, d))


def classes(functional: Any) -> dict[str, type]:
    """All modules by name; ``functional`` is the module of functions, which imports this one."""
    made: dict[str, type] = {group: type(group, (Layer,), {}) for group in _GROUPS}
    made["_BatchNorm"] = _BatchNorm
    bases = {name: made[group] for group, text in _GROUPS.items() for name in text.split()}
    for name in _CONTAINERS.split():
        cls, made[name] = getattr(nn, name), getattr(containers, name)
        LAYERS[cls], made[name]._view = made[name], _view_class(name, cls)  # pyright: ignore
    for name in dir(nn):
        cls = getattr(nn, name)
        plain = isinstance(cls, type) and issubclass(cls, nn.Module) and cls is not nn.Module
        if plain and name not in made and not issubclass(cls, nn.LazyModuleMixin):
            base = bases.get(name) or (made["_Loss"] if name.endswith("Loss") else Layer)
            made[name] = layer_class(name, cls, (base,))
            forward = _of_function(cls, functional)
            if forward is not None:
                made[name].forward = forward  # pyright: ignore[reportAttributeAccessIssue]
    public = set(dir(nn))  # a name that is none takes a search for what is near it
    names = [name for name in made if f"Lazy{name}" in public]
    GIVEN.update({name: made[name] for name in names})
    lazy = specialize("numgrad.nn.lazy")
    for name in ("LazyModuleMixin", *(f"Lazy{name}" for name in names)):
        LAYERS[getattr(nn, name)] = made[name] = getattr(lazy, name)
    made["Transformer"].generate_square_subsequent_mask = staticmethod(_causal_mask)  # pyright: ignore
    return made
