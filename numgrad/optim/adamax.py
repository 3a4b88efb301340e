"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.validation import check_betas, check_lr, check_range
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


class Adamax(FormulaOptimizer):
    r"""Adamax: Adam with a decaying maximum of gradients in place of their mean square.

    .. math::
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        u \leftarrow \max(\beta_2 u, |g| + \epsilon), \quad
        p \leftarrow p - \frac{\eta}{1 - \beta_1^t} \, \frac{m}{u}

    Parameters
    ----------
    params
        Tensors, pairs ``(name, Tensor)``, or groups as dictionaries.
    lr
        Learning rate :math:`\eta`, a number or a Tensor of one element.
    betas
        Decay rates, in [0, 1).
    eps
        Added to the gradient's magnitude.
    weight_decay
        Factor of the L2 penalty, added to the gradient.
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

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 0.002,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        name = self._name
        check_lr(name, lr)
        check_range(name, "eps", eps)
        check_betas(name, betas)
        check_range(name, "weight_decay", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )
