"""Every parameter of every NumPy function that an operation answers: NumPy's meaning, or an error.

``CASES`` calls each function with each parameter. What a parameter is, and whether all of them have
been tried, is read from NumPy's own signature, so that neither a new operation nor a new parameter
of NumPy's can be forgotten.
"""

import inspect
from functools import partial
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.arguments import signature_of
from numgrad.core.op import Op
from numgrad.tensors import numpy_protocol
from numgrad.tensors.numpy_ufuncs import title
from numgrad.testing import gradcheck
from tests.crossed import each_first
from tests.quiet import quiet
from tests.tensors import parameters_statistics

X = np.array([[0.5, -1.25, 2.0], [3.5, 0.75, -0.5]])
I = np.array([[3, 1, 2], [6, 5, 4]])  # noqa: E741
S = np.array([[2.0, 0.5, 1.0], [0.25, 3.0, 0.75], [1.5, 2.5, 0.1]])
B = np.arange(24.0).reshape(2, 3, 4) - 7.5
V = np.array([1.0, -2.0, 0.5])
W = np.array([0.5, 1.5, -1.0])
C = np.array([1 + 2j, -0.5j, 3.0])
N = np.array([1.0, np.nan, np.inf, -np.inf])
M = np.array([[True, False, True], [False, True, True]])
K = np.array([2, 0, 0])
P = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])

Call = tuple[tuple[Any, ...], dict[str, Any]]


def call(*args: Any, **kwargs: Any) -> Call:
    return args, kwargs


AXES = [call(X), call(X, 0), call(X, axis=-1), call(X, axis=(0, 1)), call(X, axis=()),
        call(X, axis=None, keepdims=True), call(X, axis=1, keepdims=True)]  # fmt: skip
ONE_AXIS = [call(X), call(X, 0), call(X, axis=-1), call(X, axis=None)]
PARTS = [call(S, 3), call(S, [1]), call(S, indices_or_sections=(0, 2))]
SUMS = [*AXES, call(X, dtype=np.float32), call(I), call(I, 0, np.float64), call(M),
        call(X, where=M), call(X, axis=0, where=M[0], keepdims=True), call(X, 0, initial=2.5),
        call(I, where=M, initial=3, axis=1)]  # fmt: skip
EXTREMA = [*AXES, call(I, 1), call(X, initial=0.0), call(X, axis=1, where=M, initial=-9.0),
           call(I, axis=0, initial=2.75, where=M)]  # fmt: skip
SPREADS = [*AXES, call(X, 0, ddof=1), call(X, 1, None, None, 1), call(X, correction=1),
           call(X, dtype=np.float32), call(I, axis=1), call(X, where=M, ddof=1),
           call(I, 1, where=M),
           call(X, axis=0, where=M[0], keepdims=True), call(C, where=[True, False, True]),
           call(X, 1, mean=np.mean(X, 1, keepdims=True)), call(X, mean=V, dtype=np.float32),
           call(X, 1, mean=W[:2, None], where=M, correction=0.5, keepdims=True)]  # fmt: skip
TRUTHS = [*AXES, call(M, 0), call(X, where=M), call(M, axis=1, where=[True, False, True])]
CUMULATED = [*ONE_AXIS, call(X, 1, np.float32), call(I), call(I, axis=1, dtype=float)]
CUMULATIVE = [call(V), call(X, axis=1), call(X, axis=-2, include_initial=True),
              call(X, axis=0, dtype=np.float32)]  # fmt: skip
JOINED = [call((X, X)), call([X, I]), call((X, X), dtype=np.float32),
          call((I, I), dtype=np.int8, casting="unsafe"), call((X, X), casting="no")]  # fmt: skip
POINTS = [*ONE_AXIS, call(X, axis=1, keepdims=True), call(I, 0)]
TOLERANCES = [call(X, X), call(X, X + 1e-6), call(X, X * 1.2, 0.3), call(X, X + 0.1, atol=0.2),
              call(X, X + 0.1, rtol=0.5, atol=0), call(N, N, equal_nan=True)]  # fmt: skip

sliding_window_view = np.lib.stride_tricks.sliding_window_view


def reach(vector: Any, width: Any, axis: int, options: dict[str, Any]) -> None:
    if width[0]:
        vector[: width[0]] = vector[width[0]] * options.get("width", axis)
    if width[1]:
        vector[-width[1] :] = vector[-width[1] - 1]


def outer_square(v: Any) -> Any:
    return v[:2, None] * v


def scaled(v: Any, a: float, *, by: float) -> Any:
    return v * a * by


CASES: dict[Any, list[Call]] = {
    np.clip: [call(X, 0, 1), call(X), call(X, a_min=0.5, a_max=None),
              call(X, min=-1, max=0.5), call(X, max=1), call(I, 2, 4), call(I, 1.5, None),
              call(X, None, V), call(X, np.nan, 1.0),
              call(X, 0, 1, dtype=np.float32, casting="same_kind"), call(I, 2, None, dtype=float),
              call(I, V, 4, casting="unsafe", dtype=int)],
    np.fix: [call(X), call(x=X)],
    np.round: [call(X), call(X, 1), call(I), call(I, 2), call(I * 5, -1), call(X * 9, decimals=-1),
               call(C * 1.26, 1)],
    np.where: [call(M, X, 0.0), call(M, I, X), call(M)],
    np.nan_to_num: [call(N), call(N, nan=2.0), call(N, True, 1.0, 2.0, 3.0), call(N, posinf=7),
                    call(N, neginf=-7.0), call(I)],
    np.isclose: TOLERANCES,
    np.allclose: TOLERANCES,
    np.real: [call(C), call(X)],
    np.imag: [call(C), call(X)],
    np.angle: [call(C), call(C, True), call(X, deg=True), call(X)],
    np.reshape: [call(X, (3, 2)), call(X, -1), call(X, (3, -1), "F"), call(X, 6, order="A"),
                 call(X.T, (3, 2), order="A"), call(X, (6,), copy=True), call(X, (6,), copy=False),
                 call(X, shape=(1, 6))],
    np.ravel: [call(X), call(X, "F"), call(X.T, order="A"), call(X, order="K")],
    np.expand_dims: [call(X, 0), call(X, -1), call(X, axis=(0, 3))],
    np.squeeze: [call(X[None]), call(X[None], 0), call(X[None, :, None], axis=(0, 2)),
                 call(X[:, None], axis=-2)],
    np.broadcast_to: [call(V, (2, 3)), call(V, shape=(1, 3), subok=True)],
    np.broadcast_arrays: [call(X, V), call(X, 2.0, subok=True)],
    np.atleast_1d: [call(V), call(np.array(2.0), X)],
    np.atleast_2d: [call(V), call(V, X)],
    np.atleast_3d: [call(V), call(X, B)],
    np.permute_dims: [call(X), call(B, (2, 0, 1)), call(B, axes=(-1, 0, 1))],
    np.swapaxes: [call(B, 0, -1), call(B, axis1=1, axis2=2)],
    np.moveaxis: [call(B, 0, -1), call(B, source=(0, 1), destination=(2, 0))],
    np.matrix_transpose: [call(B)],
    np.linalg.matrix_transpose: [call(B)],
    np.flip: [call(B), call(B, 0), call(B, axis=(0, -1)), call(B, axis=())],
    np.fliplr: [call(X)],
    np.flipud: [call(X)],
    np.rot90: [call(X), call(X, -1), call(B, k=2, axes=(2, 1))],
    np.roll: [call(X, 1), call(X, -1, 0), call(X, shift=(1, 2), axis=(0, 1)), call(X, 2, axis=-1)],
    np.astype: [call(X, np.float32), call(X, np.int64), call(X, np.float64, copy=False),
                call(X, np.float32, device="cpu")],
    np.take: [call(X, K), call(X, K, 1), call(X, [-1, 0], axis=0), call(X, [7, -9], mode="wrap"),
              call(X, [[7, -9]], 1, mode="clip"), call(X, 2, axis=1)],
    np.take_along_axis: [call(X, K[None], 1), call(X, K[None] // 2, axis=0), call(X, K, axis=None)],
    np.tile: [call(X, 2), call(X, (2, 1, 2)), call(X, reps=[1, 2])],
    np.repeat: [call(X, 2), call(X, [1, 0, 2], 1), call(X, repeats=2, axis=-2), call(V, [2])],
    np.pad: [call(X, 1), call(X, ((1, 0), (0, 2)), "edge"), call(X, (1, 2), mode="reflect"),
             call(X, 1, constant_values=2.5), call(X, 1, constant_values=((1, 2), (3, 4))),
             call(V, (2, 1), "symmetric"), call(V, (1, 2), "wrap"),
             call(X, ((1, 2), (3, 0)), "linear_ramp", end_values=((1.0, 2.0), (3.0, 4.0))),
             call(I, 2, "linear_ramp", end_values=9), call(X, 2, "maximum", stat_length=1),
             call(B, 1, "median"), call(I, (3, 2), "mean", stat_length=((1, 2), (2, 1))),
             call(X, ((3, 9), (8, 7)), "reflect", reflect_type="odd"), call(X, 2, "minimum"),
             call(X, ((3, 9), (8, 7)), "symmetric", reflect_type="odd"),
             call(X, 2, reach, width=3.0), call(V, (1, 0), reach)],
    np.append: [call(X, V), call(X, [[1.0], [2.0]], 1), call(arr=X, values=X, axis=-2)],
    np.insert: [call(X, 1, 5.0), call(X, [0, 2], [1.0, 2.0], 1), call(X, 1, V, axis=0),
                call(arr=V, obj=slice(0, 2), values=W[:2], axis=None),
                call(I, np.array([True, False]), 2.5, 0),
                call(X, -1, [[1.0], [2.0]], axis=1)],
    np.delete: [call(X, 1), call(X, [0, -1], 1), call(arr=X, obj=slice(1), axis=0),
                call(X, [True, False, True], axis=-1)],
    np.resize: [call(X, (3, 3)), call(a=X, new_shape=2), call(X[:0], (2, 2))],
    np.trim_zeros: [call(np.pad(V, 2)), call(np.pad(V, 2), "f"), call(np.pad(V, 2), trim="b"),
                    call(filt=np.pad(X, 1), axis=1), call(0 * V, "f")],
    np.block: [call([[X, X], [V, W]]), call([V, W]), call(X), call(arrays=[[X], [V]])],
    np.ix_: [call(K, I[0] > 1), call(V, W)],
    np.diagflat: [call(X), call(v=V, k=-1)],
    np.rollaxis: [call(B, 2), call(B, 0, 3), call(a=B, axis=-2, start=-1), call(B, 1, start=1)],
    np.select: [call([M, ~M], [X, X * 2]), call([M], [I], 2.5), call([M[0]], choicelist=[X]),
                call(condlist=[M, M], choicelist=[1, X], default=V)],
    np.choose: [call([1, 0, 1], [V, W]), call(K, [V, W, X], mode="clip"),
                call(I, choices=[V, W], mode="wrap"), call(K[:2] // 2, X.T[:2])],
    np.compress: [call([False, True], X, 0), call(M[0], X), call(condition=M[0], a=X, axis=-1)],
    np.extract: [call(M, X), call(condition=[1, 0, 1], arr=V)],
    sliding_window_view: [call(V, 2), call(X, (2, 2)), call(x=B, window_shape=2, axis=-1),
                          call(X, (2, 1, 2), (1, 0, 1), subok=False, writeable=False)],
    np.linspace: [call(V, W), call(V, 2, 5, False), call(0.5, W, 4, True, True),
                  call(start=V, stop=W, num=3, dtype=int, axis=1, device="cpu"), call(V, W, 1),
                  call(V, W, 0), call(V, 3.0, 4, endpoint=False, retstep=True)],
    np.logspace: [call(V, W, 5), call(V, W, 4, False, 2.0), call(V, 1.0, num=3, base=W**2, axis=1),
                  call(start=0.5, stop=V, num=2, endpoint=True, dtype=np.float32)],
    np.geomspace: [call(V**2, W**2, 5), call(V**2, 9.0, 4, False), call(C, 2j, num=3),
                   call(start=1.0, stop=W**2, num=4, endpoint=True, dtype=np.float32, axis=-1)],
    np.apply_along_axis: [call(np.sum, 0, X), call(func1d=outer_square, axis=1, arr=X),
                          call(np.multiply, 1, X, 2.0),
                          call(np.sum, axis=1, arr=X, keepdims=True)],
    np.apply_over_axes: [call(np.sum, X, 0), call(func=np.max, a=B, axes=(0, -1))],
    np.piecewise: [call(X, [M, ~M], [np.square, 1.5]), call(X[0], M, [np.square, np.negative]),
                   call(x=X, condlist=[M], funclist=[np.square, np.exp]), call(I, [M], [0.5, 7]),
                   call(X, [M], [scaled, scaled], 2.0, by=3.0)],
    np.concatenate: [*JOINED, call((X, X), 1), call((X, V), axis=None), call((X, X), axis=-1)],
    np.stack: [*JOINED, call((X, X), 1), call([X, X], axis=-1)],
    np.hstack: [*JOINED, call((V, W))],
    np.vstack: [*JOINED, call((V, X))],
    np.dstack: [call((X, X)), call(tup=[V, W])],
    np.column_stack: [call((V, W)), call(tup=[V[:2], X])],
    np.split: [*PARTS, call(S, 3, 1), call(S, [1, 1], axis=-1)],
    np.array_split: [*PARTS, call(B, 3, 2), call(S, 2, axis=1)],
    np.hsplit: PARTS,
    np.vsplit: PARTS,
    np.dsplit: [call(B, 2), call(B, indices_or_sections=[1])],
    np.unstack: [call(X), call(X, axis=1)],
    np.meshgrid: [call(V, W), call(V, W, sparse=True), call(V, W, indexing="ij"), call(V),
                  call(V, W, W, copy=False)],
    np.cumsum: CUMULATED,
    np.cumprod: CUMULATED,
    np.cumulative_sum: CUMULATIVE,
    np.cumulative_prod: CUMULATIVE,
    np.diff: [call(X), call(X, 2), call(X, axis=0), call(X, 1, 1, 0.0), call(X, n=0),
              call(X, append=X[:, :1]), call(X, prepend=X, append=1.0), call(M), call(I)],
    np.tril: [call(S), call(S, 1), call(B, k=-1)],
    np.triu: [call(S), call(S, 1), call(B, k=-1)],
    np.diagonal: [call(S), call(S, 1), call(B, -1, 2, 1), call(B, axis1=1, axis2=2, offset=1)],
    np.linalg.diagonal: [call(S), call(B), call(B, offset=1)],
    np.trace: [call(S), call(S, 1), call(B, 0, 1, 2), call(I, dtype=float),
               call(B, offset=1, axis1=0, axis2=2), call(X, 0, 0, 1, np.float32)],
    np.linalg.trace: [call(S), call(B), call(B, offset=1), call(B, dtype=np.float32)],
    np.diag: [call(V), call(S, 1), call(v=V, k=-1)],
    np.linalg.matmul: [call(S, S), call(X, V)],
    np.einsum: [call("ij,kj->ik", X, X), call("ij->j", X, optimize=True), call(X, [0, 1], [1, 0]),
                call("ij,j", X, V, optimize="greedy"), call("ij->i", X, dtype=np.complex128),
                call("ij,j", X, V, dtype=np.float32, casting="same_kind")],
    np.dot: [call(X, V), call(a=X, b=S), call(2.0, X), call(B, B[0].T)],
    np.inner: [call(X, X), call(V, W), call(X, 2.0)],
    np.outer: [call(V, W), call(a=X, b=W)],
    np.linalg.outer: [call(V, W)],
    np.linalg.vecdot: [call(C, C), call(X, X, axis=0)],
    np.vdot: [call(C, C), call(X, X)],
    np.tensordot: [call(X, X.T, 1), call(X, X), call(X, X, axes=((0, 1), (0, 1))), call(V, W, 0)],
    np.linalg.tensordot: [call(X, X), call(X, X, axes=((0,), (0,)))],
    np.kron: [call(V, W), call(a=X, b=V)],
    np.sum: SUMS,
    np.prod: SUMS,
    np.mean: [*AXES, call(X, 0, np.float32), call(I), call(M, axis=1), call(X, where=M),
              call(X.astype(np.float32), 0, where=M), call(I, axis=1, where=M, keepdims=True)],
    np.max: EXTREMA,
    np.min: EXTREMA,
    np.any: TRUTHS,
    np.all: TRUTHS,
    np.count_nonzero: AXES,
    np.var: SPREADS,
    np.std: SPREADS,
    np.linalg.norm: [call(X), call(X, 1), call(X, -1), call(X, np.inf), call(X, -np.inf),
                     call(X, "fro"), call(X, ord=2, axis=0), call(B, axis=(2, 0), ord=1),
                     call(V, 3), call(V, 0), call(V, -2), call(I, 1, 1, True), call(B),
                     call(B, ord=np.inf, axis=(0, -1), keepdims=True), call(X, None, (0,))],
    np.linalg.vector_norm: [call(X), call(B, axis=(0, 2), ord=1), call(X, axis=1, keepdims=True),
                            call(X, ord=0), call(V, ord=-np.inf), call(I, axis=-1, ord=3)],
    np.linalg.matrix_norm: [call(X), call(B, ord=1), call(B, ord=-np.inf, keepdims=True)],
    np.linalg.solve: [call(P, V), call(P, P + 1), call(I[:, :2] + np.eye(2), np.ones(2))],
    np.linalg.inv: [call(P)],
    np.linalg.det: [call(P), call(np.stack([P, 2 * P]))],
    np.linalg.slogdet: [call(P)],
    np.linalg.cholesky: [call(P), call(P, upper=True)],
    np.linalg.eigh: [call(np.diag(V)), call(np.diag(V), "U")],
    np.linalg.eigvalsh: [call(P), call(P, UPLO="U")],
    np.linalg.eig: [call(P + 0j)],
    np.linalg.eigvals: [call(P + 0j)],
    np.linalg.svd: [call(P, compute_uv=False), call(P, True, False, True),
                    call(X, full_matrices=False, compute_uv=False)],
    np.linalg.pinv: [call(X), call(P, 0.3), call(P, hermitian=True), call(P, rtol=0.3)],
    np.linalg.matrix_rank: [call(X), call(P, 2.5), call(P, hermitian=True), call(P, rtol=0.9)],
    np.linalg.cond: [call(P), call(P, 1)],
    np.linalg.lstsq: [call(P, V), call(P, V, -1)],
    np.linalg.matrix_power: [call(P, 3), call(P, -1)],
    np.linalg.multi_dot: [call((X, P)), call([P, P, V])],
    np.linalg.qr: [call(P, "r")],
    np.linalg.tensorsolve: [call(P, V), call(P[:, None], V, (1,))],
    np.linalg.tensorinv: [call(P[None], 2), call(P, 1)],
    np.linalg.svdvals: [call(X)],
    np.cross: [call(V, W), call(X, V, axisb=0, axisa=1), call(X, X, axisc=0), call(P, P, axis=0)],
    np.linalg.cross: [call(X, X), call(P, P, axis=0)],
    np.argmax: POINTS,
    np.argmin: POINTS,
    np.shape: [call(X), call(a=X)],
    np.ndim: [call(X), call(a=X)],
    np.size: [call(X), call(X, 1), call(B, axis=(0, -1)), call(a=X, axis=-2)],
    np.zeros_like: [call(X), call(X, np.float32), call(a=X, dtype=int, subok=False, device="cpu"),
                   call(X, shape=(2, 1)), call(X, np.float32, "K", True, 3)],
    np.ones_like: [call(X), call(X, np.float32), call(a=X, dtype=int, subok=False, device="cpu"),
                   call(X, shape=(2, 1)), call(X, np.float32, "K", True, 3)],
    np.full_like: [call(X, 2), call(X, 2.5, np.float32),
                   call(a=I, fill_value=3, dtype=float, subok=False, device="cpu"),
                   call(X, 2, shape=(2,)), call(X, 2.5, np.float32, "K", True, 3)],
    np.iscomplexobj: [call(X), call(x=C)],
    np.isrealobj: [call(X), call(x=C)],
    np.result_type: [call(X, np.float32), call(I, 2.0)],
    np.array_repr: [call(X, 40, 2, True), call(arr=X, max_line_width=9, precision=1)],
    np.array_str: [call(X, 40, 2, True), call(a=X, max_line_width=9, precision=1)],
    np.copy: [call(X), call(X, "C"), call(a=X, order="A", subok=True)],
}  # fmt: skip
CASES |= {np.around: CASES[np.round], np.amax: EXTREMA, np.amin: EXTREMA}
CASES |= parameters_statistics.CASES
CASES |= {
    getattr(np.fft, name): [call(X), call(a=X, n=3, axis=0, norm="ortho")]
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
}
CASES |= {
    getattr(np.fft, name): [call(B), call(a=B, s=(2, 2), axes=(0, 1), norm="forward")]
    for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
}
CASES[np.i0] = [call(X)]
if np.lib.NumpyVersion(np.__version__) >= "2.3.0":
    CASES[np.take_along_axis].append(call(X, K[None]))
    CASES[np.pad].append(call(V, {0: (1, 2)}, "wrap"))
    CASES[np.trim_zeros].append(call(np.pad(X, 1), "b", (0, 1)))
    CASES[np.unique].append(call(C, sorted=True))
for function in (np.sort, np.argsort):
    if "descending" in signature_of(function).parameters:  # of NumPy 2.5
        CASES[function].append(call(X, descending=True))
CASES |= {getattr(np.fft, n): [call(X), call(x=X, axes=0)] for n in ("fftshift", "ifftshift")}

REFUSED: dict[Any, dict[str, Call]] = {
    np.nan_to_num: {"copy": call(N.copy(), copy=False)},
    np.einsum: {"kwargs": call("ij->i", X, order="F")},
    np.zeros_like: {"order": call(X, order="F")},
    np.ones_like: {"order": call(X, order="F")},
    np.full_like: {"order": call(X, 2, order="F")},
    np.empty_like: {"order": call(X, order="F")},
}
"""Parameters that Tensors do not take, with a call of each; NumPy takes it."""
REFUSED |= parameters_statistics.REFUSED

GONE = {
    np.reshape: {"newshape": 6},
    np.corrcoef: {"bias": True, "ddof": 0},
    **{
        function: {"interpolation": "lower"}
        for function in (np.quantile, np.percentile, np.nanquantile, np.nanpercentile)
    },
}
"""Deprecated parameters that NumPy took before 2.4, with values."""

OTHERS = {np.put, np.empty_like}  # a write (tests of those); memory without values
OTHERS |= {getattr(np.emath, name) for name in np.emath.__all__}  # operations/test_complex_results
OTHERS |= parameters_statistics.OTHERS


def answered() -> dict[Any, Any]:
    """NumPy's functions that numgrad answers itself, with what does it."""
    table = {
        f: op for f, op in numpy_protocol._function_table().items() if hasattr(f, "__module__")
    }
    table = {f: op for f, op in table.items() if not isinstance(f, np.ufunc)}
    table = {f: op for f, op in table.items() if f.__module__.startswith("numpy")}
    return {**table, **numpy_protocol._PLAIN}


def arranged(value: Any, convert: Any) -> Any:
    """A call with ``convert`` applied to each array in it."""
    if isinstance(value, np.ndarray):
        return convert(value)
    if isinstance(value, list | tuple):
        return type(value)(arranged(v, convert) for v in value)
    if isinstance(value, dict):
        return {k: arranged(v, convert) for k, v in value.items()}
    return value


def variants(function: Any, given: Call) -> list[Call]:
    """The same call with as much as possible by position, and by keyword."""
    signature = signature_of(function)
    kinds = inspect.Parameter
    if any(p.kind is kinds.VAR_POSITIONAL for p in signature.parameters.values()):
        return [given]
    bound = signature.bind(*given[0], **given[1]).arguments
    by_place: tuple[list, dict] = ([], {})
    by_name: tuple[list, dict] = ([], {})
    last = max(list(signature.parameters).index(name) for name in bound)
    for place, (name, p) in enumerate(signature.parameters.items()):
        if p.kind is kinds.VAR_KEYWORD:
            by_place[1].update(bound.get(name, {}))
            by_name[1].update(bound.get(name, {}))
        elif p.kind is kinds.KEYWORD_ONLY:
            if name in bound:
                by_place[1][name] = by_name[1][name] = bound[name]
        else:
            if place <= last:
                by_place[0].append(bound.get(name, p.default))
            if name in bound and p.kind is kinds.POSITIONAL_ONLY:
                by_name[0].append(bound[name])
            elif name in bound:
                by_name[1][name] = bound[name]
    return [given, (tuple(by_place[0]), by_place[1]), (tuple(by_name[0]), by_name[1])]


def assert_same(found: Any, expected: Any, what: str) -> None:
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected), what
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b, what)
    elif isinstance(expected, np.ndarray | np.generic):
        assert found.dtype == expected.dtype, (what, found.dtype, expected.dtype)
        assert found.shape == expected.shape, (what, found.shape, expected.shape)
        found = found.numpy(force=True) if isinstance(found, ng.Tensor) else found
        close = 1e-6 if np.dtype(expected.dtype).itemsize == 4 else 1e-13
        np.testing.assert_allclose(found, expected, rtol=close, atol=close, err_msg=what)
    else:
        assert found == expected, what


def leaf(array: np.ndarray) -> ng.Tensor:
    return ng.tensor(array, requires_grad=array.dtype.kind in "fc")


FUNCTIONS = {title(f): f for f in CASES}


@pytest.mark.slow(cases=35)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_parameter_means_what_it_means_to_numpy(name):
    function = FUNCTIONS[name]
    for given in CASES[function]:
        args, kwargs = arranged(given, lambda a: a)
        expected = quiet(function, *args, **kwargs)
        for args, kwargs in variants(function, given):
            what = f"{name}{args}{kwargs}"
            args, kwargs = arranged((args, kwargs), leaf)
            assert_same(function(*args, **kwargs), expected, what)


def test_every_parameter_of_every_function_is_tried():
    missing = []
    for function in answered():
        if function in OTHERS or not hasattr(function, "_implementation"):
            continue
        tried: set[str] = set(REFUSED.get(function, {}))
        signature = signature_of(function)
        for args, kwargs in CASES.get(function, []):
            tried |= signature.bind(*args, **kwargs).arguments.keys()
        wanted = set(signature.parameters) - {"out"} - set(GONE.get(function, ()))  # have a test
        missing += [f"{title(function)}: {p}" for p in sorted(wanted - tried)]
    assert not missing


@pytest.mark.parametrize("name", {title(f): f for f in GONE})
def test_deprecated_parameters_are_refused(name):
    function = {title(f): f for f in GONE}[name]
    first = [0.5] if "interpolation" in GONE[function] else []
    for parameter, value in GONE[function].items():
        with pytest.raises(TypeError, match=parameter):
            quiet(function, leaf(X), *first, **{parameter: value})


@pytest.mark.parametrize("name", {title(f): f for f in REFUSED if REFUSED[f]})
def test_a_parameter_that_is_not_taken_raises(name):
    function = {title(f): f for f in REFUSED}[name]
    for args, kwargs in REFUSED[function].values():
        function(*args, **kwargs)  # is one of NumPy's
        args, kwargs = arranged((args, kwargs), leaf)
        with pytest.raises(ng.NumgradError, match=r"\w+: .*"):
            function(*args, **kwargs)


FORGETFUL = {np.fft.hfft, np.fft.ifft2, np.fft.irfft2}  # NumPy's own ignore out=
OUT = {title(f): f for f in CASES if "out" in signature_of(f).parameters and f not in FORGETFUL}


@pytest.mark.parametrize("name", OUT)
def test_out_is_a_tensor_that_nothing_is_recorded_of(name):
    function = OUT[name]
    args, kwargs = CASES[function][0]
    expected = np.asarray(quiet(function, *args, **kwargs))
    plain = arranged((args, kwargs), ng.tensor)
    out = ng.tensor(np.zeros_like(expected))
    assert function(*plain[0], **plain[1], out=out) is out
    assert_same(out, expected, name)
    assert out._version == 1
    wrongs = [ng.zeros((7,)), ng.zeros(expected.shape, dtype=np.int8)]
    for wrong in wrongs[: 1 if np.can_cast(expected.dtype, np.int8, "same_kind") else 2]:
        with pytest.raises(ng.NumgradError, match="out="):
            function(*plain[0], **plain[1], out=wrong)
        assert wrong._version == 0
    followed = arranged((args, kwargs), leaf)
    with pytest.raises(RuntimeError, match="out="):
        function(*followed[0], **followed[1], out=out)
    array = np.zeros_like(expected)
    assert quiet(function, *plain[0], **plain[1], out=array) is array
    assert_same(array, expected, name)
    with pytest.raises(TypeError, match="requires grad"):
        function(*followed[0], **followed[1], out=array)


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize(
    ("call", "shape"),
    each_first([np.max, np.min, np.nanmax, np.nanmin], [(0,), (3, 0), (0, 3), (2, 0, 3)]),
)
def test_extrema_of_nothing_are_what_they_begin_with(call, shape):
    x = np.ones(shape)
    for given in ({}, {"axis": -1}, {"axis": 0, "keepdims": True}):
        extremum = partial(call, initial=2.5, **given)
        for function in (extremum, ng.jit(extremum)):
            assert_same(function(leaf(x)), extremum(x), f"{call} {shape} {given}")
    with pytest.raises(ng.NumgradValueError, match="no elements"):
        call(leaf(x))


def test_nan_to_num_writes_if_it_may_not_copy():
    x = ng.tensor(N)
    assert np.nan_to_num(x, copy=False, nan=2.0) is x
    np.testing.assert_array_equal(x.numpy(), np.nan_to_num(N, nan=2.0))


WRITES: dict[Any, list[Call]] = {
    np.copyto: [call(X, V), call(X, I), call(X, 2.0, where=M), call(X, V, "same_kind", M[0]),
                call(dst=X, src=1, casting="unsafe"), call(I, X, casting="unsafe")],
    np.put: [call(X, K, V), call(X, [7, -9], 1.5, "wrap"), call(X, [7, -9], v=V, mode="clip"),
             call(a=X, ind=[0, 1, 2, 3], v=[1.0, 2.0])],
    np.place: [call(X, M, V), call(arr=X, mask=M, vals=[1.5])],
    np.putmask: [call(X, M, V), call(X, mask=M, values=1.5)],
    np.put_along_axis: [call(X, K[None], 9.0, 1), call(X, K, V, None),
                        call(arr=X, indices=K[:2, None], values=V[:2, None], axis=-1)],
    np.fill_diagonal: [call(S, 1.5), call(np.ones((7, 2)), V, True), call(a=S, val=V, wrap=False)],
}  # fmt: skip


@pytest.mark.parametrize("name", {title(f): f for f in WRITES})
def test_a_parameter_of_a_write_means_what_it_means_to_numpy(name):
    function = {title(f): f for f in WRITES}[name]
    tried = set()
    for given in WRITES[function]:
        args, kwargs = arranged(given, np.copy)
        function(*args, **kwargs)
        expected = args[0] if args else next(iter(kwargs.values()))
        args, kwargs = arranged(given, ng.tensor)
        function(*args, **kwargs)
        found = args[0] if args else next(iter(kwargs.values()))
        assert_same(found, expected, f"{name}{given}")
        tried |= signature_of(function).bind(*args, **kwargs).arguments.keys()
    assert tried == set(signature_of(function).parameters)
    assert WRITES.keys() == numpy_protocol.WRITES.keys()


def test_writes_refuse_what_numpy_refuses():
    x = ng.tensor(X)
    for function, args, kwargs in (
        (np.copyto, (x, 1.0), {"where": I}),
        (np.copyto, (ng.tensor(I), X), {}),
        (np.put, (x, [0], 1.0, "other"), {}),
        (np.put, (x, [99], 1.0), {}),
        (np.put_along_axis, (x, K, [1.0, 2.0], None), {}),
    ):
        with pytest.raises(ng.NumgradError, match=r"np\.put|np\.copyto|put: |broadcast"):
            function(*args, **kwargs)
    np.testing.assert_array_equal(x.numpy(), X)


SAME_NAME = {
    title(f): f
    for f in CASES
    if isinstance(getattr(ng, f.__name__, None), Op)
    and (f.__module__ != "numpy.linalg" or getattr(np, f.__name__, f) is f)
}


@pytest.mark.parametrize("name", SAME_NAME)
def test_our_function_of_that_name_means_the_same_or_raises(name):
    function = SAME_NAME[name]
    ours = getattr(ng, function.__name__)
    for given in CASES[function]:
        args, kwargs = arranged(given, lambda a: a)
        expected = quiet(function, *args, **kwargs)
        for args, kwargs in variants(function, given):
            what = f"ng.{ours.name}{args}{kwargs}"
            args, kwargs = arranged((args, kwargs), leaf)
            try:
                found = ours(*args, **kwargs)
            except ng.NumgradError:
                assert len(args) > 1 or kwargs or name == "np.where", what
                continue
            assert_same(found, expected, what)


TWO = np.array([True, True, False])


def test_derivatives_of_std_are_zero_where_all_are_equal_whatever_is_given():
    ones = np.ones(3)
    for f in (
        lambda x: np.std(x, where=TWO), lambda x: np.std(x, where=TWO, ddof=1),
        lambda x: np.std(x, mean=np.array([1.0])), lambda x: np.nanstd(x, where=TWO),
        lambda x: x.std(where=TWO), lambda x: x[x > 0].std(),
    ):  # fmt: skip
        for call in (ng.grad(f), ng.jit(ng.grad(f)), ng.jacfwd(f)):
            np.testing.assert_array_equal(call(ones), 0)


REDUCTIONS = {
    "sum": {}, "prod": {}, "mean": {}, "std": {}, "var": {"ddof": 1}, "any": {}, "all": {},
    "max": {"initial": -9.0}, "min": {"initial": 9.0}, "nansum": {}, "nanmean": {}, "nanprod": {},
    "nanstd": {}, "nanvar": {}, "nanmax": {"initial": -9.0}, "nanmin": {"initial": 9.0},
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_masked_reductions_of_tensors_and_arrays(name):
    """``where=`` of each reduction, eager, compiled and batched, by ``np`` and by ``ng``."""
    a = np.array([[1.0, -2.0, 3.0, 0.5], [0.0, 2.5, 1.5, -1.0]])
    mask = np.array([[True, False, True, True], [True, True, False, True]])
    for k, axis in enumerate((None, 0, 1, (0, 1))):
        options = {"axis": axis, "where": mask, **REDUCTIONS[name]}
        if axis == 0 and name == "var":
            options["ddof"] = 0
        expected = getattr(np, name)(a, **options)

        def ours(x, options=options):
            return getattr(ng, name)(x, **options)

        def theirs(x, options=options):
            return getattr(np, name)(x, **options)

        t = ng.tensor(a)
        by_turns = ng.vmap(theirs)(t[None])[0] if k % 2 else ng.jit(theirs)(t)
        for found in (ours(t), ours(a), theirs(t), by_turns):
            np.testing.assert_allclose(np.asarray(found), expected)
        if name not in ("any", "all"):
            assert gradcheck(theirs, (ng.tensor(a, requires_grad=True),))
