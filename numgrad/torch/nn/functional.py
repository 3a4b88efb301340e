"""Functions of layers: ``torch.nn.functional``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from numgrad.autograd.variable import Tensor as Base
from numgrad.core.op import OPS
from numgrad.errors import NumgradError
from numgrad.nn import functional as _base
from numgrad.torch.calls import write
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn.layers import DTYPES, legacy_reduction, of_dtypes
from numgrad.torch.wrapping import Parameter, Tensor, as_runtime_error, unwrap, wrap, wrapped

_OURS = (Tensor, Parameter)
_LEGACY = ("size_average", "reduce", "_stacklevel")
_OF_AXES = ("cosine_similarity", "normalize")
"""Functions along an axis, which PyTorch lets an operand without axes have."""


def of_functional(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numgrad's functional as one of Tensors of this room."""
    name = function.__name__
    rule = DTYPES.get(name)

    @wraps(function)
    def called(*args: Any, **params: Any) -> Any:
        given = [a._tensor if type(a) in _OURS else unwrap(a) for a in args]
        out = params.pop("out", None)
        if params:
            if any(params.get(name) is not None for name in _LEGACY[:2]):
                params["reduction"] = legacy_reduction(params)
            params = {k: unwrap(v) for k, v in params.items() if k not in _LEGACY}
        if rule is not None:
            of_dtypes(name, rule, given, params)
        bare = name in _OF_AXES and bool(given) and getattr(given[0], "ndim", 1) == 0
        if bare:
            given = [OPS["reshape"](a, shape=(1,)) if isinstance(a, Base) else a for a in given]
        elif "_pool" in name and list(given[2:3]) in ([()], [[]]):
            given[2] = None  # the stride is the length of the window
        try:
            result = function(*given, **params)
        except NumgradError as error:
            as_runtime_error(error)
            raise
        if bare:
            result = OPS["reshape"](result, shape=())
        if out is not None:
            return write(name, out, result)
        if type(result) is not Base:
            return wrap(result)
        for a, b in zip(args, given, strict=True):
            if (
                result is b and isinstance(a, Tensor) and a._tensor is b
            ):  # in place, or nothing to do
                return a
        return wrapped(result)

    called.__module__ = __name__
    return called


__all__ = [name for name in dir(_base) if not name.startswith("_")]
for _name in __all__:
    globals()[_name] = of_functional(getattr(_base, _name))
for _name in ("relu", "elu", "celu", "selu", "hardtanh", "leaky_relu", "rrelu", "threshold"):
    globals()[f"{_name}_"] = partial(globals()[_name], inplace=True)
    __all__.append(f"{_name}_")
for _name in ("adaptive_max_pool", "fractional_max_pool", "max_pool"):
    for _rank in "123"[_name[0] == "f" :]:
        _pool = f"{_name}{_rank}d"
        globals()[f"{_pool}_with_indices"] = partial(globals()[_pool], return_indices=True)
        __all__.append(f"{_pool}_with_indices")


def linear_cross_entropy(
    input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None,
    reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:  # fmt: skip
    """The cross entropy of a linear layer's scores; ``options`` change how PyTorch computes it."""
    *outputs, features = linear_weight.shape
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = globals()["linear"](input, linear_weight.reshape(-1, features), bias)
    scores = scores.reshape(*input.shape[:-1], *outputs)
    ignored = -100 if ignore_index is None else ignore_index
    return globals()["cross_entropy"](
        scores, target, weight, ignore_index=ignored, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip


__all__.append("linear_cross_entropy")
__getattr__ = _refuse(globals())
