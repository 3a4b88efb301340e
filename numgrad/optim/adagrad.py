"""Adagrad: steps scaled by all former gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.optim.formula import formula, zero
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.validation import check_implementation, check_lr, check_range
from numgrad.tensors.creation import full_like
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


class Adagrad(FormulaOptimizer):
    r"""Adagrad: steps that shrink where gradients have been large.

    .. math::
        s \leftarrow s + g^2, \quad
        p \leftarrow p - \frac{\eta}{1 + (t - 1) \gamma} \, \frac{g}{\sqrt{s} + \epsilon}

    Parameters
    ----------
    params
        Tensors, pairs ``(name, Tensor)``, or groups as dictionaries.
    lr
        Learning rate :math:`\eta`, a number or a Tensor of one element.
    lr_decay
        :math:`\gamma`, by which the learning rate falls.
    weight_decay
        Factor of the L2 penalty, added to the gradient.
    initial_accumulator_value
        What the sum of squares starts with.
    eps
        Added to the denominator.
    maximize
        Climb instead of descending.
    differentiable
        Record the step itself, so that it can be differentiated.
    foreach, fused
        Accepted for compatibility: there is one kernel, which steps all tensors at once.

    Raises
    ------
    NumgradValueError
        If a number is outside its range.
    NumgradRuntimeError
        If ``fused`` is combined with ``differentiable`` or ``foreach``.

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

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 0.01,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        name = self._name
        check_lr(name, lr)
        check_range(name, "lr_decay", lr_decay)
        check_range(name, "weight_decay", weight_decay)
        check_range(name, "initial_accumulator_value", initial_accumulator_value)
        check_range(name, "eps", eps)
        check_implementation(name, fused=fused, foreach=foreach, differentiable=differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        if param.dtype.kind == "c":
            start = complex(start, start)
        return {"step": zero(), "sum": full_like(param, start)}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for param in group["params"]:
            self.state_of(param, group)
