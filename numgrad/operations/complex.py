"""Parts of complex numbers; gradients are dL/dz* (Wirtinger), as descent directions."""

import numpy as np

from numgrad.codegen.dtypes import resolve
from numgrad.core.batching import unchanged
from numgrad.core.declare import elementwise, view
from numgrad.errors import NumgradTypeError


@elementwise(ref=np.conjugate, aliases=("conj",), linear=True)
def conjugate(x):
    """Complex conjugate.

    Examples
    --------
    >>> ng.conjugate(ng.tensor([1 + 2j, 3.0]))
    tensor([1.-2.j, 3.-0.j], dtype=complex128)
    """
    return np.conj(x)


conjugate.vjp(x=lambda g: np.conj(g))


@view(ref=np.real, method=False, linear=True)
def real(x):
    """Real part, as a view.

    Returns
    -------
    Tensor
        Of the shape of ``x``, real.

    Examples
    --------
    >>> ng.real(ng.tensor([1 + 2j, 3.0]))
    tensor([1., 3.])
    """
    return x.real


real.vjp(x=lambda g: g)
real.batch(unchanged)


@view(ref=np.imag, method=False, linear=True)
def imag(x):
    """Imaginary part, as a view; zeros for real operands.

    Returns
    -------
    Tensor
        Of the shape of ``x``, real.

    Examples
    --------
    >>> ng.imag(ng.tensor([1 + 2j, 3.0]))
    tensor([2., 0.])
    """
    return x.imag


imag.vjp(x=lambda g: g * 1j)
imag.batch(unchanged)


def _real_result(operands):
    (x,) = operands
    if not isinstance(x, np.dtype):
        x = np.dtype(x)
    if x.kind == "c":
        return [x], np.dtype(f"f{x.itemsize // 2}")
    (_, part), out = resolve(np.arctan2, (int, x))  # NumPy's imaginary part is the number 0
    return [part], out


@elementwise(ref=np.angle, types=_real_result)
def angle(x):
    """Phase of a complex number in radians; of a real one 0 or pi.

    Examples
    --------
    >>> ng.angle(ng.tensor([1.0, 1j, -2.0]))
    tensor([0.        , 1.57079633, 3.14159265])
    """
    return np.arctan2(np.imag(x), np.real(x))


angle.vjp(x=lambda g, x: np.where(x == 0, 0, 1j * g / np.conj(np.where(x == 0, 1, x))))
angle.kink(x=([0.0, -1.0, 1.0], [0, 0, 0]))
angle.kink(x=([0j, 2j], [0, -0.5]))


def _complex_result(operands):
    try:
        (_, part), out = resolve(np.copysign, operands)  # real operands only, floating result
    except NumgradTypeError:
        raise NumgradTypeError("from_parts: the parts of complex numbers are real") from None
    return [part, part], np.dtype(f"c{out.itemsize * 2}")


def _assembled(a, b):
    """The same through the parts of an array of NumPy's."""
    dtype = np.promote_types(np.copysign(a, b).dtype, np.float32)
    out = np.empty(np.broadcast(a, b).shape, np.promote_types(dtype, np.complex64))
    out.real, out.imag = a, b
    return out


@elementwise(
    types=_complex_result,
    scalar="from_parts",
    method=False,
    internal=True,
    ref=_assembled,
    real=True,
    smooth=True,
)
def from_parts(a, b):
    """Complex numbers from their real and imaginary parts."""
    return a + 1j * b


from_parts.vjp(a=lambda g: np.real(g), b=lambda g: np.imag(g))
