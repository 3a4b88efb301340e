"""Sequences of different lengths: padded to one array, or packed without padding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import index
from typing import Any, NamedTuple

import numpy as np

from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.operations.arrangement import swapaxes
from numgrad.operations.join import stack
from numgrad.operations.scatter import index_copy
from numgrad.operations.shape import reshape
from numgrad.operations.take import take
from numgrad.tensors.creation import asarray, full, tensor
from numgrad.tensors.tensor import Tensor


class PackedSequence(NamedTuple):
    """Sequences without padding: what ``pack_padded_sequence`` makes and recurrent layers take.

    Parameters
    ----------
    data
        Of shape (elements, ...): the first elements of all sequences, then the second ones of those
        that have one, ..., the longest sequence first.
    batch_sizes
        How many sequences have a first, second, ... element: integers, an ndarray.
    sorted_indices
        The sequences in the order of their lengths, None if that is their order.
    unsorted_indices
        The places of the sequences in that order, None likewise.

    Examples
    --------
    >>> import numgrad as ng
    >>> packed = ng.nn.utils.rnn.pack_sequence([ng.tensor([1.0, 2.0]), ng.tensor([3.0])])
    >>> packed.batch_sizes
    array([2, 1])
    """

    data: Tensor
    batch_sizes: np.ndarray
    sorted_indices: np.ndarray | None = None
    unsorted_indices: np.ndarray | None = None


def blocks_of(packed: PackedSequence) -> list[tuple[int, int, int]]:
    """Stretches of time in which as many sequences go on: first row, times, sequences."""
    blocks: list[tuple[int, int, int]] = []
    start = 0
    for size, times in groupby(packed.batch_sizes.tolist()):
        count = len(list(times))
        blocks.append((start, count, size))
        start += count * size
    return blocks


def _integers(name: str, what: str, values: Any) -> np.ndarray:
    """Numbers that decide on shapes, as an ndarray."""
    numbers = values
    if isinstance(values, Tensor):
        numbers = state.ground.numbers(values)
        if numbers is None:
            raise NumgradRuntimeError(
                f"{name}: {what} decide on shapes and must be known when the function is traced; "
                "pass them as a static argument, a tuple of integers"
            )
    numbers = np.asarray(numbers)
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise NumgradTypeError(
            f"{name}: {what} are integers along one axis, got shape {numbers.shape} and dtype "
            f"{numbers.dtype}"
        )
    return numbers.astype(np.int64)


def invert_permutation(permutation: Any) -> np.ndarray | None:
    """The places of the integers from 0 on in an order of them; None of None.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.utils.rnn.invert_permutation([2, 0, 1])
    array([1, 2, 0])
    """
    if permutation is None:
        return None
    order = _integers("invert_permutation", "permutations", permutation)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


def _places(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Time and sequence of each packed element."""
    there = np.arange(lengths.max(initial=0))[:, np.newaxis] < lengths
    times, sequences = np.nonzero(there)
    return times, sequences


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences.

    Parameters
    ----------
    input
        Of shape (time, batch, ...), or (batch, time, ...) with ``batch_first``.
    lengths
        The length of each sequence: integers, at least 1.
    batch_first
        Which axis comes first.
    enforce_sorted
        Raise unless the longest comes first, ...; otherwise they are sorted here.

    Raises
    ------
    NumgradValueError
        If lengths are not in order, not positive, or too many or large for the input.

    Examples
    --------
    >>> import numgrad as ng
    >>> padded = ng.tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])
    >>> ng.nn.utils.rnn.pack_padded_sequence(padded, [2, 3], True, enforce_sorted=False).data
    tensor([3., 1., 4., 2., 5.])
    """
    name = "pack_padded_sequence"
    input = asarray(input)
    counts = _integers(name, "lengths", lengths)
    if input.ndim < 2:
        raise NumgradValueError(
            f"{name}: needs an input (time, batch, ...), got shape {tuple(input.shape)}"
        )
    time, batch = map(index, input.shape[:2][::-1] if batch_first else input.shape[:2])
    if len(counts) != batch or counts.min(initial=1) < 1 or counts.max(initial=1) > time:
        raise NumgradValueError(
            f"{name}: lengths {counts.tolist()} for an input of shape {tuple(input.shape)}; each "
            f"of {batch} sequences has a length from 1 to {time}"
        )
    order = places = None
    if not enforce_sorted:
        order = np.argsort(-counts, kind="stable")
        places, counts = invert_permutation(order), counts[order]
    elif (np.diff(counts) > 0).any():
        raise NumgradValueError(
            f"{name}: lengths {counts.tolist()} do not go down; sort the sequences, or pass "
            "enforce_sorted=False"
        )
    times, sequences = _places(counts)
    sequences = sequences if order is None else order[sequences]
    flat = sequences * time + times if batch_first else times * batch + sequences
    rows = reshape(input, (time * batch, *input.shape[2:]))
    return PackedSequence(
        take(rows, tensor(flat), axis=0), np.bincount(times).astype(np.int64), order, places
    )


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Pad packed sequences: the inverse of ``pack_padded_sequence``.

    Parameters
    ----------
    sequence
        A ``PackedSequence``.
    batch_first
        Whether the result has shape (batch, time, ...) rather than (time, batch, ...).
    padding_value
        What is put behind sequences.
    total_length
        The time of the result, by default the longest length.

    Returns
    -------
    tuple of Tensors
        The padded sequences, and their lengths.

    Raises
    ------
    NumgradValueError
        If ``total_length`` is below a length.

    Examples
    --------
    >>> import numgrad as ng
    >>> packed = ng.nn.utils.rnn.pack_sequence([ng.tensor([1.0, 2.0]), ng.tensor([3.0])])
    >>> ng.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1., 2.],
            [3., 0.]]), tensor([2, 1]))
    """
    name = "pad_packed_sequence"
    sizes = _integers(name, "batch_sizes", sequence.batch_sizes)
    data = asarray(sequence.data)
    batch, time = int(sizes.max(initial=0)), len(sizes)
    if total_length is not None:
        if total_length < time:
            raise NumgradValueError(
                f"{name}: total_length {total_length} is below the length {time} of a sequence"
            )
        time = total_length
    counts = (sizes[:, np.newaxis] > np.arange(batch)).sum(axis=0)
    times, sequences = _places(counts)
    if sequence.sorted_indices is not None:
        order = _integers(name, "sorted_indices", sequence.sorted_indices)
        sequences, counts = order[sequences], counts[np.argsort(order)]
    flat = sequences * time + times if batch_first else times * batch + sequences
    empty = full((batch * time, *data.shape[1:]), padding_value, dtype=data.dtype)
    padded = index_copy(empty, tensor(flat), data, axis=0)
    lead = (batch, time) if batch_first else (time, batch)
    return reshape(padded, (*lead, *data.shape[1:])), tensor(counts)


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of different lengths in one array.

    Parameters
    ----------
    sequences
        Of shapes (length, ...), all but the length the same.
    batch_first
        Whether the result has shape (batch, time, ...) rather than (time, batch, ...).
    padding_value
        What shorter ones are filled up with.
    padding_side
        ``"right"`` or ``"left"``: where that is put.

    Raises
    ------
    NumgradValueError
        If there are none, or their shapes do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> sequences = [ng.tensor([1.0, 2.0]), ng.tensor([3.0])]
    >>> ng.nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_side="left")
    tensor([[1., 2.],
            [0., 3.]])
    """
    name = "pad_sequence"
    if padding_side not in ("left", "right"):
        raise NumgradValueError(
            f"{name}: padding_side is {padding_side!r}; it must be 'left' or 'right'"
        )
    rows = [asarray(sequence) for sequence in sequences]
    shapes = [tuple(row.shape) for row in rows]
    if not rows or () in shapes or len({shape[1:] for shape in shapes}) > 1:
        raise NumgradValueError(
            f"{name}: takes at least one sequence, all of shapes (length, ...) that agree but for "
            f"the length; got {shapes}"
        )
    longest = max(shape[0] for shape in shapes)
    padded = []
    for row in rows:
        missing = longest - row.shape[0]
        if missing:
            filling = full((missing, *row.shape[1:]), padding_value, dtype=row.dtype)
            row = np.concatenate([row, filling] if padding_side == "right" else [filling, row])
        padded.append(row)
    stacked = stack(padded)
    return stacked if batch_first else swapaxes(stacked, axis1=0, axis2=1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded array.

    Parameters
    ----------
    padded_sequences
        Of shape (time, batch, ...), or (batch, time, ...) with ``batch_first``.
    lengths
        The length of each.
    batch_first
        Which axis comes first.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.utils.rnn.unpad_sequence([[1.0, 2.0], [3.0, 0.0]], [2, 1], batch_first=True)
    [tensor([1., 2.]), tensor([3.])]
    """
    padded = asarray(padded_sequences)
    if not batch_first:
        padded = swapaxes(padded, axis1=0, axis2=1)
    counts = _integers("unpad_sequence", "lengths", lengths).tolist()
    return [padded[k, :count] for k, count in enumerate(counts)]


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of shapes (length, ...).

    Parameters
    ----------
    sequences
        All but the length of their shapes the same.
    enforce_sorted
        Raise unless the longest comes first, ...; otherwise they are sorted here.

    Raises
    ------
    NumgradValueError
        If one is empty, or they are not in order.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.utils.rnn.pack_sequence([ng.tensor([1.0, 2.0]), ng.tensor([3.0])]).data
    tensor([1., 3., 2.])
    """
    rows = [asarray(sequence) for sequence in sequences]
    padded = pad_sequence(rows)
    return pack_padded_sequence(padded, [row.shape[0] for row in rows], False, enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed, in their order.

    Examples
    --------
    >>> import numgrad as ng
    >>> rnn = ng.nn.utils.rnn
    >>> rnn.unpack_sequence(rnn.pack_sequence([ng.tensor([1.0, 2.0]), ng.tensor([3.0])]))
    [tensor([1., 2.]), tensor([3.])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
