"""Functions that turn functions into their derivatives: ``torch.func``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad import func as base
from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.torch.autograd.functional import transform
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn.module import Module, functional_call, stack_module_state
from numgrad.torch.wrapping import Tensor, face_function, unwrap, user_function, wrap

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function, as a function."""
    return face_function(base.grad(user_function(func), argnums, has_aux))


def grad_and_value(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The gradient of a function and its value."""
    both = face_function(base.value_and_grad(user_function(func), argnums, has_aux))

    def swapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return swapped


def jacrev(
    func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """The Jacobian by reverse mode, as a function."""
    return face_function(base.jacrev(user_function(func), argnums, has_aux))


def jacfwd(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """The Jacobian by forward mode, as a function."""
    return face_function(base.jacfwd(user_function(func), argnums, has_aux))


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The Hessian, as a function."""
    return face_function(base.hessian(user_function(func), argnums))


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False,
) -> Any:  # fmt: skip
    """The value and its derivative in a direction."""
    return transform(base.jvp)(func, primals, tangents, has_aux=has_aux)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value, and the function from cotangents of it to those of the primals."""
    value, pullback, *rest = base.vjp(user_function(func), *unwrap(primals), has_aux=has_aux)
    return (wrap(value), _of_cotangents(pullback), *wrap(rest))


def _of_cotangents(pullback: Callable[..., Any]) -> Callable[..., Any]:
    def called(*cotangents: Any, retain_graph: bool = True, create_graph: bool = False) -> Any:
        gradients = wrap(pullback(*unwrap(cotangents)))
        return gradients if isinstance(gradients, tuple) else (gradients,)

    return called


def linearize(func: Callable[..., Any], *primals: Any) -> Any:
    """The value, and the linear function from tangents to its derivative."""
    value, pushed = base.linearize(user_function(func), *unwrap(primals))
    return wrap(value), face_function(pushed)


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function of examples as one of batches.

    Parameters
    ----------
    func
        A function of Tensors.
    in_dims, out_dims
        Along which axes examples are, as in ``ng.vmap``.
    randomness
        What random numbers are: ``"different"`` for each example, the ``"same"`` for all, or an
        ``"error"``.
    chunk_size
        None, or how many examples are computed at once, which changes no result.

    Raises
    ------
    NumgradRuntimeError
        If ``randomness`` is something else, or numbers are drawn and it is ``"error"``.
    NumgradValueError
        If the function returns something else than Tensors.
    """
    if randomness not in ("error", "different", "same"):
        raise NumgradRuntimeError(
            f"vmap: randomness is 'error', 'different' or 'same', got {randomness!r}"
        )
    name = getattr(func, "__name__", "function")

    def checked(*args: Any, **kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        if None not in (out_dims if isinstance(out_dims, tuple | list) else (out_dims,)):
            _check_tensors(name, result)
        return result

    inner = user_function(checked)

    def called(*args: Any, **kwargs: Any) -> Any:
        state.interpreters[-1].randomness = randomness
        return inner(*args, **kwargs)

    called.__name__ = name
    return face_function(base.vmap(called, in_dims, out_dims))


def _check_tensors(name: str, result: Any) -> None:
    """Raise where a function of examples returns something else than Tensors."""
    if isinstance(result, tuple | list | dict):
        for each in result.values() if isinstance(result, dict) else result:
            _check_tensors(name, each)
    elif not isinstance(result, Tensor):
        raise NumgradValueError(
            f"vmap: {name} must only return Tensors, got {type(result).__name__}; make it a "
            "Tensor, or pass out_dims=None for what is the same for all examples"
        )


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let normalizations take the statistics of each batch and keep none."""
    for module in root.modules():
        if hasattr(module, "track_running_stats"):
            module.track_running_stats = False
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(module, name, None)
    return root


__getattr__ = _refuse(globals())
