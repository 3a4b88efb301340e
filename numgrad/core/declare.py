"""The words in which operations are declared: families, binding of calls, shapes, batches.

A declaration imports from here; each name is at home in the module that it comes from.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from numgrad.core.abstract import AbstractLength, broadcast_lengths, filled, made, ones, zeros
from numgrad.core.arguments import complete
from numgrad.core.axis import AxisOp, normalize_axes, one_axis
from numgrad.core.batching import BatchOperand, apply, broadcasting_rule, with_parameters
from numgrad.core.elementwise import Elementwise
from numgrad.core.foreign import is_sparse_kind, refuse_mask
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, interpret, state
from numgrad.core.op import OPS, Op, not_real
from numgrad.core.plan import CONSUMES, Call, conform, sum_to_shape
from numgrad.core.prepared import Prepared
from numgrad.core.primitive import Composite, Primitive, View, checked

T = TypeVar("T", bound=Op)


def _family(name: str, family: type[T]) -> Callable[..., Callable[[Callable[..., Any]], T]]:
    def declare(**options: Any) -> Callable[[Callable[..., Any]], T]:
        return lambda function: family(function, **options)

    declare.__name__ = declare.__qualname__ = name
    return declare


elementwise = _family("elementwise", Elementwise)
axiswise = _family("axiswise", AxisOp)
view = _family("view", View)
primitive = _family("primitive", Primitive)
prepared = _family("prepared", Prepared)
composite = _family("composite", Composite)

elementwise.__doc__ = """Declare an operation on each element of its operands.

    The function decorated is its formula, straight-line NumPy. Options are those of
    ``Elementwise``: ``kernel``, an ``njit`` function of one element in place of the formula;
    ``ref``, the NumPy function of that meaning, which then takes Tensors; ...

    ``vjp`` gives gradient formulas. Of an input without one the gradient is derived from the
    formula; that of a ``kernel`` raises, unless ``no_derivative`` declares the input a constant.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> @ng.elementwise()
    ... def lorentzian(x):
    ...     '''Bell curve with heavy tails.'''
    ...     return 1 / (1 + x * x)
    >>> ng.ops["lorentzian"].op.vjp(x=lambda g, x, y: -2 * g * x * y * y)
    <numgrad operation lorentzian(x)>
    >>> ng.grad(lorentzian)(1.0)
    np.float64(-0.5)
    """
primitive.__doc__ = """Declare an operation on whole ndarrays, mostly through ``njit`` kernels.

    The function decorated takes and returns ndarrays; ``vjp`` gives the gradient formulas. A
    gradient with respect to an input without one raises, unless ``no_derivative`` declares it a
    constant, or the operation is declared with ``differentiable=False``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> @ng.primitive()
    ... def reverse(x):
    ...     '''A 1-d array from back to front.'''
    ...     return np.ascontiguousarray(x[::-1])
    >>> reverse.vjp(x=lambda g: reverse(g))
    <numgrad operation reverse(x)>
    >>> ng.grad(lambda x: np.sum(reverse(x) * np.arange(3.0)))(np.ones(3))
    array([2., 1., 0.])
    """
prepared.__doc__ = "Declare a primitive whose body is given shapes and dtypes: see ``Prepared``."
