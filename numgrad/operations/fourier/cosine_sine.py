"""Cosine and sine transforms of ``scipy.fft``.

Note [Adjoints of cosine transforms]
------------------------------------
With ``orthogonalize`` the matrices of the types 1 and 4 are symmetric, and those of 2 and 3 each
other's transposes; both have the same scale by the same norm. Without it, ``W`` being 2 where a
point or frequency stands at an edge and else 1, the matrices are ``W C1 = (W C1)^T``,
``C2^T = C3 W`` and ``C3^T = W^-1 C2``. Cosines have their edges at the first place (type 1 also at
the last), sines of the types 2 and 3 at the last; the type 1 of sines is symmetric.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.declare import OPS, Meta, composite, made, primitive
from numgrad.errors import NumgradValueError
from numgrad.operations.fourier import spectra
from numgrad.operations.shape import as_operand, copy

_TRANSPOSED = {1: 1, 2: 3, 3: 2, 4: 4}


@primitive(
    internal=True,
    linear=True,
    method=False,
    samples=[
        (((3, 4),), {"sine": sine, "type": type, "axes": axes, "orthogonalize": orthogonal})
        for sine, type, axes, orthogonal in (
            (False, 1, (0, 1), False),
            (False, 2, (1,), False),
            (False, 3, (0, 1), False),
            (True, 2, (0, 1), False),
            (True, 3, (0,), False),
            (True, 1, (0,), True),
            (False, 1, (1,), True),
            (True, 4, (1,), False),
        )
    ],
)
def trigonometric_transform(x, *, sine, type, axes, norm="backward", orthogonalize=None):
    """Cosine or sine transform along axes."""
    check_dtype("dst" if sine else "dct", x.dtype)
    if x.size == 0:
        return np.empty(x.shape, spectra.floating(x.dtype))
    options = {"type": type, "norm": norm, "orthogonalize": orthogonalize}
    name = "dst" if sine else "dct"
    if x.dtype.kind == "c":  # part by part: of complex numbers SciPy weights the real parts only
        out = np.empty(x.shape, spectra.floating(x.dtype))
        out.real = spectra.pocketfft(name, np.ascontiguousarray(x.real), axes, **options)
        out.imag = spectra.pocketfft(name, np.ascontiguousarray(x.imag), axes, **options)
        return out
    return spectra.pocketfft(name, x, axes, **options)


trigonometric_transform.shape(lambda x, **_: Meta(x.shape, spectra.floating(x.dtype)))
trigonometric_transform.batch(spectra.along_axes)


def _transform_vjp(g, sine, type, axes, norm, orthogonalize):
    plain = not (norm == "ortho" if orthogonalize is None else orthogonalize)
    weighted = plain and (type in (2, 3) or (type == 1 and not sine))
    if weighted and type < 3:
        g = _at_edges(g, sine, type, axes, 2.0)
    g = trigonometric_transform(
        g, sine=sine, type=_TRANSPOSED[type], axes=axes, norm=norm, orthogonalize=orthogonalize
    )
    return _at_edges(g, sine, type, axes, 0.5) if weighted and type != 2 else g


trigonometric_transform.vjp(x=_transform_vjp)


def _at_edges(g: Any, sine: bool, type: int, axes: Sequence[int], factor: float) -> Any:
    """``g`` times a factor for each axis at whose edge an element stands."""
    dtype = np.float32 if g.dtype in (np.float32, np.complex64) else np.float64
    for axis in axes:
        shape = [1] * len(g.shape)
        shape[axis] = g.shape[axis]
        weights = np.ones(g.shape[axis], dtype)
        weights[-1 if sine else 0] = factor
        if type == 1:
            weights[-1] = factor
        g = OPS["multiply"](g, made(weights.reshape(shape)))
    return g


def _transform(
    name: str, x: Any, type: Any, s: Any, axes: Any, norm: Any, orthogonalize: bool | None
) -> Any:
    x = as_operand(x)
    sine, inverse = name.lstrip("i")[1] == "s", name[0] == "i"
    norm = spectra.checked_norm(name, norm)
    if type not in _TRANSPOSED:
        raise NumgradValueError(f"{name}: type is 1, 2, 3 or 4, got {type!r}")
    axes = spectra.axes_in_order(name, axes, s, len(x.shape))
    if len(set(axes)) < len(axes):
        raise NumgradValueError(f"{name}: axes={axes} name one twice")
    if not axes:
        return copy(x)
    x = spectra.resized(x, axes, spectra.lengths(name, s, x, axes))
    if type == 1 and not sine and any(x.shape[axis] < 2 for axis in axes):
        raise NumgradValueError(
            f"{name}: type 1 needs at least two points along each axis, got shape {tuple(x.shape)}"
        )
    if inverse:  # the transposed type, which scales by what the forward one does not
        if orthogonalize is None:
            orthogonalize = norm == "ortho"
        type, norm = _TRANSPOSED[type], spectra.ADJOINT_NORM[norm]
    return trigonometric_transform(
        x, sine=sine, type=type, axes=axes, norm=norm, orthogonalize=orthogonalize
    )


@composite(ref="scipy.fft.dct", method=False, smooth=True)
def dct(x, type=2, n=None, axis=-1, norm=None, *, orthogonalize=None):
    """Cosine transform along an axis.

    Parameters
    ----------
    type : int
        Type of the transform, 1 to 4.
    orthogonalize : bool
        Whether the matrix of the transform is orthogonal but for its scale; by default if ``norm``
        is ``"ortho"``.

    Returns
    -------
    Tensor
        Of length ``n`` along the axis.

    Examples
    --------
    >>> ng.fft.dct(ng.tensor([1.0, 2.0, 4.0]), type=1)
    tensor([ 9., -3.,  1.])
    """
    return _transform("dct", x, type, spectra.points("dct", n), (axis,), norm, orthogonalize)


@composite(ref="scipy.fft.dctn", method=False, smooth=True)
def dctn(x, type=2, s=None, axes=None, norm=None, *, orthogonalize=None):
    """Cosine transform along axes.

    Parameters
    ----------
    type : int
        Type of the transform, 1 to 4.
    orthogonalize : bool
        Whether the matrix of the transform is orthogonal but for its scale; by default if ``norm``
        is ``"ortho"``.

    Returns
    -------
    Tensor
        Of lengths ``s`` along the axes.

    Examples
    --------
    >>> ng.fft.dctn(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), type=1)
    tensor([[10., -2.],
            [-4.,  0.]])
    """
    return _transform("dctn", x, type, s, axes, norm, orthogonalize)


@composite(ref="scipy.fft.idct", method=False, smooth=True)
def idct(x, type=2, n=None, axis=-1, norm=None, *, orthogonalize=None):
    """Inverse of ``dct`` of the same type.

    Parameters
    ----------
    type : int
        Type of the transform, 1 to 4.
    orthogonalize : bool
        Whether the matrix of the transform is orthogonal but for its scale; by default if ``norm``
        is ``"ortho"``.

    Returns
    -------
    Tensor
        Of length ``n`` along the axis.

    Examples
    --------
    >>> ng.fft.idct(ng.tensor([9.0, -3.0, 1.0]), type=1)
    tensor([1., 2., 4.])
    """
    return _transform("idct", x, type, spectra.points("idct", n), (axis,), norm, orthogonalize)


@composite(ref="scipy.fft.idctn", method=False, smooth=True)
def idctn(x, type=2, s=None, axes=None, norm=None, *, orthogonalize=None):
    """Inverse of ``dctn`` of the same type.

    Parameters
    ----------
    type : int
        Type of the transform, 1 to 4.
    orthogonalize : bool
        Whether the matrix of the transform is orthogonal but for its scale; by default if ``norm``
        is ``"ortho"``.

    Returns
    -------
    Tensor
        Of lengths ``s`` along the axes.

    Examples
    --------
    >>> ng.fft.idctn(ng.tensor([[10.0, -2.0], [-4.0, 0.0]]), type=1)
    tensor([[1., 2.],
            [3., 4.]])
    """
    return _transform("idctn", x, type, s, axes, norm, orthogonalize)


@composite(ref="scipy.fft.dst", method=False, smooth=True)
def dst(x, type=2, n=None, axis=-1, norm=None, *, orthogonalize=None):
    """Sine transform along an axis.

    Parameters
    ----------
    type : int
        Type of the transform, 1 to 4.
    orthogonalize : bool
        Whether the matrix of the transform is orthogonal but for its scale; by default if ``norm``
        is ``"ortho"``.

    Returns
    -------
    Tensor
        Of length ``n`` along the axis.

    Examples
    --------
    >>> ng.fft.dst(ng.tensor([1.0, 2.0, 3.0]), norm="ortho").norm()
    tensor(3.74165739)
    """
    return _transform("dst", x, type, spectra.points("dst", n), (axis,), norm, orthogonalize)


@composite(ref="scipy.fft.dstn", method=False, smooth=True)
def dstn(x, type=2, s=None, axes=None, norm=None, *, orthogonalize=None):
    """Sine transform along axes.

    Parameters
    ----------
    type : int
        Type of the transform, 1 to 4.
    orthogonalize : bool
        Whether the matrix of the transform is orthogonal but for its scale; by default if ``norm``
        is ``"ortho"``.

    Returns
    -------
    Tensor
        Of lengths ``s`` along the axes.

    Examples
    --------
    >>> ng.fft.dstn(ng.ones((2, 3)), axes=0).round(3)
    tensor([[2.828, 2.828, 2.828],
            [0.   , 0.   , 0.   ]])
    """
    return _transform("dstn", x, type, s, axes, norm, orthogonalize)


@composite(ref="scipy.fft.idst", method=False, smooth=True)
def idst(x, type=2, n=None, axis=-1, norm=None, *, orthogonalize=None):
    """Inverse of ``dst`` of the same type.

    Parameters
    ----------
    type : int
        Type of the transform, 1 to 4.
    orthogonalize : bool
        Whether the matrix of the transform is orthogonal but for its scale; by default if ``norm``
        is ``"ortho"``.

    Returns
    -------
    Tensor
        Of length ``n`` along the axis.

    Examples
    --------
    >>> ng.fft.idst(ng.fft.dst(ng.tensor([1.0, 2.0, 3.0]), 1), 1)
    tensor([1., 2., 3.])
    """
    return _transform("idst", x, type, spectra.points("idst", n), (axis,), norm, orthogonalize)


@composite(ref="scipy.fft.idstn", method=False, smooth=True)
def idstn(x, type=2, s=None, axes=None, norm=None, *, orthogonalize=None):
    """Inverse of ``dstn`` of the same type.

    Parameters
    ----------
    type : int
        Type of the transform, 1 to 4.
    orthogonalize : bool
        Whether the matrix of the transform is orthogonal but for its scale; by default if ``norm``
        is ``"ortho"``.

    Returns
    -------
    Tensor
        Of lengths ``s`` along the axes.

    Examples
    --------
    >>> ng.fft.idstn(ng.fft.dstn(ng.tensor([[1.0, 2.0]])))
    tensor([[1., 2.]])
    """
    return _transform("idstn", x, type, s, axes, norm, orthogonalize)
