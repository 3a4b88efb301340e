"""Derivatives of a function at a point: Jacobian, Hessian, their products with vectors.

PyTorch's signatures and rules for what ``numgrad.transforms`` derives: a face that stands where
PyTorch has it. The Hessian is the Jacobian of the gradient, so ``hessian``, ``vhp`` and ``hvp`` are
``jacobian``, ``vjp`` and ``jvp`` of the recorded gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.transforms.request import Outputs, Request

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def __dir__() -> list[str]:
    return __all__


Array: TypeAlias = Tensor | np.ndarray | np.generic
"""Classes accepted as tensors: an ndarray counts as one that does not require grad."""

Mode: TypeAlias = Literal["reverse-mode", "forward-mode"]


def vjp(
    func: Callable[..., Any],
    inputs: Array | tuple[Array, ...],
    v: Array | tuple[Array, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Value of a function and the product of a vector with its Jacobian, ``v J``.

    Parameters
    ----------
    func
        A function of Tensors that returns a Tensor or a tuple of them.
    inputs
        Where to differentiate: a Tensor or ndarray, floating or complex, or a tuple of them.
    v
        The vector: shaped and nested as the output. May be left out for one real number.
    create_graph
        Keep the graph, so that both results can be differentiated: by those inputs and ``v`` that
        require grad.
    strict
        Raise where the output does not depend on an input, instead of giving zeros.

    Returns
    -------
    tuple
        ``func(*inputs)`` and the product, which is shaped, nested and typed as ``inputs``.

    Raises
    ------
    NumgradTypeError
        If inputs, ``v`` or outputs are no tensors, or an input is neither floating nor complex.
    NumgradRuntimeError
        If ``v`` does not fit, is needed, or ``strict`` finds something.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> value, product = vjp(lambda x, y: x * np.sin(y), (np.ones(2), np.zeros(2)), np.ones(2))
    >>> value
    tensor([0., 0.])
    >>> product
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    request = Request("vjp", create_graph, strict)
    with request.recording():
        x, one_input = request.fresh(inputs)
        y, one_output = request.outputs(func, x)
        w = request.vector(v, y, "the output of the function")
        product = request.pullback(y, w, x, "the function")
        return request.result(y, one_output), request.result(product, one_input)


def jvp(
    func: Callable[..., Any],
    inputs: Array | tuple[Array, ...],
    v: Array | tuple[Array, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Value of a function and the product of its Jacobian with a vector, ``J v``.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for ``vjp``.
    v
        The vector: shaped and nested as ``inputs``. May be left out for one real number.

    Returns
    -------
    tuple
        ``func(*inputs)`` and the product, which is shaped, nested and typed as the output.

    Raises
    ------
    NumgradTypeError, NumgradRuntimeError
        As for ``vjp``.

    Notes
    -----
    Takes two backwards, as ``hvp`` does; ``numgrad.autograd.forward_ad`` gives the same product in
    one forward evaluation, without a graph.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> jvp(np.exp, np.zeros(3), np.array([1.0, 2.0, 3.0]))
    (tensor([1., 1., 1.]), tensor([1., 2., 3.]))
    """
    request = Request("jvp", create_graph, strict)
    with request.recording():
        x, _ = request.fresh(inputs)
        w = request.vector(v, x, "the input")
        y, one_output = request.outputs(func, x)
        product = request.pushforward(y, w, x, "the function", "output {} of the function")
        return request.result(y, one_output), request.result(product, one_output)


def vhp(
    func: Callable[..., Any],
    inputs: Array | tuple[Array, ...],
    v: Array | tuple[Array, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Any]:
    """Value of a scalar function and the product of a vector with its Hessian, ``v H``.

    Parameters
    ----------
    func
        A function of Tensors that returns a Tensor with one real element.
    inputs, create_graph
        As for ``vjp``.
    v
        The vector: shaped and nested as ``inputs``. May be left out for one real number.
    strict
        Raise where the output or its gradient does not depend on an input, instead of giving zeros.

    Returns
    -------
    tuple
        ``func(*inputs)`` and the product, which is shaped, nested and typed as ``inputs``.

    Raises
    ------
    NumgradTypeError, NumgradRuntimeError
        As for ``vjp``, and if the output is not one real number.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> vhp(lambda x: np.sum(x**3), np.array([1.0, 2.0]), np.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    request = Request("vhp", create_graph, strict)
    with request.recording():
        x, one_input = request.fresh(inputs)
        w = request.vector(v, x, "the input")
        y, gradient = request.gradient(func, x)
        product = request.pullback(gradient, w, x, "the gradient")
        return request.result((y,), True), request.result(product, one_input)


def hvp(
    func: Callable[..., Any],
    inputs: Array | tuple[Array, ...],
    v: Array | tuple[Array, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Any]:
    """Value of a scalar function and the product of its Hessian with a vector, ``H v``.

    Parameters
    ----------
    func, inputs, v, create_graph, strict
        As for ``vhp``.

    Returns
    -------
    tuple
        ``func(*inputs)`` and the product, which is shaped, nested and typed as ``inputs``.

    Raises
    ------
    NumgradTypeError, NumgradRuntimeError
        As for ``vhp``.

    Notes
    -----
    Where the second derivatives are continuous the Hessian is symmetric and ``vhp``, with one
    backward less, gives the same.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    >>> hvp(lambda x, y: np.sum(x * x * y), (x, y), (np.ones(2), np.zeros(2)))
    (tensor(19.), (tensor([6., 8.]), tensor([2., 4.])))
    """
    request = Request("hvp", create_graph, strict)
    with request.recording():
        x, one_input = request.fresh(inputs)
        w = request.vector(v, x, "the input")
        y, gradient = request.gradient(func, x)
        product = request.pushforward(gradient, w, x, "the gradient", "the gradient by input {}")
        return request.result((y,), True), request.result(product, one_input)


def jacobian(
    func: Callable[..., Any],
    inputs: Array | tuple[Array, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: Mode = "reverse-mode",
) -> Any:
    """All derivatives of the outputs of a function by its inputs.

    Parameters
    ----------
    func
        A function of Tensors that returns a Tensor or a tuple of them.
    inputs
        Where to differentiate: a Tensor or ndarray, floating or complex, or a tuple of them.
    create_graph
        Keep the graph, so that the result can be differentiated: by those inputs that require grad.
    strict
        Raise where an output does not depend on an input, instead of giving zeros.
    vectorize
        Ask the engine for all rows at once (``grad`` with ``is_grads_batched``), not one by one.
    strategy
        ``"reverse-mode"``, a backward for each element of the output; or ``"forward-mode"``, an
        evaluation with dual numbers for each element of the input, which is less work where the
        input is the smaller and needs ``vectorize=True``.

    Returns
    -------
    Tensor or tuple
        Of shape ``output.shape + input.shape``, typed as the input (in forward mode as the output).
        A tuple for a tuple of outputs or of inputs, ``result[output][input]`` for tuples of both.

    Raises
    ------
    NumgradTypeError
        If inputs or outputs are no tensors, or an input is neither floating nor complex.
    NumgradValueError
        If there is no such ``strategy``.
    NumgradRuntimeError
        If an output is complex and ``vectorize`` is not set, ``strict`` finds something, or
        ``strict`` or ``create_graph`` are asked of a strategy that lacks them.

    Notes
    -----
    A row of a complex output is the pullback of 1: the derivative of its real part, which for a
    holomorphic function is the conjugate of the complex derivative. Forward mode gives the complex
    derivative itself.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> jacobian(lambda x: x**2, np.array([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    >>> jacobian(lambda x, y: 3 * x + y, (np.ones(2), np.ones(())))[1]
    tensor([1., 1.])
    """
    request = Request("jacobian", create_graph, strict)

    def function(x: tuple[Tensor, ...]) -> Outputs:
        return request.outputs(func, x)

    return request.matrix(function, inputs, vectorize, strategy, "output {} of the function")


def hessian(
    func: Callable[..., Any],
    inputs: Array | tuple[Array, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: Mode = "reverse-mode",
) -> Any:
    """All second derivatives of a scalar function.

    Parameters
    ----------
    func
        A function of Tensors that returns a Tensor with one real element.
    inputs, create_graph, vectorize
        As for ``jacobian``.
    strict
        Raise where the output or its gradient does not depend on an input, instead of giving zeros.
    outer_jacobian_strategy
        ``strategy`` of the Jacobian of the gradient; the gradient itself is always a backward.

    Returns
    -------
    Tensor or tuple of tuples
        Of shape ``input.shape + input.shape``; for a tuple of inputs, ``result[i][j]`` has shape
        ``inputs[i].shape + inputs[j].shape``.

    Raises
    ------
    NumgradTypeError, NumgradValueError, NumgradRuntimeError
        As for ``jacobian``, and if the output is not one real number.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> hessian(lambda x: np.sum(x**3), np.array([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    request = Request("hessian", create_graph, strict)

    def function(x: tuple[Tensor, ...]) -> Outputs:
        return request.gradient(func, x)[1], not isinstance(inputs, tuple)

    return request.matrix(
        function, inputs, vectorize, outer_jacobian_strategy, "the gradient by input {}"
    )
