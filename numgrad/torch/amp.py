"""Mixed precision: ``torch.amp``. There is no arithmetic of 16 bits, and this says so.

Scripts that switch it by a flag (``enabled=False``, or where there is no GPU) run as they are.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from numgrad.errors import NumgradNotImplementedError, NumgradRuntimeError
from numgrad.torch.dtypes import dtype as Dtype, float32
from numgrad.torch.missing import refuse
from numgrad.torch.paths import module_of
from numgrad.torch.wrapping import Tensor, unwrap


def _enabled(name: str, device_type: str, enabled: bool) -> bool:
    if enabled and device_type != "cpu":
        warnings.warn(f"{name}: there is no device {device_type!r}; disabled", stacklevel=3)
        return False
    return enabled


@contextmanager
def autocast(
    device_type: str, dtype: Dtype | None = None, enabled: bool = True, cache_enabled: Any = None
) -> Iterator[None]:
    """Let a block, or a function, compute in the dtypes of its operands.

    Raises
    ------
    NumgradNotImplementedError
        If products of the CPU should be of bfloat16 or float16.
    """
    if _enabled("autocast", device_type, enabled) and dtype is not float32:
        raise NumgradNotImplementedError(
            f"autocast: there are no products of {dtype or 'bfloat16'} on the CPU; say "
            "enabled=False, or leave the block out, and compute in float32"
        )
    yield


class GradScaler:
    """Loss scales: losses times a number, steps by gradients divided by it, left out if not finite.

    Parameters
    ----------
    device
        ``"cpu"``; for others, which are not there, it is disabled with a warning.
    init_scale, growth_factor, backoff_factor, growth_interval
        The number, by which it is multiplied after so many steps that were done, and after one that
        was left out.
    enabled
        Whether anything is scaled.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 65536.0, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._on = _enabled("GradScaler", str(device), enabled)
        self._state = {
            "scale": init_scale, "growth_factor": growth_factor, "backoff_factor": backoff_factor,
            "growth_interval": growth_interval, "_growth_tracker": 0,
        }  # fmt: skip
        self._finite: dict[int, bool] = {}
        """Whether gradients of an optimizer that were divided already are finite."""

    def is_enabled(self) -> bool:
        """Whether anything is scaled."""
        return self._on

    def get_scale(self) -> float:
        """The number that losses are multiplied by."""
        return float(self._state["scale"]) if self._on else 1.0

    def scale(self, outputs: Any) -> Any:
        """A Tensor, or a list of them, times the number."""
        if isinstance(outputs, Tensor):
            return outputs * self.get_scale() if self._on else outputs
        return type(outputs)(map(self.scale, outputs))

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer, which ``step`` then does not do."""
        if not self._on:
            return
        if id(optimizer) in self._finite:
            raise NumgradRuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        params = [p for group in optimizer.param_groups for p in group["params"]]
        arrays = [unwrap(p.grad).numpy() for p in params if p.grad is not None]
        for array in arrays:
            array *= np.asarray(1 / self.get_scale(), array.dtype)
        self._finite[id(optimizer)] = all(np.isfinite(array).all() for array in arrays)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step an optimizer by divided gradients, if they are finite."""
        if self._on and id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        finite = not self._on or self._finite[id(optimizer)]
        return optimizer.step(*args, **kwargs) if finite else None

    def update(self, new_scale: Any = None) -> None:
        """Set the number, or make it smaller after a step that was left out, larger after many."""
        state = self._state
        if new_scale is not None:
            state["scale"] = float(new_scale)
        elif not all(self._finite.values()):
            state["scale"] *= state["backoff_factor"]
            state["_growth_tracker"] = 0
        elif self._finite:
            state["_growth_tracker"] += 1
            if state["_growth_tracker"] == state["growth_interval"]:
                grown = state["scale"] * state["growth_factor"]
                state["scale"] = grown if math.isfinite(grown) else state["scale"]
                state["_growth_tracker"] = 0
        self._finite.clear()

    def state_dict(self) -> dict[str, Any]:
        """The numbers; nothing if it is disabled."""
        return dict(self._state) if self._on else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over numbers of ``state_dict``."""
        self._state.update(state_dict if self._on else {})


for _place in ("cuda", "cpu"):
    _members = {
        "GradScaler": partial(GradScaler, _place), "autocast": partial(autocast, _place)
    }  # fmt: skip
    module_of(f"{_place}.amp", "Mixed precision.", _members)
__getattr__ = refuse(globals())
