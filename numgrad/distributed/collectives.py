"""Collectives: functions that all ranks of a group call together, with the same bits for all.

Note [Equal bits]
-----------------
MPI combines the terms of ranks in the order that suits it, and where one rank computes ``a op b``
another may compute ``b op a``. Loops of ranks stay together only if that makes no difference:

- A sum or product of real numbers differs in which NaN it is. Each NaN of a result becomes
  ``np.nan``.
- The larger of two floats is one of them where they do not compare: for NaN, and zeros of both
  signs. So MPI compares integers in the order of the floats: -0 is below 0, and NaN beyond both
  infinities, on the side of what is looked for.
- A product of complex numbers may round otherwise than with the factors exchanged, by fused
  multiply-add. MPI applies an operation of ours to it, which is declared not to commute: then it
  keeps to the order of ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from numgrad.distributed.group import Group, ProcessGroup, check_no_devices, group_of
from numgrad.distributed.messages import Memory, listed, scatter_back
from numgrad.distributed.work import CollectiveWork, DoneWork, check_allowed, seconds_of, wait_until
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.profiler.notes import record_collective


class ReduceOp(Enum):
    """How values of ranks become one; AVG is the mean. Booleans are added by ``or``.

    A NaN of any rank is NaN in the result, also of MIN and MAX, for which -0 is below 0.
    """

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"

    def __str__(self) -> str:
        return self.value


_MPI_NAMES = {
    ReduceOp.SUM: "SUM",
    ReduceOp.AVG: "SUM",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}
_OF_BOOLEANS = {
    ReduceOp.SUM: "BOR",
    ReduceOp.MAX: "BOR",
    ReduceOp.PRODUCT: "BAND",
    ReduceOp.MIN: "BAND",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}
_BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_EXTREMES = (ReduceOp.MIN, ReduceOp.MAX)


class Reduction:
    """A reduction of numbers of one dtype, in terms that MPI combines to equal bits on all ranks.

    ``terms`` of each rank are reduced by ``operation`` into an array like ``result``, of which
    ``put`` makes numbers: Note [Equal bits].

    Parameters
    ----------
    name
        The caller, for errors.
    op
        The member of ``ReduceOp``.
    dtype
        Of the numbers; booleans are sent as bytes.

    Raises
    ------
    NumgradTypeError
        If the dtype has no such reduction.
    """

    def __init__(self, name: str, op: Any, dtype: np.dtype) -> None:
        if not isinstance(op, ReduceOp):
            raise NumgradTypeError(f"{name}: op is a member of ng.distributed.ReduceOp, got {op!r}")
        kind = dtype.kind
        wrong = (
            (kind in "fc" and op in _BITWISE)
            or (kind == "c" and op in _EXTREMES)
            or (kind in "biu" and op is ReduceOp.AVG)
        )
        if wrong:
            raise NumgradTypeError(
                f"{name}: numbers of dtype {dtype} have no reduction {op}; use another ReduceOp, "
                "or another dtype"
            )
        self._op, self._kind = op, kind
        self._order = np.dtype(f"i{dtype.itemsize}") if kind == "f" and op in _EXTREMES else None

    def operation(self, mpi: Any) -> Any:
        """The operation of MPI's."""
        if self._kind == "c" and self._op is ReduceOp.PRODUCT:
            return _product_in_order(mpi)
        return getattr(mpi, (_OF_BOOLEANS if self._kind == "b" else _MPI_NAMES)[self._op])

    def terms(self, flat: np.ndarray) -> np.ndarray:
        """Array that MPI combines: the numbers, or a copy as integers of the same order."""
        if self._order is None:
            return flat
        bits = flat.view(self._order).copy()
        none = np.nan if self._op is ReduceOp.MAX else -np.nan
        bits[np.isnan(flat)] = np.array(none, flat.dtype).view(self._order)
        return _reorder(bits)

    def result(self, flat: np.ndarray) -> np.ndarray:
        """An array for the result of terms: that of the numbers, where it can be."""
        return flat if self._order is None else np.empty(flat.shape, self._order)

    def put(self, result: np.ndarray, flat: np.ndarray, size: int) -> None:
        """Put the numbers that a result of so many ranks means into an array."""
        if self._order is not None:
            flat[...] = _reorder(result).view(flat.dtype)
        if self._op is ReduceOp.AVG and size != 1:
            numbers = real_parts(flat)
            np.divide(numbers, size, out=numbers)
        unify_nans(flat)


def _reorder(bits: np.ndarray) -> np.ndarray:
    """Bits of floats as integers of the same order, and back, in place."""
    bits ^= (bits >> (8 * bits.itemsize - 1)) & np.iinfo(bits.dtype).max
    return bits


def real_parts(flat: np.ndarray) -> np.ndarray:
    """The same memory as real numbers."""
    return flat.view(np.finfo(flat.dtype).dtype) if flat.dtype.kind == "c" else flat


def unify_nans(flat: np.ndarray) -> None:
    """Make each NaN of a flat array the same."""
    if flat.dtype.kind not in "fc" or not flat.size:
        return
    numbers = real_parts(flat)
    if np.isnan(numbers.min()):  # as most arrays are not: a pass is faster than two
        numbers[np.isnan(numbers)] = np.nan


@cache
def _product_in_order(mpi: Any) -> Any:
    """MPI's operation for products of complex numbers, the factors in the order of ranks."""

    def multiply(before: Any, product: Any, datatype: Any) -> None:
        dtype = np.complex64 if datatype.Get_size() == 8 else np.complex128
        after = np.frombuffer(product, dtype)
        with np.errstate(all="ignore"):
            np.multiply(np.frombuffer(before, dtype), after, out=after)

    return mpi.Op.Create(multiply, commute=False)


BARRIER_TAG = 0
"""The tag of what says that a rank is at a barrier; messages have numbers from 1."""


def run_collective(
    group: ProcessGroup,
    what: str,
    post: Callable[[], Any],
    finish: Callable[[], None] | None,
    async_op: bool,
    alone: Callable[[], None] | None = None,
    *,
    moved: tuple[int, int],
) -> CollectiveWork | None:
    """Begin a collective, and wait unless ``async_op``; ``alone`` does it in a group of one.

    ``moved`` are the bytes of the tensors that this rank receives and gives.
    """
    if group.comm is None:
        with record_collective(what, *moved):
            if alone is not None:
                alone()
            if finish is not None:
                finish()
        return DoneWork(what) if async_op else None
    work = CollectiveWork(group, what, post, finish, moved=moved)
    if async_op:
        return work
    work.wait()
    return None


def barrier(
    group: Group = None, async_op: bool = False, device_ids: None = None
) -> CollectiveWork | None:
    """Wait until all ranks are here.

    Parameters
    ----------
    group
        By default all ranks.
    async_op
        Return a ``Work`` at once, whose ``wait`` ends the operation.
    device_ids
        None: there are no devices but the CPU.

    Raises
    ------
    NumgradRuntimeError
        If ranks call something else, one has left, or the timeout is over.
    """
    members = group_of("barrier", group)
    check_no_devices("barrier", device_ids=device_ids)

    def post() -> Any:
        return members.comm.Ibarrier()

    return run_collective(members, "barrier", post, None, async_op, moved=(0, 0))


def monitored_barrier(
    group: Group = None, timeout: Any = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all ranks are here; the first rank of the group names those that are not.

    Parameters
    ----------
    group
        By default all ranks.
    timeout : float or datetime.timedelta, optional
        Seconds, by default those of the group.
    wait_all_ranks
        Accepted for PyTorch's sake: all that are missing are named.

    Raises
    ------
    NumgradRuntimeError
        After the timeout, or if a rank has left.
    """
    name = "monitored_barrier"
    members = group_of(name, group)
    seconds = members.timeout if timeout is None else seconds_of(name, timeout)
    if members.comm is None:
        return
    check_allowed(name, members)
    missing = set(members.others)
    here = [np.zeros(1, np.uint8) for _ in members.others]
    if members.rank == 0:
        requests = {
            rank: members.comm.Irecv(buffer, members.ranks.index(rank), BARRIER_TAG)
            for rank, buffer in zip(members.others, here, strict=True)
        }

        def arrived() -> bool:
            missing.difference_update([rank for rank in missing if requests[rank].Test()])
            return not missing

        try:
            wait_until(arrived, name, members.others, seconds, members.world_size)
        except NumgradRuntimeError as error:
            for rank in missing:
                requests[rank].Cancel()
            raise NumgradRuntimeError(
                f"{name}: ranks {sorted(missing)} did not come within {seconds:g} s; they are "
                "stuck, have ended, or do not call this"
            ) from error
    else:
        _sent = members.comm.Isend(here[0], 0, BARRIER_TAG)
    end = CollectiveWork(members, name, lambda: members.comm.Ibarrier())
    end.wait(seconds)


def all_reduce(
    tensor: Any, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> CollectiveWork | None:
    """Put the sum of the tensors of all ranks, or another reduction, in place of each.

    All ranks get the same bits.

    Parameters
    ----------
    tensor
        A Tensor or ndarray, of one shape and dtype on all ranks; it is written to.
    op
        The reduction; ``ReduceOp.AVG`` is the mean.
    group
        By default all ranks.
    async_op
        Return a ``Work`` at once, whose ``wait`` ends the operation.

    Raises
    ------
    NumgradRuntimeError
        If shapes, dtypes or the operation differ between ranks, which all of them say; if a rank
        has left, or the timeout is over; if a graph was recorded for the tensor.
    NumgradTypeError
        If the dtype cannot be sent or reduced.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.distributed.init_process_group()
    >>> x = ng.tensor([1.0, 2.0])
    >>> ng.distributed.all_reduce(x)
    >>> x
    tensor([1., 2.])
    >>> ng.distributed.destroy_process_group()
    """
    members = group_of("all_reduce", group)
    memory = Memory("all_reduce", tensor, writes=True)
    reduction = Reduction("all_reduce", op, memory.array.dtype)
    terms = reduction.terms(memory.flat)

    def post() -> Any:
        mpi = members.mpi
        return members.comm.Iallreduce(mpi.IN_PLACE, terms, reduction.operation(mpi))

    def finish() -> None:
        reduction.put(terms, memory.flat, members.size)
        memory.written()

    what, size = f"all_reduce({op}) of {memory.said}", memory.flat.nbytes
    return run_collective(members, what, post, finish, async_op, moved=(size, size))


def reduce(
    tensor: Any, dst: int, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> CollectiveWork | None:
    """Put the sum of the tensors of all ranks, or another reduction, in place of that of ``dst``.

    Parameters and errors are those of ``all_reduce``; the tensors of others stay as they are.
    """
    members = group_of("reduce", group)
    root = members.position("reduce", dst)
    mine = members.rank == root
    memory = Memory("reduce", tensor, writes=mine)
    reduction = Reduction("reduce", op, memory.array.dtype)
    terms = reduction.terms(memory.flat)

    def post() -> Any:
        mpi = members.mpi
        sent, got = (mpi.IN_PLACE, terms) if mine else (terms, None)
        return members.comm.Ireduce(sent, got, reduction.operation(mpi), root)

    def finish() -> None:
        if mine:
            reduction.put(terms, memory.flat, members.size)
            memory.written()

    what, size = f"reduce({op}) to {dst} of {memory.said}", memory.flat.nbytes
    return run_collective(members, what, post, finish, async_op, moved=(size * mine, size))


def broadcast(
    tensor: Any, src: int, group: Group = None, async_op: bool = False
) -> CollectiveWork | None:
    """Put the tensor of rank ``src`` in place of those of all others.

    Parameters and errors are those of ``all_reduce``.
    """
    members = group_of("broadcast", group)
    root = members.position("broadcast", src)
    mine = members.rank == root
    memory = Memory("broadcast", tensor, writes=not mine)

    def post() -> Any:
        return members.comm.Ibcast(memory.flat, root)

    def finish() -> None:
        if not mine:
            memory.written()

    what = f"broadcast from {src} of {memory.said}"
    moved = (0, memory.flat.nbytes) if mine else (memory.flat.nbytes, 0)
    return run_collective(members, what, post, finish, async_op, moved=moved)


def all_gather(
    tensor_list: list[Any], tensor: Any, group: Group = None, async_op: bool = False
) -> CollectiveWork | None:
    """Put the tensors of all ranks into the list of each.

    Parameters
    ----------
    tensor_list
        A tensor for each rank, which is written to.
    tensor
        What this rank gives; group, async_op and errors are those of ``all_reduce``.

    Raises
    ------
    NumgradValueError
        If the list has another length, or something in it another shape or dtype.
    """
    members = group_of("all_gather", group)
    memory = Memory("all_gather", tensor, writes=False)
    targets = listed("all_gather", "tensor_list", tensor_list, members.size, memory, writes=True)
    rows = np.empty((members.size, memory.flat.size), memory.flat.dtype)

    def alone() -> None:
        rows[0] = memory.flat

    def post() -> Any:
        return members.comm.Iallgather(memory.flat, rows)

    what, moved = f"all_gather of {memory.said}", (rows.nbytes, memory.flat.nbytes)
    finish = scatter_back(rows, targets)
    return run_collective(members, what, post, finish, async_op, alone, moved=moved)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Group = None, async_op: bool = False
) -> CollectiveWork | None:
    """Put the tensors of all ranks one after another into one tensor of each.

    Parameters
    ----------
    output_tensor
        Has as many elements as all inputs together; they are in the order of ranks.
    input_tensor
        What this rank gives; group, async_op and errors are those of ``all_reduce``.

    Raises
    ------
    NumgradValueError
        If sizes or dtypes do not fit.
    """
    name = "all_gather_into_tensor"
    members = group_of(name, group)
    memory, whole = (
        Memory(name, input_tensor, writes=False),
        Memory(name, output_tensor, writes=True),
    )
    _check_whole(name, whole, memory, members.size)

    def alone() -> None:
        whole.flat[...] = memory.flat

    def post() -> Any:
        return members.comm.Iallgather(memory.flat, whole.flat)

    what, moved = f"{name} of {memory.said}", (whole.flat.nbytes, memory.flat.nbytes)
    return run_collective(members, what, post, whole.written, async_op, alone, moved=moved)


def gather(
    tensor: Any,
    gather_list: list[Any] | None = None,
    dst: int = 0,
    group: Group = None,
    async_op: bool = False,
) -> CollectiveWork | None:
    """Put the tensors of all ranks into the list of rank ``dst``; others give no list.

    Parameters and errors are those of ``all_gather``.
    """
    members = group_of("gather", group)
    root = members.position("gather", dst)
    mine = members.rank == root
    memory = Memory("gather", tensor, writes=False)
    check_only_at("gather", "gather_list", gather_list, mine, dst)
    rows, finish = None, None
    if mine:
        targets = listed("gather", "gather_list", gather_list, members.size, memory, writes=True)
        rows = np.empty((members.size, memory.flat.size), memory.flat.dtype)
        finish = scatter_back(rows, targets)

    def alone() -> None:
        if rows is not None:
            rows[0] = memory.flat

    def post() -> Any:
        return members.comm.Igather(memory.flat, rows, root)

    what, received = f"gather to {dst} of {memory.said}", 0 if rows is None else rows.nbytes
    moved = (received, memory.flat.nbytes)
    return run_collective(members, what, post, finish, async_op, alone, moved=moved)


def scatter(
    tensor: Any,
    scatter_list: list[Any] | None = None,
    src: int = 0,
    group: Group = None,
    async_op: bool = False,
) -> CollectiveWork | None:
    """Put the tensors in the list of rank ``src`` one to each rank; others give no list.

    Parameters and errors are those of ``all_gather``; ``tensor`` is written to.
    """
    members = group_of("scatter", group)
    root = members.position("scatter", src)
    mine = members.rank == root
    memory = Memory("scatter", tensor, writes=True)
    check_only_at("scatter", "scatter_list", scatter_list, mine, src)
    rows = None
    if mine:
        sources = listed(
            "scatter", "scatter_list", scatter_list, members.size, memory, writes=False
        )
        rows = np.stack([source.flat for source in sources])

    def alone() -> None:
        if rows is not None:
            memory.flat[...] = rows[0]

    def post() -> Any:
        return members.comm.Iscatter(rows, memory.flat, root)

    what, sent = f"scatter from {src} of {memory.said}", 0 if rows is None else rows.nbytes
    moved = (memory.flat.nbytes, sent)
    return run_collective(members, what, post, memory.written, async_op, alone, moved=moved)


def reduce_scatter(
    output: Any,
    input_list: list[Any],
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> CollectiveWork | None:
    """Give each rank the sum of what all ranks have at its place of their lists.

    Parameters
    ----------
    output
        Where the sum for this rank goes.
    input_list
        A tensor for each rank; op, group, async_op and errors are those of ``all_reduce``.

    Raises
    ------
    NumgradValueError
        If the list has another length, or something in it another shape or dtype.
    """
    name = "reduce_scatter"
    members = group_of(name, group)
    memory = Memory(name, output, writes=True)
    sources = listed(name, "input_list", input_list, members.size, memory, writes=False)
    return _reduce_scatter(name, members, memory, np.stack([g.flat for g in sources]), op, async_op)


def reduce_scatter_tensor(
    output: Any,
    input: Any,
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> CollectiveWork | None:
    """Give each rank its part of the sum of the tensors of all ranks.

    Parameters
    ----------
    output
        Where the part of this rank goes.
    input
        Has as many elements as all outputs together, in the order of ranks; op, group, async_op and
        errors are those of ``all_reduce``.

    Raises
    ------
    NumgradValueError
        If sizes or dtypes do not fit.
    """
    name = "reduce_scatter_tensor"
    members = group_of(name, group)
    memory, whole = Memory(name, output, writes=True), Memory(name, input, writes=False)
    _check_whole(name, whole, memory, members.size)
    rows = whole.flat.reshape(members.size, memory.flat.size)
    return _reduce_scatter(name, members, memory, rows, op, async_op)


def _reduce_scatter(
    name: str, group: ProcessGroup, memory: Memory, rows: np.ndarray, op: ReduceOp, async_op: bool
) -> CollectiveWork | None:
    reduction = Reduction(name, op, memory.array.dtype)
    terms, result = reduction.terms(rows), reduction.result(memory.flat)

    def post() -> Any:
        return group.comm.Ireduce_scatter_block(terms, result, reduction.operation(group.mpi))

    def finish() -> None:
        reduction.put(result, memory.flat, group.size)
        memory.written()

    def alone() -> None:
        result[...] = terms[0]

    what, moved = f"{name}({op}) of {memory.said}", (memory.flat.nbytes, rows.nbytes)
    return run_collective(group, what, post, finish, async_op, alone, moved=moved)


def _check_whole(name: str, whole: Memory, piece: Memory, count: int) -> None:
    if whole.array.dtype != piece.array.dtype or whole.array.size != count * piece.array.size:
        raise NumgradValueError(
            f"{name}: {piece.said} on each of {count} ranks needs {count * piece.array.size} "
            f"elements of that dtype, got {whole.said}"
        )


def check_only_at(name: str, what: str, argument: Any, mine: bool, root: int) -> None:
    """Raise unless rank ``root`` gives something, and no other does."""
    if (argument is None) == mine:
        raise NumgradValueError(
            f"{name}: rank {root} gives {what} and no other does; "
            + ("it is missing here" if mine else "leave it out here")
        )
