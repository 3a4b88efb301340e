"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.options import declared, option
from numgrad.tensors.tensor import Tensor


@formula("mu_product", "step")
def nadam(
    p, g, exp_avg, exp_avg_sq, mu_product, step,
    *, lr, beta1, beta2, eps, weight_decay, momentum_decay, decay, decoupled,
):  # fmt: skip
    """Adam whose step looks ahead along the momentum, with a schedule of momenta."""
    step = step + 1
    mu = beta1 * (1 - 0.5 * 0.96 ** (step * momentum_decay))
    mu_next = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
    mu_product = mu_product * mu
    if decay and decoupled:
        p = p * (1 - lr * weight_decay)
    elif decay:
        g = g + weight_decay * p
    exp_avg = exp_avg + (1 - beta1) * (g - exp_avg)
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * (g * g)
    root = np.sqrt(exp_avg_sq / (1 - beta2**step)) + eps
    p = p - lr * (1 - mu) / (1 - mu_product) * (g / root)
    p = p - lr * mu_next / (1 - mu_product * mu_next) * (exp_avg / root)
    return {
        "p": p,
        "exp_avg": exp_avg,
        "exp_avg_sq": exp_avg_sq,
        "mu_product": mu_product,
        "step": step,
    }


@declared
class NAdam(FormulaOptimizer):
    r"""NAdam: Adam with Nesterov's momentum.

    .. math::
        \mu_t &= \beta_1 (1 - \tfrac12 0.96^{t \psi}), \quad
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        p &\leftarrow p - \eta \left(
        \frac{1 - \mu_t}{1 - \prod_{i \le t} \mu_i} \, g
        + \frac{\mu_{t+1}}{1 - \prod_{i \le t+1} \mu_i} \, m \right)
        / \left( \sqrt{v / (1 - \beta_2^t)} + \epsilon \right)

    References
    ----------
    T. Dozat, "Incorporating Nesterov Momentum into Adam", 2016.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.NAdam([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = nadam

    params: Any
    lr: float | Tensor = 0.002
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    momentum_decay: float = option(
        default=0.004, at_least=0, doc=r"Rate :math:`\psi` at which the momentum reaches its end."
    )
    decoupled_weight_decay: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False

    def starts(self, group: dict[str, Any]) -> dict[str, float]:
        return {"mu_product": 1.0}
