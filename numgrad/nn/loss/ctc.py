"""The loss of sequences of labels whose times are unknown."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.nn.loss.ctc_operation import ctc
from numgrad.nn.loss.functional import check_reduction
from numgrad.operations.shape import reshape
from numgrad.tensors.creation import asarray, tensor
from numgrad.tensors.tensor import Tensor

_NAME = "ctc_loss"


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Negative log-likelihood of labels, summed over all times at which they may be.

    Parameters
    ----------
    log_probs
        Logarithms of probabilities, as ``log_softmax`` gives them: (times, examples, classes), or
        (times, classes) for one example.
    targets
        Labels, (examples, labels), or those of all examples one after another.
    input_lengths, target_lengths
        How many times and how many labels each example has.
    blank
        The class that stands for no label.
    reduction
        ``"mean"``, of losses divided by their numbers of labels, ``"sum"`` or ``"none"``.
    zero_infinity
        Make losses of labels that cannot be in so short a time 0, instead of infinite with a
        gradient of NaN.

    Raises
    ------
    NumgradTypeError
        If ``log_probs`` is not floating, or labels or lengths are no integers.
    NumgradValueError
        If shapes do not fit, a length is too large, or a label is no class or the blank.

    Notes
    -----
    The gradient is that of the formula. PyTorch's is what ``log_softmax`` makes of it, added to a
    constant that ``log_softmax`` takes away again: after that both are the same.

    References
    ----------
    A. Graves et al., "Connectionist temporal classification", ICML 2006.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> log_probs = ng.tensor(np.log(np.full((2, 1, 2), 0.5)))
    >>> round(ng.nn.functional.ctc_loss(log_probs, [[1]], [2], [1]).item(), 9)
    0.287682072
    """
    check_reduction(_NAME, reduction)
    x = asarray(log_probs)
    if x.dtype.kind != "f" or x.ndim not in (2, 3):
        kind = NumgradTypeError if x.dtype.kind != "f" else NumgradValueError
        raise kind(
            f"{_NAME}: log_probs of shape {tuple(x.shape)} and dtype {x.dtype}; they are real "
            "floating numbers of shape (times, examples, classes) or (times, classes)"
        )
    single = x.ndim == 2
    if single:
        x = reshape(x, (x.shape[0], 1, x.shape[1]))
    times, lengths = (
        _lengths(name, given, x.shape[1])
        for name, given in (("input_lengths", input_lengths), ("target_lengths", target_lengths))
    )
    labels = _labels(targets, lengths, x.shape[1], single)
    _check_ranges(x, labels, times, lengths, blank)
    losses = ctc(x, labels, times, lengths, blank=int(blank), zero_infinity=bool(zero_infinity))
    if reduction == "mean":
        return (losses / np.maximum(lengths, 1).astype(x.dtype)).mean()
    if reduction == "sum":
        return losses.sum()
    return losses[0] if single else losses


def _lengths(name: str, given: Any, examples: int) -> Tensor:
    found = asarray(given)
    if found.dtype.kind not in "iu":
        raise NumgradTypeError(f"{_NAME}: {name} must be integers, got dtype {found.dtype}")
    found = reshape(found, (1,)) if found.ndim == 0 else found
    if found.ndim != 1 or found.shape[0] != examples:
        raise NumgradValueError(
            f"{_NAME}: {name} of shape {tuple(found.shape)}; there is one for each of {examples} "
            "examples"
        )
    return found


def _labels(given: Any, lengths: Tensor, examples: int, single: bool) -> Tensor:
    """Labels as (examples, labels)."""
    found = asarray(given)
    if found.dtype.kind not in "iu" and found.size:
        raise NumgradTypeError(f"{_NAME}: targets must be integers, got dtype {found.dtype}")
    if found.dtype.kind not in "iu":
        found = found.astype(np.int64)
    if found.ndim == 2 and found.shape[0] == examples:
        return found
    if found.ndim != 1:
        raise NumgradValueError(
            f"{_NAME}: targets of shape {tuple(found.shape)}; they need shape ({examples}, "
            "labels), or one axis with those of all examples"
        )
    if single:
        return reshape(found, (1, -1))
    counts, flat = state.ground.numbers(lengths), state.ground.numbers(found)
    if counts is None or flat is None:
        raise NumgradRuntimeError(
            f"{_NAME}: targets one after another cannot be told apart while a function is traced; "
            "give them as an array (examples, labels)"
        )
    if counts.min(initial=0) < 0 or counts.sum() != len(flat):
        raise NumgradValueError(
            f"{_NAME}: {len(flat)} targets one after another with target_lengths "
            f"{counts.tolist()}, whose sum is {counts.sum()}"
        )
    padded = np.zeros((examples, counts.max(initial=0)), np.int64)
    padded[np.arange(padded.shape[1]) < counts[:, np.newaxis]] = flat
    return tensor(padded)


def _check_ranges(x: Tensor, labels: Tensor, times: Tensor, lengths: Tensor, blank: int) -> None:
    """Raise, as far as numbers are known, unless lengths and labels are possible."""
    steps, _, classes = x.shape
    if not 0 <= blank < classes:
        raise NumgradValueError(f"{_NAME}: blank is {blank}; classes run from 0 to {classes - 1}")
    for name, given, most in (
        ("input_lengths", times, steps), ("target_lengths", lengths, labels.shape[1]),
    ):  # fmt: skip
        numbers = state.ground.numbers(given)
        if (
            numbers is not None
            and not 0 <= numbers.min(initial=0) <= numbers.max(initial=0) <= most
        ):
            raise NumgradValueError(f"{_NAME}: {name} {numbers.tolist()} must be from 0 to {most}")
    known, counts = state.ground.numbers(labels), state.ground.numbers(lengths)
    if known is not None and counts is not None:
        used = known[np.arange(known.shape[1]) < counts[:, np.newaxis]]
        if used.size and not 0 <= used.min() <= used.max() < classes:
            raise NumgradValueError(
                f"{_NAME}: targets run from {used.min()} to {used.max()}, and classes from 0 to "
                f"{classes - 1}"
            )
        if (used == blank).any():
            raise NumgradValueError(f"{_NAME}: the blank, {blank}, cannot be a label")
