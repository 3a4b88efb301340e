"""Gradients of all operands of a call, computed together and asked for one by one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def follows(meta: Any) -> bool:
    """Whether something of that dtype has derivatives."""
    return meta.dtype.kind in "fc"


class OfOneCall(threading.local):
    """The gradients of all operands of one call, asked for one by one in a thread.

    Parameters
    ----------
    pulled
        Computes all of them, given cotangents, operands, results and parameters.
    """

    last: tuple[Any, list[Any]] | None = None

    def __init__(self, pulled: Callable[..., list[Any]]) -> None:
        self.pulled = pulled

    def __call__(self, g: Any, inputs: Any, y: Any, index: int, **params: Any) -> Any:
        """The gradient of one operand, None if it has none."""
        wanted = [k for k, x in enumerate(inputs) if follows(x)]
        if index not in wanted:
            return None
        key, known = (*g, *inputs), self.last
        same = (
            known is not None
            and len(known[0]) == len(key)
            and all(a is b for a, b in zip(known[0], key, strict=True))
        )
        if known is None or not same:
            known = key, self.pulled(g, inputs, y, params)
        self.last = None if index == wanted[-1] else known  # nothing is held longer than needed
        return known[1][index]
