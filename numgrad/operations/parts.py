"""Numbers taken apart, and products of matrices with vectors by NumPy's names."""

from __future__ import annotations

import numpy as np

from numgrad.core.declare import composite, elementwise, primitive
from numgrad.core.formula import Meta
from numgrad.errors import NumgradTypeError
from numgrad.operations.index import getitem
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_operand, astype, expand_dims


@elementwise(ref=np.fabs, method=False, real=True)
def fabs(x):
    """Absolute value as a floating number; at 0 the gradient is 0.

    Examples
    --------
    >>> ng.fabs(ng.tensor([-1, 2]))
    tensor([1., 2.])
    """
    return np.abs(x)


fabs.vjp(x=lambda g, x: g * np.sign(x))
fabs.kink(x=([0.0, -0.0], [0, 0]))


@primitive(internal=True, differentiable=False, method=False)
def binary_exponent(x):
    """The exponents that ``frexp`` gives."""
    return np.frexp(x)[1]


binary_exponent.shape(lambda x: Meta(x.shape, np.dtype(np.int32)))


@composite(ref=np.frexp, method=False, real=True)
def frexp(x):
    """Mantissa between 0.5 and 1 and exponent, so that ``x == mantissa * 2**exponent``.

    Returns
    -------
    tuple of Tensors
        The mantissa, through which gradients flow, and the exponent, of dtype int32.

    Examples
    --------
    >>> ng.frexp(ng.tensor([8.0, 3.0]))
    (tensor([0.5 , 0.75]), tensor([4, 2], dtype=int32))
    """
    x = as_operand(x)
    if x.dtype.kind == "c":
        raise NumgradTypeError(f"frexp: not defined for {x.dtype}; take real numbers")
    if x.dtype.kind != "f":
        x = x * 1.0
    exponent = binary_exponent(x)
    half = exponent // 2  # 2**1074, for subnormal numbers, would overflow
    for part in (half, exponent - half):
        x = x * 2.0 ** astype(-part, dtype=x.dtype)
    return x, exponent


frexp.calls = [
    (((2, 3),), lambda x: frexp(x)[0]),
]


@composite(ref="numpy.matvec", method=False, smooth=True)
def matvec(a, b):
    """Products of the matrices in the last two axes with the vectors in the last one.

    Returns
    -------
    Tensor
        Of the shape the leading axes broadcast to, and one axis.

    Examples
    --------
    >>> ng.matvec(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), [1.0, 10.0])
    tensor([21., 43.])
    """
    return getitem(matmul(a, expand_dims(as_operand(b), -1)), (..., 0))


matvec.calls = [
    (((2, 3), (4, 3)), lambda a, b: matvec(a, b)),
]


@composite(ref="numpy.vecmat", method=False, smooth=True)
def vecmat(a, b):
    """Products of the conjugated vectors in the last axis with matrices in the last two.

    Returns
    -------
    Tensor
        Of the shape the leading axes broadcast to, and one axis.

    Examples
    --------
    >>> ng.vecmat(ng.tensor([1.0, 10.0]), [[1.0, 2.0], [3.0, 4.0]])
    tensor([31., 42.])
    """
    a = as_operand(a)
    if a.dtype.kind == "c":
        a = np.conj(a)
    return getitem(matmul(expand_dims(a, -2), b), (..., 0, slice(None)))


vecmat.calls = [
    (((4, 3), (3, 2)), lambda a, b: vecmat(a, b)),
]
