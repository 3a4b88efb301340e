"""Functions of layers: ``torch.nn.functional``."""

from __future__ import annotations

from functools import partial
from typing import Any

from numgrad.nn import functional as _base
from numgrad.torch.calls import function_of, table
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn.layers import DTYPES, applied


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
    globals()[_name] = applied(getattr(_base, _name), _name, DTYPES.get(_name))
    globals()[_name].__module__ = __name__
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
