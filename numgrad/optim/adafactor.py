"""Adafactor: second moments of matrices kept as one number a row and a column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from typing import Any

import numpy as np

from numgrad.autograd.versions import mark_all_written
from numgrad.codegen import threads
from numgrad.codegen.cpython.addresses import Addresses, addresses, copied_addresses
from numgrad.core.options import option
from numgrad.errors import NumgradTypeError
from numgrad.kernels import adafactor as kernels
from numgrad.optim.formula import as_float
from numgrad.optim.optimizer import Optimizer, declared
from numgrad.optim.state_dict import Layout, check_real
from numgrad.tensors.inplace import before_writing
from numgrad.tensors.tensor import Tensor


@declared
class Adafactor(Optimizer):
    r"""Adafactor: updates scaled by factored second moments and clipped by their own size.

    For a matrix :math:`p` of shape :math:`(n, m)` with gradient :math:`g` (stacks of matrices over
    leading dimensions; vectors keep the full :math:`V`), at step :math:`t`:

    .. math::
        R &\leftarrow R + t^{\tau} (\tfrac1m \textstyle\sum_j g_{ij}^2 - R), \quad
        C \leftarrow C + t^{\tau} (\tfrac1n \textstyle\sum_i g_{ij}^2 - C) \\
        V &= R C / \max(\tfrac1n \textstyle\sum_i R_i, \epsilon_1), \quad
        U = g / \sqrt{\max(V, \epsilon_1^2)} \\
        p &\leftarrow (1 - \eta \lambda) p - \min(\eta, t^{-1/2}) \,
        \frac{\max(\epsilon_2, \mathrm{rms}(p))}{\max(1, \mathrm{rms}(U) / d)} \, U

    Raises
    ------
    NumgradValueError
        If a number is outside its range, or a Tensor ``lr`` has more than one element.
    NumgradRuntimeError
        By ``step``, if a parameter is complex or a gradient row-sparse.

    References
    ----------
    N. Shazeer, M. Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018.

    Examples
    --------
    >>> import numgrad as ng
    >>> w = ng.tensor([[3.0, -2.0], [1.0, 4.0]], requires_grad=True)
    >>> optimizer = ng.optim.Adafactor([w], lr=0.5)
    >>> ng.sum(w * w).backward()
    >>> optimizer.step()
    >>> bool(ng.all(ng.abs(w.detach()) < ng.tensor([[3.0, 2.0], [1.0, 4.0]])))
    True
    >>> optimizer.state[w]["row_var"].shape, optimizer.state[w]["col_var"].shape
    ((2, 1), (1, 2))
    """

    params: Any = option(doc="Tensors, pairs ``(name, Tensor)``, or groups as dictionaries; real.")
    lr: float | Tensor = option(
        default=0.01,
        at_least=0,
        doc=r"Bound :math:`\eta` of the relative step, a number or a Tensor of one element.",
    )
    beta2_decay: float = option(
        default=-0.8,
        at_most=0,
        doc=r"Exponent :math:`\tau` by which the second moments get slower.",
    )
    eps: tuple[float | None, float] = option(
        default=(None, 0.001),
        at_least=0,
        doc=r":math:`\epsilon_1`, least size of the divisor, None for the machine epsilon of each "
        r"parameter's dtype; :math:`\epsilon_2`, least size of a parameter.",
    )
    d: float = option(default=1.0, at_least=1, doc="Root mean square to which updates are clipped.")
    weight_decay: float = option(
        default=0.0, at_least=0, doc=r"Rate :math:`\lambda` at which parameters shrink."
    )
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; returns what ``captures`` returned."""
        loss = self._evaluate(closure)
        work = []
        for group in self.param_groups:
            params = [param for param in group["params"] if param._grad is not None]
            for param in params:
                self._check(param)
            work.append((group, params))
        for group, params in work:
            batches: dict[tuple[bool, np.dtype], list[Tensor]] = {}
            for param in params:
                batches.setdefault((param.ndim > 1, param.dtype), []).append(param)
            for (matrices, _), members in batches.items():
                if len(set(members)) < len(members):  # the same memory twice: one after the other
                    for param in members:
                        self._launch(group, matrices, [param])
                else:
                    self._launch(group, matrices, members)
        return loss

    def _check(self, param: Tensor) -> None:
        """Raise unless the parameter, its gradient and its state can be used."""
        where = f"{self._name}.step: a parameter of shape {param.shape}"
        check_real(where, param, self.state.get(param, {}), _layout(param), "Adam")
        if param.dtype not in (np.float32, np.float64):
            raise NumgradTypeError(f"{where} has dtype {param.dtype}; use float32 or float64")

    _array_states = ("step", "variance", "row_var", "col_var")

    def _layout(self, param: Tensor, group: dict[str, Any]) -> Layout:
        return _layout(param)

    def _state_of(self, param: Tensor) -> dict[str, Any]:
        state = self.state[param]
        for name, (shape, dtype) in _layout(param).items():
            if name not in state:
                state[name] = Tensor(np.zeros(shape, dtype))
        return state

    def _launch(self, group: dict[str, Any], matrices: bool, params: list[Tensor]) -> None:
        states = [self._state_of(param) for param in params]
        names = ("row_var", "col_var") if matrices else ("variance",)
        moments = {name: [state[name] for state in states] for name in names}
        steps = [state["step"] for state in states]
        elements = [params, [param._grad for param in params]]
        if not matrices:
            elements.append(moments["variance"])
        # what has the size of a parameter, and its count of steps; then what has sizes of its own
        tables = [_addresses(elements, steps)]
        if matrices:
            tables += [_addresses([moments[name]], []) for name in names]
        dtype = params[0].dtype
        eps1, eps2 = group["eps"]
        numbers = (
            as_float(group["lr"]),
            float(group["beta2_decay"]),
            float(np.finfo(dtype).eps if eps1 is None else eps1),
            float(eps2),
            float(group["d"]),
            float(group["weight_decay"]),
            -1.0 if group["maximize"] else 1.0,
        )
        make = kernels.matrices_kernel if matrices else kernels.vectors_kernel
        run = threads.choose(
            partial(make, dtype),
            partial(make, dtype, True),
            tables[0].total * kernels.COST_NS,
            partial(make, dtype, False, True),
        )
        written = [*params, *steps, *[t for several in moments.values() for t in several]]
        before_writing(written)
        run(*[part for table in tables for part in (table.pointers, table.starts)], *numbers)
        for table in tables:
            table.write_back()
        mark_all_written(written)


def _layout(param: Tensor) -> Layout:
    """Shape and dtype of each state of a parameter."""
    shape = param.shape
    layout: Layout = {"step": ((), np.dtype(np.float64))}
    if len(shape) < 2:
        return {**layout, "variance": (shape, param.dtype)}
    rows, columns = (*shape[:-1], 1), (*shape[:-2], 1, shape[-1])
    return {**layout, "row_var": (rows, param.dtype), "col_var": (columns, param.dtype)}


def _addresses(columns: list[list[Any]], uniform: list[Tensor]) -> Addresses:
    """Where Tensors lie: columns of the same sizes, the second one only read, and step counts."""
    arrays = [t._array for column in [*columns, uniform] for t in column]
    call = arrays, len(columns[0]), len(columns), 1, arrays[0].dtype
    return addresses(*call) or copied_addresses(*call)
