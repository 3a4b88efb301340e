"""Parametrizations of weights: norms of one, spectral norms, orthonormal rows or columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import Tensor
from numgrad.core.namespaces import absent as _absent
from numgrad.errors import NumgradNotImplementedError, NumgradValueError
from numgrad.nn.instance_normalization import normalize
from numgrad.nn.module.module import Module
from numgrad.nn.utils.parametrize import register_parametrization
from numgrad.operations.arrangement import moveaxis
from numgrad.operations.linear_algebra.matrix_functions import expm
from numgrad.operations.linear_algebra.solve import solve
from numgrad.operations.norm import vector_norm
from numgrad.operations.shape import reshape
from numgrad.random.generator import Generator, generator_of
from numgrad.tensors.creation import asarray

_MAPS = ("matrix_exp", "cayley", "householder")


def _t(a: Any) -> Any:
    return np.conj(np.swapaxes(a, -1, -2))


def _reflected(a: Any) -> Any:
    """Product of reflections, whose vectors stand below the diagonal, on the first columns.

    A vector has 1 on the diagonal, so its reflection is ``I - tau v v^H``, ``tau = 2 / |v|**2``.
    """
    n, k = a.shape[-2:]
    vectors = np.tril(a, -1) + np.eye(n, k, dtype=a.dtype)
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
            q = _reflected(x)
            q = np.where(np.einsum("...ii->...i", x[..., :k, :])[..., None, :] < 0, -q, q)
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
        """Parameter of the weight, or of the orthogonal matrix next to it in its QR factors."""
        if self.orthogonal_map != "householder" and self.base is None:
            raise NumgradNotImplementedError(
                f"orthogonal: the map {self.orthogonal_map!r} has no inverse here, so the weight "
                "cannot be assigned; use_trivialization=True or 'householder' can"
            )
        with no_grad():
            wide = weight.shape[-2] < weight.shape[-1]
            matrix = _t(weight) if wide else weight
            if self.base is None:
                a, tau = np.linalg.qr(np.asarray(matrix.detach()), mode="raw")
                a = np.swapaxes(a, -1, -2).copy()
                # the diagonal of the triangle becomes positive; LAPACK leaves out reflections that
                # change one sign alone, and these are always done here
                diagonal = np.arange(a.shape[-1])
                signs = np.where(a[..., diagonal, diagonal] < 0, -1.0, 1.0)
                a[..., diagonal, diagonal] = np.where(tau == 0, -signs, signs)
                return asarray(np.swapaxes(a, -1, -2) if wide else a)
            self.base.copy_(_filled(weight.detach()))
            # reflections of which each changes one sign, and signs that undo it
            start = np.broadcast_to(-np.eye(*matrix.shape[-2:]), matrix.shape).astype(matrix.dtype)
            return asarray(np.swapaxes(start, -1, -2) if wide else start)


def _filled(weight: Any) -> Any:
    """A square orthogonal matrix that begins with the columns, or rows, of a weight."""
    wide = weight.shape[-2] < weight.shape[-1]
    matrix = np.asarray(_t(weight) if wide else weight)
    q, r = np.linalg.qr(matrix, mode="complete")
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    phase = np.where(diagonal == 0, 1, diagonal / np.where(diagonal == 0, 1, np.abs(diagonal)))
    q[..., : matrix.shape[-1]] *= phase[..., None, :]
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


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


__getattr__ = _absent(__name__, __all__, {})


def __dir__() -> list[str]:
    return __all__


def norm_except(v: Any, dim: int | None) -> Any:
    """Norms of the parts of ``v`` along an axis, or the norm of all of it."""
    if dim is None or dim == -1:
        return vector_norm(v)
    axes = tuple(k for k in range(v.ndim) if k != dim % v.ndim)
    return vector_norm(v, axis=axes, keepdims=True) if axes else np.abs(v)


def directed(g: Any, v: Any, dim: int | None) -> Any:
    """``v`` with the norms ``g``."""
    return v * (g / norm_except(v, dim))


class _WeightNorm(Module):
    """``g * v / norm(v)``."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        """The weight."""
        return directed(weight_g, weight_v, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        """Norm and direction."""
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the norm of a weight and its direction by themselves: ``g * v / norm(v)``.

    Parameters
    ----------
    module
        A module with a parameter of that name.
    name
        The parameter; ``original0`` of its parametrization is ``g`` and ``original1`` is ``v``.
    dim
        The axis along which there is a norm for each element; None for one norm of all.

    Returns
    -------
    Module
        ``module``, with what ``register_parametrization`` does. It loads states of the older
        ``nn.utils.weight_norm`` as well, whose names end with ``_g`` and ``_v``.

    References
    ----------
    T. Salimans, D. Kingma, "Weight normalization", NeurIPS 2016.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.utils.parametrizations.weight_norm(ng.nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape
    (40, 1)
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state: dict[str, Any], prefix: str, *rest: Any) -> None:
        for end, number in (("_g", 0), ("_v", 1)):
            if prefix + name + end in state:
                key = f"{prefix}parametrizations.{name}.original{number}"
                state[key] = state.pop(prefix + name + end)

    module._register_load_state_dict_pre_hook(rename)
    return module


def _adjoint(matrix: Any) -> Any:
    return np.conj(matrix.T) if matrix.dtype.kind == "c" else matrix.T


class PowerIteration:
    """The largest singular value of a weight seen as a matrix, by steps from call to call."""

    dim: int
    eps: float
    from_right = True
    """Whether a step begins with the right vector; PyTorch's two forms differ."""

    def as_matrix(self, weight: Any) -> Any:
        """Rows along one axis, all others in them."""
        moved = moveaxis(weight, source=self.dim, destination=0) if self.dim else weight
        return reshape(moved, (moved.shape[0], -1))

    def started(self, weight: Any) -> tuple[Tensor, Tensor]:
        """Random vectors after some steps."""
        rng = Generator(generator_of("spectral_norm", None))
        with no_grad():
            matrix = self.as_matrix(weight)
            u, v = (
                normalize(rng.standard_normal(n).astype(weight.dtype), dim=0, eps=self.eps)
                for n in matrix.shape
            )
            return self.stepped(matrix, u, v, 15)

    def stepped(self, matrix: Any, u: Any, v: Any, steps: int) -> tuple[Any, Any]:
        """Vectors nearer to the first singular ones."""
        with no_grad():
            for _ in range(steps):
                if self.from_right:
                    u = normalize(np.matmul(matrix, v), dim=0, eps=self.eps)
                v = normalize(np.matmul(_adjoint(matrix), u), dim=0, eps=self.eps)
                if not self.from_right:
                    u = normalize(np.matmul(matrix, v), dim=0, eps=self.eps)
        return u, v

    @staticmethod
    def value(matrix: Any, u: Any, v: Any) -> Any:
        """The singular value that vectors stand for."""
        return ((np.conj(u) if u.dtype.kind == "c" else u) * np.matmul(matrix, v)).sum()


def rows_axis(module: Module, dim: int | None) -> int:
    """The axis of the outputs of a layer's weight, unless another is given."""
    return int(getattr(module, "transposed", False)) if dim is None else dim


def check_iterations(n_power_iterations: int) -> None:
    """Raise unless there are any."""
    if n_power_iterations < 1:
        raise NumgradValueError(
            f"spectral_norm: n_power_iterations is {n_power_iterations}; it must be positive"
        )


class _SpectralNorm(PowerIteration, Module):
    """The weight over its largest singular value."""

    def __init__(self, weight: Any, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        self.dim = dim % weight.ndim if weight.ndim else 0
        self.eps, self.n_power_iterations = eps, n_power_iterations
        if weight.ndim > 1:
            u, v = self.started(weight)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: Any) -> Any:
        """The weight; in training the vectors make steps."""
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self.as_matrix(weight)
        u, v = self._u, self._v
        if self.training:
            new = self.stepped(matrix, u, v, self.n_power_iterations)
            with no_grad():
                for vector, values in zip((u, v), new, strict=True):
                    vector.copy_(values)
            u, v = new
        return weight / self.value(matrix, u.detach().clone(), v.detach().clone())

    def right_inverse(self, value: Any) -> Any:
        """The value: its norm is divided out again."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value.

    Parameters
    ----------
    module
        A module with a parameter of that name.
    name
        The parameter.
    n_power_iterations
        Steps towards the singular value at each use in training.
    eps
        Smallest norm to divide by.
    dim
        The axis of the rows, when the weight is seen as a matrix; by default 0, of transposed
        convolutions 1.

    Returns
    -------
    Module
        ``module``, with what ``register_parametrization`` does.

    References
    ----------
    T. Miyato et al., "Spectral normalization for generative adversarial networks", ICLR 2018.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> layer = ng.nn.utils.parametrizations.spectral_norm(ng.nn.Linear(4, 5), "weight", 50)
    >>> round(float(np.linalg.svd(layer.weight.detach().numpy())[1][0]), 6)
    1.0
    """
    check_iterations(n_power_iterations)
    weight = module._parameters.get(name)
    if weight is None:
        raise NumgradValueError(f"spectral_norm: {type(module).__name__} has no parameter {name!r}")
    parametrization = _SpectralNorm(
        asarray(weight), n_power_iterations, rows_axis(module, dim), eps
    )
    return register_parametrization(module, name, parametrization)
