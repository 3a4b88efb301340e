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
    if isinstance(value, list | tuple):
        for part in value:
            if isinstance(part, list | tuple | np.ndarray):
                refuse_mask(name, part)
    elif isinstance(value, np.ndarray) and hasattr(value, "filled"):  # nothing imports np.ma early
        raise NumgradTypeError(
            f"{name and f'{name}: '}a masked array among the operands would lose its mask; give "
            "its numbers with .filled(value), and choose by the mask with np.where"
        )
