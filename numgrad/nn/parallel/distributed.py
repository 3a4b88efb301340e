"""``DistributedDataParallel``: one model on all ranks, each with its own piece of the data."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import finalize

import numpy as np

from numgrad.autograd.modes import is_grad_enabled
from numgrad.distributed.collectives import ReduceOp, all_reduce, broadcast
from numgrad.distributed.exchange import all_gather_object, broadcast_object_list
from numgrad.distributed.group import Group, ProcessGroup, check_no_devices, group_of
from numgrad.distributed.messages import joined, spread
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.nn.module.module import Module
from numgrad.nn.parallel.reducer import BACKWARD, FORWARD, JOINED, STEP, Reducer
from numgrad.nn.utils.clip_grad import clip_grads_with_norm_, get_total_norm
from numgrad.tensors.tensor import Tensor


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    process_group: Group = None,
) -> Tensor:
    """Scale gradients in place so that their norm, taken over all ranks together, is limited.

    This is for parameters of which each rank has its own. Gradients that are equal on all ranks,
    such as those of ``DistributedDataParallel``, are clipped by ``nn.utils.clip_grad_norm_``.

    Parameters
    ----------
    parameters, max_norm, norm_type, error_if_nonfinite
        As for ``nn.utils.clip_grad_norm_``.
    process_group
        By default all ranks.

    Returns
    -------
    Tensor
        The norm before clipping, 0-d and float64, equal on all ranks.

    Raises
    ------
    NumgradRuntimeError
        With ``error_if_nonfinite``, on all ranks.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.distributed.init_process_group()
    >>> w = ng.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> ng.nn.parallel.clip_grad_norm_([w], max_norm=1.0)
    tensor(5.)
    >>> ng.distributed.destroy_process_group()
    """
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = [t.grad for t in tensors if t.grad is not None]
    own = float(get_total_norm(grads, norm_type).item())
    order = float(norm_type)
    scale = np.array(own)
    all_reduce(scale, ReduceOp.MIN if order == -math.inf else ReduceOp.MAX, process_group)
    total = float(scale)
    if math.isfinite(order) and math.isfinite(total) and total > 0:
        # norms of ranks by the largest, whose powers neither overflow nor vanish
        share = np.array(own if order == 0 else (own / total) ** order)
        all_reduce(share, ReduceOp.SUM, process_group)
        total = float(share) if order == 0 else total * float(share) ** (1 / order)
    if error_if_nonfinite and not math.isfinite(total):
        raise NumgradRuntimeError(
            f"clip_grad_norm_: the norm of order {order} over all ranks is {total}; find out where "
            "gradients stop to be finite (ng.autograd.detect_anomaly), or pass "
            "error_if_nonfinite=False"
        )
    clip_grads_with_norm_(tensors, max_norm, total)
    return Tensor(np.array(total))


_NAME = "DistributedDataParallel"


class DistributedDataParallel(Module):
    """A model whose gradients are means over ranks: each trains it on its own part of the data.

    All ranks begin with the parameters of the first. Each backward averages gradients in buckets
    while it goes on, so that equal optimizers keep parameters equal bit by bit.

    Parameters
    ----------
    module
        The model, built alike on all ranks.
    device_ids, output_device
        None: there are no devices but the CPU.
    dim, init_sync
        0 and True.
    broadcast_buffers
        Take over the buffers of the first rank at each forward of training.
    process_group
        By default all ranks.
    bucket_cap_mb
        Megabytes of gradients that are sent together.
    find_unused_parameters, check_reduction, gradient_as_bucket_view, static_graph
        Accepted for PyTorch's sake: parameters that a backward does not reach are always found.

    Attributes
    ----------
    module
        The model, which calls go to. Its ``state_dict`` fits any number of ranks.

    Raises
    ------
    NumgradRuntimeError
        Before ``ng.distributed.init_process_group``; on all ranks, if their parameters or buffers
        differ in number, name, shape or dtype.
    NumgradTypeError
        If ``module`` is none.
    NumgradValueError
        If it has no parameter that requires grad, ``bucket_cap_mb`` is not above 0, or devices are
        given.

    Notes
    -----
    Gradients that were there before a backward are part of the mean, as in ``no_sync``. Row-sparse
    gradients become dense. A backward that reaches no parameter at all on some rank leaves the
    others waiting: multiply by 0 rather than to leave the loss out.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.distributed.init_process_group()
    >>> model = ng.nn.parallel.DistributedDataParallel(ng.nn.Linear(2, 1))
    >>> model(ng.ones((4, 2))).sum().backward()
    >>> model.module.weight.grad
    tensor([[4., 4.]])
    >>> ng.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: None = None,
        output_device: None = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Group = None,
        bucket_cap_mb: float | None = 25,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        check_no_devices(_NAME, device_ids=device_ids, output_device=output_device)
        if dim != 0 or not init_sync:
            raise NumgradValueError(
                f"{_NAME}: dim is 0 and init_sync True: inputs are of this rank alone, and all "
                f"ranks begin with the parameters of the first; got dim={dim!r}, "
                f"init_sync={init_sync!r}"
            )
        bucket_cap_mb = 25 if bucket_cap_mb is None else bucket_cap_mb
        group = group_of(_NAME, process_group)
        if not isinstance(module, Module):
            raise NumgradTypeError(f"{_NAME}: takes a Module, got {type(module).__name__}")
        trained = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not trained:
            raise NumgradValueError(
                f"{_NAME}: {type(module).__name__} has no parameter that requires grad; there is "
                "nothing to average, use the module itself"
            )
        if isinstance(bucket_cap_mb, bool) or not isinstance(bucket_cap_mb, int | float):
            raise NumgradTypeError(f"{_NAME}: bucket_cap_mb is a number, got {bucket_cap_mb!r}")
        if not bucket_cap_mb > 0:
            raise NumgradValueError(f"{_NAME}: bucket_cap_mb is above 0, got {bucket_cap_mb}")
        self.module = module
        self.broadcast_buffers = broadcast_buffers
        self.process_group = group
        self.bucket_cap_mb = bucket_cap_mb
        self.require_backward_grad_sync = True
        self._reducer: Reducer | None = None
        if group.comm is None:
            return
        check_alike(_NAME, module, group)
        self._take_over(group.ranks[0])
        self._reducer = Reducer(trained, group, bucket_cap_mb * 1024 * 1024)
        finalize(self, _remove, self._reducer.handles)

    def __deepcopy__(self, memo: dict[int, Any]) -> DistributedDataParallel:
        # communicates: a copy has buckets of its own on all ranks
        twin = DistributedDataParallel(
            copy.deepcopy(self.module, memo),
            broadcast_buffers=self.broadcast_buffers,
            process_group=self.process_group,
            bucket_cap_mb=self.bucket_cap_mb,
        )
        memo[id(self)] = twin
        return twin.train(self.training)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise NumgradTypeError(
            f"{_NAME}: connections to other ranks cannot be pickled; save model.state_dict(), or "
            "pickle model.module"
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module; in training with the buffers of the first rank."""
        reducer = self._reducer
        if reducer is not None and is_grad_enabled():
            reducer.enabled = self.require_backward_grad_sync
            if reducer.enabled and self.training:
                reducer.check_finished()
                reducer.roll.call(FORWARD)
                self._synchronize_buffers()
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block whose forwards are followed by backwards that add up gradients of this rank only.

        The next backward outside of it averages what was added up.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.distributed.init_process_group()
        >>> model = ng.nn.parallel.DistributedDataParallel(ng.nn.Linear(2, 1))
        >>> with model.no_sync():
        ...     model(ng.ones((4, 2))).sum().backward()
        >>> ng.distributed.destroy_process_group()
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
        optimizers: Iterable[Any] = (),
    ) -> Iterator[None]:
        """A block in which ranks may have different numbers of batches.

        A rank that is done takes part in what the others average until all are done. Then all take
        over parameters and buffers of one that was done last, and the states of ``optimizers``.

        Parameters
        ----------
        divide_by_initial_world_size
            Divide sums of gradients by the number of ranks; else by that of ranks with data.
        enable
            False leaves all this out.
        throw_on_early_termination
            Raise on all ranks as soon as one is done and others are not.
        optimizers
            Those that step in the block; of a ``ZeroRedundancyOptimizer`` a rank that is done goes
            on to step its share, by the gradients and options of the others.

        Raises
        ------
        NumgradRuntimeError
            If ranks with data do different things; with ``throw_on_early_termination``. Any other
            collective of these ranks raises inside of the block.
        NumgradValueError
            If an optimizer is divided over other ranks than the model.
        """
        reducer = self._reducer
        if reducer is None or not enable:
            yield
            return
        roll, optimizers = reducer.roll, list(optimizers)
        divided = [optimizer for optimizer in optimizers if hasattr(optimizer, "join_in")]
        roll.begin(divide_by_initial_world_size, throw_on_early_termination)
        try:
            for number, optimizer in enumerate(divided):
                optimizer.join_in(roll, STEP + number)
            yield
            with roll.own_collectives():
                self._follow(reducer, optimizers, divided)
        finally:
            for optimizer in divided:
                optimizer.join_in(None)
            roll.end()

    def _follow(self, reducer: Reducer, optimizers: list[Any], divided: list[Any]) -> None:
        """Take part in what others do until all have joined; then all have what the last had."""
        roll = reducer.roll
        roll.joined = True
        while (doing := roll.call(JOINED)) != JOINED:
            if doing == FORWARD:
                self._synchronize_buffers()
            elif doing == BACKWARD:
                reducer.shadow()
            else:
                divided[doing - STEP].follow()
        last = self.process_group.ranks[roll.last[-1]]
        self._take_over(last)
        for optimizer in optimizers:
            if optimizer in divided:
                optimizer.take_over_options(last)
                continue
            message = [optimizer.state_dict()]
            broadcast_object_list(message, last, self.process_group)
            optimizer.load_state_dict(message[0])

    def _synchronize_buffers(self) -> None:
        if self.broadcast_buffers and self._reducer is not None:
            roll = self._reducer.roll
            source = self.process_group.ranks[roll.last[0]]
            with roll.own_collectives():
                broadcast_all(list(self.module.buffers()), source, self.process_group)

    def _take_over(self, source: int) -> None:
        """Parameters and buffers of one rank for all."""
        tensors = [*self.module.parameters(), *self.module.buffers()]
        broadcast_all(tensors, source, self.process_group)


def _remove(handles: Sequence[Any]) -> None:
    for handle in handles:
        handle.remove()


def broadcast_all(tensors: Sequence[Tensor], source: int, group: ProcessGroup) -> None:
    """Put the Tensors of one rank in place of those of all others, those of one dtype together."""
    if group.comm is None:
        return
    by_dtype: dict[np.dtype, list[Tensor]] = {}
    for tensor in tensors:
        by_dtype.setdefault(tensor.dtype, []).append(tensor)
    for members in by_dtype.values():
        flat = joined(members)
        broadcast(flat, source, group)
        if group.ranks[group.rank] != source:
            spread(flat, members)


def check_alike(name: str, module: Module, group: ProcessGroup) -> None:
    """Raise on all ranks unless they have equal names, shapes and dtypes.

    Raises
    ------
    NumgradRuntimeError
        With the first difference.
    """
    mine = [
        f"{kind} {where} of {tensor.dtype} {tensor.shape}"
        + ("" if kind == "buffer" or tensor.requires_grad else " without gradient")
        for kind, named in (
            ("parameter", module.named_parameters()),
            ("buffer", module.named_buffers()),
        )
        for where, tensor in named
    ]
    every: list[Any] = [None] * group.size
    all_gather_object(every, mine, group)
    for rank, theirs in zip(group.ranks, every, strict=True):
        if theirs == every[0]:
            continue
        first = group.ranks[0]
        where = next(
            (k for k, (a, b) in enumerate(zip(every[0], theirs, strict=False)) if a != b),
            min(len(every[0]), len(theirs)),
        )
        shown = [
            f"rank {r} has {len(lines)} parameters and buffers, number {where} is "
            + (lines[where] if where < len(lines) else "not there")
            for r, lines in ((first, every[0]), (rank, theirs))
        ]
        raise NumgradRuntimeError(
            f"{name}: ranks have different models: {'; '.join(shown)}. Build the same model on all "
            "ranks"
        )
