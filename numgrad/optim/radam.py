"""RAdam: Adam whose first steps wait for the variance to be known."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.options import declared
from numgrad.tensors.tensor import Tensor


@formula("step")
def radam(
    p, g, exp_avg, exp_avg_sq, step,
    *, lr, beta1, beta2, eps, weight_decay, decay, decoupled,
):  # fmt: skip
    """Adam, rectified by how well the average of squares is known."""
    step = step + 1
    correction = 1 - beta2**step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / correction
    known = length > 5
    # where they are not used, any numbers above 4 leave no NaN in a gradient
    length, longest = np.where(known, length, 6.0), np.where(known, longest, 6.0)
    rectified = np.sqrt(
        (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    )
    if decay and decoupled:
        p = p * (1 - lr * weight_decay)
    elif decay:
        g = g + weight_decay * p
    exp_avg = exp_avg + (1 - beta1) * (g - exp_avg)
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * (g * g)
    adapted = rectified * np.sqrt(correction) / (np.sqrt(exp_avg_sq) + eps)
    p = p - lr / (1 - beta1**step) * exp_avg * np.where(known, adapted, 1.0)
    return {"p": p, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq, "step": step}


@declared
class RAdam(FormulaOptimizer):
    r"""RAdam: Adam that adapts only as far as the average of squares can be trusted.

    .. math::
        \rho_\infty &= \frac{2}{1 - \beta_2} - 1, \quad
        \rho_t = \rho_\infty - \frac{2 t \beta_2^t}{1 - \beta_2^t}, \quad
        r_t = \sqrt{\frac{(\rho_t - 4) (\rho_t - 2) \rho_\infty}
        {(\rho_\infty - 4) (\rho_\infty - 2) \rho_t}} \\
        p &\leftarrow p - \frac{\eta}{1 - \beta_1^t} \, m
        \cdot \begin{cases} r_t \sqrt{1 - \beta_2^t} / (\sqrt{v} + \epsilon) & \rho_t > 5 \\
        1 & \text{otherwise} \end{cases}

    References
    ----------
    L. Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.RAdam([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = radam

    params: Any
    lr: float | Tensor = 0.001
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    decoupled_weight_decay: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False
