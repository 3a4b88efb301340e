"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.options import declared, option
from numgrad.tensors.tensor import Tensor


@formula("step")
def adamax(p, g, exp_avg, exp_inf, step, *, lr, beta1, beta2, eps, weight_decay, decay):
    """Adam's averages, the second of them a decaying maximum."""
    step = step + 1
    if decay:
        g = g + weight_decay * p
    exp_avg = exp_avg + (1 - beta1) * (g - exp_avg)
    exp_inf = np.maximum(beta2 * exp_inf, np.abs(g) + eps)
    p = p - lr / (1 - beta1**step) * (exp_avg / exp_inf)
    return {"p": p, "exp_avg": exp_avg, "exp_inf": exp_inf, "step": step}


@declared
class Adamax(FormulaOptimizer):
    r"""Adamax: Adam with a decaying maximum of gradients in place of their mean square.

    .. math::
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        u \leftarrow \max(\beta_2 u, |g| + \epsilon), \quad
        p \leftarrow p - \frac{\eta}{1 - \beta_1^t} \, \frac{m}{u}

    References
    ----------
    D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", 2015, section 7.1.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.Adamax([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = adamax

    params: Any
    lr: float | Tensor = 0.002
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = option(default=1e-8, at_least=0, doc="Added to the gradient's magnitude.")
    weight_decay: float = 0
    foreach: bool | None = None
    _: KW_ONLY
    maximize: bool = False
    differentiable: bool = False
    capturable: bool = False
