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
from collections.abc import Callable
from functools import wraps
from types import CellType, FunctionType
from typing import Any, ClassVar

from numgrad import nn
from numgrad.autograd.variable import Tensor as Base
from numgrad.errors import NumgradError
from numgrad.nn import functional
from numgrad.nn.applied import Applied
from numgrad.nn.module.members import KINDS
from numgrad.tensors.learned_calls import LearnedEntry
from numgrad.torch import dtypes
from numgrad.torch.calls import ARGUMENTS, cast, check_equal, write
from numgrad.torch.nn.module import Module, containers, hooks, members
from numgrad.torch.specialization import GIVEN, specialize
from numgrad.torch.wrapping import (
    Tensor,
    as_runtime_error,
    face_function,
    same,
    unwrap,
    user_function,
    wrap,
    wrapped,
)

_get, _new = object.__getattribute__, object.__new__


class View:
    """Attributes of a module as code of numgrad sees them: Note [Views of layers]."""

    def __getattribute__(self, name: str) -> Any:
        face = _get(self, "__dict__")["_face"]
        attributes = face.__dict__
        if name == "__dict__":
            return attributes
        if name in attributes:
            return unwrap(attributes[name])
        if name.startswith(("register_", "_register_")):
            method = getattr(face, name)
            return lambda *args: method(*map(outer, args))
        return _get(self, name)

    def __getattr__(self, name: str) -> Any:
        return unwrap(getattr(_get(self, "__dict__")["_face"], name))

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


def outer(value: Any) -> Any:
    """A value of a module of numgrad's as it is in one of this room."""
    if isinstance(value, View):
        return _get(value, "__dict__")["_face"]
    return of_layer(value) if isinstance(value, nn.Module) else same(value)


Module._unwrap = view  # pyright: ignore[reportAttributeAccessIssue]
View._wrap = staticmethod(outer)  # pyright: ignore[reportAttributeAccessIssue]
members.Registry._unwrap = lambda registry: unwrap(dict(registry))


LAYERS: dict[type, type[Layer]] = {}
"""Classes of this room by numgrad's."""


def of_layer(layer: nn.Module) -> Any:
    """The module of this room with the members of one of numgrad's."""
    face = _new(LAYERS[type(layer)])
    Module.__init__(face)
    return adopt(face, layer)


def adopt(face: Any, layer: nn.Module) -> Any:
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
    return face


def _argument(value: Any) -> Any:
    function = callable(value) and not isinstance(value, type | Module)
    return user_function(value) if function else unwrap(value)


_RULES: dict[str | None, str] = {
    "one": "linear bilinear prelu layer_norm group_norm instance_norm batch_norm grid_sample "
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "binary_cross_entropy BCELoss scaled_dot_product_attention",
    "common": "mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss poisson_nll_loss kl_div "
    "multilabel_soft_margin_loss binary_cross_entropy_with_logits pairwise_distance "
    "hinge_embedding_loss KLDivLoss BCEWithLogitsLoss CosineSimilarity rms_norm softmax "
    "log_softmax softmin gelu silu elu leaky_relu sigmoid softplus logsigmoid selu mish softsign "
    "tanhshrink celu local_response_norm",
    None: "embedding embedding_bag",
}


def _key(name: str) -> str:
    """A name of a function, or of the layer that applies it: ``mse_loss``, ``MSELoss``."""
    return name.replace("_", "").lower()


DTYPES = {_key(name): rule for rule, names in _RULES.items() for name in names.split()}
"""Names of functions and layers: ``one`` dtype of all operands, or they get a ``common`` one."""


def of_dtypes(
    name: str, rule: str, given: list[Any], named: dict[str, Any], layer: Any = None
) -> None:
    """Give operands, in place, the dtypes that a function or layer takes.

    With ``one`` those of all operands and parameters are compared, but of booleans and of further
    integers of a layer, which may be indices.

    Raises
    ------
    NumgradRuntimeError
        If they need one dtype and have others.
    """
    operands = given if layer is None else given[1:]
    tensors = [a for a in (*operands, *named.values()) if isinstance(a, Base)]
    members = () if layer is None else layer._parameters.values()
    own = [p._tensor.dtype for p in members if p is not None][:1]
    present = {*own, *(a.dtype for a in tensors)}
    if len(present) < 2 and all(d.kind == "f" for d in present):  # most often by far
        return
    if rule == "one":
        kinds = "fciu" if layer is None else "fc"
        compared = tensors[:1] + [a for a in tensors[1:] if a.dtype.kind in kinds]
        check_equal(name, {*own, *(a.dtype for a in compared)})
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


def applied(function: Callable[..., Any], name: str, rule: str | None, layer: bool = False) -> Any:
    """A function of numgrad's functional, or the forward of a ``layer``, of wrappers."""

    def compute(given: list[Any], params: dict[str, Any], owner: Any = None) -> Any:
        if rule is not None:
            of_dtypes(name, rule, given, params, owner)
        elif "_pool" in name and list(given[2:3]) in ([()], [[]]):
            given[2] = None  # the stride is the length of the window
        return function(*given, **params)

    @wraps(function)
    def called(*args: Any, **params: Any) -> Any:
        given = [a._tensor if type(a) is Tensor else unwrap(a) for a in args]
        out = None
        if params:
            out = params.pop("out", None)
            params = {key: unwrap(value) for key, value in without_legacy(params).items()}
        try:
            result = compute(given, params, args[0] if layer else None)
        except NumgradError as error:
            as_runtime_error(error)
            raise
        if out is not None:
            return write(name, out, result)
        first = args[layer] if len(args) > layer else None
        if isinstance(first, Tensor) and first._tensor is result:
            return first  # in place, or nothing to do
        return wrapped(result) if type(result) is Base else wrap(result)

    called.__module__ = "numgrad.torch.nn.functional"
    return _learned(called, compute) if name in _LEARNED else called


_LEARNED = """
celu cross_entropy elu gelu hardshrink hardsigmoid hardswish hardtanh huber_loss l1_loss layer_norm
leaky_relu linear log_softmax logsigmoid mish mse_loss nll_loss relu relu6 selu sigmoid silu
smooth_l1_loss softmax softmin softplus softshrink softsign tanh tanhshrink
""".split()  # noqa: SIM905
"""Functions of which machine code learns calls that are one operation, none of them in place."""


def _learned(python: Callable[..., Any], compute: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls machine code learns once it is in use."""
    names = [*inspect.signature(python).parameters]
    inplace = names.index("inplace") if "inplace" in names else len(names)
    enter: Any = None

    @wraps(python)
    def called(*args: Any, **params: Any) -> Any:
        nonlocal enter
        if len(args) == inplace + 1 and args[inplace] is False:
            args = args[:inplace]
        if len(args) > inplace or params.get("inplace"):  # which is not to be done twice
            return python(*args, **params)
        if enter is None:
            if not ARGUMENTS.in_use:
                return python(*args, **params)
            enter = LearnedEntry(python.__name__, python, compute, ARGUMENTS, unwrap).call
        return enter(*args, **params)

    return called


FUNCTIONS = {
    name: applied(getattr(functional, name), name, DTYPES.get(_key(name)))
    for name in dir(functional)
    if name[0] != "_"
}
"""Functions of ``torch.nn.functional``."""


class Layer(Module):
    """Base of modules whose computation is that of a class of numgrad's."""

    _layer: ClassVar[type[nn.Module]] = nn.Module
    _has_dtype: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        device = kwargs.pop("device", None)
        if device is not None and str(device) != "meta":
            dtypes.device(device)
        d = kwargs.pop("dtype", None) or dtypes.get_default_dtype()
        options = {name: _argument(value) for name, value in without_legacy(kwargs).items()}
        if self._has_dtype:
            options["dtype"] = unwrap(d)
        adopt(self, face_function(self._layer)(*map(_argument, args), **options))
        reset = getattr(type(self), "reset_parameters", None)
        own = getattr(self._layer, "reset_parameters", None)
        if reset is not None and getattr(reset, "__wrapped__", None) is not own:
            self.reset_parameters()  # one of a subclass


def _forward(cls: type[nn.Module]) -> Any:
    """``forward`` of a layer that applies one of ``FUNCTIONS``; None for others."""
    own: Any = cls.forward
    if cls is nn.Linear:
        return lambda self, input: FUNCTIONS["linear"](input, self.weight, self.bias)
    if cls is nn.Flatten:
        return lambda self, input: input.flatten(self.start_dim, self.end_dim)
    applies = issubclass(cls, Applied) and own.__code__.co_freevars == ("_given",)
    name = own.__closure__[0].cell_contents.__name__ if applies else ""
    if name not in _LEARNED:
        return None
    cell = CellType(FUNCTIONS[name])
    return FunctionType(own.__code__, own.__globals__, "forward", own.__defaults__, (cell,))


def _class_method(member: classmethod) -> classmethod:
    def make(face: Any, *args: Any, **kwargs: Any) -> Any:
        return of_layer(member.__func__(face._layer, *map(_argument, args), **unwrap(kwargs)))

    return classmethod(make)


_MEMBERS: dict[type, Callable[[Any], Any]] = {
    FunctionType: face_function,
    staticmethod: lambda member: staticmethod(face_function(member.__func__)),
    classmethod: _class_method,
    property: lambda member: property(face_function(member.fget)),
}
"""Functions from members of numgrad's classes to those of this room, by the type of a member."""


def _view_class(name: str, cls: type) -> type:
    return type(name, (View, cls), {"__slots__": ()})  # errors name the class


def layer_class(name: str, cls: type[nn.Module], bases: tuple[type, ...]) -> type[Layer]:
    """The class of this room for one of numgrad's."""
    namespace: dict[str, Any] = {"__doc__": cls.__doc__, "__module__": "numgrad.torch.nn"}
    for base in reversed(cls.__mro__[: cls.__mro__.index(nn.Module)]):
        for key, value in vars(base).items():
            if isinstance(value, FunctionType):  # what it reads of a module: Note [Sources]
                namespace[f"__of_{key}__"] = value
            if type(value) in _MEMBERS and key[:2] != "__":
                namespace[key] = _MEMBERS[type(value)](value)
            elif isinstance(value, int | str | tuple) and key[:2] != "__":
                namespace[key] = value
    signature = inspect.signature(cls)
    namespace["_layer"], namespace["__signature__"] = cls, signature
    namespace["_view"] = _view_class(name, cls)
    namespace["_has_dtype"] = "dtype" in signature.parameters
    rule = DTYPES.get(_key(name), "one" if namespace["_has_dtype"] else None)
    namespace["forward"] = _forward(cls) or applied(cls.forward, name, rule, layer=True)
    made: Any = type(name, bases, namespace)
    LAYERS[cls] = made
    return made


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


def classes() -> dict[str, type]:
    """All modules by name."""
    made: dict[str, type] = {group: type(group, (Layer,), {}) for group in _GROUPS}
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
    lazy_names = [name for name in dir(nn) if name.startswith("Lazy")]
    GIVEN.update({name: made[name] for name in made if f"Lazy{name}" in lazy_names})
    lazy = specialize("numgrad.nn.lazy")
    for name in lazy_names:
        LAYERS[getattr(nn, name)] = made[name] = getattr(lazy, name)
    made["Transformer"].generate_square_subsequent_mask = staticmethod(_causal_mask)  # pyright: ignore
    return made
