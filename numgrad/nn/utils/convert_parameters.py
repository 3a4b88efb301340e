"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from numgrad.autograd.modes import no_grad
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.join import concat
from numgrad.tensors.tensor import Tensor

Tensors: TypeAlias = Tensor | Iterable[Tensor]


def listed(name: str, values: Any, kinds: Any = Tensor) -> list[Any]:
    """The Tensors, or what else is of ``kinds``, as a list; ``name`` is the function's.

    Raises
    ------
    NumgradTypeError
        If one is of another kind.
    """
    tensors = [values] if isinstance(values, kinds) else list(values)
    for tensor in tensors:
        if not isinstance(tensor, kinds):
            raise NumgradTypeError(
                f"{name}: takes a Tensor or several, got one of type {type(tensor).__name__}"
            )
    return tensors


def parameters_to_vector(parameters: Tensors) -> Tensor:
    """The elements of all parameters, one after the other, as one vector.

    Parameters
    ----------
    parameters
        Tensors of any shapes.

    Returns
    -------
    Tensor
        1-D, of the dtype to which those of the parameters promote. Gradients flow through it.

    Raises
    ------
    NumgradTypeError
        If something is no Tensor.
    NumgradValueError
        If there are none.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.utils.parameters_to_vector([ng.tensor([[1.0, 2.0]]), ng.tensor(3.0)])
    tensor([1., 2., 3.])
    """
    tensors = listed("parameters_to_vector", parameters)
    if not tensors:
        raise NumgradValueError("parameters_to_vector: there are no parameters; give at least one")
    return concat([tensor.reshape(-1) for tensor in tensors])


def vector_to_parameters(vec: Tensor, parameters: Tensors) -> None:
    """Store the elements of a vector in the parameters, one after the other.

    Each parameter keeps its memory and dtype, to which values are converted. It is written in
    place without being recorded: the vector gets no gradient, and a backward that still needs the
    old values raises.

    Parameters
    ----------
    vec
        1-D, with as many elements as the parameters have together.
    parameters
        Tensors of any shapes.

    Raises
    ------
    NumgradTypeError
        If ``vec`` or a parameter is no Tensor, or complex values would go to a real parameter.
    NumgradValueError
        If ``vec`` is not 1-D or has another number of elements. No parameter is changed then.

    Notes
    -----
    In PyTorch the parameters become views of the vector, and take its dtype.

    Examples
    --------
    >>> import numgrad as ng
    >>> weight, bias = ng.zeros((1, 2)), ng.zeros(())
    >>> ng.nn.utils.vector_to_parameters(ng.tensor([1.0, 2.0, 3.0]), [weight, bias])
    >>> weight, bias
    (tensor([[1., 2.]]), tensor(3.))
    """
    name = "vector_to_parameters"
    if not isinstance(vec, Tensor):
        raise NumgradTypeError(f"{name}: the vector is a {type(vec).__name__}, not a Tensor")
    tensors = listed(name, parameters)
    size = sum(tensor.size for tensor in tensors)
    if vec.shape != (size,):
        raise NumgradValueError(
            f"{name}: the vector has shape {vec.shape}, and the parameters {size} elements; give "
            f"one of shape ({size},)"
        )
    for tensor in tensors:
        if vec.dtype.kind == "c" and tensor.dtype.kind != "c":
            raise NumgradTypeError(
                f"{name}: a vector of dtype {vec.dtype} does not fit into a parameter of dtype "
                f"{tensor.dtype}; take its real part"
            )
    with no_grad():
        vec, start = vec.clone(), 0  # it may share memory with what is written
        for tensor in tensors:
            tensor.copy_(vec[start : start + tensor.size].reshape(tensor.shape))
            start += tensor.size
