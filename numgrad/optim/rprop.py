"""Rprop: steps from the signs of gradients alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.errors import NumgradValueError
from numgrad.optim.formula import as_float, formula, zero
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.validation import check_lr
from numgrad.tensors.creation import full_like, zeros_like
from numgrad.tensors.tensor import Tensor


@formula("step")
def rprop(p, g, prev, step_size, step, *, etaminus, etaplus, smallest, largest):
    """A step size of its own for every element, grown while the gradient keeps its sign."""
    agreement = np.sign(g * prev)
    kept = np.where(agreement == 0, 1.0, agreement)  # a NaN stays one
    factor = np.where(agreement > 0, etaplus, np.where(agreement < 0, etaminus, kept))
    step_size = np.minimum(np.maximum(step_size * factor, smallest), largest)
    g = np.where(agreement < 0, 0.0, g)
    return {
        "p": p - np.sign(g) * step_size,
        "prev": g,
        "step_size": step_size,
        "step": step + 1,
    }


class Rprop(FormulaOptimizer):
    r"""Rprop: every element has a step size of its own, which the signs of gradients change.

    .. math::
        s \leftarrow \operatorname{clip}(s \cdot \eta^\pm, s_{\min}, s_{\max}), \quad
        p \leftarrow p - \operatorname{sign}(g) \, s

    Parameters
    ----------
    params
        Tensors, pairs ``(name, Tensor)``, or groups as dictionaries.
    lr
        The first step size, a number or a Tensor of one element.
    etas
        Factors of the step size where the gradient changed its sign, and where it kept it.
    step_sizes
        The smallest and the largest.
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

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 0.01,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-06, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        name = self._name
        check_lr(name, lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise NumgradValueError(
                f"{name}: etas are {etas}; the first must lie between 0 and 1, the second above 1"
            )
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        lr = as_float(group["lr"])
        size = complex(lr, lr) if param.dtype.kind == "c" else lr
        return {"step": zero(), "prev": zeros_like(param), "step_size": full_like(param, size)}
