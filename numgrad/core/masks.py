"""Masked arrays, which nothing here takes: their masks would be lost."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError


def refuse_mask(name: str, value: Any) -> None:
    """Raise for a masked array, or a list that holds one.

    Raises
    ------
    NumgradTypeError
        With what to write instead; ``name`` is the operation's, or empty if that is not known.
    """
    try:
        masked = _has_mask(value)
    except RecursionError:  # of a list in itself, for the error that names it
        return
    if masked:
        raise NumgradTypeError(
            f"{name and f'{name}: '}a masked array among the operands would lose its mask; give "
            "its numbers with .filled(value), and choose by the mask with np.where"
        )


def _has_mask(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_has_mask(v) for v in value if isinstance(v, list | tuple | np.ndarray))
    return isinstance(value, np.ndarray) and hasattr(value, "filled")  # np.ma is not imported
