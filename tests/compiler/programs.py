"""Random functions of arrays: steps on earlier values that any lengths of the arguments allow.

A step is a name and three numbers, which choose operands and parameters. Steps are plain NumPy, so
the same function runs on ndarrays (the truth), on Tensors and in a trace. ``settle`` drops the
steps that are impossible for one of the given sets of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special
from hypothesis import strategies as st

import numgrad as ng

Step = tuple[str, int, int, int]

LARGEST = 3000
"""Elements of a value beyond which a step is dropped."""


def either(ours: Callable, theirs: Callable) -> Callable:
    """A function that NumPy does not have, for Tensors and for ndarrays."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.ndim == 0 and kwargs:
            raise ValueError("SciPy gives numbers an axis")
        return (ours if isinstance(x, ng.Tensor) else theirs)(x, *args, **kwargs)

    return call


softmax = either(ng.softmax, scipy.special.softmax)
log_softmax = either(ng.log_softmax, scipy.special.log_softmax)
logsumexp = either(ng.logsumexp, scipy.special.logsumexp)
sigmoid = either(ng.sigmoid, scipy.special.expit)
erf = either(ng.erf, scipy.special.erf)
softplus = either(ng.softplus, lambda x: np.logaddexp(x, 0.0))


def axes_of(x: Any, k: int) -> tuple[int, ...]:
    """Some axes, chosen by the bits of a number."""
    return tuple([a for a in range(x.ndim) if (k >> a) & 1])


def axis_of(x: Any, k: int) -> int:
    """One axis, counted from either end."""
    return (k % x.ndim) - (x.ndim if k % 2 else 0)


def _merge(x: Any, k: int) -> Any:
    at = k % (x.ndim - 1)
    return x.reshape((*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :]))


def _regroup(x: Any, k: int) -> Any:
    return x.reshape(x.shape[::-1]) if k % 2 else x.reshape((x.shape[-1], -1))


def _inserted(x: Any, k: int) -> Any:
    at = k % (x.ndim + 1)
    return x[(*(slice(None),) * at, None)]


def _along(x: Any, k: int, part: Any) -> Any:
    return x[(*(slice(None),) * (k % x.ndim), part)]


def _power(x: Any, k: int) -> Any:
    return (1.0 + np.abs(x)) ** (2, 3, -1, 0.5, 1.5)[k % 5]


def _written(x: Any, k: int) -> Any:
    """Writes to parts, by an index, through a view, and in place of what is there."""
    y = x.copy()
    along = (slice(None),) * (k % x.ndim)
    if k & 1:
        y[(*along, slice(1, None))] = y[(*along, slice(0, -1))] * 0.5
    if k & 2:
        view = np.swapaxes(y, 0, -1)[::2]
        view *= 0.25
    if k & 4:
        y[..., -1] = 0.75
    if k & 8:
        y[np.array([1, 0])] += 0.125
    y += 0.5
    return y


def _nested(x: Any, k: int) -> Any:
    """Another function that is compiled on its own, called twice."""
    double = ng.jit(lambda v: np.sin(v) * 2.0 + v[..., :1])
    inside = isinstance(x, ng.Tensor)
    return double(double(x)) if inside else _twice(_twice(x))


def _twice(v: Any) -> Any:
    return np.sin(v) * 2.0 + v[..., :1]


UNARY: dict[str, Callable[[Any, int], Any]] = {
    "sin": lambda x, k: np.sin(x),
    "tanh": lambda x, k: np.tanh(x),
    "exp": lambda x, k: np.exp(np.tanh(x)),
    "log": lambda x, k: np.log(2.5 + np.sin(x)),
    "sqrt": lambda x, k: np.sqrt(1.0 + x * x),
    "affine": lambda x, k: x * 0.5 - k,
    "inverse": lambda x, k: 1.0 / (3.0 + np.cos(x)),
    "sigmoid": lambda x, k: sigmoid(x),
    "softplus": lambda x, k: softplus(x),
    "erf": lambda x, k: erf(x),
    "abs": lambda x, k: np.abs(x),
    "clip": lambda x, k: np.clip(x, -0.7, 0.9),
    "power": _power,
    "where": lambda x, k: np.where(x > 0.1, x * 2, -x),
    "sign": lambda x, k: x * np.sign(x),
    "float32": lambda x, k: x.astype(np.float32),
    "float64": lambda x, k: x.astype(np.float64),
    "integer": lambda x, k: np.floor(x * 2).astype(np.int64),
    "complex": lambda x, k: np.abs(x * (1 + 2j) + 0.5),
    "parts": lambda x, k: np.real(np.exp(1j * x)) + np.imag(x * 2j),
    "sum": lambda x, k: np.sum(x, axis=axes_of(x, k), keepdims=k > 7),
    "mean": lambda x, k: np.mean(x, axis=axes_of(x, k) or None, keepdims=k > 7),
    "prod": lambda x, k: np.prod(1 + 0.1 * np.tanh(x), axis=axes_of(x, k), keepdims=k > 7),
    "max": lambda x, k: np.max(x, axis=axes_of(x, k), keepdims=k > 7),
    "min": lambda x, k: np.min(x, axis=axis_of(x, k)),
    "var": lambda x, k: np.var(x, axis=axes_of(x, k) or None, keepdims=k > 7),
    "std": lambda x, k: np.std(x + np.arange(x.shape[-1]), axis=-1, keepdims=k > 7),
    "norm": lambda x, k: np.linalg.norm(x, axis=axis_of(x, k), keepdims=k > 7),
    "any": lambda x, k: np.any(x > 0.5, axis=axis_of(x, k), keepdims=True) * x,
    "argmax": lambda x, k: np.argmax(x, axis=axis_of(x, k)) * 0.1,
    "softmax": lambda x, k: softmax(x, axis=axis_of(x, k)),
    "log_softmax": lambda x, k: log_softmax(x, axis=axis_of(x, k)),
    "logsumexp": lambda x, k: logsumexp(x, axis=axes_of(x, k) or None, keepdims=k > 7),
    "cumsum": lambda x, k: np.cumsum(x, axis=axis_of(x, k)),
    "cumprod": lambda x, k: np.cumprod(np.tanh(x) + 0.5, axis=axis_of(x, k)),
    "centre": lambda x, k: x - np.mean(x, axis=axis_of(x, k), keepdims=True),
    "layer norm": lambda x, k: (
        (x - np.mean(x, axis=-1, keepdims=True)) / np.sqrt(np.var(x, axis=-1, keepdims=True) + 0.1)
    ),
    "transpose": lambda x, k: x.T,
    "swap": lambda x, k: np.swapaxes(x, k % x.ndim, -1),
    "move": lambda x, k: np.moveaxis(x, 0, k % x.ndim),
    "ravel": lambda x, k: x.reshape(-1),
    "merge": _merge,
    "regroup": _regroup,
    "insert": _inserted,
    "squeeze": lambda x, k: np.squeeze(x),
    "reverse": lambda x, k: _along(x, k, slice(None, None, -1)),
    "backwards": lambda x, k: _along(x, k, slice(None, None, -2)),
    "first": lambda x, k: _along(x, k, slice(None, 1)),
    "tail": lambda x, k: _along(x, k, slice(1, None)),
    "inner": lambda x, k: _along(x, k, slice(1, -1)),
    "every other": lambda x, k: _along(x, k, slice(k % 2, None, 2)),
    "half": lambda x, k: _along(x, k, slice(0, x.shape[k % x.ndim] // 2)),
    "row": lambda x, k: x[k % 2],
    "column": lambda x, k: x[..., -1],
    "diagonal": lambda x, k: np.diagonal(x, k % 2, 0, -1),
    "spread": lambda x, k: np.broadcast_to(x, (3, *x.shape)),
    "roll": lambda x, k: np.roll(x, k - 3, axis=axis_of(x, k)),
    "flip": lambda x, k: np.flip(x, axis=axes_of(x, k) or None),
    "take": lambda x, k: np.take(x, np.array([1, 0, 1]), axis=axis_of(x, k)),
    "gather": lambda x, k: x[np.array([[0, 1], [-1, 0]])],
    "repeat": lambda x, k: np.repeat(x, 2, axis=axis_of(x, k)),
    "tile": lambda x, k: np.tile(x, 2),
    "pad": lambda x, k: np.pad(x, 1),
    "triangle": lambda x, k: np.tril(x, k % 3 - 1),
    "gram": lambda x, k: x @ np.swapaxes(x, -1, -2) * 0.2,
    "count": lambda x, k: x / x.shape[k % x.ndim],
    "positions": lambda x, k: x * np.arange(x.shape[-1]),
    "written": _written,
    "nested": _nested,
    "fortran": lambda x, k: x.reshape(x.shape, order="F") + x.T.reshape(-1)[0],
    "edges": lambda x, k: np.pad(x, [(1, 2)] * x.ndim, mode=("edge", "reflect", "wrap")[k % 3]),
    "scattered": lambda x, k: np.take(x, np.array([0, 0, -1]), axis=axis_of(x, k)) * 2,
    "split": lambda x, k: np.split(x, [1], axis=axis_of(x, k))[k % 2] * 3,
}
BINARY: dict[str, Callable[[Any, Any, int], Any]] = {
    "add": lambda a, b, k: a + b,
    "sub": lambda a, b, k: a - b,
    "mul": lambda a, b, k: a * np.tanh(b),
    "div": lambda a, b, k: a / (1.5 + np.abs(b)),
    "maximum": lambda a, b, k: np.maximum(a, b),
    "select": lambda a, b, k: np.where(a > 0, a, b),
    "arctan2": lambda a, b, k: np.arctan2(a, 2.0 + b * b),
    "row of": lambda a, b, k: a + b[:1],
    "column of": lambda a, b, k: np.sin(a) * b[..., :1],
    "less sum": lambda a, b, k: a - np.sum(b) * 0.1,
    "times mean": lambda a, b, k: a * np.mean(b, axis=0),
    "outer": lambda a, b, k: a[..., None] * np.tanh(b.reshape(-1)),
    "distance": lambda a, b, k: np.sum((a[:, None] - b[None]) ** 2, axis=-1),
    "matmul": lambda a, b, k: (a @ b) * 0.3,
    "matmul transposed": lambda a, b, k: (a @ np.swapaxes(b, -1, -2)) * 0.3,
    "transposed matmul": lambda a, b, k: (np.swapaxes(a, -1, -2) @ b) * 0.3,
    "einsum": lambda a, b, k: np.einsum("ij,kj->ki", a, b) * 0.3,
    "dot": lambda a, b, k: np.vdot(a, b) * 0.1,
    "concat": lambda a, b, k: np.concatenate([a, b], axis=axis_of(a, k)),
    "stack": lambda a, b, k: np.stack([a, b * 2], axis=k % (a.ndim + 1)),
}


def _outcome(name: str, values: Sequence[Any], i: int, j: int, k: int) -> Any:
    a = values[-1 - i % len(values)]
    if name in UNARY:
        return UNARY[name](a, k)
    return BINARY[name](a, values[j % len(values)], k)


def settle(steps: Sequence[Step], arguments: Sequence[Sequence[Any]]) -> list[Step]:
    """The steps that are possible for every set of arguments."""
    runs = [list(given) for given in arguments]
    kept: list[Step] = []
    for name, i, j, k in steps:
        found = []
        for values in runs:
            try:
                with np.errstate(all="ignore"):
                    out = np.asarray(_outcome(name, values, i, j, k))
            except (ValueError, IndexError, TypeError, ZeroDivisionError):
                break
            tame = 0 < out.size <= LARGEST and out.ndim <= 4 and np.all(np.abs(out) < 1e3)
            if not tame or (out.dtype.kind in "fc" and not np.any(out)):
                break
            found.append(out)
        else:
            for values, out in zip(runs, found, strict=True):
                values.append(out)
            kept.append((name, i, j, k))
    return kept


def run(steps: Sequence[Step], *arguments: Any) -> tuple[Any, ...]:
    """The last value and, of the others, every third one."""
    values = list(arguments)
    for name, i, j, k in steps:
        values.append(_outcome(name, values, i, j, k))
    made = values[len(arguments) :]
    return (made[-1], *made[:-1][::3]) if made else (values[0] * 2,)


def loss(steps: Sequence[Step], *arguments: Any) -> Any:
    """A number that every result has a part in."""
    total = 0.0
    for n, value in enumerate(run(steps, *arguments)):
        if value.dtype.kind == "f":
            total = total + np.sum(np.sin(value * (0.7 + n))) + 0.1 * np.sum(value)
    return total


programs = st.lists(
    st.tuples(
        st.sampled_from(sorted({**UNARY, **BINARY})),
        st.integers(0, 2),
        st.integers(0, 9),
        st.integers(0, 15),
    ),
    min_size=2,
    max_size=10,
)


def arguments_of(seed: int, n: int, m: int) -> list[np.ndarray]:
    """A matrix, a row, a column, a smaller matrix."""
    rng = np.random.default_rng([seed, n, m])
    made = [rng.uniform(-1.5, 1.5, s) for s in ((n, m), (m,), (n, 1), (3, m))]
    return [laid_out(x, seed + k) for k, x in enumerate(made)]


def laid_out(x: np.ndarray, k: int) -> np.ndarray:
    """The same elements in another layout in memory."""
    if k % 4 == 1:
        return np.asfortranarray(x)
    if k % 4 == 2:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    return np.ascontiguousarray(x[..., ::-1])[..., ::-1] if k % 4 == 3 else x
