"""Jacobians, Hessians and their products with vectors: ``torch.autograd.functional``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.autograd import functional as base
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.wrapping import refuse_transformed, unwrap, user_function, wrap


def transform(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numgrad's whose first argument is a function, for functions of users."""

    def called(func: Callable[..., Any], *args: Any, **params: Any) -> Any:
        refuse_transformed(f"torch.autograd.functional.{function.__name__}")
        return wrap(function(user_function(func), *unwrap(args), **unwrap(params)))

    called.__name__ = function.__name__
    called.__doc__ = str(function.__doc__).partition("    Examples\n")[0]  # which are numgrad's
    return called


vjp = transform(base.vjp)
jvp = transform(base.jvp)
vhp = transform(base.vhp)
hvp = transform(base.hvp)
jacobian = transform(base.jacobian)
hessian = transform(base.hessian)


__getattr__ = _refuse(globals())
