"""``torch.autograd.gradcheck``: derivatives compared with differences."""

from __future__ import annotations

from typing import Any

from numgrad import testing
from numgrad.errors import GradcheckError as GradcheckError, NumgradAssertionError
from numgrad.torch.wrapping import unwrap, user_function


def gradcheck(func: Any, inputs: Any, *, masked: Any = None, **options: Any) -> bool:
    """Compare the first derivatives of a function with differences."""
    if not (options.get("check_forward_ad") or options.get("check_backward_ad", True)):
        raise NumgradAssertionError(
            "gradcheck: Expected at least one of check_forward_ad and check_backward_ad to be True"
        )
    return testing.gradcheck(user_function(func), unwrap(inputs), **options)


def gradgradcheck(
    func: Any, inputs: Any, grad_outputs: Any = None, *, masked: Any = None, **options: Any
) -> bool:
    """Compare the second derivatives of a function with differences."""
    given = unwrap(grad_outputs)
    return testing.gradgradcheck(user_function(func), unwrap(inputs), given, **options)
