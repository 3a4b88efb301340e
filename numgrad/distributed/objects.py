"""Collectives of Python objects, which are pickled."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from numgrad.distributed.collectives import (
    all_gather_into_tensor,
    broadcast,
    check_only_at,
    gather,
    scatter,
)
from numgrad.distributed.group import Group, group_of
from numgrad.distributed.messages import recv, send
from numgrad.errors import NumgradTypeError, NumgradValueError


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
    process_group = group_of(name, group)
    _check_objects(name, object_list, process_group.size)
    data = np.frombuffer(pickle.dumps(obj), np.uint8)
    sizes = np.empty(process_group.size, np.int64)
    all_gather_into_tensor(sizes, np.array([data.size]), group)
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: data.size] = data
    every = np.empty((process_group.size, padded.size), np.uint8)
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
    process_group = group_of(name, group)
    mine = process_group.rank == process_group.position(name, dst)
    check_only_at(name, "object_gather_list", object_gather_list, mine, dst)
    if mine:
        _check_objects(name, object_gather_list, process_group.size)
    data = np.frombuffer(pickle.dumps(obj), np.uint8)
    sizes = np.empty(process_group.size, np.int64)
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
    process_group = group_of(name, group)
    _check_objects(name, scatter_object_output_list, None)
    if not scatter_object_output_list:
        raise NumgradValueError(f"{name}: scatter_object_output_list has no place")
    mine = process_group.rank == process_group.position(name, src)
    rows, widest = None, np.zeros(1, np.int64)
    if mine:
        _check_objects(name, scatter_object_input_list, process_group.size)
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
    process_group = group_of(name, group)
    _check_objects(name, object_list, None)
    mine = process_group.rank == process_group.position(name, src)
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
