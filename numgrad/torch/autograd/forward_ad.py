"""Forward mode: ``torch.autograd.forward_ad``."""

from __future__ import annotations

from typing import Any

from numgrad.autograd import forward_ad as base
from numgrad.torch.wrapping import known, same, unwrap, wrap

UnpackedDualTensor = base.UnpackedDualTensor
dual_level, enter_dual_level = base.dual_level, base.enter_dual_level
exit_dual_level = base.exit_dual_level


def __getattr__(name: str) -> int:
    if name == "_current_level":  # of the innermost ``dual_level``, -1 outside
        return len(base._levels()) - 1
    raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute {name!r}")


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A view of a Tensor that has a tangent."""
    known(tangent)
    return wrap(base.make_dual(unwrap(tensor), unwrap(tangent), level=level))


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """A Tensor without its tangent, and that."""
    primal, tangent = base.unpack_dual(unwrap(tensor), level=level)
    return UnpackedDualTensor(wrap(primal), same(tangent))
