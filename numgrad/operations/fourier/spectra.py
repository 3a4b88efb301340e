"""The three transforms that others are made of, by SciPy's pocketfft, and their operands.

Note [Adjoints of Fourier transforms]
-------------------------------------
The gradient of a linear map is its adjoint. That of the transform of complex numbers is the one in
the other direction with the same scale, which ``norm`` counts from the other end. The spectrum of
real numbers is kept in half: each frequency but 0 and that of Nyquist stands for two, and counts
twice where real numbers are made of it. ``middle`` is a factor of these frequencies, with which the
spectrum of real numbers and real numbers from a spectrum are each other's adjoints, so that
gradients of any order are one transform each.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.codegen.symbols import real_dtype
from numgrad.core.declare import BatchOperand, Meta, normalize_axes, primitive, with_parameters
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.extend import pad_constant
from numgrad.operations.index import getitem
from numgrad.operations.shape import as_index, as_operand

ADJOINT_NORM = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm of the transform in the other direction that scales by the same."""


def pocketfft(name: str, x: Any, axes: tuple[int, ...], **options: Any) -> Any:
    """Call a function of ``scipy.fft``, or of several axes, which take 10 us longer."""
    import scipy.fft

    if len(axes) == 1:
        return getattr(scipy.fft, name)(x, axis=axes[0], **options)
    n = options.pop("n", None)
    if n is not None:
        options["s"] = (*[x.shape[axis] for axis in axes[:-1]], n)
    return getattr(scipy.fft, f"{name}n")(x, axes=axes, **options)


def floating(dtype: np.dtype) -> np.dtype:
    """The floating or complex dtype that a transform of operands of a dtype computes in."""
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def _complex(dtype: np.dtype) -> np.dtype:
    return np.result_type(floating(dtype), np.complex64)


@primitive(
    lowering="numgrad.compiler.lower.library_calls",
    internal=True,
    linear=True,
    method=False,
    samples=[(((3, 4),), {"axes": (1,)}), (((3, 4),), {"axes": (1, 0), "forward": False})],
)
def fourier(x, *, axes, norm="backward", forward=True):
    """Fourier transform along axes; backward with ``forward=False``."""
    check_dtype("fft", x.dtype)
    if x.size == 0:
        return np.empty(x.shape, _complex(x.dtype))
    y = pocketfft("fft" if forward else "ifft", x, axes, norm=norm)
    if x.dtype.kind != "c":
        y.imag += 0.0  # NumPy's zeros are positive, some of SciPy's negative
    return y


fourier.shape(lambda x, *, axes, norm, forward: Meta(x.shape, _complex(x.dtype)))
fourier.vjp(
    x=lambda g, axes, norm, forward: fourier(
        g, axes=axes, norm=ADJOINT_NORM[norm], forward=not forward
    )
)


@with_parameters
def along_axes(x: BatchOperand, size: int, axes: Any, **params: Any) -> dict[str, Any]:
    """The rule of a transform along ``axes``."""
    return {"axes": x.axes(axes)}


fourier.batch(along_axes)


@primitive(
    lowering="numgrad.compiler.lower.library_calls",
    internal=True,
    linear=True,
    real_only=True,
    method=False,
    samples=[(((3, 4),), {"axes": (0, 1)}), (((5, 2),), {"axes": (0,), "middle": 2.0})],
)
def half_spectrum(x, *, axes, norm="backward", forward=True, middle=1.0):
    """Fourier transform of real numbers, without the half that follows from the other one."""
    check_dtype("rfft", x.dtype)
    if x.dtype.kind == "c":
        raise NumgradTypeError(
            "rfft: the operand is complex, its spectrum has no symmetry; use fft, or real() first"
        )
    n = x.shape[axes[-1]]
    if x.size == 0:
        shape = list(x.shape)
        shape[axes[-1]] = n // 2 + 1
        return np.empty(shape, _complex(x.dtype))
    if forward:
        y = pocketfft("rfft", x, axes, norm=norm)
    else:  # so that zeros have the signs of NumPy's
        y = pocketfft("rfft", x, axes, norm=ADJOINT_NORM[norm])
        np.conjugate(y, out=y)
    if middle != 1:
        _middle(y, n, axes[-1])[...] *= middle
    return y


@half_spectrum.shape
def _half(x, *, axes, norm, forward, middle):
    n = x.shape[axes[-1]]
    return Meta(_with_length(x.shape, axes[-1], n // 2 + 1), _complex(x.dtype))


def _with_length(shape: tuple[Any, ...], axis: int, n: Any) -> tuple[Any, ...]:
    return tuple([n if a == axis else length for a, length in enumerate(shape)])


def _middle(spectrum: np.ndarray, n: int, axis: int) -> np.ndarray:
    """The part of half a spectrum in which every frequency stands for two, as a view."""
    return spectrum[(slice(None),) * axis + (slice(1, (n + 1) // 2),)]


half_spectrum.vjp(
    x=lambda g, meta_x, axes, norm, forward, middle: real_signal(
        g,
        axes=axes,
        n=meta_x.shape[axes[-1]],
        norm=ADJOINT_NORM[norm],
        forward=not forward,
        middle=middle / 2,
    )
)
half_spectrum.batch(along_axes)


@primitive(
    lowering="numgrad.compiler.lower.library_calls",
    internal=True,
    linear=True,
    method=False,
    samples=[
        (((3, 4),), {"axes": (0, 1), "n": 7}),
        (((3, 4),), {"axes": (0,), "n": 4, "middle": 0.5}),
    ],
)
def real_signal(x, *, axes, n, norm="backward", forward=False, middle=1.0):
    """``n`` real numbers from half a spectrum along the last of the axes."""
    check_dtype("irfft", x.dtype)
    if x.size == 0:
        shape = list(x.shape)
        shape[axes[-1]] = n
        return np.empty(shape, real_dtype(_complex(x.dtype)))
    if middle != 1:
        x = np.array(x, _complex(x.dtype))
        _middle(x, n, axes[-1])[...] *= middle
    return pocketfft("hfft" if forward else "irfft", x, axes, n=n, norm=norm)


real_signal.vjp(
    x=lambda g, axes, norm, forward, middle: half_spectrum(
        g, axes=axes, norm=ADJOINT_NORM[norm], forward=not forward, middle=2 * middle
    )
)


@real_signal.shape
def _signal(x, *, axes, n, norm, forward, middle):
    return Meta(_with_length(x.shape, axes[-1], n), real_dtype(_complex(x.dtype)))


real_signal.batch(along_axes)


def checked_norm(operation: str, norm: str | None) -> str:
    """The norm by its name."""
    norm = "backward" if norm is None else norm
    if norm not in ADJOINT_NORM:
        raise NumgradValueError(
            f"{operation}: norm is 'backward', 'ortho' or 'forward', got {norm!r}"
        )
    return norm


def axes_in_order(operation: str, axes: Any, s: Any, ndim: int) -> tuple[int, ...]:
    """Axes as they are written, not below 0; by default the last ones, as many as lengths."""
    if axes is None:
        count = ndim if s is None else len(_as_sequence(s))
        if count > ndim:
            raise NumgradValueError(
                f"{operation}: {count} lengths s={s!r} for an operand of {ndim} axes"
            )
        return tuple(range(ndim - count, ndim))
    indices = [as_index(operation, a) for a in _as_sequence(axes)]
    ordered = tuple([normalize_axes(operation, a, ndim)[0] for a in indices])
    if s is not None and len(_as_sequence(s)) != len(ordered):
        raise NumgradValueError(f"{operation}: s={s!r} and axes={axes!r} have different lengths")
    return ordered


def _as_sequence(values: Any) -> Sequence[Any]:
    return tuple(values) if hasattr(values, "__iter__") else (values,)


def lengths(operation: str, s: Any, x: Any, axes: Sequence[int]) -> list[Any]:
    """The length that each axis is to have; None and -1 leave it."""
    arguments = [None] * len(axes) if s is None else _as_sequence(s)
    results = []
    for n, axis in zip(arguments, axes, strict=True):
        results.append(
            x.shape[axis] if n is None or n == -1 else as_index(operation, n, "a length")
        )
        check_points(operation, results[-1], x)
    return results


def check_points(operation: str, n: Any, x: Any) -> None:
    """Raise if there is nothing to transform."""
    if n < 1:
        raise NumgradValueError(
            f"{operation}: {n} points along an axis of an operand of shape {tuple(x.shape)}; a "
            "transform needs at least one"
        )


def points(name: str, n: Any) -> tuple[Any]:
    """The number of points along one axis, as lengths of axes are given."""
    if n is not None and as_index(name, n, "n") < 1:
        raise NumgradValueError(f"{name}: n={n} points; a transform needs at least one")
    return (n,)


def resized(x: Any, axes: Sequence[int], sizes: Sequence[Any]) -> Any:
    """The operand cut, or filled up with zeros, to the given lengths."""
    lengths = dict(zip(axes, sizes, strict=True))
    cut = [slice(None)] * len(x.shape)
    widths = [(0, 0)] * len(x.shape)
    for axis, n in lengths.items():
        if n < x.shape[axis]:
            cut[axis] = slice(0, n)
        elif n > x.shape[axis]:
            widths[axis] = (0, n - x.shape[axis])
    if cut != [slice(None)] * len(cut):
        x = getitem(x, tuple(cut))
    return pad_constant(x, widths=tuple(widths)) if any(after for _, after in widths) else x


def operand(operation: str, x: Any) -> Any:
    """The operand, which must have an axis."""
    x = as_operand(x)
    if not len(x.shape):
        raise NumgradValueError(f"{operation}: the operand has no axis; use a 1-d array")
    return x
