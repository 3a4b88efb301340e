"""Functions with several results, and those of complex operands, which SciPy computes."""

import importlib
import math
from functools import partial
from typing import Any

import numpy as np

from numgrad.core.batching import unchanged
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.errors import NumgradTypeError


def _scipy(name: str) -> Any:
    return getattr(importlib.import_module("scipy.special"), name)


def _real(name: str, x: Any) -> np.dtype:
    """The floating dtype of results for a real operand."""
    if x.dtype.kind == "c":
        raise NumgradTypeError(
            f"{name}: defined for real operands only here, got {x.dtype}; apply it to real()"
        )
    return x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)


def _several(name: str, count: int, x: Any) -> tuple[np.ndarray, ...]:
    dtype = _real(name, x)
    return tuple([np.asarray(y, dtype) for y in _scipy(name)(x)[:count]])


_declare = partial(primitive, method=False, outputs=True, smooth=True, real=True, domain=(0.3, 3.0))
_SAMPLES = [(((2, 3),), {})]


@_declare(ref="scipy.special.airy", samples=_SAMPLES)
def airy(z):
    """Airy functions and their derivatives at real places.

    Parameters
    ----------
    z
        Argument.

    Returns
    -------
    tuple of Tensors
        Ai, its derivative, Bi, its derivative.

    Examples
    --------
    >>> ng.special.airy(ng.tensor([0.0, 1.0]))[0]
    tensor([0.35502805, 0.13529242])
    """
    return _several("airy", 4, z)


airy.vjp(z=lambda g, z, y: g[0] * y[1] + g[1] * (z * y[0]) + g[2] * y[3] + g[3] * (z * y[2]))


@_declare(ref="scipy.special.sici", samples=_SAMPLES)
def sici(x):
    """Sine and cosine integrals.

    Returns
    -------
    tuple of Tensors
        The integral of ``sin(t) / t`` from 0, and that of ``cos(t) / t``.

    Examples
    --------
    >>> ng.special.sici(ng.tensor([1.0, 2.0]))
    (tensor([0.94608307, 1.60541298]), tensor([0.33740392, 0.42298083]))
    """
    return _several("sici", 2, x)


def _over(x: Any, y: Any) -> Any:
    """``y / x``, 1 at 0: of a sine."""
    zero = x == 0
    return np.where(zero, 1, y / np.where(zero, 1, x))


sici.vjp(x=lambda g, x: g[0] * _over(x, np.sin(x)) + g[1] * (np.cos(x) / x))


@_declare(ref="scipy.special.shichi", samples=_SAMPLES)
def shichi(x):
    """Hyperbolic sine and cosine integrals.

    Returns
    -------
    tuple of Tensors
        The integral of ``sinh(t) / t`` from 0, and that of ``cosh(t) / t``.

    Examples
    --------
    >>> ng.special.shichi(ng.tensor([1.0, 2.0]))
    (tensor([1.05725088, 2.50156743]), tensor([0.83786694, 2.45266692]))
    """
    return _several("shichi", 2, x)


shichi.vjp(x=lambda g, x: g[0] * _over(x, np.sinh(x)) + g[1] * (np.cosh(x) / x))


@_declare(ref="scipy.special.fresnel", samples=_SAMPLES)
def fresnel(z):
    """Fresnel integrals.

    Parameters
    ----------
    z
        Argument.

    Returns
    -------
    tuple of Tensors
        The integrals of ``sin(pi t**2 / 2)`` and ``cos(pi t**2 / 2)`` from 0.

    Examples
    --------
    >>> ng.special.fresnel(ng.tensor([0.0, 1.0]))
    (tensor([0.        , 0.43825915]), tensor([0.       , 0.7798934]))
    """
    return _several("fresnel", 2, z)


def _fresnel_vjp(g, z):
    phase = (0.5 * math.pi) * (z * z)
    return g[0] * np.sin(phase) + g[1] * np.cos(phase)


fresnel.vjp(z=_fresnel_vjp)

for _op, _count in ((airy, 4), (sici, 2), (shichi, 2), (fresnel, 2)):
    _op.shape(lambda x, op=_op, n=_count: (Meta(x.shape, _real(op.name, x)),) * n)
    _op.batch(unchanged)

# ---------------------------------------------------------------------------------- complex ones


def _complex(x: Any) -> np.dtype:
    return np.result_type(x.dtype, np.complex64)


@primitive(
    ref="scipy.special.lambertw", method=False, smooth=True, samples=_SAMPLES, domain=(0.3, 3.0)
)
def lambertw(z, *, k=0, tol=1e-8):
    """Lambert's W function: ``w * exp(w)`` is ``z``; complex, as in SciPy.

    Parameters
    ----------
    z
        Argument, real or complex.
    k
        Branch.
    tol
        Where the iteration ends.

    Returns
    -------
    Tensor
        Complex, of the shape of ``z``.

    Examples
    --------
    >>> ng.special.lambertw(ng.tensor([0.0, 1.0])).real
    tensor([0.        , 0.56714329])
    """
    return np.asarray(_scipy("lambertw")(z, k, tol), _complex(z))


lambertw.shape(lambda z, *, k, tol: Meta(z.shape, _complex(z)))
lambertw.vjp(z=lambda g, y: g * np.conj(np.exp(-y) / (1 + y)))
lambertw.batch(unchanged)


@primitive(ref="scipy.special.wofz", method=False, smooth=True, samples=_SAMPLES, domain=(0.3, 3.0))
def wofz(z):
    """Faddeeva's function, ``exp(-z**2) * erfc(-1j * z)``; complex.

    Parameters
    ----------
    z
        Argument, real or complex.

    Returns
    -------
    Tensor
        Complex, of the shape of ``z``.

    Examples
    --------
    >>> ng.special.wofz(ng.tensor([0.0, 1.0])).real
    tensor([1.        , 0.36787944])
    """
    return np.asarray(_scipy("wofz")(z), _complex(z))


wofz.shape(lambda z: Meta(z.shape, _complex(z)))
wofz.vjp(z=lambda g, z, y: g * np.conj((2j / math.sqrt(math.pi)) - 2 * z * y))
wofz.batch(unchanged)
