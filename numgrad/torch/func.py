"""Functions that turn functions into their derivatives: ``torch.func``.

Note [Conditions of transforms]
-------------------------------
``ng.grad`` and its like take and give numbers and arrays beside Tensors; those of PyTorch take and
give Tensors, in any nesting, and raise ``RuntimeError`` where numgrad tells a wrong type from a
wrong value. So a function of a user's is called through ``_Inner``, which looks at what it returns,
and an error of a check of numgrad's gets PyTorch's class (``_errors``), unless it comes out of the
user's function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial, wraps
from typing import Any

from numgrad import func as base
from numgrad.autograd.forward_ad import unpack_dual
from numgrad.autograd.graph import disable_saved_tensors_hooks
from numgrad.core.interpreter import state
from numgrad.core.tree import align, flatten, leaves
from numgrad.errors import NumgradError, NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn.module import Module, functional_call, stack_module_state as _stack
from numgrad.torch.wrapping import Tensor, face_function, unwrap, user_function, wrap

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip


_RESULTS = "{}: the function must only return Tensors"


@contextmanager
def _errors(kind: type[NumgradError] = NumgradRuntimeError) -> Iterator[None]:
    """Let checks of numgrad's raise errors of a class: Note [Conditions of transforms]."""
    try:
        yield
    except (NumgradTypeError, NumgradValueError) as error:
        if "of_user" in vars(error):
            raise
        raise kind(str(error)) from error


def _inner(
    name: str, func: Callable[..., Any], *, aux: bool = False, real: bool = False,
    strict: bool = False, out_dims: Any = 0,
) -> Callable[..., Any]:  # fmt: skip
    """A function of a user's as numgrad transforms it: it returns what the transform takes."""
    told = f"{name}: hooks for saved Tensors do not act on a graph that {name} makes and frees"
    recorded = name not in ("jvp", "jacfwd", "linearize", "vmap")

    def checked(*args: Any, **kwargs: Any) -> Any:
        with disable_saved_tensors_hooks(told) if recorded else nullcontext():
            try:
                result = func(*args, **kwargs)
            except NumgradError as error:
                vars(error)["of_user"] = True
                raise
        if aux and not (isinstance(result, tuple) and len(result) == 2):
            raise NumgradRuntimeError(
                f"{name}: with has_aux the function returns a tuple (value, aux), got a "
                f"{type(result).__name__}"
            )
        value, rest = result if aux else (result, ())
        values = [] if value is None else leaves(value)
        if name == "vmap":
            if None not in leaves(out_dims):
                _check(_RESULTS.format(name), leaves(value), kind=NumgradValueError)
            return result
        if not values:
            raise NumgradRuntimeError(f"{name}: the function returned {value!r}; return Tensors")
        _check(_RESULTS.format(name), values, real)
        _check(f"{name}: aux must only be Tensors", leaves(rest))
        if strict and any(unpack_dual(v._tensor).tangent is None for v in values):
            raise NumgradRuntimeError(
                f"{name}: with strict=True every result depends on the arguments, and one does not"
            )
        return result

    checked.__name__ = getattr(func, "__name__", "function")
    return user_function(checked)


def _check(
    told: str, values: list[Any], real: bool = False, kind: type[NumgradError] = NumgradRuntimeError
) -> None:
    """Raise if something is no Tensor, or is complex where all have to be ``real``."""
    for value in values:
        if not isinstance(value, Tensor):
            raise kind(f"{told}, got {type(value).__name__}")
        if real and value.is_complex():
            raise NumgradRuntimeError(
                f"{told} that are real, got {value.dtype}; use torch.view_as_real, or "
                "ng.jacobian, which has holomorphic=True"
            )


def _transformed(
    transform: Callable[..., Any], func: Callable[..., Any], argnums: Any, aux: bool = False
) -> Callable[..., Any]:
    """Transform a function of a user's by numgrad, with PyTorch's checks and errors."""
    name = transform.__name__
    real = name in ("jacrev", "jacfwd", "hessian")
    made = cache(partial(transform, _inner(name, func, aux=aux, real=real), argnums, aux))
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)

    @wraps(func)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not numbers or not all(isinstance(k, int) for k in numbers):
            raise NumgradRuntimeError(
                f"{name}: argnums is an int or a tuple of at least one, got {argnums!r}"
            )
        given = [args[k] for k in numbers if -len(args) <= k < len(args)]
        _check(f"{name}: takes Tensors", leaves(given), real, NumgradValueError)
        with _errors():
            return wrap(made()(*unwrap(args), **unwrap(kwargs)))

    return called


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function, as a function."""
    return _transformed(base.grad, func, argnums, has_aux)


def grad_and_value(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The gradient of a function and its value."""
    both = _transformed(base.value_and_grad, func, argnums, has_aux)
    return wraps(func)(lambda *args, **kwargs: both(*args, **kwargs)[::-1])


def jacrev(
    func: Callable[..., Any], argnums: Any = 0, *, has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """The Jacobian by reverse mode, as a function."""
    _check_chunk(chunk_size)
    return _transformed(base.jacrev, func, argnums, has_aux)


def jacfwd(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """The Jacobian by forward mode, as a function."""
    return _transformed(base.jacfwd, func, argnums, has_aux)


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """The Hessian, as a function."""
    return _transformed(base.hessian, func, argnums)


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
    NumgradRuntimeError
        If one of these is not so.
    """
    values: list[Any] = []
    directions: list[Any] = []
    if not isinstance(primals, tuple):
        raise NumgradRuntimeError(f"jvp: primals is a tuple, got {type(primals).__name__}")
    where = align(flatten(primals, values), tangents, directions, "tangents")
    if where is not None or not values:
        why = f"at {where} they differ" if values else "there is none"
        raise NumgradRuntimeError(
            f"jvp: primals and tangents are Tensors in nestings of the same structure, and {why}"
        )
    _check("jvp: primals and tangents must only be Tensors", values + directions)
    with _errors():
        inner = _inner("jvp", func, aux=has_aux, strict=strict)
        return wrap(base.jvp(inner, unwrap(primals), unwrap(tangents), has_aux))


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value, and the function from cotangents of it to those of the primals, a tuple."""
    _check("vjp: takes Tensors", leaves(primals), kind=NumgradValueError)
    with _errors():
        inner = _inner("vjp", func, aux=has_aux)
        value, pullback, *rest = base.vjp(inner, *unwrap(primals), has_aux=has_aux)

    def product(
        cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None
    ) -> Any:
        with _errors():
            gradients = wrap(pullback(unwrap(cotangents)))
        return (gradients,) if len(primals) == 1 else gradients

    return (wrap(value), product, *wrap(rest))


def linearize(func: Callable[..., Any], *primals: Any) -> Any:
    """The value, and the linear function from tangents to its derivative."""
    with _errors():
        inner = _inner("linearize", func)
        value, pushed = base.linearize(inner, *unwrap(primals))
    return wrap(value), _errors()(face_function(pushed))


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
        Along which axes examples are, as in ``ng.vmap``; arguments by name are those of all.
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
        If axes do not fit, or the function returns something else than Tensors.
    """
    if randomness not in ("error", "different", "same"):
        raise NumgradRuntimeError(
            f"vmap: randomness is 'error', 'different' or 'same', got {randomness!r}"
        )
    _check_chunk(chunk_size)

    inner = _inner("vmap", func, out_dims=out_dims)

    def called(*args: Any, **kwargs: Any) -> Any:
        state.interpreters[-1].randomness = randomness
        return inner(*args, **kwargs)

    called.__name__ = inner.__name__
    made = cache(lambda: base.vmap(called, in_dims, out_dims))

    @wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        with _errors(NumgradValueError):
            if not isinstance(in_dims, int | tuple):
                raise NumgradValueError(f"vmap: in_dims is an int or a tuple, got {in_dims!r}")
            if not kwargs:
                return wrap(made()(*unwrap(args)))
            each = partial(called, **kwargs)  # what is given by name all examples share
            return wrap(base.vmap(each, in_dims, out_dims)(*unwrap(args)))

    return mapped


def _check_chunk(size: int | None) -> None:
    if size is not None and size <= 0:
        raise NumgradValueError(f"chunk_size is a positive number or None, got {size}")


stack_module_state = _errors()(_stack)


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let normalizations take the statistics of each batch and keep none."""
    for module in root.modules():
        if hasattr(module, "track_running_stats"):
            module.track_running_stats = False
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(module, name, None)
    return root


__getattr__ = _refuse(globals())
