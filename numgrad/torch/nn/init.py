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


def _of_init(function: Callable[..., Any], told: str = "") -> Callable[..., Any]:
    """A function that fills a Tensor; what is ``told`` is a warning."""

    @wraps(function)
    def called(tensor: Any, *args: Any, **params: Any) -> Any:
        if told:
            warnings.warn(told, FutureWarning, stacklevel=2)
        function(unwrap(tensor), *map(unwrap, args), **unwrap(params))
        return tensor

    return called


__all__ = ["calculate_gain"]
for _name in dir(_base):
    if _name.endswith("_") and not _name.startswith("_"):
        _old, _function = _name[:-1], getattr(_base, _name)
        _told = f"nn.init.{_old} is now deprecated in favor of nn.init.{_name}."
        globals().update({_name: _of_init(_function), _old: _of_init(_function, _told)})
        __all__ += [_name, _old]


__getattr__ = _refuse(globals())
