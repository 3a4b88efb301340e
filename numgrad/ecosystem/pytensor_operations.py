"""Functions as operations of PyTensor, hence in models of PyMC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from numgrad.core.tree import container_of
from numgrad.ecosystem.vectors import imported
from numgrad.errors import NumgradTypeError
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.products import vjp


def pytensor_op(f: Callable[..., Any], *examples: Any) -> Any:
    """A function of arrays as an operation of PyTensor, with its gradient, for models of PyMC.

    Parameters
    ----------
    f
        Takes arrays and returns an array, or a tuple of arrays; written with NumPy, or made by
        ``ng.jit``. Values are computed with ndarrays.
    *examples
        An array or number for each argument, of its dtype and number of axes; lengths may differ
        later. ``f`` is called with them once.

    Returns
    -------
    pytensor.graph.op.Op
        Called with variables of PyTensor it gives variables, whose derivatives of any order are
        numgrad's; arguments of integers have none. In a model it is evaluated in Python:
        ``pymc.sample`` runs it as it is, compilers of PyTensor to JAX or Numba do not take it.

    Raises
    ------
    NumgradRuntimeError
        If PyTensor is not installed.
    NumgradTypeError
        If ``f`` is not callable, or returns anything but arrays.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def log_likelihood(mean):
    ...     return -0.5 * np.sum((np.array([1.0, 2.0]) - mean) ** 2)
    >>> likelihood = ng.ecosystem.pytensor_op(log_likelihood, 0.0)  # doctest: +SKIP
    >>> import pymc as pm  # doctest: +SKIP
    >>> with pm.Model() as model:  # doctest: +SKIP
    ...     mean = pm.Normal("mean", 0.0, 10.0)
    ...     _ = pm.Potential("likelihood", likelihood(mean))
    >>> gradient = model.compile_dlogp()  # doctest: +SKIP
    >>> gradient({"mean": 0.0})  # doctest: +SKIP
    array([3.])
    """
    name = "pytensor_op"
    if not callable(f):
        raise NumgradTypeError(f"{name}: takes a function of arrays, got a {type(f).__name__}")
    kinds = _operation_class()
    arrays = [np.asarray(example) for example in examples]
    results = _results(f(*arrays))
    types = [(array.dtype, array.ndim) for array in arrays]
    return kinds(f, types, [(result.dtype, result.ndim) for result in results])


def _results(value: Any) -> list[np.ndarray]:
    """The arrays that a function returned."""
    several = list(value) if isinstance(value, tuple | list) else [value]
    if any(container_of(type(v)) is not None for v in several):
        raise NumgradTypeError(
            "pytensor_op: the function returned a nesting; return an array or a tuple of arrays"
        )
    arrays = [v.detach().numpy() if isinstance(v, Tensor) else np.asarray(v) for v in several]
    for array in arrays:
        if array.dtype.kind not in "biufc":
            raise NumgradTypeError(
                f"pytensor_op: the function returned an array of dtype {array.dtype}; it returns "
                "numbers"
            )
    return arrays


@cache
def _operation_class() -> Any:
    """The class, whose base is PyTensor's."""
    graph = imported("pytensor_op", "pytensor", "pytensor.graph")
    tensors = imported("pytensor_op", "pytensor", "pytensor.tensor")
    gradients = imported("pytensor_op", "pytensor", "pytensor.gradient")

    class FunctionOp(graph.Op):
        """A function of arrays, equal to others of the same function and types."""

        __props__ = ("function", "types", "result_types")

        def __init__(self, function: Any, types: Sequence[Any], result_types: Sequence[Any]):
            self.function, self.types, self.result_types = (
                function,
                tuple(types),
                tuple(result_types),
            )

        def make_node(self, *inputs: Any) -> Any:
            if len(inputs) != len(self.types):
                raise NumgradTypeError(
                    f"pytensor_op: the operation takes {len(self.types)} arguments, as many as it "
                    f"had examples; got {len(inputs)}"
                )
            variables = []
            for k, (x, (dtype, ndim)) in enumerate(zip(inputs, self.types, strict=True)):
                x = tensors.as_tensor_variable(x)
                if x.type.ndim != ndim:
                    raise NumgradTypeError(
                        f"pytensor_op: argument {k} has {x.type.ndim} axes, its example has {ndim}"
                    )
                variables.append(x if x.type.dtype == dtype.name else tensors.cast(x, dtype.name))
            results = [
                tensors.tensor(dtype=dtype.name, shape=(None,) * ndim)
                for dtype, ndim in self.result_types
            ]
            return graph.Apply(self, variables, results)

        def perform(self, node: Any, inputs: Any, output_storage: Any) -> None:
            for cell, result in zip(output_storage, _results(self.function(*inputs)), strict=True):
                cell[0] = result

        def connection_pattern(self, node: Any) -> list[list[bool]]:
            return [[_has_derivative(t) and _has_derivative(r) for r in self.result_types]
                    for t in self.types]  # fmt: skip

        def L_op(self, inputs: Any, outputs: Any, output_grads: Any) -> list[Any]:
            smooth = [k for k, t in enumerate(self.types) if _has_derivative(t)]
            of = [k for k, r in enumerate(self.result_types) if _has_derivative(r)]
            filled = [
                tensors.zeros_like(outputs[k])
                if isinstance(output_grads[k].type, gradients.DisconnectedType)
                else output_grads[k]
                for k in of
            ]
            types = [*self.types, *(self.result_types[k] for k in of)]
            pulled = FunctionOp(
                _pullback(self.function, tuple(smooth), tuple(of)),
                types,
                [self.types[k] for k in smooth],
            )(*inputs, *filled)
            cotangents = dict(
                zip(smooth, pulled if isinstance(pulled, list) else [pulled], strict=True)
            )
            return [
                cotangents[k] if k in cotangents else gradients.disconnected_type()
                for k in range(len(inputs))
            ]

    return FunctionOp


def _has_derivative(kind: tuple[np.dtype, int]) -> bool:
    return kind[0].kind in "fc"


@cache
def _pullback(f: Callable[..., Any], smooth: tuple[int, ...], of: tuple[int, ...]) -> Any:
    """The function from arguments, and cotangents of some results, to those of some arguments."""

    def pullback(*arguments: Any) -> tuple[Any, ...]:
        inputs, cotangents = arguments[: -len(of)], arguments[-len(of) :]

        def partial(*moved: Any) -> tuple[Any, ...]:
            at = dict(zip(smooth, moved, strict=True))
            results = f(*(at.get(k, x) for k, x in enumerate(inputs)))
            several = results if isinstance(results, tuple | list) else (results,)
            return tuple(several[k] for k in of)

        _, pull = vjp(partial, *(inputs[k] for k in smooth))
        pulled = pull(tuple(cotangents))
        return pulled if len(smooth) > 1 else (pulled,)

    return pullback
