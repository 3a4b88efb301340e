"""Adagrad and Adadelta: steps scaled by the size of former gradients, or of former steps."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from numgrad.core.options import option
from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import CapturableOptimizer, RecordableOptimizer
from numgrad.optim.optimizer import declared
from numgrad.tensors.tensor import Tensor


@formula("step")
def adagrad(p, g, sum, step, *, lr, lr_decay, eps, weight_decay, decay):
    """Adagrad, of the sum of squared gradients."""
    step = step + 1
    if decay:
        g = g + weight_decay * p
    sum = sum + g * g
    p = p - lr / (1 + (step - 1) * lr_decay) * (g / (np.sqrt(sum) + eps))
    return {"p": p, "sum": sum, "step": step}


@declared
class Adagrad(RecordableOptimizer):
    r"""Adagrad: steps that shrink where gradients have been large.

    .. math::
        s \leftarrow s + g^2, \quad
        p \leftarrow p - \frac{\eta}{1 + (t - 1) \gamma} \, \frac{g}{\sqrt{s} + \epsilon}

    Notes
    -----
    Row-sparse gradients step their rows alone; they cannot be combined with ``weight_decay`` or
    ``differentiable``.

    References
    ----------
    J. Duchi, E. Hazan, Y. Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
    Optimization", 2011.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.Adagrad([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = adagrad
    takes_sparse = True

    params: Any
    lr: float | Tensor = 0.01
    lr_decay: float = option(
        default=0, at_least=0, doc=r":math:`\gamma`, by which the learning rate falls."
    )
    weight_decay: float = 0
    initial_accumulator_value: float = option(
        default=0, at_least=0, doc="What the sum of squares starts with."
    )
    eps: float = 1e-10
    foreach: bool | None = None
    _: KW_ONLY
    fused: bool | None = None

    def starts(self, group: dict[str, Any]) -> dict[str, float]:
        return {"sum": group["initial_accumulator_value"]}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for param in group["params"]:
            self.state_of(param, group)


@formula("step")
def adadelta(p, g, square_avg, acc_delta, step, *, lr, rho, eps, weight_decay, decay):
    """Adadelta, of running averages of squared gradients and squared steps."""
    if decay:
        g = g + weight_decay * p
    square_avg = rho * square_avg + (1 - rho) * (g * g)
    delta = np.sqrt(acc_delta + eps) / np.sqrt(square_avg + eps) * g
    acc_delta = rho * acc_delta + (1 - rho) * (delta * delta)
    return {"p": p - lr * delta, "square_avg": square_avg, "acc_delta": acc_delta, "step": step + 1}


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
