"""Functions that turn functions into their derivatives: ``torch.func``.

Note [Conditions of transforms]
-------------------------------
``ng.grad`` and its like take and give numbers and arrays beside Tensors; those of PyTorch take and
give Tensors, in any nesting, and raise RuntimeError or ValueError where numgrad tells a wrong type
from a wrong value. So a function of a user's is called through ``_inner``, which looks at what it
returns, and what checks raise is a ``TransformError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial, wraps
from typing import Any

from numgrad import func as base
from numgrad.autograd.forward_ad import unpack_dual
from numgrad.autograd.graph import disable_saved_tensors_hooks
from numgrad.core.tree import leaves
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn.module import functional as _functional
from numgrad.torch.wrapping import Tensor, face_function, unwrap, user_function, wrap

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip


class TransformError(NumgradTypeError, NumgradValueError, NumgradRuntimeError):
    """A condition of a transform does not hold: Note [Conditions of transforms]."""


@contextmanager
def _conditions() -> Iterator[None]:
    """Let checks of numgrad's raise ``TransformError``."""
    try:
        yield
    except (NumgradTypeError, NumgradValueError) as error:
        if type(error) in (NumgradTypeError, NumgradValueError):
            error.__class__ = TransformError
        raise


def _inner(
    name: str, func: Callable[..., Any], *, aux: bool = False, strict: bool = False,
    constants: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function of a user's as numgrad transforms it: it returns what the transform takes."""
    told = f"{name}: hooks for saved Tensors do not act on a graph that {name} makes and frees"
    recorded = name not in ("jvp", "jacfwd", "linearize", "vmap")

    def checked(*args: Any, **kwargs: Any) -> Any:
        with disable_saved_tensors_hooks(told) if recorded else nullcontext():
            result = func(*args, **kwargs)
        pair = aux and isinstance(result, tuple) and len(result) == 2  # or numgrad raises
        value, rest = result if pair else (result, ())
        values = leaves(value)
        if not constants:
            _check(name, "the function must only return Tensors", values)
            _check(name, "aux must only be Tensors", leaves(rest))
        if name != "vmap" and not values:
            raise TransformError(f"{name}: the function returned {value!r}; return Tensors")
        if strict and any(unpack_dual(v._tensor).tangent is None for v in values):
            raise TransformError(
                f"{name}: with strict=True every result depends on the arguments, and one does not"
            )
        return result

    checked.__name__ = getattr(func, "__name__", "function")
    return user_function(checked)


def _check(name: str, what: str, values: list[Any]) -> None:
    """Raise if something is no Tensor, or is complex where all have to be real."""
    real = name in ("jacrev", "jacfwd", "hessian")
    for value in values:
        if not isinstance(value, Tensor):
            raise TransformError(f"{name}: {what}, got {type(value).__name__}")
        if real and value.is_complex():
            raise TransformError(
                f"{name}: {what} that are real, got {value.dtype}; use torch.view_as_real, or "
                "ng.jacobian, which has holomorphic=True"
            )


def _check_chunk(size: int | None) -> None:
    if size is not None and size <= 0:
        raise TransformError(f"chunk_size is a positive number or None, got {size}")


def _derivative(transform: Any, name: str = "") -> Callable[..., Any]:
    """A transform of numgrad's with respect to arguments, under PyTorch's name."""
    name = name or transform.__name__

    def derivative(
        func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *,
        chunk_size: int | None = None, randomness: str = "error",
    ) -> Callable[..., Any]:  # fmt: skip
        _check_chunk(chunk_size)
        made = cache(partial(transform, _inner(name, func, aux=has_aux), argnums, has_aux))
        numbers = argnums if isinstance(argnums, tuple) else (argnums,)

        @wraps(func)
        @_conditions()
        def called(*args: Any, **kwargs: Any) -> Any:
            if not numbers or not all(isinstance(k, int) for k in numbers):
                raise TransformError(
                    f"{name}: argnums is an int or a tuple of at least one, got {argnums!r}"
                )
            given = [args[k] for k in numbers if -len(args) <= k < len(args)]
            _check(name, "takes Tensors", leaves(given))
            result = wrap(made()(*unwrap(args), **unwrap(kwargs)))
            return result[::-1] if name == "grad_and_value" else result

        return called

    derivative.__name__ = derivative.__qualname__ = name
    derivative.__doc__ = f"``ng.{transform.__name__}`` of functions of Tensors, in any nesting."
    return derivative


grad, hessian = _derivative(base.grad), _derivative(base.hessian)
jacrev, jacfwd = _derivative(base.jacrev), _derivative(base.jacfwd)
grad_and_value = _derivative(base.value_and_grad, "grad_and_value")


@_conditions()
def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """The value and its derivative in a direction.

    Parameters
    ----------
    func
        A function of Tensors, which returns a pair of its value and something else if ``has_aux``.
    primals, tangents
        Arguments and directions, two tuples of Tensors that are nested in one way.
    strict
        Raise if a result does not depend on the arguments.

    Raises
    ------
    TransformError
        If one of these is not so.
    """
    if not (isinstance(primals, tuple) and isinstance(tangents, tuple)):
        raise TransformError(f"jvp: primals and tangents are tuples, got {primals!r}, {tangents!r}")
    _check("jvp", "primals and tangents must only be Tensors", leaves((primals, tangents)))
    inner = _inner("jvp", func, aux=has_aux, strict=strict)
    return wrap(base.jvp(inner, unwrap(primals), unwrap(tangents), has_aux))


@_conditions()
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value, and the function from cotangents of it to those of the primals, a tuple."""
    _check("vjp", "takes Tensors", leaves(primals))
    inner = _inner("vjp", func, aux=has_aux)
    value, pullback, *rest = base.vjp(inner, *unwrap(primals), has_aux=has_aux)

    @_conditions()
    def product(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        gradients = wrap(pullback(unwrap(cotangents)))
        return (gradients,) if len(primals) == 1 else gradients

    return (wrap(value), product, *wrap(rest))


@_conditions()
def linearize(func: Callable[..., Any], *primals: Any) -> Any:
    """The value, and the linear function from tangents to its derivative."""
    value, pushed = base.linearize(_inner("linearize", func), *unwrap(primals))
    return wrap(value), _conditions()(face_function(pushed))


@_conditions()
def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function of examples as one of batches.

    Parameters
    ----------
    func
        A function of Tensors.
    in_dims, out_dims, randomness
        As ``in_axes``, ``out_axes`` and ``randomness`` of ``ng.vmap``; arguments by name are those
        of all examples.
    chunk_size
        None, or how many examples are computed at once, which changes no result.

    Raises
    ------
    TransformError
        If axes do not fit, the function returns something else than Tensors, or random numbers are
        drawn and ``randomness`` is ``"error"``.
    """
    _check_chunk(chunk_size)
    inner = _inner("vmap", func, constants=None in leaves(out_dims))
    made = base.vmap(inner, in_dims, out_dims, None, randomness)

    @wraps(func)
    @_conditions()
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if not isinstance(in_dims, int | tuple):
            raise TransformError(f"vmap: in_dims is an int or a tuple, got {in_dims!r}")
        if not kwargs:
            return wrap(made(*unwrap(args)))
        each = partial(inner, **kwargs)  # what is given by name all examples share
        return wrap(base.vmap(each, in_dims, out_dims, None, randomness)(*unwrap(args)))

    return mapped


functional_call = _functional.functional_call
replace_all_batch_norm_modules_ = _functional.replace_all_batch_norm_modules_
stack_module_state = _conditions()(_functional.stack_module_state)
__getattr__ = _refuse(globals())
