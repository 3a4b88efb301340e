"""Functions of layers: ``torch.nn.functional``."""

from functools import partial as _partial

from numgrad.nn import functional as _base
from numgrad.torch.calls import function_of as _function_of, table as _table
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn.layers import FUNCTIONS as _FUNCTIONS

_ROWS = """
[float 0:2 function values]
cosine_similarity(x1, x2, dim=1, eps=1e-8): (
    F.cosine_similarity(x1, x2, dim, eps) if x1.ndim or x2.ndim else
    F.cosine_similarity(x1[None], x2[None], dim, eps))
[float 0:1 function values axis]
normalize(input, p=2.0, dim=1, eps=1e-12): F.normalize(input, p, dim, eps)
"""
globals().update(_FUNCTIONS)
for _name, _row in _table("nn.functional", {"F": _base}, _ROWS).items():
    globals()[_name] = _function_of(_row)
for _name in ("relu", "elu", "celu", "selu", "hardtanh", "leaky_relu", "rrelu", "threshold"):
    globals()[f"{_name}_"] = _partial(globals()[_name], inplace=True)
for _name in ("adaptive_max_pool", "fractional_max_pool", "max_pool"):
    for _rank in "123"[_name[0] == "f" :]:
        _pool = f"{_name}{_rank}d"
        globals()[f"{_pool}_with_indices"] = _partial(globals()[_pool], return_indices=True)
__all__ = [_name for _name in globals() if _name[0] != "_"]  # pyright: ignore
__getattr__ = _refuse(globals())
