"""Mixed precision: ``torch.amp``. There is no arithmetic of 16 bits, and this says so.

Scripts that switch it by a flag (``enabled=False``, or where there is no GPU) run as they are.
"""

from __future__ import annotations

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
from numgrad.torch.wrapping import unwrap


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
    """Steps that are left out where gradients are not finite.

    PyTorch multiplies losses by a power of two and divides gradients by it, because small numbers
    vanish in 16 bits. In float32 this changes no bit of a step, so that the number is 1 here.

    Parameters
    ----------
    device
        ``"cpu"``; for others, which are not there, it is disabled with a warning.
    init_scale, growth_factor, backoff_factor, growth_interval
        How PyTorch chooses the number.
    enabled
        Whether gradients are looked at.
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 65536.0, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._on = _enabled("GradScaler", str(device), enabled)
        self._finite: dict[int, bool] = {}
        """Whether gradients of an optimizer are finite, since the last update."""

    def is_enabled(self) -> bool:
        """Whether gradients are looked at."""
        return self._on

    def get_scale(self) -> float:
        """The number that losses are multiplied by: 1."""
        return 1.0

    def scale(self, outputs: Any) -> Any:
        """A Tensor, or a list of them, as given."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Look at the gradients of an optimizer, which ``step`` then does not do."""
        if not self._on:
            return
        if id(optimizer) in self._finite:
            raise NumgradRuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
        arrays = [unwrap(g)._array for g in gradients if g is not None]
        self._finite[id(optimizer)] = all(np.isfinite(a).all() for a in arrays)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step an optimizer if its gradients are finite."""
        if id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        finite = self._finite.get(id(optimizer), True)
        return optimizer.step(*args, **kwargs) if finite else None

    def update(self, new_scale: Any = None) -> None:
        """Forget what was seen of gradients."""
        self._finite.clear()

    def state_dict(self) -> dict[str, Any]:
        """Nothing: there is no state."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over nothing, also of a scale of PyTorch's."""


for _place in ("cuda", "cpu"):
    _members = {
        "GradScaler": partial(GradScaler, _place), "autocast": partial(autocast, _place)
    }  # fmt: skip
    module_of(f"{_place}.amp", "Mixed precision.", _members)
__getattr__ = refuse(globals())
