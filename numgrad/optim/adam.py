"""Adam, with or without weight decay apart from the gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.validation import check_betas, check_implementation, check_lr, check_range
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


class Adam(FormulaOptimizer):
    r"""Adam: steps scaled by running averages of the gradient and of its square.

    .. math::
        m &\leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        p &\leftarrow p - \frac{\eta}{1 - \beta_1^t} \,
        \frac{m}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}

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
    amsgrad
        Divide by the largest average of squares so far.
    maximize
        Climb instead of descending.
    differentiable
        Record the step itself, so that it can be differentiated.
    foreach, fused, capturable
        Accepted for compatibility: there is one kernel, which steps all tensors at once.

    Raises
    ------
    NumgradValueError
        If a number is outside its range, or a Tensor option has more than one element.
    NumgradRuntimeError
        If ``fused`` is combined with ``differentiable`` or ``foreach``.

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

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 0.001,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        name = self._name
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise NumgradValueError(
                f"{name}: foreach with a Tensor lr needs capturable=True; leave foreach out"
            )
        check_lr(name, lr)
        check_range(name, "eps", eps)
        check_betas(name, betas)
        check_range(name, "weight_decay", weight_decay)
        if not all(isinstance(b, float | int) for b in betas) and not all(
            isinstance(b, Tensor) for b in betas
        ):
            raise NumgradValueError(
                f"{name}: betas are {type(betas[0]).__name__} and {type(betas[1]).__name__}; give "
                "two numbers or two Tensors"
            )
        if isinstance(betas[0], Tensor) and foreach and not capturable:
            raise NumgradValueError(
                f"{name}: foreach with Tensor betas needs capturable=True; leave foreach out"
            )
        check_implementation(name, fused=fused, foreach=foreach, differentiable=differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return _AMSGRAD if group["amsgrad"] else _PLAIN

    def _active(self, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        if group["foreach"] and isinstance(group["lr"], Tensor) and not group["capturable"]:
            raise NumgradRuntimeError(
                f"{self._name}.step: foreach with a Tensor lr needs capturable=True; set "
                "foreach=None in the group"
            )
        return super()._active(group)


_PLAIN = ("exp_avg", "exp_avg_sq", "step")
_AMSGRAD = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")


class AdamW(Adam):
    r"""Adam with weight decay apart from the gradient: parameters shrink by ``lr * weight_decay``.

    Parameters, errors and update are those of :class:`Adam` with ``decoupled_weight_decay=True``
    (I. Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization", 2019).

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

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 0.001,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-08,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
