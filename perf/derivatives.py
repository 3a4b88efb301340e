"""Transforms of functions as numgrad and JAX have them, called eagerly.

``TRANSFORMS`` has functions of a library (``grad``, ``hvp``, ...) and of a function of one array,
which return what is to be timed; ``derived`` makes the function and its argument. ``value`` is the
function as it is, called with an ndarray: NumPy's own time, the unit of a forward evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from problems import PROBLEMS


def _hvp(library: Any, f: Callable) -> Callable:
    if hasattr(library, "hvp"):
        return lambda x: library.hvp(f)(x, x)
    return lambda x: library.jvp(library.grad(f), (x,), (x,))[1]


def _sparse_jacobian(library: Any, f: Callable) -> Callable:
    """The pattern is found once."""
    found: list[Callable] = []

    def jacobian(x: Any) -> Any:
        if not found:
            found.append(library.jacobian(f, sparsity=library.func.sparsity(f, x)))
        return found[0](x)

    return jacobian


TRANSFORMS: dict[str, Callable[[Any, Callable], Callable]] = {
    "value": lambda library, f: f,
    "value_and_grad": lambda library, f: library.value_and_grad(f),
    "jacobian": lambda library, f: (
        library.jacobian if hasattr(library, "hvp") else library.jacfwd
    )(f),
    "jacfwd": lambda library, f: library.jacfwd(f),
    "sparse jacobian": _sparse_jacobian,
    "hvp": _hvp,
    "hessian": lambda library, f: library.hessian(f),
    "grad of grad": lambda library, f: library.grad(lambda x: library.grad(f)(x).sum()),
    "grad of grad of grad": lambda library, f: library.grad(
        lambda x: library.grad(lambda y: library.grad(f)(y).sum())(x).sum()
    ),
    "grad of jvp": lambda library, f: library.grad(lambda x: library.jvp(f, (x,), (x,))[1]),
    "vmap of hessian": lambda library, f: library.vmap(library.hessian(f)),
}


def derived(
    library: Any,
    np: Any,
    convert: Callable,
    problem: str,
    transform: str,
    examples: int = 0,
    **sizes: int,
) -> tuple[Callable, Any]:
    """A function of one array, and that array: the first argument of a problem of ``problems``."""
    stated = PROBLEMS[problem]
    x, *others = map(convert, stated.arguments(**sizes))
    whole = stated.written(np, None, **sizes)
    f = TRANSFORMS[transform](library, lambda x: whole(x, *others))
    return f, np.stack([x] * examples) if examples else x
