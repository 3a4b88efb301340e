"""Rprop: steps from the signs of gradients alone."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from numgrad.core.options import option
from numgrad.errors import NumgradValueError
from numgrad.optim.formula import as_float, formula
from numgrad.optim.formula_optimizer import CapturableOptimizer
from numgrad.optim.optimizer import declared
from numgrad.tensors.tensor import Tensor


@formula("step")
def rprop(p, g, prev, step_size, step, *, etaminus, etaplus, smallest, largest):
    """A step size of its own for every element, grown while the gradient keeps its sign."""
    agreement = np.sign(g * prev)
    unchanged = np.where(agreement == 0, 1.0, agreement)  # a NaN stays one
    factor = np.where(agreement > 0, etaplus, np.where(agreement < 0, etaminus, unchanged))
    step_size = np.minimum(np.maximum(step_size * factor, smallest), largest)
    g = np.where(agreement < 0, 0.0, g)
    return {
        "p": p - np.sign(g) * step_size,
        "prev": g,
        "step_size": step_size,
        "step": step + 1,
    }


@declared
class Rprop(CapturableOptimizer):
    r"""Rprop: every element has a step size of its own, which the signs of gradients change.

    .. math::
        s \leftarrow \operatorname{clip}(s \cdot \eta^\pm, s_{\min}, s_{\max}), \quad
        p \leftarrow p - \operatorname{sign}(g) \, s

    References
    ----------
    M. Riedmiller, H. Braun, "A Direct Adaptive Method for Faster Backpropagation Learning: The
    RPROP Algorithm", 1993.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.Rprop([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = rprop

    params: Any
    lr: float | Tensor = option(
        default=0.01, at_least=0, doc="The first step size, a number or a Tensor of one element."
    )
    etas: tuple[float, float] = option(
        default=(0.5, 1.2),
        doc="Factors of the step size where the gradient changed its sign, and where it kept it.",
    )
    step_sizes: tuple[float, float] = option(
        default=(1e-6, 50), doc="The smallest and the largest."
    )
    _: KW_ONLY
    foreach: bool | None = None

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        etas = options["etas"]
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise NumgradValueError(
                f"{self._name}: etas are {etas}; the first must lie between 0 and 1, the second "
                "above 1"
            )

    def starts(self, group: dict[str, Any]) -> dict[str, float]:
        return {"step_size": as_float(group["lr"])}
