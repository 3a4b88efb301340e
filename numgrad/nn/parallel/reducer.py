"""Gradients are averaged over ranks, some of which may have less data than others.

Note [Buckets]
--------------
The gradients of many parameters are averaged together, one all-reduce a *bucket*: a message has a
latency, and the last gradients of a backward should not wait for the first. Parameters fill buckets
in reverse order, since gradients of the last layers come first. When all gradients of a bucket, or
of a part of it, have arrived it is sent, and after the last one has been the backward waits for all
of them. Buckets are sent in their order on all ranks, on a communicator of their own.

How buckets are added up, and in which parts, is said in ``numgrad.distributed.means``: means are
put in place of a gradient while the backward goes on with others, if it has a contiguous array of
its own that may be written to; else it is a copy that is sent, and means come in the end.

With a bucket goes a mark for each parameter: 1 if this rank's backward reaches it. They say,
without a further message, which parameters no rank used: their gradients stay as they are, None if
nothing else was there. What a backward reaches is read from its graph when the first gradient
arrives, so a parameter that is not used needs no special mode.

Note [Roll calls]
-----------------
Inside of ``join`` every collective of the wrapper begins with a roll call: each rank says what it
is about to do, a forward, a backward, a step of an optimizer whose state is divided, or nothing
more, since its data are used up. Who has joined answers calls until nobody does anything more, and
takes part in what others say they do. So ranks may have any numbers of batches, and forwards
without a backward. A collective of the user's own has no roll call: it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import ref

import numpy as np

from numgrad.autograd.row_sparse_tensor import RowSparseTensor
from numgrad.autograd.versions import INFERENCE, mark_written, version_of
from numgrad.core.interpreter import state
from numgrad.distributed.group import ProcessGroup
from numgrad.distributed.means import means_of
from numgrad.distributed.work import restrictions, wait_until
from numgrad.errors import NumgradRuntimeError, NumgradTraceError
from numgrad.tensors.tensor import Tensor

JOINED, FORWARD, BACKWARD, STEP = range(4)
"""Kinds of steps of a rank; ``STEP + k`` is a step of optimizer number k."""


_SAID = ["has no more data", "begins a forward", "begins a backward", "steps an optimizer"]


class Roll:
    """The roll calls of the ranks of a group: Note [Roll calls]."""

    def __init__(self, group: ProcessGroup, comm: Any) -> None:
        self.group, self.comm = group, comm
        self.joined = False
        self.last: list[int] = list(range(group.size))
        """Positions of the ranks that were active at the latest call."""
        self._called = False
        self._by_all = self._strict = True
        self._own = False
        self._active = group.size

    def begin(self, by_all: bool, strict: bool) -> None:
        """Begin to call, in ``join``."""
        if self._called:
            raise NumgradRuntimeError("join: is inside of another join of the same module")
        self._called, self.joined = True, False
        self._by_all, self._strict = by_all, strict
        self.last = list(range(self.group.size))
        restrictions.append(self._refuse)

    def end(self) -> None:
        """Call no more."""
        if self._called:
            restrictions.remove(self._refuse)
        self._called = self.joined = False
        self._active = self.group.size

    @contextmanager
    def own_collectives(self) -> Iterator[None]:
        """A block of collectives in which ranks that have joined take part."""
        before, self._own = self._own, True
        try:
            yield
        finally:
            self._own = before

    def _refuse(self, what: str, group: ProcessGroup) -> None:
        if self._own or not set(group.others) & set(self.group.others):
            return
        raise NumgradRuntimeError(
            f"{what}: is called inside of DistributedDataParallel.join, where a rank that has no "
            "more data would not take part; call it after the block, give optimizers that "
            "communicate to join(optimizers=[...]), or leave join out where all ranks have equally "
            "many batches"
        )

    @property
    def joined_ranks(self) -> list[int]:
        """Positions of the ranks that had no more data at the latest call."""
        return sorted(set(range(self.group.size)) - set(self.last))

    @property
    def divisor(self) -> int:
        """Divisor of sums of gradients."""
        return self.group.size if self._by_all or not self._called else self._active

    def call(self, doing: int) -> int:
        """Say what this rank does, return what the active ones do; ``JOINED`` if there are none."""
        if not self._called:
            return doing
        group = self.group
        every = np.empty(group.size, np.int8)
        request = self.comm.Iallgather(np.array([doing], np.int8), every)
        wait_until(request.Test, "join", group.others, group.timeout, group.world_size)
        active = np.flatnonzero(every).tolist()
        if active:
            self.last, self._active = active, len(active)
        steps = set(every[active].tolist())
        joined = len(active) < group.size
        if len(steps) > 1 or (self._strict and joined and active):
            actions = "; ".join(
                f"rank {rank} {_SAID[min(int(what), STEP)]}"
                for rank, what in zip(group.ranks, every, strict=True)
            )
            raise NumgradRuntimeError(
                f"join: {actions}. "
                + (
                    "All that have data must call forward, backward and step alike"
                    if len(steps) > 1
                    else "With throw_on_early_termination all ranks stop here"
                )
            )
        return steps.pop() if steps else JOINED


FIRST_BUCKET = 1024 * 1024
"""Bytes of the first bucket: it is small, so that sending begins early."""


def arranged(params: Sequence[Tensor], cap: float) -> list[list[int]]:
    """The positions of parameters, by buckets of one dtype and at most ``cap`` bytes."""
    buckets: list[list[int]] = []
    filling: dict[np.dtype, list[int]] = {}
    sizes: dict[np.dtype, int] = {}
    limit = min(FIRST_BUCKET, cap)
    for k in reversed(range(len(params))):
        dtype, size = params[k].dtype, params[k].nbytes
        if dtype in filling and sizes[dtype] + size > limit:
            buckets.append(filling.pop(dtype))
            limit = cap
        filling.setdefault(dtype, []).append(k)
        sizes[dtype] = size if len(filling[dtype]) == 1 else sizes[dtype] + size
    return [*buckets, *filling.values()]


class Reducer:
    """Averages the gradients of parameters over the ranks of a group at each backward."""

    def __init__(
        self, params: Sequence[tuple[str, Tensor]], group: ProcessGroup, cap: float
    ) -> None:
        self.names = [name for name, _ in params]
        self.params = [param for _, param in params]
        self.group = group
        self.comm = group.comm.Dup()
        self.roll = Roll(group, self.comm)
        self.enabled = True
        buckets = arranged(self.params, cap)
        sizes = [([self.params[k].size for k in m], self.params[m[0]].dtype) for m in buckets]
        self.buckets = buckets
        self.means = means_of(group, self.comm, sizes)
        self._place = {
            k: (number, position)
            for number, members in enumerate(buckets)
            for position, k in enumerate(members)
        }
        self._task: Any = None
        self._waiting: set[int] = set()
        self.handles = [
            param.register_post_accumulate_grad_hook(self._hook(k))
            for k, param in enumerate(self.params)
        ]

    def _hook(self, k: int) -> Any:
        return lambda param: self._arrived(k, param)

    # --------------------------------------------------------------------------------- backward

    def _arrived(self, k: int, param: Tensor) -> None:
        """Put a gradient into its bucket; the last one ends the averaging."""
        if not self.enabled:
            return
        if state.ground.deferred:
            raise NumgradTraceError(
                "DistributedDataParallel: a backward that ng.jit compiles has no gradients to send "
                "yet; compile the model and not the training step"
            )
        task = state.task
        if self._task is None or self._task() is not task:
            self._begin(task)
        if k not in self._waiting:
            raise NumgradRuntimeError(
                f"DistributedDataParallel: the gradient of {self.names[k]} arrived twice in one "
                "backward; do not call backward in a hook"
            )
        grad = self._dense(k, param)
        array = grad._array
        if array.flags.c_contiguous and array.flags.writeable and not grad._is_view():
            self._writes[k] = grad, _writes(grad)
        else:
            array = np.array(array, order="C")
        self._give(k, array)
        self._waiting.discard(k)
        if not self._waiting:
            self._finish()

    def _begin(self, task: Any) -> None:
        """See what this backward reaches, and clear the buckets."""
        self.check_finished()
        self.roll.call(BACKWARD)
        self._task = ref(task)
        self._waiting = {k for k, param in enumerate(self.params) if task.reaches(param, 0)}
        self._clear()

    def _clear(self) -> None:
        reached = [[k in self._waiting for k in members] for members in self.buckets]
        self._given: dict[int, np.ndarray] = {}
        self._writes: dict[int, tuple[Tensor, int]] = {}
        self.means.begin(self.roll.divisor, reached)
        for k, param in enumerate(self.params):
            if k not in self._waiting:  # what was accumulated before is part of the mean
                grad: Any = None if self.roll.joined else param.grad
                if isinstance(grad, RowSparseTensor):
                    grad = grad.to_dense()
                own = np.zeros(param.shape, param.dtype) if grad is None else grad._array
                self._give(k, own if grad is None else np.array(own, order="C"))

    def _give(self, k: int, array: np.ndarray) -> None:
        self._given[k] = array
        self.means.give(*self._place[k], array)

    def _dense(self, k: int, param: Tensor) -> Tensor:
        grad: Any = param.grad
        if isinstance(grad, RowSparseTensor):
            param.grad = grad = grad.to_dense()
        if grad.requires_grad:
            raise NumgradRuntimeError(
                f"DistributedDataParallel: the gradient of {self.names[k]} has a graph "
                "(create_graph=True), and means over ranks are not recorded; use the module "
                "itself for derivatives of gradients"
            )
        return grad

    def _finish(self) -> None:
        """Wait for the means, and put those of copies in place of their gradients."""
        self._await()
        self._check_unchanged()
        for members, used in zip(self.buckets, self.means.used, strict=True):
            for k in (members[position] for position in used):
                _store(self.params[k], self._given[k])
        self._given, self._task = {}, None

    def _check_unchanged(self) -> None:
        changed = [
            self.names[k] for k, (grad, count) in self._writes.items() if _writes(grad) != count
        ]
        self._writes = {}
        if changed:
            self._given, self._task = {}, None
            raise NumgradRuntimeError(
                f"DistributedDataParallel: the gradient of {changed[0]} was changed in place while "
                "it was averaged; register hooks that change gradients before the model is wrapped,"
                " or change them after backward"
            )

    def _await(self) -> None:
        """Wait until all ranks are here, then for what was sent."""
        group, what = self.group, "DistributedDataParallel, means of gradients"
        here = self.comm.Ibarrier()

        def arrived() -> bool:
            self.means.done()  # what others have sent is added up meanwhile
            return here.Test()

        wait_until(arrived, what, group.others, group.timeout, group.world_size)
        size = self.means.nbytes
        wait_until(
            self.means.done,
            what,
            group.others,
            group.timeout,
            group.world_size,
            lambda: True,
            (size, size),
        )

    def check_finished(self) -> None:
        """Raise if the backward before this one did not bring all gradients.

        Raises
        ------
        NumgradRuntimeError
            With the names of the parameters.
        """
        if self._task is None or not self._waiting:
            return
        missing = [self.names[k] for k in sorted(self._waiting)]
        self._await()  # the memory is theirs until then
        self._task, self._waiting = None, set()
        raise NumgradRuntimeError(
            "DistributedDataParallel: the last backward ended before gradients of "
            f"{', '.join(missing[:8])}{', ...' if len(missing) > 8 else ''} arrived, so not all "
            "means over ranks were taken; call zero_grad. Did it raise, or does a Function return "
            "None for them?"
        )

    def shadow(self) -> None:
        """Take part in the averaging of others without gradients of one's own."""
        self._waiting = set()
        self._clear()
        self._await()


def _writes(grad: Tensor) -> int:
    """How often a gradient was written to."""
    return getattr(version_of(grad), "count", 0)


def _store(param: Tensor, mean: np.ndarray) -> None:
    """Put a mean in place of a gradient, if it is not there already."""
    grad = param.grad
    if not isinstance(grad, Tensor) or not grad._array.flags.writeable:
        param.grad = Tensor(mean)
        return
    if grad._array is not mean:
        np.copyto(grad._array, mean)
    if version_of(grad) is not INFERENCE:
        mark_written(grad)
