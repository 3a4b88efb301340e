"""Groups of ranks, and the one that all belong to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

from numgrad.distributed.launcher import watch, world
from numgrad.distributed.work import CollectiveWork, Pending, check_allowed, seconds_of, wait_until
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError

DEFAULT_TIMEOUT = timedelta(minutes=30)


class ProcessGroup:
    """Ranks that communicate with each other; ``init_process_group`` and ``new_group`` make them.

    Attributes
    ----------
    ranks
        The members by their numbers in the world, in order.
    rank
        The position of this process among them.
    """

    comm: Any
    control: Any

    def __init__(self, comm: Any, ranks: Sequence[int], world_size: int, timeout: float) -> None:
        self.comm, self.ranks, self.world_size = comm, list(ranks), world_size
        self.timeout = timeout
        self.rank = 0 if comm is None else comm.rank
        self.control = None if comm is None else comm.Dup()
        self._pending, self._messages = Pending(), 0
        self.others = [r for k, r in enumerate(self.ranks) if k != self.rank]

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.ranks)

    @property
    def mpi(self) -> Any:
        """The module of mpi4py."""
        return import_module("mpi4py.MPI")

    @property
    def pending(self) -> Pending:
        """Operations that are not yet on their way."""
        return self._pending

    def progress(self) -> None:
        """Begin operations that can begin."""
        self._pending.progress()

    def next_message(self) -> int:
        """The number of a message from 1, for which MPI allows at least 32767."""
        self._messages = self._messages % 32767 + 1
        return self._messages

    def position(self, name: str, rank: Any) -> int:
        """The position of a rank of the world in this group; ``name`` is the caller, for errors."""
        if isinstance(rank, bool) or not hasattr(rank, "__index__"):
            raise NumgradTypeError(f"{name}: a rank is an integer, got {rank!r}")
        if rank not in self.ranks:
            raise NumgradValueError(
                f"{name}: rank {rank} is not in the group of {self.size}, whose ranks are "
                f"{_shown(self.ranks)}"
            )
        return self.ranks.index(rank)

    def free(self) -> None:
        """Give the communicators back."""
        if self.comm is not None:
            self.control.Free()
            self.comm.Free()
        self.comm = self.control = None

    def __repr__(self) -> str:
        return f"ProcessGroup(rank {self.rank} of {self.size}, ranks={_shown(self.ranks)})"


def _shown(ranks: Sequence[int]) -> str:
    return str(ranks) if len(ranks) <= 8 else f"[{ranks[0]}, {ranks[1]}, ..., {ranks[-1]}]"


class _NoMember:
    """Result of ``new_group`` for those who are not in it."""

    def __repr__(self) -> str:
        return "GroupMember.NON_GROUP_MEMBER"


NON_GROUP_MEMBER = _NoMember()
Group = ProcessGroup | _NoMember | None
WORLD: Group = None
"""All ranks, where a group is asked for."""


class GroupMember:
    """``WORLD`` is all ranks; ``NON_GROUP_MEMBER`` is what others get from ``new_group``."""

    WORLD = WORLD
    NON_GROUP_MEMBER = NON_GROUP_MEMBER


_default: ProcessGroup | None = None
_others: list[ProcessGroup] = []


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: float | timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: None = None,
    group_name: str = "",
    pg_options: None = None,
    device_id: None = None,
) -> None:
    """Begin to communicate with all ranks that the launcher started; one process is a group of one.

    Start with ``mpiexec -n 4 python train.py`` or ``python -m numgrad launch -n 4 train.py``. From
    here on a rank that raises ends the others, and says its number.

    Parameters
    ----------
    backend
        None or ``"mpi"``.
    init_method
        None or ``"env://"``: ranks find each other by their launcher.
    timeout : float or datetime.timedelta, optional
        Seconds after which a rank that waits for others raises, by default those of half an hour.
    world_size, rank
        Compared with what MPI says, where they are given.
    store, pg_options, device_id
        None.
    group_name
        Not used.

    Raises
    ------
    NumgradRuntimeError
        If there is a group already, or the launcher started ranks that MPI does not see.
    NumgradValueError
        For another backend, another number of ranks than MPI's, or what must be None.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.distributed.init_process_group()
    >>> ng.distributed.get_rank(), ng.distributed.get_world_size()
    (0, 1)
    >>> ng.distributed.destroy_process_group()
    """
    global _default
    name = "init_process_group"
    if _default is not None:
        raise NumgradRuntimeError(
            f"{name}: there is a group of {_default.size} already; call destroy_process_group first"
        )
    _check_backend(name, backend)
    if init_method not in (None, "env://"):
        raise NumgradValueError(
            f"{name}: init_method is None or 'env://', got {init_method!r}; ranks find each other "
            "by the launcher that started them"
        )
    check_no_devices(name, device_id=device_id, store=store, pg_options=pg_options)
    seconds = seconds_of(name, DEFAULT_TIMEOUT if timeout is None else timeout)
    comm = world()
    size, number = (1, 0) if comm is None else (comm.size, comm.rank)
    for what, argument, actual in (("world_size", world_size, size), ("rank", rank, number)):
        if argument not in (-1, actual):
            raise NumgradValueError(
                f"{name}: {what}={argument}, and MPI says {actual}; leave it out, and start with "
                "'mpiexec -n N python ...' or 'python -m numgrad launch -n N ...'"
            )
    if comm is not None:
        watch(comm)
        comm = comm.Dup()
    _default = ProcessGroup(comm, range(size), size, seconds)


def _check_backend(name: str, backend: str | None) -> None:
    if backend not in (None, "mpi"):
        raise NumgradValueError(f"{name}: backend is None or 'mpi', got {backend!r}")


def check_no_devices(name: str, **options: Any) -> None:
    """Raise unless options that have no meaning here are None or empty.

    Raises
    ------
    NumgradValueError
        With the first.
    """
    for option, value in options.items():
        if value is not None and value not in ([], "cpu"):
            raise NumgradValueError(
                f"{name}: {option} is None here, where ranks compute on the CPU and communicate by "
                f"MPI; got {value!r}"
            )


def is_available() -> bool:
    """True: a process by itself is a group of one; ``is_mpi_available`` tells of more.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.distributed.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Whether ``init_process_group`` was called.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.distributed.is_initialized()
    False
    """
    return _default is not None


def group_of(name: str, group: Group = None) -> ProcessGroup:
    """A group that this process is in, by default that of all; ``name`` is the caller."""
    if group is None:
        if _default is None:
            raise NumgradRuntimeError(
                f"{name}: there is no group of processes; call "
                "ng.distributed.init_process_group() first, also in a process by itself"
            )
        return _default
    if not isinstance(group, ProcessGroup):
        if isinstance(group, _NoMember):
            raise NumgradValueError(f"{name}: this process is not in the group")
        raise NumgradTypeError(
            f"{name}: a group is what new_group returned, got {type(group).__name__}"
        )
    if group is not _default and group not in _others:
        raise NumgradRuntimeError(f"{name}: the group was destroyed")
    return group


def get_rank(group: Group = None) -> int:
    """The number of this process in a group, by default of all; -1 if it is not in it.

    Raises
    ------
    NumgradRuntimeError
        Before ``init_process_group``.
    """
    return -1 if isinstance(group, _NoMember) else group_of("get_rank", group).rank


def get_world_size(group: Group = None) -> int:
    """The number of processes of a group, by default of all; -1 if this one is not in it.

    Raises
    ------
    NumgradRuntimeError
        Before ``init_process_group``.
    """
    return -1 if isinstance(group, _NoMember) else group_of("get_world_size", group).size


def get_process_group_ranks(group: Group = None) -> list[int]:
    """The members of a group, by default of all, by their numbers in the world.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.distributed.init_process_group()
    >>> ng.distributed.get_process_group_ranks()
    [0]
    >>> ng.distributed.destroy_process_group()
    """
    return list(group_of("get_process_group_ranks", group).ranks)


def get_group_rank(group: Group, global_rank: int) -> int:
    """The position in a group of a rank of the world.

    Raises
    ------
    NumgradValueError
        If it is not in the group.
    """
    return group_of("get_group_rank", group).position("get_group_rank", global_rank)


def get_global_rank(group: Group, group_rank: int) -> int:
    """The number in the world of the member of a group at a position.

    Raises
    ------
    NumgradValueError
        If there is no such position.
    """
    ranks = group_of("get_global_rank", group).ranks
    if isinstance(group_rank, bool) or group_rank not in range(len(ranks)):
        raise NumgradValueError(
            f"get_global_rank: a group of {len(ranks)} has no position {group_rank!r}"
        )
    return ranks[group_rank]


def get_backend(group: Group = None) -> str:
    """``"mpi"``; also for a group of one, which needs none."""
    group_of("get_backend", group)
    return "mpi"


def new_group(
    ranks: Iterable[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: None = None,
) -> Group:
    """A group of some of the ranks; all ranks call this, also those that are not in it.

    Parameters
    ----------
    ranks
        The members by their numbers in the world, by default all.
    timeout : float or datetime.timedelta, optional
        Seconds, by default those of all.
    backend
        None or ``"mpi"``.
    pg_options
        None.

    Raises
    ------
    NumgradValueError
        If there are none, or one is no rank; for another backend.
    """
    everybody = group_of("new_group")
    _check_backend("new_group", backend)
    check_no_devices("new_group", pg_options=pg_options)
    numbers = everybody.ranks if ranks is None else list(ranks)
    members = sorted({everybody.position("new_group", rank) for rank in numbers})
    if not members or len(members) < len(numbers):
        raise NumgradValueError(f"new_group: ranks are different ones, at least one; got {numbers}")
    seconds = everybody.timeout if timeout is None else seconds_of("new_group", timeout)
    comm: Any = everybody.comm
    if comm is not None:
        what = f"new_group of ranks {_shown(members)}"
        CollectiveWork(everybody, what, lambda: comm.Ibarrier()).wait()
        inside = everybody.rank in members
        color = 0 if inside else everybody.mpi.UNDEFINED
        comm = comm.Split(color, everybody.rank)
        if not inside:
            return NON_GROUP_MEMBER
        if len(members) == 1:
            comm.Free()
            comm = None
    made = ProcessGroup(comm, members, everybody.size, seconds)
    _others.append(made)
    return made


def destroy_process_group(group: Group = None) -> None:
    """Give a group back, by default all; the ranks of it call this together.

    Raises
    ------
    NumgradRuntimeError
        If there is none.
    """
    global _default
    if isinstance(group, _NoMember):
        return
    process_group = group_of("destroy_process_group", group)
    if process_group.comm is not None:
        check_allowed("destroy_process_group", process_group)
    for gone in [*_others, process_group] if process_group is _default else [process_group]:
        if gone.comm is not None:
            barrier = gone.control.Ibarrier()
            wait_until(
                barrier.Test, "destroy_process_group", gone.others, gone.timeout, gone.world_size
            )
        gone.free()
    if process_group is _default:
        _default = None
        _others.clear()
    else:
        _others.remove(process_group)
