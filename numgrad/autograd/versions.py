"""Versions of memory: counted writes, and whether what was saved is as it was.

Note [Versions]
---------------
Nodes and writes draw their numbers from one rising series. A version notes the number of the latest
write to its memory, so a value that a node saved is *current* while that is not above the node's
own number: saving looks at no version. Whoever needs a saved value asks ``is_current`` or
``check_current``, machine code its own form of the former (``codegen.cpython.memory_versions``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from numgrad.errors import NumgradRuntimeError

next_sequence = count().__next__
"""Numbers that rise with time: nodes and in-place writes draw from the same series."""


class Version:
    """Counts the writes to memory that a tensor, its views and its detached copies share.

    Attributes
    ----------
    count
        How many writes there were.
    last
        The sequence number of the latest one, -1 before: Note [Versions].
    rebased
        That of the latest one that changed the history of the root of a family of views.
    recent
        Those of the latest ones, for errors to tell versions apart.
    foreign
        Whether the memory is an ndarray's of the user, who can write to it unseen: Note [Guards]
        in ``saved``.
    """

    __slots__ = ("count", "foreign", "last", "rebased", "recent")

    def __init__(self, *, foreign: bool = False) -> None:
        self.count = 0
        self.last = -1
        self.rebased = -1
        self.recent: deque[int] = deque(maxlen=16)
        self.foreign = foreign


INFERENCE = Version()
"""The version of every tensor made in inference mode: it counts nothing."""


def version_of(tensor: Any) -> Version | None:
    """The version counter, if anything was written yet or shares it."""
    memory: Any = tensor._memory
    return memory if memory is None or type(memory) is Version else memory._memory


def shared_version(tensor: Any) -> Version:
    """The version counter of a tensor and its family, made now if there is none."""
    version: Any = version_of(tensor)
    if version is None:
        owner: Any = tensor if tensor._memory is None else tensor._memory
        node = owner._grad_fn
        # one that was looked at as a saved result has a version already
        version = node.outputs and node.outputs.get(owner._slot) if node is not None else None
        owner._memory = version = version or Version()
        if node is not None:
            node.watch_output(owner._slot, version)
    return version


# ---------------------------------------------------------------------------------------- writes


def mark_written(tensor: Any) -> None:
    """Count a write to the memory of ``tensor``."""
    version: Any = tensor._memory
    mark_version(version if type(version) is Version else shared_version(tensor))


def mark_replaced(tensor: Any) -> None:
    """Take note that ``tensor`` shows other memory now: what saved it is not as it was.

    That counts no write.
    """
    shared_version(tensor).last = next_sequence()


def mark_all_written(tensors: Iterable[Any]) -> None:
    """Count a write to the memory of each of many tensors."""
    sequence = next_sequence()
    for tensor in tensors:
        version: Any = tensor._memory
        if type(version) is not Version:
            version = shared_version(tensor)
        version.count += 1
        version.last = sequence
        version.recent.append(sequence)


def mark_version(version: Version) -> None:
    """Count a write to memory by its version."""
    version.count += 1
    version.last = next_sequence()
    version.recent.append(version.last)


def write_count(tensor: Any) -> int:
    """How many writes to the memory of a tensor were counted."""
    version = version_of(tensor)
    return 0 if version is None else version.count


# ---------------------------------------------------------------------------------- saved values


def is_current(version: Version | None, sequence: int) -> bool:
    """Whether nobody wrote to memory since the moment of a number: Note [Versions]."""
    return version is None or version.last <= sequence


def check_current(name: Callable[[], str], tensor: Any, sequence: int) -> None:
    """Raise if ``tensor`` was written to since a node of that name and number saved it."""
    version = version_of(tensor)
    if not is_current(version, sequence):
        made_by = "a leaf" if tensor._grad_fn is None else f"now of {tensor._grad_fn.name()}"
        what = f"the tensor of shape {tensor._array.shape} ({made_by})"
        _refuse(name(), what, version, sequence)


def check_result_current(name: Callable[[], str], version: Version | None, sequence: int) -> None:
    """Raise if a result, which the backward needs, was written to since a node returned it."""
    if not is_current(version, sequence):
        _refuse(name(), "its own result", version, sequence)


def _refuse(operation: str, what: str, version: Any, sequence: int) -> None:
    saved_at = version.count - sum(write > sequence for write in version.recent)
    raise NumgradRuntimeError(
        f"{operation}: the backward needs {what} as it was at version {saved_at}, but in-place "
        f"operations brought it to version {version.count}; clone it before the change, or use the "
        "operation that returns a new tensor (ng.autograd.set_detect_anomaly(True) shows the line "
        "that saved it)"
    )
