"""The convolutions and correlations of ``scipy.signal``."""

from __future__ import annotations

from typing import Any

from numgrad.core.declare import composite
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.extend import pad
from numgrad.operations.fourier.operands import axes_in_order
from numgrad.operations.shape import as_operand
from numgrad.operations.signal.convolution import convolution, convolved, turned


def _pair(name: str, a: Any, b: Any, ndim: int | None = None) -> tuple[Any, Any]:
    a, b = as_operand(a), as_operand(b)
    if len(a.shape) != len(b.shape) or ndim not in (None, len(a.shape)):
        wanted = "as many axes as each other" if ndim is None else f"{ndim} axes each"
        raise NumgradValueError(
            f"{name}: shapes {tuple(a.shape)} and {tuple(b.shape)}: operands have {wanted}"
        )
    return a, b


def _everywhere(name: str, a: Any, b: Any, mode: str, method: str) -> Any:
    if not a.shape:
        return OPS["multiply"](a, b)
    return convolved(name, a, b, range(len(a.shape)), mode, method)


@composite(ref="scipy.signal.convolve", method=False, smooth=True)
def signal_convolve(in1, in2, mode="full", method="auto"):
    """Convolution of two arrays over all of their axes.

    Parameters
    ----------
    in1
        First operand.
    in2
        Second operand, with as many axes.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    method : {'auto', 'direct', 'fft'}
        How it is computed; the faster way by default, directly for integers.

    Returns
    -------
    Tensor
        With the axes of the operands, of a length that ``mode`` says.

    Examples
    --------
    >>> ng.signal.convolve(ng.tensor([1.0, 2.0, 3.0]), [1.0, 10.0], mode="same")
    tensor([ 1., 12., 23.])
    """
    a, b = _pair("convolve", in1, in2)
    return _everywhere("convolve", a, b, mode, method)


@composite(ref="scipy.signal.correlate", method=False, smooth=True)
def signal_correlate(in1, in2, mode="full", method="auto"):
    """Correlation of two arrays over all of their axes, the second one conjugated.

    Parameters
    ----------
    in1
        First operand.
    in2
        Second operand, with as many axes.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    method : {'auto', 'direct', 'fft'}
        How it is computed; the faster way by default, directly for integers.

    Returns
    -------
    Tensor
        With the axes of the operands, of a length that ``mode`` says.

    Examples
    --------
    >>> ng.signal.correlate(ng.tensor([1.0, 2.0, 3.0]), [1.0, 10.0], mode="valid")
    tensor([21., 32.])
    """
    a, b = _pair("correlate", in1, in2)
    return _everywhere("correlate", a, turned(b, range(len(b.shape))), mode, method)


def _over_axes(name: str, in1: Any, in2: Any, mode: str, axes: Any) -> Any:
    a, b = _pair(name, in1, in2)
    if not a.shape:
        return OPS["multiply"](a, b)
    found = axes_in_order(name, axes, None, len(a.shape))
    if not found or len(set(found)) < len(found):
        raise NumgradValueError(f"{name}: axes={axes!r}; give at least one, each once")
    return convolved(name, a, b, found, mode, "fft")


@composite(ref="scipy.signal.fftconvolve", method=False, smooth=True)
def fftconvolve(in1, in2, mode="full", axes=None):
    """Convolution by Fourier transforms; axes over which it does not work broadcast.

    Parameters
    ----------
    in1
        First operand.
    in2
        Second operand, with as many axes.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    axes : int or sequence of ints
        Axes over which it works; by default all.

    Returns
    -------
    Tensor
        With the axes of the operands, of a length that ``mode`` says.

    Examples
    --------
    >>> ng.signal.fftconvolve(ng.tensor([1.0, 2.0, 3.0]), [1.0, 10.0]).round(12)
    tensor([ 1., 12., 23., 30.])
    """
    return _over_axes("fftconvolve", in1, in2, mode, axes)


@composite(ref="scipy.signal.oaconvolve", method=False, smooth=True)
def oaconvolve(in1, in2, mode="full", axes=None):
    """The same as ``fftconvolve``, under the name that SciPy has for long signals.

    Parameters
    ----------
    in1
        First operand.
    in2
        Second operand, with as many axes.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    axes : int or sequence of ints
        Axes over which it works; by default all.

    Returns
    -------
    Tensor
        With the axes of the operands, of a length that ``mode`` says.

    Examples
    --------
    >>> ng.signal.oaconvolve(ng.tensor([1.0, 2.0, 3.0]), [1.0, 10.0]).round(12)
    tensor([ 1., 12., 23., 30.])
    """
    return _over_axes("oaconvolve", in1, in2, mode, axes)


_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _with_boundary(
    name: str, a: Any, b: Any, mode: str, boundary: str, fillvalue: Any, odd: int
) -> Any:
    """Convolution of an image of which there is more beyond its edges.

    The middle is that of all places where they meet; with even lengths the one before, or ``odd``
    places later.
    """
    if boundary not in _BOUNDARIES:
        raise NumgradValueError(f"{name}: boundary is 'fill', 'wrap' or 'symm', got {boundary!r}")
    if mode == "valid":
        return convolved(name, a, b, (0, 1), mode, "auto")
    if mode not in ("full", "same"):
        raise NumgradValueError(f"{name}: mode is 'full', 'same' or 'valid', got {mode!r}")
    if 0 in b.shape:
        raise NumgradValueError(f"{name}: the second image, of shape {tuple(b.shape)}, is empty")
    widths = []
    for n in b.shape:
        after = n - 1 if mode == "full" else (n - 1 + odd) // 2
        widths.append((n - 1 if mode == "full" else n - 1 - after, after))
    if boundary == "fill":
        a = pad(a, widths, constant_values=fillvalue)
    else:
        a = pad(a, widths, _BOUNDARIES[boundary])
    return convolution(a, b, (0, 1))


@composite(ref="scipy.signal.convolve2d", method=False, smooth=True)
def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """Convolution of images.

    Parameters
    ----------
    in1
        Image, of two axes.
    in2
        Second one.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    boundary : {'fill', 'wrap', 'symm'}
        What is beyond the edges of ``in1``: a number, its other end, or its mirror image.
    fillvalue
        The number.

    Returns
    -------
    Tensor
        An image, of a size that ``mode`` says.

    Examples
    --------
    >>> ng.signal.convolve2d(ng.ones((2, 3)), ng.ones((2, 2)), "same", "symm")
    tensor([[4., 4., 4.],
            [4., 4., 4.]])
    """
    a, b = _pair("convolve2d", in1, in2, 2)
    return _with_boundary("convolve2d", a, b, mode, boundary, fillvalue, 0)


@composite(ref="scipy.signal.correlate2d", method=False, smooth=True)
def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """Correlation of images, the second one conjugated.

    Parameters
    ----------
    in1
        Image, of two axes.
    in2
        Second one.
    mode : {'full', 'same', 'valid'}
        Where they meet, the middle of that as large as ``in1``, or where one lies in the other.
    boundary : {'fill', 'wrap', 'symm'}
        What is beyond the edges of ``in1``: a number, its other end, or its mirror image.
    fillvalue
        The number.

    Returns
    -------
    Tensor
        An image, of a size that ``mode`` says.

    Examples
    --------
    >>> ng.signal.correlate2d(ng.ones((2, 3)), ng.tensor([[1.0, 2.0]]), "valid")
    tensor([[3., 3.],
            [3., 3.]])
    """
    a, b = _pair("correlate2d", in1, in2, 2)
    return _with_boundary("correlate2d", a, turned(b, (0, 1)), mode, boundary, fillvalue, 1)


signal_convolve.calls = [
    (((3, 2), (2, 3)), lambda a, b: signal_convolve(a, b, "same")),
    (((), ()), lambda a, b: signal_convolve(a, b)),
]
signal_correlate.calls = [(((2,), (4,)), lambda a, b: signal_correlate(a, b, "valid"))]
fftconvolve.calls = [(((2, 3), (2, 2)), lambda a, b: fftconvolve(a, b, axes=1))]
oaconvolve.calls = [(((3,), (2,)), lambda a, b: oaconvolve(a, b))]
convolve2d.calls = [
    (((2, 3), (2, 2)), lambda a, b: convolve2d(a, b, "same", "symm")),
    (((2, 3), (2, 2)), lambda a, b: convolve2d(a, b, "full", "fill", 2.0)),
]
correlate2d.calls = [(((2, 3), (1, 2)), lambda a, b: correlate2d(a, b, "full", "wrap"))]
