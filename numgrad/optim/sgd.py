"""Gradient descent, with momentum."""

from __future__ import annotations

from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.launch import Launch
from numgrad.optim.validation import check_implementation, check_lr, check_range
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


class SGD(FormulaOptimizer):
    r"""Gradient descent, optionally with (Nesterov's) momentum.

    .. math::
        b \leftarrow \mu b + (1 - \tau) g, \quad p \leftarrow p - \eta b

    The buffer :math:`b` starts as the first gradient; with ``nesterov`` the step goes along
    :math:`g + \mu b`.

    Parameters
    ----------
    params
        Tensors, pairs ``(name, Tensor)``, or groups as dictionaries.
    lr
        Learning rate :math:`\eta`, a number or a Tensor of one element.
    momentum, dampening
        :math:`\mu` and :math:`\tau`.
    weight_decay
        Factor of the L2 penalty, added to the gradient.
    nesterov
        Look ahead; needs a momentum and no dampening.
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

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 0.001,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        name = self._name
        check_lr(name, lr)
        check_range(name, "momentum", momentum)
        check_range(name, "weight_decay", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise NumgradValueError(
                f"{name}: nesterov with momentum {momentum} and dampening {dampening}; it needs a "
                "positive momentum and no dampening"
            )
        check_implementation(name, fused=fused, foreach=foreach, differentiable=differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def _prepare_rows(
        self, group: dict[str, Any], param: Tensor, fresh: list[Tensor]
    ) -> list[Launch]:
        if not group["momentum"]:
            return super()._prepare_rows(group, param, fresh)
        # with a momentum rows move on when they have no gradient
        rows: Any = param._grad
        return self._prepare(group, [param], [rows.to_dense()], fresh)
