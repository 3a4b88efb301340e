"""Initial values of parameters: ``torch.nn.init``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from numgrad.nn import init as _base
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.wrapping import unwrap

calculate_gain = _base.calculate_gain


def _of_init(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(tensor: Any, *args: Any, **params: Any) -> Any:
        function(unwrap(tensor), *map(unwrap, args), **unwrap(params))
        return tensor

    return called


def _deprecated(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(*args: Any, **params: Any) -> Any:
        warnings.warn(
            f"nn.init.{name} is now deprecated in favor of nn.init.{name}_.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **params)

    return called


__all__ = ["calculate_gain"]
for _name in dir(_base):
    if _name.endswith("_") and not _name.startswith("_"):
        globals()[_name] = _of_init(getattr(_base, _name))
        globals()[_name[:-1]] = _deprecated(_name[:-1], globals()[_name])
        __all__ += [_name, _name[:-1]]


__getattr__ = _refuse(globals())
