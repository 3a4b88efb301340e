"""Adam, with or without weight decay apart from the gradient."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.options import declared, option
from numgrad.tensors.tensor import Tensor


@formula("step")
def adam(
    p, g, exp_avg, exp_avg_sq, max_exp_avg_sq, step,
    *, lr, beta1, beta2, eps, weight_decay, decay, decoupled,
):  # fmt: skip
    """Adam [1]_, AdamW [2]_ if ``decoupled``, AMSGrad [3]_ if there is ``max_exp_avg_sq``."""
    step = step + 1
    if decay and decoupled:
        p = p * (1 - lr * weight_decay)
    elif decay:
        g = g + weight_decay * p
    exp_avg = exp_avg + (1 - beta1) * (g - exp_avg)
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * (g * g)
    second = exp_avg_sq
    if max_exp_avg_sq is not None:
        second = max_exp_avg_sq = np.maximum(max_exp_avg_sq, exp_avg_sq)
    root = np.sqrt(second) * (1 / np.sqrt(1 - beta2**step)) + eps
    p = p - (lr / (1 - beta1**step)) * exp_avg / root
    return {
        "p": p,
        "exp_avg": exp_avg,
        "exp_avg_sq": exp_avg_sq,
        "max_exp_avg_sq": max_exp_avg_sq,
        "step": step,
    }


@declared
class Adam(FormulaOptimizer):
    r"""Adam: steps scaled by running averages of the gradient and of its square.

    .. math::
        m &\leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        p &\leftarrow p - \frac{\eta}{1 - \beta_1^t} \,
        \frac{m}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}

    References
    ----------
    .. [1] D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", 2015.
    .. [2] I. Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization", 2019.
    .. [3] S. J. Reddi, S. Kale, S. Kumar, "On the Convergence of Adam and Beyond", 2018.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.Adam([x], lr=0.1)
    >>> for _ in range(200):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.max(ng.abs(x.detach())) < 1e-2)
    True
    """

    formula = adam

    params: Any
    lr: float | Tensor = 0.001
    betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    amsgrad: bool = option(
        default=False,
        brings="max_exp_avg_sq",
        doc="Divide by the largest average of squares so far.",
    )
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False
    fused: bool | None = None
    decoupled_weight_decay: bool = False

    def _check_options(self, options: dict[str, Any]) -> None:
        betas = options["betas"]
        if options["foreach"] and not options["capturable"]:
            for name, value in (("lr", options["lr"]), ("betas", betas[0])):
                if isinstance(value, Tensor):
                    raise NumgradValueError(
                        f"{self._name}: foreach with a Tensor {name} needs capturable=True; leave "
                        "foreach out"
                    )
        super()._check_options(options)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise NumgradValueError(
                f"{self._name}: betas are {type(betas[0]).__name__} and "
                f"{type(betas[1]).__name__}; give two numbers or two Tensors"
            )

    def _active(self, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        if group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"]:
            raise NumgradRuntimeError(
                f"{self._name}.step: foreach with a Tensor lr needs capturable=True; set "
                "foreach=None in the group"
            )
        return super()._active(group)


@declared
class AdamW(Adam):
    r"""Adam with weight decay apart from the gradient: parameters shrink by ``lr * weight_decay``.

    The update is that of :class:`Adam` with ``decoupled_weight_decay=True``.

    References
    ----------
    I. Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization", 2019.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.AdamW([x], lr=0.1)
    >>> ng.sum(x * x).backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 2.897, -1.898])
    """

    weight_decay: float = option(
        default=0.01, at_least=0, doc="Rate, times ``lr``, at which parameters shrink."
    )
    decoupled_weight_decay: bool = option(default=True, init=False)
