"""``ZeroRedundancyOptimizer``: each rank keeps the state of its own share of the parameters.

References
----------
S. Rajbhandari, J. Rasley, O. Ruwase, Y. He, "ZeRO: Memory Optimizations Toward Training Trillion
Parameter Models", 2020 (stage 1: the state of the optimizer is divided).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from numgrad.distributed.collectives import ReduceOp, all_reduce, broadcast
from numgrad.distributed.exchange import all_gather_object, broadcast_object_list
from numgrad.distributed.group import Group, group_of
from numgrad.distributed.messages import joined, spread
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.optim.optimizer import Optimizer
from numgrad.tensors.tensor import Tensor

_NAME = "ZeroRedundancyOptimizer"


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state is divided over ranks: each steps its share and sends it to others.

    Results are those of the optimizer itself, bit by bit, with gradients that are equal on all
    ranks, as ``DistributedDataParallel`` makes them. A rank keeps about 1/n of the state.

    Parameters
    ----------
    params
        As for any optimizer; the same, in the same order, on all ranks.
    optimizer_class
        The optimizer, whose steps must treat each parameter by itself.
    process_group
        By default all ranks.
    parameters_as_bucket_view
        Accepted for PyTorch's sake.
    **defaults
        Options of the optimizer.

    Raises
    ------
    NumgradRuntimeError
        Before ``ng.distributed.init_process_group``; on all ranks, if their parameters differ.
    NumgradTypeError
        If ``optimizer_class`` is none, or needs closures.

    Notes
    -----
    ``state_dict`` of the rank that ``consolidate_state_dict`` named has the whole state, in the
    layout of the optimizer itself: it loads for any number of ranks, and into that optimizer.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.distributed.init_process_group()
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = ng.optim.ZeroRedundancyOptimizer([x], ng.optim.SGD, lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0., 0.])
    >>> ng.distributed.destroy_process_group()
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Group = None,
        parameters_as_bucket_view: bool = False,
        **defaults: Any,
    ) -> None:
        self._group = group_of(_NAME, process_group)
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
            raise NumgradTypeError(
                f"{_NAME}: optimizer_class is a class such as ng.optim.Adam, got "
                f"{optimizer_class!r}"
            )
        if optimizer_class._needs_closure:
            raise NumgradTypeError(
                f"{_NAME}: {optimizer_class.__name__} steps all parameters together, and cannot be "
                "divided"
            )
        self._class, self._given = optimizer_class, defaults
        self._collected: dict[str, Any] | None = None
        self._roll: Any = None
        # checks what is given, and has the groups with all their options
        pattern = optimizer_class(params, **defaults)
        self._owner: dict[Tensor, int] = {}
        super().__init__([dict(group) for group in pattern.param_groups], pattern.defaults)
        self._divide()

    def _divide(self) -> None:
        """Give each new parameter to the rank with the fewest elements; the largest first."""
        lines = [f"{p.dtype} {p.shape}" for group in self.param_groups for p in group["params"]]
        every: list[Any] = [None] * self._group.size
        all_gather_object(every, lines, self._group)
        for rank, theirs in zip(self._group.ranks, every, strict=True):
            if theirs != every[0]:
                raise NumgradRuntimeError(
                    f"{_NAME}: ranks have different parameters: rank {self._group.ranks[0]} "
                    f"{every[0]}, rank {rank} {theirs}"
                )
        loads = [0] * self._group.size
        tensors = list(chain.from_iterable(group["params"] for group in self.param_groups))
        for tensor, owner in self._owner.items():
            loads[owner] += tensor.size
        fresh = [tensor for tensor in tensors if tensor not in self._owner]
        for tensor in sorted(fresh, key=lambda tensor: -tensor.size):
            owner = loads.index(min(loads))
            loads[owner] += tensor.size
            self._owner[tensor] = owner
        state = self.state
        mine = [
            {name: value for name, value in group.items() if name != "param_names"}
            | {"params": self._mine(group)}
            for group in self.param_groups
        ]
        self._numbers = [number for number, group in enumerate(mine) if group["params"]]
        self._own: Optimizer | None = None
        if self._numbers:
            self._own = self._class([mine[number] for number in self._numbers], **self._given)
            self._own.state.update(state)
            self.state = self._own.state

    def _is_mine(self, tensor: Tensor) -> bool:
        return self._owner[tensor] == self._group.rank

    def _mine(self, group: dict[str, Any]) -> list[Tensor]:
        return [tensor for tensor in group["params"] if self._is_mine(tensor)]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, with options of its own; all ranks call this."""
        super().add_param_group(param_group)
        if hasattr(self, "_numbers"):
            self._divide()

    # -------------------------------------------------------------------------------------- step

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step the share of this rank, take over that of others; all ranks call this.

        Raises
        ------
        NumgradRuntimeError
            On all ranks, if the step of one raises; that one raises its own error.
        """
        loss = self._evaluate(closure)
        if self._roll is None:
            self._step_shares()
        else:
            self._roll.call(self._said)
            with self._roll.own_collectives():
                self._step_for_all()
        return loss

    def _step_shares(self) -> None:
        self._collected = None
        error = None
        if self._own is not None:
            self._hand_options_down(self._own)
            try:
                self._own.step()
            except Exception as raised:  # others must not wait for what will not come
                error = raised
        failed = np.array([-1 if error is None else self._group.rank])
        all_reduce(failed, ReduceOp.MAX, self._group)
        if error is not None:
            raise error
        if failed[0] >= 0:
            raise NumgradRuntimeError(
                f"{_NAME}: the step of rank {self._group.ranks[int(failed[0])]} raised; this rank "
                "stepped its share, the shares of others were not taken over"
            )
        self._exchange()

    # ---------------------------------------------- join: Note [Roll calls] of nn.parallel

    def join_in(self, roll: Any, call: int = 0) -> None:
        """Begin to announce steps as ``said`` in roll calls of ``join``; end that, with None.

        Raises
        ------
        NumgradValueError
            If the roll is of other ranks.
        """
        if roll is not None and roll.group.ranks != self._group.ranks:
            raise NumgradValueError(
                f"join: the ranks of a {_NAME} are {self._group.ranks}, those of the model "
                f"{roll.group.ranks}; give both the same process_group"
            )
        self._roll, self._said = roll, call

    def follow(self) -> None:
        """Step the share of this rank, which has joined, where others have said that they step."""
        self._step_for_all()

    def _step_for_all(self) -> None:
        """Step all shares; ranks that have joined by gradients and options of the first other."""
        joined = self._roll.joined_ranks
        if joined:
            source = self._group.ranks[self._roll.last[0]]
            theirs = [tensor for tensor, owner in self._owner.items() if owner in joined]
            message: list[Any] = [[tensor.grad for tensor in theirs]]
            broadcast_object_list(message, source, self._group)
            self.take_over_options(source)
            if self._group.rank in joined:
                for tensor, grad in zip(theirs, message[0], strict=True):
                    tensor.grad = grad
        self._step_shares()

    def take_over_options(self, source: int) -> None:
        """Options of the groups of rank ``source`` for all, such as ``lr`` after a schedule."""
        message: list[Any] = [[_options(group) for group in self.param_groups]]
        broadcast_object_list(message, source, self._group)
        for group, options in zip(self.param_groups, message[0], strict=True):
            group.update(options)

    def _hand_options_down(self, own: Optimizer) -> None:
        """Options such as ``lr``, which schedules change in the groups of all parameters."""
        for group, number in zip(own.param_groups, self._numbers, strict=True):
            group.update(_options(self.param_groups[number]))

    def _exchange(self) -> None:
        """Parameters of each share to all, those of one owner and dtype in one message."""
        if self._group.comm is None:
            return
        shares: dict[tuple[int, np.dtype], list[Tensor]] = {}
        for tensor, owner in self._owner.items():
            shares.setdefault((owner, tensor.dtype), []).append(tensor)
        flats, works = [], []
        for (owner, _), tensors in shares.items():
            flat = joined(tensors)
            flats.append(flat)
            works.append(broadcast(flat, self._group.ranks[owner], self._group, async_op=True))
        for ((owner, _), tensors), flat, work in zip(shares.items(), flats, works, strict=True):
            if work is not None:
                work.wait()
            if owner != self._group.rank:
                spread(flat, tensors)

    # ------------------------------------------------------------------------------------- state

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the state of all ranks at rank ``to``, whose ``state_dict`` has all of it then.

        All ranks call this; a step makes what was collected old.

        Raises
        ------
        NumgradValueError
            If ``to`` is not in the group.
        """
        root = self._group.position("consolidate_state_dict", to)
        position = {t: k for k, t in enumerate(chain.from_iterable(self._params()))}
        share = {
            position[t]: self.state[t] for t in self._owner if t in self.state and self._is_mine(t)
        }
        every: list[Any] = [None] * self._group.size
        all_gather_object(every, share, self._group)
        self._collected = None
        if self._group.rank == root:
            whole = dict(chain.from_iterable(part.items() for part in every))
            self._collected = {k: whole[k] for k in sorted(whole)}

    def _params(self) -> Iterable[list[Tensor]]:
        return (group["params"] for group in self.param_groups)

    def state_dict(self) -> dict[str, Any]:
        """The state of all ranks, where ``consolidate_state_dict`` collected it.

        Raises
        ------
        NumgradRuntimeError
            If it was not collected here, or a step was made since.
        """
        if self._collected is None and self._group.comm is not None:
            raise NumgradRuntimeError(
                f"{_NAME}.state_dict: the state is divided over {self._group.size} ranks; call "
                "consolidate_state_dict(to=rank) on all of them first, then state_dict on that one"
            )
        out = super().state_dict()
        if self._collected is not None:
            out["state"] = dict(self._collected)
        return out

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a whole state; each rank keeps its share.

        It may come from any number of ranks, or from the optimizer itself.

        Raises
        ------
        NumgradTypeError, NumgradValueError
            If it does not fit.
        """
        whole = self._class([dict(group) for group in self.param_groups], **self._given)
        whole.load_state_dict(state_dict)
        for group, loaded in zip(self.param_groups, whole.param_groups, strict=True):
            group.update({k: v for k, v in loaded.items() if k != "params"})
        self._collected = None
        self.state.clear()
        for tensor, state in whole.state.items():
            if tensor not in self._owner or self._is_mine(tensor):
                self.state[tensor] = state
        if self._own is not None:
            self._own.state = self.state


def _options(group: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in group.items() if k not in ("params", "param_names")}
