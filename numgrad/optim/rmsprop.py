"""RMSprop: steps scaled by a running average of squared gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.validation import check_lr, check_range
from numgrad.tensors.tensor import Tensor


@formula("step")
def rmsprop(
    p, g, square_avg, grad_avg, momentum_buffer, step,
    *, lr, alpha, eps, weight_decay, momentum, decay,
):  # fmt: skip
    """Centered if there is a ``grad_avg``, with momentum if there is a ``momentum_buffer``."""
    if decay:
        g = g + weight_decay * p
    square_avg = alpha * square_avg + (1 - alpha) * (g * g)
    variance = square_avg
    if grad_avg is not None:
        grad_avg = grad_avg + (1 - alpha) * (g - grad_avg)
        variance = square_avg - grad_avg * grad_avg
    move = g / (np.sqrt(variance) + eps)
    if momentum_buffer is not None:
        move = momentum_buffer = momentum * momentum_buffer + move
    return {
        "p": p - lr * move,
        "square_avg": square_avg,
        "grad_avg": grad_avg,
        "momentum_buffer": momentum_buffer,
        "step": step + 1,
    }


class RMSprop(FormulaOptimizer):
    r"""RMSprop: steps scaled by a running average of squared gradients.

    .. math::
        v &\leftarrow \alpha v + (1 - \alpha) g^2, \quad
        \bar g \leftarrow \alpha \bar g + (1 - \alpha) g \quad \text{(centered)} \\
        b &\leftarrow \mu b + g / (\sqrt{v - \bar g^2} + \epsilon), \quad
        p \leftarrow p - \eta b

    Parameters
    ----------
    params
        Tensors, pairs ``(name, Tensor)``, or groups as dictionaries.
    lr
        Learning rate :math:`\eta`, a number or a Tensor of one element.
    alpha
        Decay rate of the averages.
    eps
        Added to the denominator.
    weight_decay
        Factor of the L2 penalty, added to the gradient.
    momentum
        :math:`\mu`.
    centered
        Divide by the standard deviation rather than the root mean square.
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
    G. Hinton, "Neural Networks for Machine Learning", lecture 6, 2012; A. Graves, "Generating
    Sequences With Recurrent Neural Networks", 2013 (centered).

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.RMSprop([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = rmsprop

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-08,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        name = self._name
        check_lr(name, lr)
        check_range(name, "eps", eps)
        check_range(name, "momentum", momentum)
        check_range(name, "weight_decay", weight_decay)
        check_range(name, "alpha", alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return (
            "square_avg",
            *(["grad_avg"] if group["centered"] else []),
            *(["momentum_buffer"] if group["momentum"] > 0 else []),
            "step",
        )
