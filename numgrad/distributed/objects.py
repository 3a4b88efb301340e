"""Collectives of Python objects, which are pickled."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from numgrad.distributed.collectives import all_gather_into_tensor, broadcast
from numgrad.distributed.group import Group, group_of
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
    found = group_of(name, group)
    _check_objects(name, object_list, found.size)
    data = np.frombuffer(pickle.dumps(obj), np.uint8)
    sizes = np.empty(found.size, np.int64)
    all_gather_into_tensor(sizes, np.array([data.size]), group)
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: data.size] = data
    every = np.empty((found.size, padded.size), np.uint8)
    all_gather_into_tensor(every, padded, group)
    object_list[:] = [
        pickle.loads(row[:size].tobytes()) for row, size in zip(every, sizes, strict=True)
    ]


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Group = None) -> None:
    """Put the objects in the list of rank ``src``, which are pickled, into those of all others.

    See ``all_gather_object`` about trust.

    Raises
    ------
    NumgradTypeError
        If ``object_list`` is no list.
    NumgradRuntimeError
        If lists differ in length.
    """
    name = "broadcast_object_list"
    found = group_of(name, group)
    _check_objects(name, object_list, None)
    mine = found.rank == found.position(name, src)
    data = np.frombuffer(pickle.dumps(object_list) if mine else b"", np.uint8).copy()
    numbers = np.array([data.size, len(object_list)])
    broadcast(numbers, src, group)
    if not mine:
        data = np.empty(int(numbers[0]), np.uint8)
    broadcast(data, src, group)
    if not mine:
        if numbers[1] != len(object_list):
            raise NumgradValueError(
                f"{name}: rank {src} sends {numbers[1]} objects, the list here has "
                f"{len(object_list)} places"
            )
        object_list[:] = pickle.loads(data.tobytes())


def _check_objects(name: str, given: Any, count: int | None) -> None:
    if not isinstance(given, list):
        raise NumgradTypeError(f"{name}: object_list is a list, got {type(given).__name__}")
    if count is not None and len(given) != count:
        raise NumgradValueError(
            f"{name}: object_list has {len(given)} places, and the group {count} ranks"
        )
