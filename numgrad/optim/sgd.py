"""Gradient descent: with momentum, averaged (ASGD), and by the signs of gradients (Rprop)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from numgrad.core.options import option
from numgrad.errors import NumgradValueError
from numgrad.optim.formula import as_float, formula
from numgrad.optim.formula_optimizer import (
    CapturableOptimizer,
    FormulaOptimizer,
    Launch,
    RecordableOptimizer,
)
from numgrad.optim.optimizer import declared
from numgrad.tensors.tensor import Tensor


@formula()
def sgd(
    p, g, momentum_buffer, *, lr, momentum, dampening, weight_decay, decay, nesterov, first=False
):
    """Gradient descent; with momentum if there is a ``momentum_buffer``."""
    if decay:
        g = g + weight_decay * p
    if momentum_buffer is not None:
        momentum_buffer = g if first else momentum * momentum_buffer + (1 - dampening) * g
        g = g + momentum * momentum_buffer if nesterov else momentum_buffer
    return {"p": p - lr * g, "momentum_buffer": momentum_buffer}


@declared
class SGD(RecordableOptimizer):
    r"""Gradient descent, optionally with (Nesterov's) momentum.

    .. math::
        b \leftarrow \mu b + (1 - \tau) g, \quad p \leftarrow p - \eta b

    The buffer :math:`b` starts as the first gradient; with ``nesterov`` the step goes along
    :math:`g + \mu b`.

    Notes
    -----
    Row-sparse gradients step their rows alone, unless there is a momentum, which moves all rows;
    they cannot be combined with ``weight_decay`` or ``differentiable``.

    References
    ----------
    I. Sutskever, J. Martens, G. Dahl, G. Hinton, "On the importance of initialization and momentum
    in deep learning", 2013.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.SGD([x], lr=0.25)
    >>> ng.sum(x * x).backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 1.5, -1. ])
    """

    formula = sgd
    takes_sparse = True

    params: Any
    lr: float | Tensor = 0.001
    momentum: float = option(default=0, at_least=0, brings="momentum_buffer")
    dampening: float = option(
        default=0, at_least=0, at_most=1, doc=r"Share :math:`\tau` of the gradient left out."
    )
    weight_decay: float | Tensor = 0
    nesterov: bool = option(
        default=False, doc="Look ahead; needs a positive momentum and no dampening."
    )
    _: KW_ONLY
    foreach: bool | None = None
    fused: bool | None = None

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        momentum, dampening = options["momentum"], options["dampening"]
        if options["nesterov"] and (momentum <= 0 or dampening != 0):
            raise NumgradValueError(
                f"{self._name}: nesterov with momentum {momentum} and dampening {dampening}; it "
                "needs a positive momentum and no dampening"
            )

    def _prepare_rows(
        self, group: dict[str, Any], param: Tensor, fresh: list[Tensor]
    ) -> list[Launch]:
        if not group["momentum"]:
            return super()._prepare_rows(group, param, fresh)
        # with a momentum rows move on when they have no gradient
        rows: Any = param._grad
        return self._prepare_new(self.settings(group), group, [param], [rows.to_dense()], fresh)


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


@declared
class ASGD(FormulaOptimizer):
    r"""Gradient descent that also keeps the average of its iterates, as ``state[p]["ax"]``.

    .. math::
        p &\leftarrow (1 - \lambda \eta_t) p - \eta_t g, \quad
        \bar p \leftarrow \bar p + \mu_t (p - \bar p) \\
        \eta_{t+1} &= \eta / (1 + \lambda \eta t)^\alpha, \quad \mu_{t+1} = 1 / \max(1, t - t_0)

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

    params: Any
    lr: float | Tensor = 0.01
    lambd: float = option(default=1e-4, at_least=0, doc=r"Decay :math:`\lambda`.")
    alpha: float = option(default=0.75, at_least=0, doc="Power by which the steps fall.")
    t0: float = option(default=1e6, at_least=0, doc="Step after which averaging starts.")
    weight_decay: float = 0
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False
    capturable: bool = False

    def starts(self, group: dict[str, Any]) -> dict[str, float]:
        return {"eta": as_float(group["lr"]), "mu": 1.0}


@formula("step")
def rprop(p, g, prev, step_size, step, *, etaminus, etaplus, smallest, largest):
    """A step size of its own for every element, grown while the gradient keeps its sign."""
    agreement = np.sign(g * prev)
    unchanged = np.where(agreement == 0, 1.0, agreement)  # a NaN stays one
    factor = np.where(agreement > 0, etaplus, np.where(agreement < 0, etaminus, unchanged))
    step_size = np.minimum(np.maximum(step_size * factor, smallest), largest)
    g = np.where(agreement < 0, 0.0, g)
    return {"p": p - np.sign(g) * step_size, "prev": g, "step_size": step_size, "step": step + 1}


@declared
class Rprop(CapturableOptimizer):
    r"""Rprop: every element has a step size of its own, which the signs of gradients change.

    .. math::
        s \leftarrow \operatorname{clip}(s \cdot \eta^\pm, s_{\min}, s_{\max}), \quad
        p \leftarrow p - \operatorname{sign}(g) \, s

    References
    ----------
    M. Riedmiller, H. Braun, "A Direct Adaptive Method for Faster Backpropagation Learning: The
    RPROP Algorithm", 1993.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.Rprop([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = rprop

    params: Any
    lr: float | Tensor = option(
        default=0.01, at_least=0, doc="The first step size, a number or a Tensor of one element."
    )
    etas: tuple[float, float] = option(
        default=(0.5, 1.2),
        doc="Factors of the step size where the gradient changed its sign, and where it kept it.",
    )
    step_sizes: tuple[float, float] = option(
        default=(1e-6, 50), doc="The smallest and the largest."
    )
    _: KW_ONLY
    foreach: bool | None = None

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        etas = options["etas"]
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise NumgradValueError(
                f"{self._name}: etas are {etas}; the first must lie between 0 and 1, the second "
                "above 1"
            )

    def starts(self, group: dict[str, Any]) -> dict[str, float]:
        return {"step_size": as_float(group["lr"])}
