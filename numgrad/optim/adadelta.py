"""Adadelta: steps scaled by the size of former steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.validation import check_lr, check_range
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


class Adadelta(FormulaOptimizer):
    r"""Adadelta: steps scaled by the size of former steps, in the units of the parameter.

    .. math::
        v &\leftarrow \rho v + (1 - \rho) g^2, \quad
        \Delta = \sqrt{u + \epsilon} / \sqrt{v + \epsilon} \; g \\
        u &\leftarrow \rho u + (1 - \rho) \Delta^2, \quad p \leftarrow p - \eta \Delta

    Parameters
    ----------
    params
        Tensors, pairs ``(name, Tensor)``, or groups as dictionaries.
    lr
        Learning rate :math:`\eta`, a number or a Tensor of one element.
    rho
        Decay rate of the averages, in [0, 1].
    eps
        Added to both averages.
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

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-06,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        name = self._name
        check_lr(name, lr)
        check_range(name, "rho", rho, 0.0, 1.0)
        check_range(name, "eps", eps)
        check_range(name, "weight_decay", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )
