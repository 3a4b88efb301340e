"""Functions of ndarrays as operations without derivatives.

A batch is computed example by example, and ``torch.compile`` calls them between two kernels; with
the numbers of a Tensor looked at by hand neither would be possible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.core.declare import primitive


@primitive(internal=True, method=False, differentiable=False, outputs=True)
def array_function(x, y, *, how):
    """Results of a function of ndarrays."""
    results = how(x, y)
    return results if type(results) is tuple else (results,)


def computed(how: Callable[..., Any], x: Any, y: Any = None) -> Any:
    """Apply a function to the array, or both arrays, of Tensors: a Tensor or a tuple."""
    if y is None:
        results = array_function(x, x, how=lambda a, _: how(a))
    else:
        results = array_function(x, y, how=how)
    return results[0] if len(results) == 1 else results
