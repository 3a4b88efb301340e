"""Gradient descent, with momentum."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from numgrad.core.options import option
from numgrad.errors import NumgradValueError
from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import RecordableOptimizer
from numgrad.optim.optimizer import declared
from numgrad.optim.stepping import Launch
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
        return self._prepare(group, [param], [rows.to_dense()], fresh)
