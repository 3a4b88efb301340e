"""Collectives in which each rank gives something else to each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.distributed.collectives import run_collective
from numgrad.distributed.group import Group, ProcessGroup, group_of
from numgrad.distributed.memory import Memory, listed
from numgrad.distributed.objects import all_gather_object
from numgrad.distributed.work import CollectiveWork
from numgrad.errors import NumgradRuntimeError, NumgradValueError


def all_to_all(
    output_tensor_list: list[Any],
    input_tensor_list: list[Any],
    group: Group = None,
    async_op: bool = False,
) -> CollectiveWork | None:
    """Give each rank a tensor of a list, and put those that it gives to this one into another list.

    Parameters
    ----------
    output_tensor_list
        A tensor for each rank, which is written to: as what that rank gives to this one.
    input_tensor_list
        A tensor for each rank, all of one dtype, of any shapes.
    group, async_op
        As for ``all_reduce``.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If a list has another length than the group, or tensors of several dtypes.
    NumgradRuntimeError
        On all ranks, if what one gives has another dtype or shape than its place on another.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.distributed.init_process_group()
    >>> out = [ng.zeros(2)]
    >>> ng.distributed.all_to_all(out, [ng.ones(2)])
    >>> out
    [tensor([1., 1.])]
    >>> ng.distributed.destroy_process_group()
    """
    name = "all_to_all"
    process_group = group_of(name, group)
    outputs = _of_one_dtype(
        name, "output_tensor_list", output_tensor_list, process_group.size, writes=True
    )
    inputs = _of_one_dtype(
        name, "input_tensor_list", input_tensor_list, process_group.size, writes=False
    )
    _check_matching(name, process_group, [m.said for m in inputs], [m.said for m in outputs])
    sent = np.concatenate([m.flat for m in inputs])
    sizes = [m.flat.size for m in outputs]
    received = np.empty(sum(sizes), sent.dtype)

    def finish() -> None:
        parts = np.split(received, np.cumsum(sizes)[:-1])
        for memory, part in zip(outputs, parts, strict=True):
            memory.flat[...] = part
            memory.written()

    counts = [m.flat.size for m in inputs]
    return _exchange(name, process_group, (sent, counts), (received, sizes), finish, async_op)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
    async_op: bool = False,
) -> CollectiveWork | None:
    """Give each rank some rows of a tensor, and put those that it gives to this one into another.

    Parameters
    ----------
    output
        Is written to: rows of all ranks, in their order.
    input
        Rows for all ranks, in their order.
    output_split_sizes, input_split_sizes
        How many rows come from and go to each rank; by default equally many.
    group, async_op
        As for ``all_reduce``.

    Raises
    ------
    NumgradValueError
        If rows cannot be divided so.
    NumgradRuntimeError
        On all ranks, if what one gives does not fit its place on another.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.distributed.init_process_group()
    >>> out = ng.zeros(2)
    >>> ng.distributed.all_to_all_single(out, ng.ones(2))
    >>> out
    tensor([1., 1.])
    >>> ng.distributed.destroy_process_group()
    """
    name = "all_to_all_single"
    process_group = group_of(name, group)
    target, source = Memory(name, output, writes=True), Memory(name, input, writes=False)
    rows = _rows(name, "output", target, output_split_sizes, process_group.size)
    lengths = _rows(name, "input", source, input_split_sizes, process_group.size)
    _check_matching(
        name,
        process_group,
        [f"{source.array.dtype} {(n, *source.array.shape[1:])}" for n in lengths],
        [f"{target.array.dtype} {(n, *target.array.shape[1:])}" for n in rows],
    )
    width = int(np.prod(source.array.shape[1:]))
    return _exchange(
        name,
        process_group,
        (source.flat, [n * width for n in lengths]),
        (target.flat, [n * width for n in rows]),
        target.written,
        async_op,
    )


def _exchange(
    name: str,
    group: ProcessGroup,
    sent: tuple[np.ndarray, list[int]],
    received: tuple[np.ndarray, list[int]],
    finish: Any,
    async_op: bool,
) -> CollectiveWork | None:
    def alone() -> None:
        received[0][...] = sent[0]

    return run_collective(
        group,
        f"{name} of {sent[0].dtype}",
        lambda: group.comm.Ialltoallv(list(sent), list(received)),
        finish,
        async_op,
        alone,
        moved=(received[0].nbytes, sent[0].nbytes),
    )


def _check_matching(name: str, group: ProcessGroup, sent: list[str], expected: list[str]) -> None:
    """Raise on all ranks where what one gives is not what another has a place for."""
    every: list[Any] = [None] * group.size
    all_gather_object(every, (sent, expected), group)
    for k, (theirs, _) in enumerate(every):
        for j, (_, places) in enumerate(every):
            if theirs[j] != places[k]:
                raise NumgradRuntimeError(
                    f"{name}: rank {group.ranks[k]} gives {theirs[j]} to rank {group.ranks[j]}, "
                    f"which has a place for {places[k]}; nothing was sent"
                )


def _of_one_dtype(name: str, what: str, tensors: Any, count: int, *, writes: bool) -> list[Memory]:
    memories = listed(name, what, tensors, count, writes=writes)
    dtypes = sorted({str(memory.array.dtype) for memory in memories})
    if len(dtypes) > 1:
        raise NumgradValueError(f"{name}: {what} has tensors of several dtypes, {dtypes}")
    return memories


def _rows(name: str, what: str, memory: Memory, splits: Any, count: int) -> list[int]:
    """How many rows go to each rank, or come from it."""
    shape = memory.array.shape
    if not shape:
        raise NumgradValueError(f"{name}: {what} has no rows, its shape is ()")
    if splits is None:
        if shape[0] % count:
            raise NumgradValueError(
                f"{name}: {shape[0]} rows of {what} cannot be divided among {count} ranks; give "
                f"{what}_split_sizes"
            )
        return [shape[0] // count] * count
    lengths = [int(n) for n in splits]
    if len(lengths) != count or min(lengths) < 0 or sum(lengths) != shape[0]:
        raise NumgradValueError(
            f"{name}: {what}_split_sizes has a number of rows for each of {count} ranks, together "
            f"{shape[0]}; got {list(splits)}"
        )
    return lengths
