"""Connectionist temporal classification: the likelihood of labels whose times are unknown.

Note [Paths of labels]
----------------------
Labels with a blank before, between and behind them are states; a path stays in its state, goes to
the next, or to the one after that if a blank lies between two different labels. ``alpha`` has the
logarithms of the probabilities of all paths from the start to each state at each time, ``beta`` of
those from there to the end. What is impossible has a logarithm of ``NEVER``, with which differences
stay numbers.

The gradient of a likelihood are the probabilities of the states at each time, ``ctc_shares``. Their
derivative is a symmetric matrix, so that one formula is both gradient and tangent: it carries the
slopes of all logarithms along. It is made of operations, and has derivatives in turn.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.kernels.ctc import likelihood_kernel, shares_kernel
from numgrad.nn.applied import applies
from numgrad.nn.loss.regression import BaseLoss, check_reduction
from numgrad.operations.arrangement import swapaxes
from numgrad.operations.choice import where
from numgrad.operations.compare import equal
from numgrad.operations.index import getitem
from numgrad.operations.join import concat, stack
from numgrad.operations.matmul import matmul
from numgrad.operations.reduce import logsumexp, sum
from numgrad.operations.shape import broadcast_to, expand_dims, reshape
from numgrad.operations.take import take_along_axis
from numgrad.tensors.creation import asarray, tensor
from numgrad.tensors.tensor import Tensor

NEVER = -1e30


class _Paths:
    """States of each example, and which of them begin, follow each other, and end.

    ``t_x``, if not None, is a direction, and slopes are those along it.
    """

    def __init__(self, x: Any, targets: Any, lengths: Any, blank: int, t_x: Any = None) -> None:
        examples, labels = targets.shape
        blanks = targets * 0 + blank
        pairs = reshape(stack(blanks, targets, axis=2), (examples, 2 * labels))
        self.states = concat(pairs, expand_dims(lengths * 0 + blank, 1), axis=1)
        number = 2 * labels + 1
        place = np.arange(number)
        last = 2 * expand_dims(lengths, 1)
        some = last > 0
        self.begin = (place == 0) | ((place == 1) & some)
        self.end = (place == last) | ((place == last - 1) & some)
        before = concat(self.states[:, :2], self.states[:, : number - 2], axis=1)
        skips = (place >= 2) & (self.states != blank) & (self.states != before)
        self.skip = where(skips, 0.0, NEVER).astype(x.dtype)
        self.never = self.skip[:, :1] * 0 + NEVER
        places = broadcast_to(expand_dims(self.states, 0), (x.shape[0], examples, number))
        self.logs = np.maximum(take_along_axis(x, places, axis=2), NEVER)
        self.slopes = None if t_x is None else take_along_axis(t_x, places, axis=2)

    def _slope(self, t: int) -> Any:
        return None if self.slopes is None else getitem(self.slopes, t)

    def _later(self, x: Any, fill: Any) -> tuple[Any, Any, Any]:
        """Terms that a state gets from itself and the two before it."""
        one = concat(fill, x[:, :-1], axis=1)
        return x, one, concat(fill, one[:, :-1], axis=1)

    def _earlier(self, x: Any, fill: Any) -> tuple[Any, Any, Any]:
        """Terms that a state gets from itself and the two behind it."""
        one = concat(x[:, 1:], fill, axis=1)
        return x, one, concat(one[:, 1:], fill, axis=1)

    def alpha(self) -> tuple[list[Any], list[Any]]:
        """Logarithms of all paths from the start to each state at each time, and slopes."""
        now, slope = where(self.begin, getitem(self.logs, 0), NEVER), self._slope(0)
        states, slopes = [now], [slope]
        for t in range(1, self.logs.shape[0]):
            a, b, c = self._later(now, self.never)
            steps = None if slope is None else self._later(slope, self.never * 0)
            now, slope = _either((a, b, c + self.skip), steps)
            now = now + getitem(self.logs, t)
            slope = None if slope is None else slope + self._slope(t)
            states.append(now)
            slopes.append(slope)
        return states, slopes

    def beta(self, times: Any) -> tuple[list[Any], list[Any]]:
        """Logarithms of all paths from each state to the end, what is seen there left out."""
        stop = where(self.end, 0.0, NEVER).astype(self.logs.dtype)
        last = expand_dims(times - 1, 1)
        now, slope = stop, None if self.slopes is None else stop * 0
        states, slopes = [now], [slope]
        for t in range(self.logs.shape[0] - 2, -1, -1):
            here = now + getitem(self.logs, t + 1)
            a, b, _ = self._earlier(here, self.never)
            _, _, c = self._earlier(here + self.skip, self.never)
            steps = None
            if slope is not None:
                steps = self._earlier(slope + self._slope(t + 1), self.never * 0)
            now, slope = _either((a, b, c), steps)
            now = where(last == t, stop, now)
            slope = None if slope is None else where(last == t, 0.0, slope)
            states.append(now)
            slopes.append(slope)
        return states[::-1], slopes[::-1]


def _either(terms: tuple[Any, Any, Any], slopes: Any) -> tuple[Any, Any]:
    """The logarithm of the sum of exponentials, and its slope."""
    a, b, c = terms
    total = np.logaddexp(np.logaddexp(a, b), c)
    if slopes is None:
        return total, None
    p, q, r = (np.exp(term - total) * slope for term, slope in zip(terms, slopes, strict=True))
    return total, p + q + r


def _impossible(likelihood: Any) -> Any:
    return likelihood < NEVER / 2


def _shares(
    x: Any, targets: Any, times: Any, lengths: Any, blank: int, zero_infinity: bool, t_x: Any = None
) -> Any:
    """Probabilities of classes at each time, given the labels; with a direction their slopes."""
    if not x.shape[0]:
        return x * 0
    paths = _Paths(x, targets, lengths, blank, t_x)
    (alpha, t_alpha), (beta, t_beta) = paths.alpha(), paths.beta(times)
    both = stack(alpha) + stack(beta)
    likelihood = logsumexp(getitem(both, 0), axis=1, keepdims=True)
    impossible = _impossible(likelihood)
    likelihood = expand_dims(where(impossible, 0.0, likelihood), 0)
    shares = np.exp(both - likelihood)
    if t_x is not None:
        slopes = stack(t_alpha) + stack(t_beta)
        first = getitem(shares, slice(0, 1)) * getitem(slopes, slice(0, 1))
        shares = shares * (slopes - sum(first, axis=2, keepdims=True))
    shares = where(impossible, 0.0 if zero_infinity else np.nan, shares)
    running = expand_dims(np.arange(x.shape[0]), 1) < times
    shares = where(expand_dims(running, 2), shares, 0.0).astype(x.dtype)
    classes = equal(expand_dims(paths.states, 2), np.arange(x.shape[2])).astype(x.dtype)
    return swapaxes(matmul(swapaxes(shares, axis1=0, axis2=1), classes), axis1=0, axis2=1)


def _check_real(x: np.ndarray) -> None:
    check_dtype("ctc_loss", x.dtype)
    if x.dtype.kind != "f":
        raise NumgradTypeError(
            f"ctc_loss: logarithms of probabilities are real floating numbers, got {x.dtype}"
        )


_STATE_NS = 40.0  # two logarithms and six exponentials


def _launched(
    kernel: Any, x: np.ndarray, targets: Any, times: Any, lengths: Any, blank: int, *results: Any
) -> None:
    """Run a kernel on all examples."""
    steps, examples, classes = x.shape
    states = np.full((examples, 2 * targets.shape[1] + 1), blank, np.int64)
    states[:, 1::2] = targets
    skips = np.zeros(states.shape, np.int64)
    skips[:, 3::2] = targets[:, 1:] != targets[:, :-1]
    if not examples:
        return
    # classes that padding stands for are not looked at, but read
    states = np.where(np.arange(states.shape[1]) < 2 * lengths[:, np.newaxis] + 1, states, blank)
    entry = threads.choose(
        partial(kernel, x.dtype, False),
        partial(kernel, x.dtype, True),
        _STATE_NS * steps * states.size if examples > 1 else 0.0,
    )
    alpha = np.empty((examples, steps * states.shape[1]), x.dtype)
    entry(
        np.ascontiguousarray(x).ravel(), states, skips, times.astype(np.int64),
        2 * lengths.astype(np.int64), alpha, *results, examples * classes, classes,
    )  # fmt: skip


@primitive(internal=True, method=False, real_only=True, smooth=True)
def ctc_shares(x, targets, times, lengths, *, blank, zero_infinity):
    """Probabilities of classes at each time, given the labels: Note [Paths of labels]."""
    _check_real(x)
    out = np.zeros(x.shape, x.dtype)
    beta = np.empty((x.shape[1], 2 * (2 * targets.shape[1] + 1)), x.dtype)
    kernel = partial(shares_kernel, zeros=zero_infinity)
    _launched(kernel, x, targets, times, lengths, blank, beta, out.ravel())
    return out


ctc_shares.shape(lambda x, targets, times, lengths, **_: Meta(x.shape, x.dtype))


ctc_shares.no_derivative("targets", "times", "lengths")


ctc_shares.vjp(
    x=lambda g, x, targets, times, lengths, blank, zero_infinity: _shares(
        x, targets, times, lengths, blank, zero_infinity, g
    )
)


@primitive(internal=True, method=False, real_only=True, smooth=True)
def ctc(x, targets, times, lengths, *, blank, zero_infinity):
    """Negative log-likelihood of labels, for each example: Note [Paths of labels]."""
    _check_real(x)
    likelihood = np.empty(x.shape[1], x.dtype)
    _launched(likelihood_kernel, x, targets, times, lengths, blank, likelihood)
    instead = 0.0 if zero_infinity else np.inf
    return np.where(_impossible(likelihood), instead, -likelihood).astype(x.dtype)


ctc.shape(lambda x, targets, times, lengths, **_: Meta((x.shape[1],), x.dtype))


def _ctc_vjp(g, x, targets, times, lengths, blank, zero_infinity):
    shares = ctc_shares(x, targets, times, lengths, blank=blank, zero_infinity=zero_infinity)
    return -shares * expand_dims(expand_dims(g, 0), 2)


ctc.no_derivative("targets", "times", "lengths")


ctc.vjp(x=_ctc_vjp)


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
        _lengths(name, counts, x.shape[1])
        for name, counts in (("input_lengths", input_lengths), ("target_lengths", target_lengths))
    )
    labels = _labels(targets, lengths, x.shape[1], single)
    _check_ranges(x, labels, times, lengths, blank)
    losses = ctc(x, labels, times, lengths, blank=int(blank), zero_infinity=bool(zero_infinity))
    if reduction == "mean":
        return (losses / np.maximum(lengths, 1).astype(x.dtype)).mean()
    if reduction == "sum":
        return losses.sum()
    return losses[0] if single else losses


def _lengths(name: str, values: Any, examples: int) -> Tensor:
    lengths = asarray(values)
    if lengths.dtype.kind not in "iu":
        raise NumgradTypeError(f"{_NAME}: {name} must be integers, got dtype {lengths.dtype}")
    lengths = reshape(lengths, (1,)) if lengths.ndim == 0 else lengths
    if lengths.ndim != 1 or lengths.shape[0] != examples:
        raise NumgradValueError(
            f"{_NAME}: {name} of shape {tuple(lengths.shape)}; there is one for each of {examples} "
            "examples"
        )
    return lengths


def _labels(values: Any, lengths: Tensor, examples: int, single: bool) -> Tensor:
    """Labels as (examples, labels)."""
    labels = asarray(values)
    if labels.dtype.kind not in "iu" and labels.size:
        raise NumgradTypeError(f"{_NAME}: targets must be integers, got dtype {labels.dtype}")
    if labels.dtype.kind not in "iu":
        labels = labels.astype(np.int64)
    if labels.ndim == 2 and labels.shape[0] == examples:
        return labels
    if labels.ndim != 1:
        raise NumgradValueError(
            f"{_NAME}: targets of shape {tuple(labels.shape)}; they need shape ({examples}, "
            "labels), or one axis with those of all examples"
        )
    if single:
        return reshape(labels, (1, -1))
    counts, flat = state.ground.numbers(lengths), state.ground.numbers(labels)
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
    for name, values, most in (
        ("input_lengths", times, steps), ("target_lengths", lengths, labels.shape[1]),
    ):  # fmt: skip
        numbers = state.ground.numbers(values)
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


@applies(ctc_loss)
class CTCLoss(BaseLoss):
    """Negative log-likelihood of labels, summed over all times at which they may be.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> log_probs = ng.tensor(np.log(np.full((2, 1, 2), 0.5)))
    >>> round(ng.nn.CTCLoss()(log_probs, np.array([[1]]), [2], [1]).item(), 9)
    0.287682072
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False
