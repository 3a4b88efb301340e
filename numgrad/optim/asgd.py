"""Averaged gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.optim.formula import as_float, formula, zero
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.validation import check_lr, check_range
from numgrad.tensors.creation import full, ones, zeros_like
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


class ASGD(FormulaOptimizer):
    r"""Gradient descent that also keeps the average of its iterates, as ``state[p]["ax"]``.

    .. math::
        p &\leftarrow (1 - \lambda \eta_t) p - \eta_t g, \quad
        \bar p \leftarrow \bar p + \mu_t (p - \bar p) \\
        \eta_{t+1} &= \eta / (1 + \lambda \eta t)^\alpha, \quad \mu_{t+1} = 1 / \max(1, t - t_0)

    Parameters
    ----------
    params
        Tensors, pairs ``(name, Tensor)``, or groups as dictionaries.
    lr
        Learning rate :math:`\eta`, a number or a Tensor of one element.
    lambd
        Decay :math:`\lambda`.
    alpha
        Power by which the steps fall.
    t0
        Step after which averaging starts.
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

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 0.01,
        lambd: float = 0.0001,
        alpha: float = 0.75,
        t0: float = 1000000.0,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        name = self._name
        check_lr(name, lr)
        check_range(name, "weight_decay", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": zero(),
            "eta": full((), as_float(group["lr"])),
            "mu": ones(()),
            "ax": zeros_like(param),
        }
