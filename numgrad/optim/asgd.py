"""Averaged gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.options import option
from numgrad.optim.formula import as_float, formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.optimizer import declared
from numgrad.tensors.tensor import Tensor


@formula("eta", "mu", "step")
def asgd(p, g, ax, eta, mu, step, *, lr, lambd, alpha, t0, weight_decay, decay):
    """Gradient descent with falling steps, and the average of its iterates."""
    step = step + 1
    if decay:
        g = g + weight_decay * p
    p = p * (1 - lambd * eta) - eta * g
    return {
        "p": p,
        "ax": np.where(mu == 1, p, ax + mu * (p - ax)),
        "eta": lr / (1 + lambd * lr * step) ** alpha,
        "mu": 1 / np.maximum(1, step - t0),
        "step": step,
    }


@declared
class ASGD(FormulaOptimizer):
    r"""Gradient descent that also keeps the average of its iterates, as ``state[p]["ax"]``.

    .. math::
        p &\leftarrow (1 - \lambda \eta_t) p - \eta_t g, \quad
        \bar p \leftarrow \bar p + \mu_t (p - \bar p) \\
        \eta_{t+1} &= \eta / (1 + \lambda \eta t)^\alpha, \quad \mu_{t+1} = 1 / \max(1, t - t_0)

    References
    ----------
    B. T. Polyak, A. B. Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.ASGD([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = asgd

    params: Any
    lr: float | Tensor = 0.01
    lambd: float = option(default=1e-4, at_least=0, doc=r"Decay :math:`\lambda`.")
    alpha: float = option(default=0.75, at_least=0, doc="Power by which the steps fall.")
    t0: float = option(default=1e6, at_least=0, doc="Step after which averaging starts.")
    weight_decay: float = 0
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False
    capturable: bool = False

    def starts(self, group: dict[str, Any]) -> dict[str, float]:
        return {"eta": as_float(group["lr"]), "mu": 1.0}
