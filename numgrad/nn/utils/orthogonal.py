"""Weights with orthonormal columns or rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradNotImplementedError, NumgradValueError
from numgrad.nn.module.module import Module
from numgrad.nn.utils.parametrize import register_parametrization
from numgrad.operations.linear_algebra.functions import expm
from numgrad.operations.linear_algebra.systems import solve
from numgrad.tensors.creation import asarray

_MAPS = ("matrix_exp", "cayley", "householder")


def _t(a: Any) -> Any:
    return np.conj(np.swapaxes(a, -1, -2))


def _reflected(a: Any) -> Any:
    """Product of reflections, whose vectors stand below the diagonal, on the first columns.

    A vector has 1 on the diagonal, so its reflection is ``I - tau v v^H``, ``tau = 2 / |v|**2``.
    """
    n, k = a.shape[-2:]
    vectors = np.tril(a, -1) + np.eye(n, k)
    factors = 2 / np.sum(np.abs(vectors) ** 2, axis=-2)
    result: Any = np.broadcast_to(np.eye(n, k, dtype=a.dtype), a.shape)
    for j in range(k - 1, -1, -1):
        v = vectors[..., :, j : j + 1]
        result = result - factors[..., None, None, j] * np.matmul(v, np.matmul(_t(v), result))
    return result


class _Orthogonal(Module):
    """A matrix with orthonormal columns, or rows if there are fewer, from one without conditions.

    ``base`` is a buffer by which the result is multiplied, so that the first value of a weight
    that is orthogonal already is kept.
    """

    def __init__(self, weight: Any, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if orthogonal_map == "householder" and weight.dtype.kind == "c":
            raise NumgradValueError("orthogonal: the Householder map is of real matrices")
        self.orthogonal_map = orthogonal_map
        self.register_buffer("base", None)
        if use_trivialization:
            self.register_buffer("base", _filled(weight.detach()))

    def forward(self, x: Any) -> Any:
        """The orthogonal matrix."""
        wide = x.shape[-2] < x.shape[-1]
        if wide:
            x = _t(x)
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            # the signs are kept on the diagonal, which is no parameter
            q = (
                _reflected(x)
                * np.where(np.einsum("...ii->...i", x[..., :k, :]) < 0, -1.0, 1.0)[..., None, :]
            )
        else:
            a = np.tril(x)
            if n != k:
                a = np.concatenate([a, np.zeros((*a.shape[:-2], n, n - k), a.dtype)], axis=-1)
            a = a - _t(a)
            if self.orthogonal_map == "matrix_exp":
                q = expm(a)
            else:
                one = np.eye(n, dtype=x.dtype)
                q = solve(one - 0.5 * a, one + 0.5 * a)
            q = q[..., :k]
        if self.base is not None:
            q = np.matmul(asarray(self.base), q)
        return _t(q) if wide else q

    def right_inverse(self, weight: Any) -> Any:
        """What gives the weight, or the orthogonal matrix next to it in its QR factors."""
        if self.orthogonal_map != "householder" and self.base is None:
            raise NumgradNotImplementedError(
                f"orthogonal: the map {self.orthogonal_map!r} has no inverse here, so the weight "
                "cannot be assigned; use_trivialization=True or 'householder' can"
            )
        with no_grad():
            wide = weight.shape[-2] < weight.shape[-1]
            given = _t(weight) if wide else weight
            if self.base is None:
                a, tau = np.linalg.qr(np.asarray(given.detach()), mode="raw")
                a = np.swapaxes(a, -1, -2).copy()
                # the diagonal of the triangle becomes positive; LAPACK leaves out reflections that
                # change one sign alone, and these are always done here
                diagonal = np.arange(a.shape[-1])
                signs = np.where(a[..., diagonal, diagonal] < 0, -1.0, 1.0)
                a[..., diagonal, diagonal] = np.where(tau == 0, -signs, signs)
                return asarray(np.swapaxes(a, -1, -2) if wide else a)
            self.base.copy_(_filled(weight.detach()))
            # reflections of which each changes one sign, and signs that undo it
            start = np.broadcast_to(-np.eye(*given.shape[-2:]), given.shape).astype(given.dtype)
            return asarray(np.swapaxes(start, -1, -2) if wide else start)


def _filled(weight: Any) -> Any:
    """A square orthogonal matrix that begins with the columns, or rows, of a weight."""
    wide = weight.shape[-2] < weight.shape[-1]
    given = np.asarray(_t(weight) if wide else weight)
    q, r = np.linalg.qr(given, mode="complete")
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    phase = np.where(diagonal == 0, 1, diagonal / np.where(diagonal == 0, 1, np.abs(diagonal)))
    q[..., : given.shape[-1]] *= phase[..., None, :]
    return asarray(q)


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a weight a matrix with orthonormal columns, or rows where these are fewer.

    Parameters
    ----------
    module
        A module with a parameter of that name.
    name
        The parameter, a matrix or a stack of them.
    orthogonal_map
        How a matrix becomes orthogonal: ``"matrix_exp"`` and ``"cayley"`` of a skew one,
        ``"householder"`` by reflections; by default reflections for real matrices that are not
        square, else the exponential.
    use_trivialization
        Whether the result is multiplied by a first value, which is kept as the buffer ``base``.

    Returns
    -------
    Module
        ``module``, with what ``register_parametrization`` does. A weight that is not orthogonal
        begins as the orthogonal factor of its QR decomposition.

    Raises
    ------
    NumgradValueError
        If there is no such parameter, it is no matrix, or the map is unknown.

    References
    ----------
    M. Lezcano-Casado, "Trivializations for gradient-based optimization on manifolds", NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> layer = ng.nn.utils.parametrizations.orthogonal(ng.nn.Linear(2, 3))
    >>> np.allclose(layer.weight.T @ layer.weight, np.eye(2))
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise NumgradValueError(f"orthogonal: {type(module).__name__} has no parameter {name!r}")
    if weight.ndim < 2:
        raise NumgradValueError(
            f"orthogonal: needs a matrix or a stack of them, got shape {tuple(weight.shape)}"
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.dtype.kind == "c" else "householder"
    if orthogonal_map not in _MAPS:
        raise NumgradValueError(
            f"orthogonal: orthogonal_map is one of {', '.join(_MAPS)}; got {orthogonal_map!r}"
        )
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, parametrization, unsafe=True)
