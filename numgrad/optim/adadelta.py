"""Adadelta: steps scaled by the size of former steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.options import option
from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import CapturableOptimizer
from numgrad.optim.optimizer import declared
from numgrad.tensors.tensor import Tensor


@formula("step")
def adadelta(p, g, square_avg, acc_delta, step, *, lr, rho, eps, weight_decay, decay):
    """Adadelta, of running averages of squared gradients and squared steps."""
    if decay:
        g = g + weight_decay * p
    square_avg = rho * square_avg + (1 - rho) * (g * g)
    delta = np.sqrt(acc_delta + eps) / np.sqrt(square_avg + eps) * g
    acc_delta = rho * acc_delta + (1 - rho) * (delta * delta)
    return {
        "p": p - lr * delta,
        "square_avg": square_avg,
        "acc_delta": acc_delta,
        "step": step + 1,
    }


@declared
class Adadelta(CapturableOptimizer):
    r"""Adadelta: steps scaled by the size of former steps, in the units of the parameter.

    .. math::
        v &\leftarrow \rho v + (1 - \rho) g^2, \quad
        \Delta = \sqrt{u + \epsilon} / \sqrt{v + \epsilon} \; g \\
        u &\leftarrow \rho u + (1 - \rho) \Delta^2, \quad p \leftarrow p - \eta \Delta

    References
    ----------
    M. D. Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.Adadelta([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = adadelta

    params: Any
    lr: float | Tensor = 1.0
    rho: float = option(default=0.9, at_least=0, at_most=1, doc="Decay rate of the averages.")
    eps: float = option(default=1e-6, at_least=0, doc="Added to both averages.")
    weight_decay: float = 0
    foreach: bool | None = None
