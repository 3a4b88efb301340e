"""NAdam: Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.validation import check_betas, check_lr, check_range
from numgrad.tensors.creation import ones
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

    Parameters
    ----------
    params
        Tensors, pairs ``(name, Tensor)``, or groups as dictionaries.
    lr
        Learning rate :math:`\eta`, a number or a Tensor of one element.
    betas
        Decay rates of the averages, in [0, 1).
    eps
        Added to the denominator.
    weight_decay
        Factor of the L2 penalty, added to the gradient; or, if ``decoupled_weight_decay``, rate at
        which parameters shrink.
    momentum_decay
        :math:`\psi`.
    maximize
        Climb instead of descending.
    differentiable
        Record the step itself, so that it can be differentiated.
    foreach, capturable
        Accepted for compatibility: there is one kernel, which steps all tensors at once.

    Raises
    ------
    NumgradValueError
        If a number is outside its range.

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

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 0.002,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
        momentum_decay: float = 0.004,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        name = self._name
        check_lr(name, lr)
        check_range(name, "eps", eps)
        check_betas(name, betas)
        check_range(name, "weight_decay", weight_decay)
        check_range(name, "momentum_decay", momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {**super().new_state(param, group), "mu_product": ones(())}
