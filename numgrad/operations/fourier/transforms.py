"""The functions of ``numpy.fft``, and the Hermitian ones over several axes of ``scipy.fft``."""

from typing import Any

import numpy as np

from numgrad.core.declare import OPS, composite, made
from numgrad.errors import NumgradValueError
from numgrad.operations.arrangement import roll
from numgrad.operations.fourier import spectra
from numgrad.operations.shape import as_index, as_operand, copy


def _transform(name: str, x: Any, s: Any, axes: Any, norm: Any, forward: bool) -> Any:
    x = as_operand(x)
    norm = spectra.checked_norm(name, norm)
    axes = spectra.axes_in_order(name, axes, s, len(x.shape))
    if not axes:
        return copy(x)
    if len(set(axes)) < len(axes):  # one after the other, as NumPy
        arguments = [None] * len(axes) if s is None else s
        for axis, n in list(zip(axes, arguments, strict=True))[::-1]:
            x = _transform(name, x, (n,), (axis,), norm, forward)
        return x
    x = spectra.resized(x, axes, spectra.lengths(name, s, x, axes))
    return spectra.fourier(x, axes=axes, norm=norm, forward=forward)


def _half_axes(name: str, x: Any, s: Any, axes: Any) -> tuple[int, ...]:
    """The axes of a transform whose last one is halved."""
    result = spectra.axes_in_order(name, axes, s, len(x.shape))
    if not result or len(set(result)) < len(result):
        raise NumgradValueError(
            f"{name}: axes={axes!r} of an operand of shape {tuple(x.shape)}; give at least one, "
            "each once"
        )
    return result


def _of_real(name: str, x: Any, s: Any, axes: Any, norm: Any, forward: bool) -> Any:
    x = as_operand(x)
    norm = spectra.checked_norm(name, norm)
    axes = _half_axes(name, x, s, axes)
    x = spectra.resized(x, axes, spectra.lengths(name, s, x, axes))
    return spectra.half_spectrum(x, axes=axes, norm=norm, forward=forward)


def _to_real(name: str, x: Any, s: Any, axes: Any, norm: Any, forward: bool) -> Any:
    x = as_operand(x)
    norm = spectra.checked_norm(name, norm)
    axes = _half_axes(name, x, s, axes)
    s = [None] * len(axes) if s is None else list(s)
    last = s[-1]
    n = 2 * (x.shape[axes[-1]] - 1) if last is None or last == -1 else as_index(name, last, "n")
    spectra.check_points(name, n, x)
    x = spectra.resized(x, axes, spectra.lengths(name, [*s[:-1], n // 2 + 1], x, axes))
    return spectra.real_signal(x, axes=axes, n=n, norm=norm, forward=forward)


@composite(ref=np.fft.fft, method=False, smooth=True)
def fft(x, n=None, axis=-1, norm=None):
    """Fourier transform along an axis.

    Returns
    -------
    Tensor
        Complex, of length ``n`` along the axis.

    Examples
    --------
    >>> ng.fft.fft(ng.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex128)
    """
    return _transform("fft", x, spectra.points("fft", n), (axis,), norm, True)


@composite(ref=np.fft.fft2, method=False, smooth=True)
def fft2(x, s=None, axes=(-2, -1), norm=None):
    """Fourier transform along two axes.

    Returns
    -------
    Tensor
        Complex, of lengths ``s`` along the axes.

    Examples
    --------
    >>> ng.fft.fft2(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]], dtype=complex128)
    """
    return _transform("fft2", x, s, axes, norm, True)


@composite(ref=np.fft.fftn, method=False, smooth=True)
def fftn(x, s=None, axes=None, norm=None):
    """Fourier transform along axes.

    Returns
    -------
    Tensor
        Complex, of lengths ``s`` along the axes.

    Examples
    --------
    >>> ng.fft.fftn(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]], dtype=complex128)
    """
    return _transform("fftn", x, s, axes, norm, True)


@composite(ref=np.fft.ifft, method=False, smooth=True)
def ifft(x, n=None, axis=-1, norm=None):
    """Inverse of ``fft``.

    Returns
    -------
    Tensor
        Complex, of length ``n`` along the axis.

    Examples
    --------
    >>> ng.fft.ifft(ng.tensor([4.0, 0.0, 0.0, 0.0])).real
    tensor([1., 1., 1., 1.])
    """
    return _transform("ifft", x, spectra.points("ifft", n), (axis,), norm, False)


@composite(ref=np.fft.ifft2, method=False, smooth=True)
def ifft2(x, s=None, axes=(-2, -1), norm=None):
    """Inverse of ``fft2``.

    Returns
    -------
    Tensor
        Complex, of lengths ``s`` along the axes.

    Examples
    --------
    >>> ng.fft.ifft2(ng.tensor([[4.0, 0.0], [0.0, 0.0]])).real
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _transform("ifft2", x, s, axes, norm, False)


@composite(ref=np.fft.ifftn, method=False, smooth=True)
def ifftn(x, s=None, axes=None, norm=None):
    """Inverse of ``fftn``.

    Returns
    -------
    Tensor
        Complex, of lengths ``s`` along the axes.

    Examples
    --------
    >>> ng.fft.ifftn(ng.tensor([[4.0, 0.0], [0.0, 0.0]])).real
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _transform("ifftn", x, s, axes, norm, False)


@composite(ref=np.fft.rfft, method=False, smooth=True)
def rfft(x, n=None, axis=-1, norm=None):
    """Fourier transform of real numbers, without the half that follows from the other one.

    Returns
    -------
    Tensor
        Complex, of length ``n // 2 + 1`` along the axis.

    Examples
    --------
    >>> ng.fft.rfft(ng.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex128)
    """
    return _of_real("rfft", x, spectra.points("rfft", n), (axis,), norm, True)


@composite(ref=np.fft.rfft2, method=False, smooth=True)
def rfft2(x, s=None, axes=(-2, -1), norm=None):
    """Fourier transform of real numbers along two axes, half of the last one left out.

    Returns
    -------
    Tensor
        Complex, of length ``n // 2 + 1`` along the last of the axes.

    Examples
    --------
    >>> ng.fft.rfft2(ng.ones((4, 6))).shape
    (4, 4)
    """
    return _of_real("rfft2", x, s, axes, norm, True)


@composite(ref=np.fft.rfftn, method=False, smooth=True)
def rfftn(x, s=None, axes=None, norm=None):
    """Fourier transform of real numbers along axes, half of the last one left out.

    Returns
    -------
    Tensor
        Complex, of length ``n // 2 + 1`` along the last of the axes.

    Examples
    --------
    >>> ng.fft.rfftn(ng.ones((4, 6))).shape
    (4, 4)
    """
    return _of_real("rfftn", x, s, axes, norm, True)


@composite(ref=np.fft.irfft, method=False, smooth=True)
def irfft(x, n=None, axis=-1, norm=None):
    """Inverse of ``rfft``; give ``n`` where it is odd.

    Returns
    -------
    Tensor
        Real, of length ``n`` along the axis, by default ``2 * (m - 1)`` for ``m`` frequencies.

    Examples
    --------
    >>> ng.fft.irfft(ng.tensor([10.0, -2.0 + 2j, -2.0]))
    tensor([1., 2., 3., 4.])
    """
    return _to_real("irfft", x, spectra.points("irfft", n), (axis,), norm, False)


@composite(ref=np.fft.irfft2, method=False, smooth=True)
def irfft2(x, s=None, axes=(-2, -1), norm=None):
    """Inverse of ``rfft2``; give the last length in ``s`` where it is odd.

    Returns
    -------
    Tensor
        Real, of length ``2 * (m - 1)`` along the last of the axes if ``s`` gives no other.

    Examples
    --------
    >>> ng.fft.irfft2(ng.ones((4, 4))).shape
    (4, 6)
    """
    return _to_real("irfft2", x, s, axes, norm, False)


@composite(ref=np.fft.irfftn, method=False, smooth=True)
def irfftn(x, s=None, axes=None, norm=None):
    """Inverse of ``rfftn``; give the last length in ``s`` where it is odd.

    Returns
    -------
    Tensor
        Real, of length ``2 * (m - 1)`` along the last of the axes if ``s`` gives no other.

    Examples
    --------
    >>> ng.fft.irfftn(ng.ones((4, 4))).shape
    (4, 6)
    """
    return _to_real("irfftn", x, s, axes, norm, False)


@composite(ref=np.fft.hfft, method=False, smooth=True)
def hfft(x, n=None, axis=-1, norm=None):
    """Fourier transform of a Hermitian signal, of which half is given; it is real.

    Returns
    -------
    Tensor
        Real, of length ``n`` along the axis, by default ``2 * (m - 1)`` for ``m`` points.

    Examples
    --------
    >>> ng.fft.hfft(ng.tensor([1.0, 2.0, 3.0]))
    tensor([ 8., -2.,  0., -2.])
    """
    return _to_real("hfft", x, spectra.points("hfft", n), (axis,), norm, True)


@composite(ref="scipy.fft.hfft2", method=False, smooth=True)
def hfft2(x, s=None, axes=(-2, -1), norm=None):
    """Fourier transform along two axes of a Hermitian signal, of which half is given; it is real.

    Returns
    -------
    Tensor
        Real, of length ``2 * (m - 1)`` along the last of the axes if ``s`` gives no other.

    Examples
    --------
    >>> ng.fft.hfft2(ng.ones((4, 4))).shape
    (4, 6)
    """
    return _to_real("hfft2", x, s, axes, norm, True)


@composite(ref="scipy.fft.hfftn", method=False, smooth=True)
def hfftn(x, s=None, axes=None, norm=None):
    """Fourier transform along axes of a Hermitian signal, of which half is given; it is real.

    Returns
    -------
    Tensor
        Real, of length ``2 * (m - 1)`` along the last of the axes if ``s`` gives no other.

    Examples
    --------
    >>> ng.fft.hfftn(ng.ones((4, 4))).shape
    (4, 6)
    """
    return _to_real("hfftn", x, s, axes, norm, True)


@composite(ref=np.fft.ihfft, method=False, smooth=True)
def ihfft(x, n=None, axis=-1, norm=None):
    """Inverse of ``hfft``: half of a Hermitian signal.

    Returns
    -------
    Tensor
        Complex, of length ``n // 2 + 1`` along the axis.

    Examples
    --------
    >>> ng.fft.ihfft(ng.tensor([8.0, -2.0, 0.0, -2.0])).real
    tensor([1., 2., 3.])
    """
    return _of_real("ihfft", x, spectra.points("ihfft", n), (axis,), norm, False)


@composite(ref="scipy.fft.ihfft2", method=False, smooth=True)
def ihfft2(x, s=None, axes=(-2, -1), norm=None):
    """Inverse of ``hfft2``: half of a Hermitian signal.

    Returns
    -------
    Tensor
        Complex, of length ``n // 2 + 1`` along the last of the axes.

    Examples
    --------
    >>> ng.fft.ihfft2(ng.ones((4, 6))).shape
    (4, 4)
    """
    return _of_real("ihfft2", x, s, axes, norm, False)


@composite(ref="scipy.fft.ihfftn", method=False, smooth=True)
def ihfftn(x, s=None, axes=None, norm=None):
    """Inverse of ``hfftn``: half of a Hermitian signal.

    Returns
    -------
    Tensor
        Complex, of length ``n // 2 + 1`` along the last of the axes.

    Examples
    --------
    >>> ng.fft.ihfftn(ng.ones((4, 6))).shape
    (4, 4)
    """
    return _of_real("ihfftn", x, s, axes, norm, False)


@composite(ref=np.fft.fftshift, method=False, smooth=True)
def fftshift(x, axes=None):
    """Frequencies in ascending order, 0 in the middle.

    Parameters
    ----------
    axes : int or sequence of ints
        Axes along which to move; by default all.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.fft.fftshift(ng.fft.fftfreq(4, 0.25))
    tensor([-2., -1.,  0.,  1.])
    """
    return _shifted("fftshift", x, axes, 1)


@composite(ref=np.fft.ifftshift, method=False, smooth=True)
def ifftshift(x, axes=None):
    """Inverse of ``fftshift``.

    Parameters
    ----------
    axes : int or sequence of ints
        Axes along which to move; by default all.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.fft.ifftshift(ng.tensor([-2.0, -1.0, 0.0, 1.0]))
    tensor([ 0.,  1., -2., -1.])
    """
    return _shifted("ifftshift", x, axes, -1)


def _shifted(name: str, x: Any, axes: Any, sign: int) -> Any:
    x = as_operand(x)
    axes = spectra.axes_in_order(name, axes, None, len(x.shape))
    halves = [x.shape[axis] // 2 if sign > 0 else -(x.shape[axis] // 2) for axis in axes]
    return roll(x, shift=tuple(halves), axis=axes) if axes else copy(x)


@composite(ref=np.fft.fftfreq, method=False, differentiable=False)
def fftfreq(n, d=1.0):
    """Frequencies of the results of ``fft``, in cycles per unit of ``d``.

    Parameters
    ----------
    n : int
        Number of points.
    d
        Distance of two points; it may have a gradient.

    Returns
    -------
    Tensor
        With ``n`` elements.

    Examples
    --------
    >>> ng.fft.fftfreq(5, 0.2)
    tensor([ 0.,  1.,  2., -2., -1.])
    """
    return _frequencies("fftfreq", np.fft.fftfreq, n, d)


@composite(ref=np.fft.rfftfreq, method=False, differentiable=False)
def rfftfreq(n, d=1.0):
    """Frequencies of the results of ``rfft``, in cycles per unit of ``d``.

    Parameters
    ----------
    n : int
        Number of points.
    d
        Distance of two points; it may have a gradient.

    Returns
    -------
    Tensor
        With ``n // 2 + 1`` elements.

    Examples
    --------
    >>> ng.fft.rfftfreq(5, 0.2)
    tensor([0., 1., 2.])
    """
    return _frequencies("rfftfreq", np.fft.rfftfreq, n, d)


def _frequencies(name: str, function: Any, n: Any, d: Any) -> Any:
    n = as_index(name, n, "the number of points")
    if n < 1:
        raise NumgradValueError(f"{name}: {n} points; there must be at least one")
    return OPS["divide"](made(function(n)), d)
