"""``torch.autograd.gradcheck``: derivatives compared with differences."""

from __future__ import annotations

from typing import Any

from numgrad import testing
from numgrad.torch.wrapping import unwrap, user_function


class GradcheckError(RuntimeError):
    """Raised where derivatives are not those of differences."""


def gradcheck(func: Any, inputs: Any, **options: Any) -> bool:
    """Compare the first derivatives of a function with differences."""
    return _checked(testing.gradcheck, func, unwrap(inputs), options)


def gradgradcheck(func: Any, inputs: Any, grad_outputs: Any = None, **options: Any) -> bool:
    """Compare the second derivatives of a function with differences."""
    options["grad_outputs"] = unwrap(grad_outputs)
    return _checked(testing.gradgradcheck, func, unwrap(inputs), options)


def _checked(check: Any, func: Any, inputs: Any, options: dict[str, Any]) -> bool:
    options.pop("masked", None)  # which concerns sparse layouts
    try:
        return bool(check(user_function(func), inputs, **options))
    except AssertionError as error:
        raise GradcheckError(str(error)) from None
