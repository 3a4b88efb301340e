"""Products of Jacobians and Hessians with vectors: ``vjp``, ``jvp``, ``linearize``, ``hvp``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.core.foreign import refuse_mask
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import Nesting, align, container_of, is_labelled, map_leaves, unflatten
from numgrad.core.wrappers import recorded_wrapper, wrapper
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import Argnums, TransformedCall, check_function, choose, jitted_in
from numgrad.transforms.linearization import filled


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function, and the function that takes a vector to its product ``w J``.

    Parameters
    ----------
    f
        A function of arrays, or nestings of them, that returns arrays in any nesting.
    *primals
        Where to differentiate; each argument is an array, floating or complex, or a nesting.
    has_aux
        ``f`` returns ``(value, aux)``.

    Returns
    -------
    tuple
        ``(value, product)``, or ``(value, product, aux)``. ``product(w)`` takes what is nested and
        shaped as the value, with None for zero, and returns what is nested and shaped as the
        arguments: a tuple for more than one. It may be called as often as one likes, which does not
        call ``f`` again. Kinds are those of ``value_and_grad``.

    Raises
    ------
    NumgradTypeError
        If something has no derivatives: integers, None, strings.
    NumgradValueError
        If a vector is nested or shaped otherwise.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> value, product = ng.vjp(lambda x, y: x * np.sin(y), np.ones(2), np.zeros(2))
    >>> product(np.array([1.0, 2.0]))
    (array([0., 0.]), array([1., 2.]))
    """
    call = TransformedCall(_all("vjp", f, primals), primals)
    with call:
        values = call.outputs(has_aux)
        linear = call.linear(values)

    def product(w: Any) -> Any:
        weights = _vector("vjp", "the vector", w, call.structure, values)
        with call.following(w, weights):
            results = call.filled(linear.pull(weights, create_graph=call.outside))
            return call.result(map(call.kind, results))

    return _with_aux(call, values, product, has_aux)


def linearize(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function, and the function that takes vectors to its product ``J v``.

    For many products at one point; for one, ``jvp`` does less.

    Parameters
    ----------
    f, *primals, has_aux
        As for ``vjp``.

    Returns
    -------
    tuple
        ``(value, product)``, or ``(value, product, aux)``. ``product(*v)`` takes a vector for each
        argument, nested and shaped like it, with None for zero, and returns what is nested and
        shaped as the value. It does not call ``f`` again.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        As for ``vjp``.

    Notes
    -----
    The product is the transpose of that of ``vjp``, so a ``Function`` in ``f`` needs a backward
    that can be differentiated, as it does for ``hessian``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> value, product = ng.linearize(np.sin, np.zeros(2))
    >>> product(np.array([1.0, 2.0])), product(np.array([0.0, 3.0]))
    (array([1., 2.]), array([0., 3.]))
    """
    call = TransformedCall(_all("linearize", f, primals), primals)
    with call:
        values = call.outputs(has_aux)
        linear = call.linear(values)
        _ = linear.transposed  # recorded now

    def product(*v: Any) -> Any:
        directions = _directions(call, v)
        with call.following(v, directions):
            results = linear.push(directions, create_graph=call.outside)
            dense = [filled(t, y.shape, y.dtype) for t, y in zip(results, values, strict=True)]
            return unflatten(call.structure, map(call.kind, dense))

    return _with_aux(call, values, product, has_aux)


def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of a function and the product of its Jacobian with a vector, ``J v``.

    By forward mode: one call of ``f``, of which nothing is kept.

    Parameters
    ----------
    f, has_aux
        As for ``vjp``.
    primals
        The arguments, in a tuple or list.
    tangents
        A vector for each of them, nested and shaped like it; None is zero.

    Returns
    -------
    tuple
        ``(value, product)``, or ``(value, product, aux)``.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        As for ``vjp``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.jvp(np.sin, (np.zeros(2),), (np.array([1.0, 2.0]),))
    (array([0., 0.]), array([1., 2.]))
    """
    for what, arrays in (("primals", primals), ("tangents", tangents)):
        if not isinstance(arrays, tuple | list):
            raise NumgradTypeError(
                f"jvp: {what} is a {type(arrays).__name__}; give a tuple, with one for each "
                "argument"
            )
    jitted = jitted_in(f)
    if not state.interpreters and jitted is f and jitted.is_plain:
        return _compiled_jvp(f, tuple(primals), tuple(tangents), has_aux)
    argnums = _all("jvp", f, tuple(primals))
    with TransformedCall(argnums, tuple(primals), recorded=False, like=tuple(tangents)) as call:
        directions = _directions(call, tuple(tangents))
        with dual_level():
            pairs = zip(call.tensors, directions, strict=True)
            duals = [x if v is None else make_dual(x, v) for x, v in pairs]
            result, aux = call.run(duals, has_aux)
            unpacked = list(map(unpack_dual, call.arrays(result)))
            values = [each.primal for each in unpacked]
            moved = [
                filled(each.tangent, each.primal.shape, each.primal.dtype) for each in unpacked
            ]
            call.aux = map_leaves(_primal, aux)
        call.look_outside([*values, *moved])
    value, product = (
        unflatten(call.structure, map(call.kind, outputs)) for outputs in (values, moved)
    )
    return (value, product, call.kinds(call.aux)) if has_aux else (value, product)


def _compiled_jvp(f: Any, primals: tuple, tangents: tuple, has_aux: bool) -> tuple[Any, ...]:
    """``jvp`` of a compiled function, compiled once and kept with it."""
    value = vars(f).setdefault("__numgrad_jvp__", {})
    if has_aux not in value:
        value[has_aux] = f.like(lambda primals, tangents: jvp(f, primals, tangents, has_aux))
    return value[has_aux](primals, tangents)


def hvp(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function that returns the product of the Hessian of ``f`` with a vector.

    Parameters
    ----------
    f
        A function of arrays that returns one real number.

    Returns
    -------
    callable
        ``product(x, v, *args)``, where ``f(x, *args)`` is differentiated by ``x``, an array or a
        nesting, and ``v`` is nested and shaped like it, as is the result. These are the arguments
        that SciPy's ``minimize`` gives to its ``hessp``.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        As for ``vjp``.
    NumgradRuntimeError
        If ``f`` does not return one real number.

    Notes
    -----
    Second derivatives are symmetric, so ``H v`` is computed as ``v H``: a backward through the
    recorded gradient, of a cost that does not depend on the length of ``x``. ``vhp`` is another
    name.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.ones(2))
    array([ 6., 12.])
    """
    argnums = choose("hvp", f)

    def product(x: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        with TransformedCall(argnums, (x, *args), kwargs, like=v) as call:
            directions = _directions(call, (v,))
            gradients = call.gradients(call.value(), create_graph=True)
            call.follow(directions)
            results = call.filled(call.linear(gradients).pull(directions, last=True))
        return call.result(map(call.kind, results))

    return wrapper(product, hvp, f)


vhp = hvp


def stop_gradient(tree: Any) -> Any:
    """The same numbers as constants: neither gradients nor tangents flow through the result.

    Parameters
    ----------
    tree
        A Tensor, or a nesting with Tensors in it; what is none is left as it is.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.grad(lambda x: x * ng.stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return map_leaves(lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, tree)


# ---------------------------------------------------------------------------------------- vectors


def _all(name: str, f: Callable[..., Any], primals: Sequence[Any]) -> Argnums:
    check_function(name, f)
    if not primals:
        raise NumgradTypeError(f"{name}: there is nothing to differentiate by; give arguments")
    return choose(name, f, 0 if len(primals) == 1 else tuple(range(len(primals))))


def _with_aux(
    call: TransformedCall, values: Sequence[Tensor], product: Any, has_aux: bool
) -> tuple:
    value = unflatten(call.structure, map(call.kind, values))
    product = recorded_wrapper(product, call.name)
    return (value, product, call.kinds(call.aux)) if has_aux else (value, product)


def _primal(leaf: Any) -> Any:
    return unpack_dual(leaf).primal if isinstance(leaf, Tensor) else leaf


def _directions(call: TransformedCall, tree: tuple) -> list[Tensor | None]:
    """A vector for each differentiated array."""
    if len(tree) != len(call.nestings):
        raise NumgradValueError(
            f"{call.name}: {len(tree)} vectors for {len(call.nestings)} arguments; give one each, "
            "None for zero"
        )
    results: list[Tensor | None] = []
    remaining = iter(call.tensors)
    for k, (vector, nesting) in enumerate(zip(tree, call.nestings, strict=True)):
        like: list[Tensor] = []
        unflatten(nesting, (like.append(t) or t for t in remaining))
        results += _vector(call.name, f"the vector of argument {k}", vector, nesting, like)
    return results


def _vector(
    name: str, what: str, vector: Any, structure: Nesting, like: Sequence[Tensor]
) -> list[Tensor | None]:
    """The arrays of a vector, converted to the dtypes of what it is like; None is zero."""
    if vector is None:
        return [None] * len(like)
    parts: list[Any] = []
    where = align(structure, vector, parts, "v")
    if where is not None and is_labelled(structure) and container_of(type(vector)) is None:
        parts = [vector]  # its numbers by place
    elif where is not None:
        raise NumgradValueError(
            f"{name}: {what} (here v) is at {where} nested otherwise than what it belongs to; give "
            f"{_outline(structure, like)}"
        )
    return [_part(name, what, item, t) for item, t in zip(parts, like, strict=True)]


def _part(name: str, what: str, item: Any, like: Tensor) -> Tensor | None:
    if item is None:
        return None
    refuse_mask(name, item)
    tensor = item if isinstance(item, Tensor) else Tensor(np.array(item))
    if tensor.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"{name}: {what} has a {type(item).__name__} in it; give numbers, arrays or Tensors"
        )
    if tensor.shape != like.shape or (tensor.dtype.kind == "c" and like.dtype.kind != "c"):
        raise NumgradValueError(
            f"{name}: {what} has an array of shape {tensor.shape} and dtype {tensor.dtype} where "
            f"shape {like.shape} and dtype {like.dtype} belong"
        )
    return tensor if tensor.dtype == like.dtype else OPS["astype"](tensor, like.dtype)


def _outline(structure: Nesting, like: Sequence[Tensor]) -> str:
    return repr(unflatten(structure, (f"<{t.dtype}{list(t.shape)}>" for t in like)))
