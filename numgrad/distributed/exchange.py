"""Collectives of pickled objects, and those in which each rank gives something else to each."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.distributed.collectives import (
    all_gather_into_tensor,
    broadcast,
    check_only_at,
    gather,
    run_collective,
    scatter,
)
from numgrad.distributed.group import Group, ProcessGroup, group_of
from numgrad.distributed.messages import Memory, listed, recv, send
from numgrad.distributed.work import CollectiveWork
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError


def all_gather_object(object_list: list[Any], obj: Any, group: Group = None) -> None:
    """Put objects of all ranks, which are pickled, into the list of each.

    Pickled objects can do anything when they are loaded: this is for programs whose ranks trust
    each other, as ranks of one program do.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If ``object_list`` is no list with a place for each rank.
    """
    name = "all_gather_object"
    members = group_of(name, group)
    _check_objects(name, object_list, members.size)
    data = np.frombuffer(pickle.dumps(obj), np.uint8)
    sizes = np.empty(members.size, np.int64)
    all_gather_into_tensor(sizes, np.array([data.size]), group)
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: data.size] = data
    every = np.empty((members.size, padded.size), np.uint8)
    all_gather_into_tensor(every, padded, group)
    object_list[:] = [
        pickle.loads(row[:size].tobytes()) for row, size in zip(every, sizes, strict=True)
    ]


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: Group = None
) -> None:
    """Put objects of all ranks, which are pickled, into the list of rank ``dst``.

    See ``all_gather_object`` about trust.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If ``object_gather_list`` is no list with a place for each rank, or given by another rank.
    """
    name = "gather_object"
    members = group_of(name, group)
    mine = members.rank == members.position(name, dst)
    check_only_at(name, "object_gather_list", object_gather_list, mine, dst)
    if mine:
        _check_objects(name, object_gather_list, members.size)
    data = np.frombuffer(pickle.dumps(obj), np.uint8)
    sizes = np.empty(members.size, np.int64)
    all_gather_into_tensor(sizes, np.array([data.size]), group)
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: data.size] = data
    rows = [np.empty_like(padded) for _ in sizes] if mine else None
    gather(padded, rows, dst, group)
    if object_gather_list is not None and rows is not None:
        object_gather_list[:] = [
            pickle.loads(row[:size].tobytes()) for row, size in zip(rows, sizes, strict=True)
        ]


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int = 0,
    group: Group = None,
) -> None:
    """Put the objects in the list of rank ``src``, which are pickled, one to each rank.

    See ``all_gather_object`` about trust.

    Parameters
    ----------
    scatter_object_output_list
        Its first place is for the object of this rank.
    scatter_object_input_list
        An object for each rank, on rank ``src``; others may give anything.
    src
        A rank of the world.
    group
        By default all ranks.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If a list is none, or has no such places.
    """
    name = "scatter_object_list"
    members = group_of(name, group)
    _check_objects(name, scatter_object_output_list, None)
    if not scatter_object_output_list:
        raise NumgradValueError(f"{name}: scatter_object_output_list has no place")
    mine = members.rank == members.position(name, src)
    rows, widest = None, np.zeros(1, np.int64)
    if mine:
        _check_objects(name, scatter_object_input_list, members.size)
        data = [pickle.dumps(obj) for obj in scatter_object_input_list or ()]
        widest[0] = max(map(len, data))
        rows = [np.frombuffer(one.ljust(int(widest[0]), b"\0"), np.uint8) for one in data]
    broadcast(widest, src, group)
    row = np.empty(int(widest[0]), np.uint8)
    scatter(row, rows, src, group)
    scatter_object_output_list[0] = pickle.loads(row.tobytes())  # which ends where its pickle does


def send_object_list(object_list: list[Any], dst: int, group: Group = None, tag: int = 0) -> None:
    """Send the objects of a list, which are pickled, to a rank that calls ``recv_object_list``.

    See ``all_gather_object`` about trust.

    Raises
    ------
    NumgradTypeError
        If ``object_list`` is no list.
    """
    _check_objects("send_object_list", object_list, None)
    data = np.frombuffer(pickle.dumps(object_list), np.uint8)
    send(np.array([data.size, len(object_list)]), dst, group, tag)
    send(data, dst, group, tag)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Group = None, tag: int = 0
) -> int:
    """Receive the objects that a rank sends by ``send_object_list``; returns its number.

    See ``all_gather_object`` about trust.

    Raises
    ------
    NumgradTypeError
        If ``object_list`` is no list.
    NumgradValueError
        If it has another number of places than there are objects.
    """
    name = "recv_object_list"
    _check_objects(name, object_list, None)
    numbers = np.zeros(2, np.int64)
    source = recv(numbers, src, group, tag)
    data = np.empty(int(numbers[0]), np.uint8)
    recv(data, source, group, tag)
    _check_count(name, source, int(numbers[1]), object_list)
    object_list[:] = pickle.loads(data.tobytes())
    return source


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Group = None) -> None:
    """Put the objects in the list of rank ``src``, which are pickled, into those of all others.

    See ``all_gather_object`` about trust.

    Raises
    ------
    NumgradTypeError
        If ``object_list`` is no list.
    NumgradValueError
        If lists differ in length.
    """
    name = "broadcast_object_list"
    members = group_of(name, group)
    _check_objects(name, object_list, None)
    mine = members.rank == members.position(name, src)
    data = np.frombuffer(pickle.dumps(object_list) if mine else b"", np.uint8).copy()
    numbers = np.array([data.size, len(object_list)])
    broadcast(numbers, src, group)
    if not mine:
        data = np.empty(int(numbers[0]), np.uint8)
    broadcast(data, src, group)
    if not mine:
        _check_count(name, src, int(numbers[1]), object_list)
        object_list[:] = pickle.loads(data.tobytes())


def _check_objects(name: str, objects: Any, count: int | None) -> None:
    if not isinstance(objects, list):
        raise NumgradTypeError(f"{name}: object_list is a list, got {type(objects).__name__}")
    if count is not None and len(objects) != count:
        raise NumgradValueError(
            f"{name}: object_list has {len(objects)} places, and the group {count} ranks"
        )


def _check_count(name: str, source: int, count: int, object_list: list[Any]) -> None:
    if count != len(object_list):
        raise NumgradValueError(
            f"{name}: rank {source} sends {count} objects, the list here has {len(object_list)} "
            "places"
        )


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
    members = group_of(name, group)
    outputs = _of_one_dtype(
        name, "output_tensor_list", output_tensor_list, members.size, writes=True
    )
    inputs = _of_one_dtype(name, "input_tensor_list", input_tensor_list, members.size, writes=False)
    _check_matching(name, members, [m.said for m in inputs], [m.said for m in outputs])
    sent = np.concatenate([m.flat for m in inputs])
    sizes = [m.flat.size for m in outputs]
    received = np.empty(sum(sizes), sent.dtype)

    def finish() -> None:
        pieces = np.split(received, np.cumsum(sizes)[:-1])
        for memory, elements in zip(outputs, pieces, strict=True):
            memory.flat[...] = elements
            memory.written()

    counts = [m.flat.size for m in inputs]
    return _exchange(name, members, (sent, counts), (received, sizes), finish, async_op)


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
    members = group_of(name, group)
    target, source = Memory(name, output, writes=True), Memory(name, input, writes=False)
    rows = _rows(name, "output", target, output_split_sizes, members.size)
    lengths = _rows(name, "input", source, input_split_sizes, members.size)
    _check_matching(
        name,
        members,
        [f"{source.array.dtype} {(n, *source.array.shape[1:])}" for n in lengths],
        [f"{target.array.dtype} {(n, *target.array.shape[1:])}" for n in rows],
    )
    width = int(np.prod(source.array.shape[1:]))
    return _exchange(
        name,
        members,
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

    def post() -> Any:
        return group.comm.Ialltoallv(list(sent), list(received))

    what, moved = f"{name} of {sent[0].dtype}", (received[0].nbytes, sent[0].nbytes)
    return run_collective(group, what, post, finish, async_op, alone, moved=moved)


def _check_matching(name: str, group: ProcessGroup, sent: list[str], expected: list[str]) -> None:
    """Raise on all ranks where what one gives is not what another has a place for."""
    every: list[Any] = [None] * group.size
    all_gather_object(every, (sent, expected), group)
    for k, (theirs, _) in enumerate(every):
        for j, (_, expected_here) in enumerate(every):
            if theirs[j] != expected_here[k]:
                raise NumgradRuntimeError(
                    f"{name}: rank {group.ranks[k]} gives {theirs[j]} to rank {group.ranks[j]}, "
                    f"which has a place for {expected_here[k]}; nothing was sent"
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
