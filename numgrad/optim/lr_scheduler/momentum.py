"""Momentum that is cycled against the learning rate: high where the rate is low."""

from __future__ import annotations

from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.optim.lr_scheduler.base import fill, for_each_group, set_value
from numgrad.optim.optimizer import Optimizer
from numgrad.tensors.tensor import Tensor


class MomentumRange:
    """The lowest and highest momentum of each group, checked but not yet written.

    The momentum is ``group["momentum"]``, or the first of ``group["betas"]``.

    Raises
    ------
    NumgradValueError
        If the optimizer has neither, or a list has the wrong length.
    """

    def __init__(self, name: str, optimizer: Optimizer, base: Any, highest: Any) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise NumgradValueError(
                f"{name}: {type(optimizer).__name__} has neither momentum nor betas to cycle; pass "
                "cycle_momentum=False"
            )
        self.groups = optimizer.param_groups
        self.in_betas = "betas" in optimizer.defaults
        self.highest = for_each_group(name, "max_momentum", optimizer, highest)
        self.base = for_each_group(name, "base_momentum", optimizer, base)

    def begin(self) -> None:
        """Write the range into the groups, and the highest momentum as the present one."""
        for group, base, highest in zip(self.groups, self.base, self.highest, strict=True):
            set_momentum(group, highest, self.in_betas)
            group["max_momentum"], group["base_momentum"] = highest, base


def set_momentum(group: dict[str, Any], momentum: float, in_betas: bool) -> None:
    """Set the momentum of one group; a tensor that is there stays and is filled."""
    if not in_betas:
        set_value(group, "momentum", momentum)
    elif isinstance(group["betas"][0], Tensor):
        fill(group["betas"][0], momentum)
    else:
        group["betas"] = (momentum, *group["betas"][1:])
