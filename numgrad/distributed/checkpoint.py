"""Checkpoints of programs with several ranks: written once, read by any number of ranks."""

from os import PathLike
from typing import Any

from numgrad.distributed.exchange import broadcast_object_list
from numgrad.distributed.group import Group, group_of
from numgrad.errors import NumgradRuntimeError
from numgrad.io import files

__all__ = ["load", "save"]


def __dir__() -> list[str]:
    return __all__


def save(state: Any, path: str | PathLike[str], group: Group = None) -> None:
    """Write a checkpoint with ``ng.save`` on the first rank; all ranks go on when it is written.

    Parameters
    ----------
    state
        What ``ng.save`` takes; that of the first rank is written, others may give None.
    path
        The file.
    group
        By default all ranks.

    Raises
    ------
    NumgradRuntimeError
        On all ranks, if the first could not write; it raises its own error.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numgrad as ng
    >>> ng.distributed.init_process_group()
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "checkpoint.safetensors"
    >>> ng.distributed.checkpoint.save({"step": 3}, path)
    >>> ng.distributed.checkpoint.load(path)
    {'step': 3}
    >>> ng.distributed.destroy_process_group()
    """
    process_group = group_of("checkpoint.save", group)
    said, error = [""], None
    if process_group.rank == 0:
        try:
            files.save(state, path)
        except Exception as raised:  # all ranks hear of it
            error = raised
            said = [f"{type(raised).__name__}: {raised}"]
    broadcast_object_list(said, process_group.ranks[0], group)
    if error is not None:
        raise error
    if said[0]:
        raise NumgradRuntimeError(
            f"checkpoint.save: rank {process_group.ranks[0]} could not write {path}: {said[0]}"
        )


def load(path: str | PathLike[str], group: Group = None) -> Any:
    """Read a checkpoint on each rank; the number of ranks need not be that of ``save``.

    Raises
    ------
    OSError, NumgradError
        As ``ng.load``.
    """
    group_of("checkpoint.load", group)
    return files.load(path)
