"""Padding with PyTorch's names and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.operations import extend
from numgrad.operations.index import getitem
from numgrad.operations.shape import as_index, as_operand
from numgrad.tensors.tensor import Tensor

MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
"""Names of the modes in NumPy."""


def pad(
    input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """The input with elements added at the ends of its last axes.

    Parameters
    ----------
    input
        Array with axes.
    pad
        Pairs of numbers of elements before and behind, the last axis first: ``(left, right, top,
        bottom)``. Negative numbers take elements away; ``"circular"`` goes on with what is left.
    mode
        ``"constant"``; ``"reflect"``, which mirrors at the elements at the ends;
        ``"replicate"``, which repeats those; ``"circular"``, which goes on at the other end.
    value
        What ``"constant"`` adds, 0 by default.

    Raises
    ------
    NumgradValueError
        If ``pad`` has an odd length or pairs for more axes than there are, the mode is unknown, or
        an axis is too short to mirror or to repeat it.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[1.0, 2.0, 3.0]])
    >>> ng.nn.functional.pad(x, (1, 2))
    tensor([[0., 1., 2., 3., 0., 0.]])
    >>> ng.nn.functional.pad(x, (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    x = as_operand(input)
    shape = tuple(x.shape)
    given = [as_index("pad", n, "a width") for n in pad]
    if len(given) % 2 or len(given) > 2 * len(shape):
        raise NumgradValueError(
            f"pad: widths {tuple(pad)} must be pairs (before, behind), the last axis first, for at "
            f"most the {len(shape)} axes of shape {shape}"
        )
    if mode not in MODES:
        raise NumgradValueError(f"pad: mode {mode!r} is not available; use one of {tuple(MODES)}")
    if mode != "constant" and value:
        raise NumgradValueError(f"pad: mode {mode!r} takes no value; leave it out")
    pairs = list(zip(given[::2], given[1::2], strict=True))[::-1]
    pairs = [(0, 0)] * (len(shape) - len(pairs)) + pairs
    for axis, (n, width) in enumerate(zip(shape, pairs, strict=True)):
        kept = n + sum([min(count, 0) for count in width])
        most = {"reflect": n - 1, "circular": kept}.get(mode)
        if most is not None and max(width) > max(most, 0):
            raise NumgradValueError(
                f"pad: mode {mode!r} can add at most {most} elements at an end of axis {axis} of "
                f"shape {shape}, got {width}"
            )
        if n + sum(width) < 0 or (mode == "circular" and kept < 0):
            raise NumgradValueError(
                f"pad: widths {width} take more than there is of axis {axis} of shape {shape}"
            )
    added = [(max(before, 0), max(behind, 0)) for before, behind in pairs]
    options = {"constant_values": value or 0} if mode == "constant" else {}
    if mode == "circular":  # what is taken away does not come back at the other end
        return extend.pad(_without(x, pairs), added, MODES[mode])
    return _without(extend.pad(x, added, MODES[mode], **options), pairs)


def _without(x: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
    """The elements that negative widths leave."""
    if min(map(min, pairs), default=0) >= 0:
        return x
    kept = [
        slice(max(-before, 0), n - max(-behind, 0))
        for (before, behind), n in zip(pairs, x.shape, strict=True)
    ]
    return getitem(x, tuple(kept))
