"""Functions of layers: ``torch.nn.functional``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import Any

from numgrad.autograd.variable import Tensor as Base
from numgrad.errors import NumgradError
from numgrad.nn import functional as _base
from numgrad.tensors.learned_calls import LearnedEntry
from numgrad.torch.calls import ARGUMENTS, function_of, table, write
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn.layers import DTYPES, of_dtypes, without_legacy
from numgrad.torch.wrapping import as_runtime_error, unwrap, wrap, wrapped

_NAMES = """
    celu cross_entropy elu gelu hardshrink hardsigmoid hardswish hardtanh huber_loss l1_loss
    layer_norm leaky_relu linear log_softmax logsigmoid mish mse_loss nll_loss relu relu6 selu
    sigmoid silu smooth_l1_loss softmax softmin softplus softshrink softsign tanh tanhshrink
"""
LEARNED = frozenset(_NAMES.split())
"""Functions of which machine code learns calls that are one operation, none of them in place."""


def of_functional(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numgrad's functional as one of Tensors of this room."""
    name = function.__name__
    rule = DTYPES.get(name)

    def compute(given: list[Any], params: dict[str, Any]) -> Any:
        if rule is not None:
            of_dtypes(name, rule, given, params)
        if "_pool" in name and list(given[2:3]) in ([()], [[]]):
            given[2] = None  # the stride is the length of the window
        return function(*given, **params)

    @wraps(function)
    def called(*args: Any, **params: Any) -> Any:
        out = params.pop("out", None)
        if params:
            params = {k: unwrap(v) for k, v in without_legacy(params).items()}
        try:
            result = compute([unwrap(a) for a in args], params)
        except NumgradError as error:
            as_runtime_error(error)
            raise
        if out is not None:
            return write(name, out, result)
        if type(result) is not Base:
            return wrap(result)
        same = args and getattr(args[0], "_tensor", None) is result  # in place, or nothing to do
        return args[0] if same else wrapped(result)

    called.__module__ = __name__
    return _learned(called, compute) if name in LEARNED else called


def _learned(python: Callable[..., Any], compute: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose calls machine code learns once it is in use."""
    parameters = [*signature(python).parameters]
    inplace = parameters.index("inplace") if "inplace" in parameters else len(parameters)
    enter: Any = None

    @wraps(python)
    def called(*args: Any, **params: Any) -> Any:
        nonlocal enter
        rest = args[inplace:]
        if rest and len(rest) == 1 and rest[0] is False:
            args, rest = args[:inplace], ()
        if rest or params.get("inplace"):  # which is not to be done twice
            return python(*args, **params)
        if enter is None:
            if not ARGUMENTS.in_use:
                return python(*args, **params)
            enter = LearnedEntry(python.__name__, python, compute, ARGUMENTS, unwrap).call
        return enter(*args, **params)

    return called


def _linear_cross_entropy(
    x: Any, weight: Any, target: Any, bias: Any, scale: Any, ignored: int | None, **options: Any
) -> Any:
    *outputs, features = weight.shape
    bias = None if bias is None else bias.reshape(-1)
    scores = _base.linear(x, weight.reshape(-1, features), bias)
    scores = scores.reshape((*x.shape[:-1], *outputs))
    ignored = -100 if ignored is None else ignored
    return _base.cross_entropy(scores, target, scale, ignore_index=ignored, **options)


__all__ = [name for name in dir(_base) if not name.startswith("_")]
for _name in __all__:
    globals()[_name] = of_functional(getattr(_base, _name))
_ROWS = """
[float 0:2 function values]
cosine_similarity(x1, x2, dim=1, eps=1e-8): (
    _base.cosine_similarity(x1, x2, dim, eps) if x1.ndim or x2.ndim else
    _base.cosine_similarity(x1[None], x2[None], dim, eps))
[float 0:1 function values axis]
normalize(input, p=2.0, dim=1, eps=1e-12): _base.normalize(input, p, dim, eps)
[same 0:2 function values]
linear_cross_entropy(
    input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean",
    ignore_index=None, label_smoothing=0.0, options=None): _linear_cross_entropy(
    input, linear_weight, target, linear_bias, weight, ignore_index, reduction=reduction,
    label_smoothing=label_smoothing)
"""
for _name, _row in table("nn.functional", globals(), _ROWS).items():
    globals()[_name] = function_of(_row)
    __all__.append(_name)
for _name in ("relu", "elu", "celu", "selu", "hardtanh", "leaky_relu", "rrelu", "threshold"):
    globals()[f"{_name}_"] = partial(globals()[_name], inplace=True)
    __all__.append(f"{_name}_")
for _name in ("adaptive_max_pool", "fractional_max_pool", "max_pool"):
    for _rank in "123"[_name[0] == "f" :]:
        _pool = f"{_name}{_rank}d"
        globals()[f"{_pool}_with_indices"] = partial(globals()[_pool], return_indices=True)
        __all__.append(f"{_pool}_with_indices")
__getattr__ = _refuse(globals())
