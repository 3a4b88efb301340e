"""Parameters as one vector and back; normalizations fused with the layer before them.

``skip_init`` makes layers without first values.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.module.members import Parameter
from numgrad.nn.module.module import Module
from numgrad.operations.join import concat
from numgrad.operations.shape import as_operand
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


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of a convolution that does what a normalization after it did.

    Parameters
    ----------
    conv_w, conv_b
        Of the convolution; a bias of None is zero.
    bn_rm, bn_rv, bn_eps
        Running mean and variance, and what is added to the variance.
    bn_w, bn_b
        Of the normalization; None is one and zero.
    transpose
        Whether the convolution is a transposed one, whose outputs are its weight's second axis.

    Examples
    --------
    >>> import numgrad as ng
    >>> one, zero = ng.ones(1), ng.zeros(1)
    >>> w, b = ng.nn.utils.fuse_conv_bn_weights(
    ...     ng.ones((1, 1, 1, 1)), None, one, one, 0.0, 2 * one, zero
    ... )
    >>> w.item(), b.item()
    (2.0, -2.0)
    """
    conv_w, conv_b, bn_rm, bn_rv, bn_w, bn_b = (
        None if a is None else as_operand(a) for a in (conv_w, conv_b, bn_rm, bn_rv, bn_w, bn_b)
    )
    scale = 1 / np.sqrt(bn_rv + bn_eps)  # pyright: ignore
    scale = scale if bn_w is None else scale * bn_w
    bias = (-bn_rm if conv_b is None else conv_b - bn_rm) * scale  # pyright: ignore
    bias = bias if bn_b is None else bias + bn_b
    shape = [1] * len(conv_w.shape)  # pyright: ignore
    shape[1 if transpose else 0] = -1
    weight = conv_w * np.reshape(scale, tuple(shape))
    return tuple(  # pyright: ignore
        Parameter(v.detach().astype(conv_w.dtype), requires_grad=_trained(source))  # pyright: ignore
        for v, source in ((weight, conv_w), (bias, conv_b))
    )


def _trained(parameter: Any) -> bool:
    return parameter is None or bool(getattr(parameter, "requires_grad", True))


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer that does what a normalization after it did.

    Parameters are those of ``fuse_conv_bn_weights``.

    Examples
    --------
    >>> import numgrad as ng
    >>> one = ng.ones(1)
    >>> w, b = ng.nn.utils.fuse_linear_bn_weights(ng.ones((1, 2)), one, one, one, 0.0, 2 * one, one)
    >>> w.tolist(), b.item()
    ([[2.0, 2.0]], 1.0)
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fused(name: str, layer: Module, bn: Module, transpose: bool) -> Module:
    if layer.training or bn.training:
        raise NumgradValueError(f"{name}: is of layers in evaluation; call eval() on both first")
    if bn.running_mean is None or bn.running_var is None:
        raise NumgradValueError(f"{name}: the normalization has no running statistics")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return fused


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """A convolution that does what it and the normalization after it do in evaluation.

    Raises
    ------
    NumgradValueError
        If one of them is in training, or there are no running statistics.

    Examples
    --------
    >>> import numgrad as ng
    >>> conv, bn = ng.nn.Conv2d(1, 2, 3).eval(), ng.nn.BatchNorm2d(2).eval()
    >>> ng.nn.utils.fuse_conv_bn_eval(conv, bn)
    Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    """
    return _fused("fuse_conv_bn_eval", conv, bn, transpose)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """A linear layer that does what it and the normalization after it do in evaluation.

    Raises
    ------
    NumgradValueError
        If one of them is in training, there are no running statistics, or lengths do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer, bn = ng.nn.Linear(3, 2).eval(), ng.nn.BatchNorm1d(2).eval()
    >>> ng.nn.utils.fuse_linear_bn_eval(layer, bn)
    Linear(in_features=3, out_features=2, bias=True)
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise NumgradValueError(
            f"fuse_linear_bn_eval: {linear.out_features} features do not fit a normalization of "
            f"{bn.num_features}"
        )
    return _fused("fuse_linear_bn_eval", linear, bn, False)


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Make a module whose parameters are to be loaded or filled: here, with their usual values.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.utils.skip_init(ng.nn.Linear, 3, 2)
    Linear(in_features=3, out_features=2, bias=True)
    """
    return module_cls(*args, **kwargs)


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix away from the keys of a state, in place.

    The state of a model that was trained as ``DistributedDataParallel`` has ``"module."`` before
    each name.

    Parameters
    ----------
    state_dict
        What ``state_dict()`` of a module returned, with its versions of layouts.
    prefix
        What keys begin with, including the dot; others are left as they are.

    Examples
    --------
    >>> import numgrad as ng
    >>> state = {"module.weight": 1, "bias": 2}
    >>> ng.nn.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'bias': 2, 'weight': 1}
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in [key for key in metadata if f"{key}.".startswith(prefix)]:
        metadata[key[len(prefix) :]] = metadata.pop(key)
