"""Adam and its variants: AdamW, Adamax, NAdam, RAdam, SparseAdam for gradients of a few rows."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from numgrad.core.options import option
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.optim.formula import formula
from numgrad.optim.formula_optimizer import CapturableOptimizer, FormulaOptimizer
from numgrad.optim.optimizer import declared
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
class Adam(CapturableOptimizer):
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


@formula("step")
def adamax(p, g, exp_avg, exp_inf, step, *, lr, beta1, beta2, eps, weight_decay, decay):
    """Adam's averages, the second of them a decaying maximum."""
    step = step + 1
    if decay:
        g = g + weight_decay * p
    exp_avg = exp_avg + (1 - beta1) * (g - exp_avg)
    exp_inf = np.maximum(beta2 * exp_inf, np.abs(g) + eps)
    p = p - lr / (1 - beta1**step) * (exp_avg / exp_inf)
    return {"p": p, "exp_avg": exp_avg, "exp_inf": exp_inf, "step": step}


@declared
class Adamax(CapturableOptimizer):
    r"""Adamax: Adam with a decaying maximum of gradients in place of their mean square.

    .. math::
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        u \leftarrow \max(\beta_2 u, |g| + \epsilon), \quad
        p \leftarrow p - \frac{\eta}{1 - \beta_1^t} \, \frac{m}{u}

    References
    ----------
    D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", 2015, section 7.1.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.Adamax([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = adamax

    params: Any
    lr: float | Tensor = 0.002
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = option(default=1e-8, at_least=0, doc="Added to the gradient's magnitude.")
    weight_decay: float = 0
    foreach: bool | None = None


@formula("mu_product", "step")
def nadam(
    p, g, exp_avg, exp_avg_sq, mu_product, step,
    *, lr, beta1, beta2, eps, weight_decay, momentum_decay, decay, decoupled,
):  # fmt: skip
    """Adam whose step looks ahead along the momentum, with a schedule of momenta."""
    step = step + 1
    mu = beta1 * (1 - 0.5 * 0.96 ** (step * momentum_decay))
    mu_next = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
    mu_product = mu_product * mu
    if decay and decoupled:
        p = p * (1 - lr * weight_decay)
    elif decay:
        g = g + weight_decay * p
    exp_avg = exp_avg + (1 - beta1) * (g - exp_avg)
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * (g * g)
    root = np.sqrt(exp_avg_sq / (1 - beta2**step)) + eps
    p = p - lr * (1 - mu) / (1 - mu_product) * (g / root)
    p = p - lr * mu_next / (1 - mu_product * mu_next) * (exp_avg / root)
    return {
        "p": p,
        "exp_avg": exp_avg,
        "exp_avg_sq": exp_avg_sq,
        "mu_product": mu_product,
        "step": step,
    }


@declared
class NAdam(CapturableOptimizer):
    r"""NAdam: Adam with Nesterov's momentum.

    .. math::
        \mu_t &= \beta_1 (1 - \tfrac12 0.96^{t \psi}), \quad
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        p &\leftarrow p - \eta \left(
        \frac{1 - \mu_t}{1 - \prod_{i \le t} \mu_i} \, g
        + \frac{\mu_{t+1}}{1 - \prod_{i \le t+1} \mu_i} \, m \right)
        / \left( \sqrt{v / (1 - \beta_2^t)} + \epsilon \right)

    References
    ----------
    T. Dozat, "Incorporating Nesterov Momentum into Adam", 2016.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.NAdam([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = nadam

    params: Any
    lr: float | Tensor = 0.002
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    momentum_decay: float = option(
        default=0.004, at_least=0, doc=r"Rate :math:`\psi` at which the momentum reaches its end."
    )
    decoupled_weight_decay: bool = False
    _: KW_ONLY
    foreach: bool | None = None

    def starts(self, group: dict[str, Any]) -> dict[str, float]:
        return {"mu_product": 1.0}


@formula("step")
def radam(
    p, g, exp_avg, exp_avg_sq, step,
    *, lr, beta1, beta2, eps, weight_decay, decay, decoupled,
):  # fmt: skip
    """Adam, rectified by how well the average of squares is known."""
    step = step + 1
    correction = 1 - beta2**step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / correction
    known = length > 5
    # where they are not used, any numbers above 4 leave no NaN in a gradient
    length, longest = np.where(known, length, 6.0), np.where(known, longest, 6.0)
    rectified = np.sqrt(
        (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    )
    if decay and decoupled:
        p = p * (1 - lr * weight_decay)
    elif decay:
        g = g + weight_decay * p
    exp_avg = exp_avg + (1 - beta1) * (g - exp_avg)
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * (g * g)
    adapted = rectified * np.sqrt(correction) / (np.sqrt(exp_avg_sq) + eps)
    p = p - lr / (1 - beta1**step) * exp_avg * np.where(known, adapted, 1.0)
    return {"p": p, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq, "step": step}


@declared
class RAdam(CapturableOptimizer):
    r"""RAdam: Adam that adapts only as far as the average of squares can be trusted.

    .. math::
        \rho_\infty &= \frac{2}{1 - \beta_2} - 1, \quad
        \rho_t = \rho_\infty - \frac{2 t \beta_2^t}{1 - \beta_2^t}, \quad
        r_t = \sqrt{\frac{(\rho_t - 4) (\rho_t - 2) \rho_\infty}
        {(\rho_\infty - 4) (\rho_\infty - 2) \rho_t}} \\
        p &\leftarrow p - \frac{\eta}{1 - \beta_1^t} \, m
        \cdot \begin{cases} r_t \sqrt{1 - \beta_2^t} / (\sqrt{v} + \epsilon) & \rho_t > 5 \\
        1 & \text{otherwise} \end{cases}

    References
    ----------
    L. Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ng.optim.RAdam([x])
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     ng.sum(x * x).backward()
    ...     optimizer.step()
    >>> bool(ng.sum(x * x) < 13.0)
    True
    """

    formula = radam

    params: Any
    lr: float | Tensor = 0.001
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    decoupled_weight_decay: bool = False
    _: KW_ONLY
    foreach: bool | None = None


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
