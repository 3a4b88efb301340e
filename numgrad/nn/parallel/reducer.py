"""Means of gradients over ranks, computed while the backward goes on.

Note [Buckets]
--------------
The gradients of many parameters are averaged together, one all-reduce a *bucket*: a message has a
latency, and the last gradients of a backward should not wait for the first. Parameters fill buckets
in reverse order, since gradients of the last layers come first. When all gradients of a bucket have
arrived it is sent, and after the last one has been the backward waits for all of them. Buckets are
sent in their order on all ranks, on a communicator of their own.

How buckets are added up is said in ``numgrad.distributed.sums``.

Behind the gradients a bucket has a number for each parameter: 1 if this rank's backward reaches
it. Their sums say, without a further message, which parameters no rank used: their gradients stay
as they are, None if nothing else was there. What a backward reaches is read from its graph when the
first gradient arrives, so a parameter that is not used needs no special mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from weakref import ref

import numpy as np

from numgrad.autograd.node import mark_written
from numgrad.autograd.row_sparse import RowSparseTensor
from numgrad.autograd.variable import INFERENCE, version_of
from numgrad.core.interpreter import state
from numgrad.distributed.group import ProcessGroup
from numgrad.distributed.sums import sums_of
from numgrad.distributed.work import wait_until
from numgrad.errors import NumgradRuntimeError, NumgradTraceError
from numgrad.nn.parallel.joining import BACKWARD, Roll
from numgrad.tensors.tensor import Tensor

FIRST_BUCKET = 1024 * 1024
"""Bytes of the first bucket: it is small, so that sending begins early."""


class _Bucket:
    """Gradients that are sent together: Note [Buckets]."""

    def __init__(
        self,
        members: Sequence[int],
        params: Sequence[Tensor],
        terms: np.ndarray,
        totals: np.ndarray,
    ) -> None:
        self.members = list(members)
        shapes = [params[k].shape for k in self.members]
        self.parts, self.reached = _parts(terms, shapes)
        self.totals, self.used = _parts(totals, shapes)
        self.missing = 0


def _parts(
    flat: np.ndarray, shapes: Sequence[tuple[int, ...]]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Views for gradients one after another, and the numbers behind them."""
    *parts, used = np.split(flat, np.cumsum([math.prod(shape) for shape in shapes]))
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)], used


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
        sizes = [
            (sum(self.params[k].size + 1 for k in m), self.params[m[0]].dtype) for m in buckets
        ]
        self.sums = sums_of(group, self.comm, sizes)
        self.buckets = [
            _Bucket(members, self.params, terms, totals)
            for members, terms, totals in zip(
                buckets, self.sums.terms, self.sums.totals, strict=True
            )
        ]
        self._place = {
            k: (bucket, position)
            for bucket in self.buckets
            for position, k in enumerate(bucket.members)
        }
        self._task: Any = None
        self._waiting: set[int] = set()
        self._sent = 0
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
        bucket, position = self._place[k]
        if k not in self._waiting:
            raise NumgradRuntimeError(
                f"DistributedDataParallel: the gradient of {self.names[k]} arrived twice in one "
                "backward; do not call backward in a hook"
            )
        np.copyto(bucket.parts[position], self._dense(k, param)._array)
        self._waiting.discard(k)
        bucket.missing -= 1
        self._send()
        if not self._waiting:
            self._finish()

    def _begin(self, task: Any) -> None:
        """See what this backward reaches, and clear the buckets."""
        self.check_finished()
        self.roll.call(BACKWARD)
        self._task = ref(task)
        self._waiting = {k for k, param in enumerate(self.params) if task.reaches(param, 0)}
        self._clear()
        self._send()

    def _clear(self) -> None:
        self._sent = 0
        self.sums.clear()
        for bucket in self.buckets:
            bucket.missing = 0
            for position, k in enumerate(bucket.members):
                reached = k in self._waiting
                bucket.reached[position] = reached
                bucket.missing += reached
                if not reached:  # what was accumulated before is part of the mean
                    self._fill(bucket, position, self.params[k])

    def _fill(self, bucket: _Bucket, position: int, param: Tensor) -> None:
        grad = None if self.roll.joined else param.grad
        if grad is None:
            bucket.parts[position][...] = 0
        else:
            dense = grad.to_dense() if isinstance(grad, RowSparseTensor) else grad
            np.copyto(bucket.parts[position], dense._array)

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

    def _send(self) -> None:
        """Send the buckets that are complete, in their order, and push on those before them."""
        self.sums.done()
        while self._sent < len(self.buckets) and not self.buckets[self._sent].missing:
            self.sums.send()
            self._sent += 1

    def _finish(self) -> None:
        """Wait for the sums, and put the means in place of the gradients."""
        self._await()
        divisor = self.roll.divisor
        for bucket in self.buckets:
            for position, k in enumerate(bucket.members):
                if bucket.used[position] != 0:
                    _store(self.params[k], bucket.totals[position], divisor)
        self._task = None

    def _await(self) -> None:
        """Wait until all ranks are here, then for what was sent."""
        group, what = self.group, "DistributedDataParallel, means of gradients"
        here = self.comm.Ibarrier()
        wait_until(here.Test, what, group.others, group.timeout, group.world_size)
        size = sum(array.nbytes for array in self.sums.terms[: self._sent])
        wait_until(
            self.sums.done,
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
            f"{', '.join(missing[:8])}{', ...' if len(missing) > 8 else ''} arrived, so the means "
            "over ranks were not taken; did it raise, or does a Function return None for them?"
        )

    def shadow(self) -> None:
        """Take part in the averaging of others without gradients of one's own."""
        self._waiting = set()
        self._clear()
        self._send()
        self._await()


def _store(param: Tensor, total: np.ndarray, divisor: int) -> None:
    """Put a mean in place of a gradient."""
    grad = param.grad
    if not isinstance(grad, Tensor) or not grad._array.flags.writeable:
        param.grad = Tensor(total / np.asarray(divisor, np.finfo(total.dtype).dtype))
        return
    if divisor == 1 << int(math.log2(divisor)):  # exact, and faster than to divide
        np.multiply(total, 1 / divisor, out=grad._array)
    else:
        np.divide(total, divisor, out=grad._array)
    if version_of(grad) is not INFERENCE:
        mark_written(grad)
