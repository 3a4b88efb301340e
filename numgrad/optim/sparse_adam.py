"""Adam for gradients of a few rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.options import option
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import FormulaOptimizer
from numgrad.optim.optimizer import declared
from numgrad.tensors.tensor import Tensor


@formula("step")
def sparse_adam(p, g, exp_avg, exp_avg_sq, step, *, lr, beta1, beta2, eps):
    """Adam with ``eps`` beside the uncorrected root, as in section 2 of its paper."""
    step = step + 1
    exp_avg = exp_avg + (1 - beta1) * (g - exp_avg)
    exp_avg_sq = exp_avg_sq + (1 - beta2) * (g * g - exp_avg_sq)
    step_size = lr * np.sqrt(1 - beta2**step) / (1 - beta1**step)
    p = p - step_size * (exp_avg / (np.sqrt(exp_avg_sq) + eps))
    return {"p": p, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq, "step": step}


@declared
class SparseAdam(FormulaOptimizer):
    r"""Adam for row-sparse gradients: averages and parameters change in their rows only.

    .. math::
        m_R &\leftarrow \beta_1 m_R + (1 - \beta_1) g_R, \quad
        v_R \leftarrow \beta_2 v_R + (1 - \beta_2) g_R^2 \\
        p_R &\leftarrow p_R - \eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t} \,
        \frac{m_R}{\sqrt{v_R} + \epsilon}

    for the rows :math:`R` that the gradient has, as that of ``Embedding(..., sparse=True)``. In
    other rows the averages do not decay, which is what makes it differ from ``Adam``.

    Raises
    ------
    NumgradValueError
        If a number is outside its range, or a parameter is complex.
    NumgradRuntimeError
        By ``step``, if a gradient is dense.

    References
    ----------
    D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", 2015.

    Examples
    --------
    >>> import numgrad as ng
    >>> embedding = ng.nn.Embedding(5, 2, sparse=True)
    >>> optimizer = ng.optim.SparseAdam(embedding.parameters())
    >>> before = embedding.weight.detach().clone()
    >>> embedding([1, 4, 1]).sum().backward()
    >>> optimizer.step()
    >>> (embedding.weight.detach() != before).any(axis=1)
    tensor([False,  True, False, False,  True])
    """

    formula = sparse_adam
    takes_sparse = True

    params: Any
    lr: float | Tensor = option(default=0.001, above=0)
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = option(default=1e-8, above=0)
    maximize: bool = False

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of real parameters; errors are those of ``Optimizer.add_param_group``."""
        super().add_param_group(param_group)
        for position, param in enumerate(self.param_groups[-1]["params"]):
            if param.dtype.kind == "c":
                del self.param_groups[-1]
                raise NumgradValueError(
                    f"{self._name}: parameter {position} of a group is {param.dtype}; complex "
                    "parameters have no row-sparse Adam, use Adam with dense gradients"
                )

    def _active(self, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        dense, grads, sparse = super()._active(group)
        if dense:
            raise NumgradRuntimeError(
                f"{self._name}.step: the gradient of a parameter of shape {dense[0].shape} is "
                "dense; use Adam for it, or an Embedding with sparse=True"
            )
        return dense, grads, sparse
