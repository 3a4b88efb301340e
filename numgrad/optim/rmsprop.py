"""RMSprop: steps scaled by a running average of squared gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.options import option
from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.optimizer import declared
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


@declared
class RMSprop(FormulaOptimizer):
    r"""RMSprop: steps scaled by a running average of squared gradients.

    .. math::
        v &\leftarrow \alpha v + (1 - \alpha) g^2, \quad
        \bar g \leftarrow \alpha \bar g + (1 - \alpha) g \quad \text{(centered)} \\
        b &\leftarrow \mu b + g / (\sqrt{v - \bar g^2} + \epsilon), \quad
        p \leftarrow p - \eta b

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

    params: Any
    lr: float | Tensor = 0.01
    alpha: float = option(
        default=0.99, at_least=0, after="weight_decay", doc="Decay rate of the averages."
    )
    eps: float = 1e-8
    weight_decay: float = 0
    momentum: float = option(default=0, at_least=0, after="eps", brings="momentum_buffer")
    centered: bool = option(
        default=False,
        brings="grad_avg",
        doc="Divide by the standard deviation rather than the root mean square.",
    )
    capturable: bool = False
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False
