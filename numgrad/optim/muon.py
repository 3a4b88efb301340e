"""Muon: momentum made orthogonal, for weight matrices."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from numgrad.autograd.versions import mark_all_written
from numgrad.core.options import option
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.optim.formula import as_float
from numgrad.optim.optimizer import Optimizer, declared
from numgrad.optim.state_dict import Layout, check_real
from numgrad.tensors.creation import zeros_like
from numgrad.tensors.inplace import before_writing
from numgrad.tensors.tensor import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Coefficients of the iteration: steepest at 0, where small singular values have to grow."""
MAX_STEPS = 100


@declared
class Muon(Optimizer):
    r"""Muon: steps whose singular values are all about one.

    .. math::
        B &\leftarrow B + (1 - \mu) (g - B), \quad
        M = g + \mu (B - g) \text{ (Nesterov) or } B \\
        X &= M / \max(\lVert M \rVert_F, \epsilon), \quad
        X \leftarrow (a I + b X X^T + c (X X^T)^2) X \text{ several times} \\
        p &\leftarrow (1 - \eta \lambda) p - \eta s X

    The iteration of Newton and Schulz brings the singular values of :math:`M` near one without
    computing them. Meant for the matrices inside a network; use AdamW for other parameters.

    Raises
    ------
    NumgradValueError
        If a number is outside its range, ``adjust_lr_fn`` is unknown, or a parameter is no matrix;
        by ``step``, if ``ns_steps`` or ``ns_coefficients`` are out of range.
    NumgradRuntimeError
        By ``step``, if a parameter is complex or a gradient row-sparse.

    Notes
    -----
    The iteration runs in the dtype of the parameter. PyTorch's runs in bfloat16, so its updates
    agree with these to about two digits only.

    References
    ----------
    K. Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024.
    J. Liu et al., "Muon is Scalable for LLM Training", 2025.

    Examples
    --------
    >>> import numgrad as ng
    >>> w = ng.tensor([[3.0, -2.0], [1.0, 4.0]], requires_grad=True)
    >>> optimizer = ng.optim.Muon([w], lr=0.1)
    >>> ng.sum(w * w).backward()
    >>> optimizer.step()
    >>> bool(ng.all(ng.abs(w.detach()) < ng.tensor([[3.0, 2.0], [1.0, 4.0]])))
    True
    """

    params: Any = option(
        doc="Tensors of two dimensions, pairs ``(name, Tensor)``, or groups as dictionaries; real."
    )
    lr: float | Tensor = 0.001
    weight_decay: float = option(
        default=0.1, at_least=0, doc=r"Rate :math:`\lambda` at which parameters shrink."
    )
    momentum: float = option(
        default=0.95, at_least=0, after="lr", doc=r"Decay rate :math:`\mu` of the average."
    )
    nesterov: bool = option(default=True, doc="Look ahead along the average.")
    ns_coefficients: tuple[float, float, float] = option(
        default=COEFFICIENTS, doc=":math:`(a, b, c)`."
    )
    eps: float = option(default=1e-7, at_least=0, doc="Least norm that is divided by.")
    ns_steps: int = option(default=5, doc="Iterations, less than 100.")
    adjust_lr_fn: str | None = option(
        default=None,
        doc="Scale :math:`s` of an update of shape ``(n, m)``: ``sqrt(max(1, n / m))`` for None "
        'and ``"original"``, ``0.2 * sqrt(max(n, m))`` for ``"match_rms_adamw"``.',
    )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of matrices; other errors are those of ``Optimizer.add_param_group``."""
        super().add_param_group(param_group)
        for param in self.param_groups[-1]["params"]:
            if param.ndim != 2:
                del self.param_groups[-1]
                raise NumgradValueError(
                    f"{self._name}: a parameter has shape {param.shape}; only matrices can be made "
                    "orthogonal, use AdamW for others"
                )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; returns what ``captures`` returned."""
        loss = self._evaluate(closure)
        work = []
        for group in self.param_groups:
            self._check_group(group)
            params = [param for param in group["params"] if param._grad is not None]
            for param in params:
                self._check(param)
            work.append((group, params))
        for group, params in work:
            for param in params:
                self._update(group, param)
        return loss

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        if options["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise NumgradValueError(
                f"{self._name}: adjust_lr_fn is {options['adjust_lr_fn']!r}; it must be None, "
                "'original' or 'match_rms_adamw'"
            )

    def _check_group(self, group: dict[str, Any]) -> None:
        if not 0 <= group["ns_steps"] < MAX_STEPS:
            raise NumgradValueError(
                f"{self._name}.step: ns_steps is {group['ns_steps']}; it must be in "
                f"[0, {MAX_STEPS}), about 5 are enough"
            )
        if len(group["ns_coefficients"]) != 3:
            raise NumgradValueError(
                f"{self._name}.step: ns_coefficients are {group['ns_coefficients']}; give three"
            )

    def _check(self, param: Tensor) -> None:
        """Raise unless the parameter, its gradient and its state can be used."""
        where = f"{self._name}.step: a parameter of shape {param.shape}"
        check_real(where, param, self.state.get(param, {}), self._layout(param, {}), "AdamW")
        if param.ndim != 2:
            raise NumgradRuntimeError(f"{where} is no matrix any more; was its data replaced?")
        if param.dtype.kind != "f":
            raise NumgradTypeError(f"{where} has dtype {param.dtype}; use float32 or float64")

    _array_states = ("momentum_buffer",)

    def _layout(self, param: Tensor, group: dict[str, Any]) -> Layout:
        return {"momentum_buffer": (param.shape, param.dtype)}

    def _update(self, group: dict[str, Any], param: Tensor) -> None:
        state = self.state[param]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(param)
        average, p = state["momentum_buffer"]._array, param._array
        grad: np.ndarray = param._grad._array  # type: ignore[union-attr]
        momentum, lr = float(group["momentum"]), as_float(group["lr"])
        written = [param, state["momentum_buffer"]]
        before_writing(written)
        average += (1 - momentum) * (grad - average)
        ahead = grad + momentum * (average - grad) if group["nesterov"] else average
        update = orthogonalise(
            ahead, group["ns_coefficients"], int(group["ns_steps"]), float(group["eps"])
        )
        update *= lr * _scale(p.shape, group["adjust_lr_fn"])
        p *= 1 - lr * float(group["weight_decay"])
        p -= update
        mark_all_written(written)


def orthogonalise(
    matrix: np.ndarray, coefficients: tuple[float, float, float], steps: int, eps: float
) -> np.ndarray:
    """The matrix with its singular values brought near one, in its own dtype.

    Parameters
    ----------
    matrix
        Of shape (n, m), float32 or float64.
    coefficients
        Of the odd polynomial ``a x + b x**3 + c x**5`` that is applied to the singular values.
    steps
        How many times.
    eps
        Least norm that is divided by.
    """
    a, b, c = map(float, coefficients)
    tall = matrix.shape[0] > matrix.shape[1]
    x = np.array(matrix.T if tall else matrix, order="C")  # the products below are the smaller ones
    if not x.size:
        return x.T if tall else x
    x /= max(sqrt(np.sum(np.square(x), dtype=np.float64)), eps)
    product = np.empty_like(x)
    for _ in range(steps):
        gram = x @ x.T  # NumPy computes one triangle of a matrix times its transpose only
        square = gram @ gram.T
        gram *= b
        square *= c
        gram += square
        gram.flat[:: len(gram) + 1] += a
        np.matmul(gram, x, out=product)
        x, product = product, x
    return x.T if tall else x


def _scale(shape: tuple[int, ...], adjust_lr_fn: str | None) -> float:
    """Factor of an update of that shape, beside the learning rate."""
    rows, columns = shape
    if adjust_lr_fn == "match_rms_adamw":
        return 0.2 * sqrt(max(rows, columns))
    return sqrt(max(1.0, rows / max(1, columns)))
