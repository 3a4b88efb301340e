"""numgrad and JAX as the programs see them: NumPy's functions, and what each library has besides.

``np`` is NumPy for numgrad, whose Tensors NumPy's functions take, and ``jax.numpy`` for JAX.
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy

import numgrad as ng


def for_numgrad() -> SimpleNamespace:
    """numgrad, on one thread."""
    ng.set_num_threads(1)

    def tridiagonal(lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
        bands = numpy.stack([numpy.roll(upper, 1), diagonal, numpy.roll(lower, -1)])
        return ng.linalg.solve_banded((1, 1), bands, b)

    return _library(
        ng,
        numpy,
        bincount=ng.bincount,
        ready=lambda result: result,
        scan=ng.scan,
        tridiagonal=tridiagonal,
    )


def for_jax() -> SimpleNamespace:
    """JAX in double precision; the environment sets its threads."""
    import jax

    jax.config.update("jax_enable_x64", True)

    def tridiagonal(lower: Any, diagonal: Any, upper: Any, b: Any) -> Any:
        return jax.lax.linalg.tridiagonal_solve(lower, diagonal, upper, b[:, None])[:, 0]

    return _library(
        jax,
        jax.numpy,
        bincount=jax.numpy.bincount,
        ready=jax.block_until_ready,
        scan=jax.lax.scan,
        tridiagonal=tridiagonal,
    )


def _library(module: ModuleType, np: Any, **own: Any) -> SimpleNamespace:
    names = ("grad", "jit", "value_and_grad", "vmap")
    return SimpleNamespace(np=np, **{name: getattr(module, name) for name in names}, **own)
