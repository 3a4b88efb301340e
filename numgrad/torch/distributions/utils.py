"""Functions that distributions share: ``torch.distributions.utils``, and the reading of tables.

Note [Tables of expressions]
----------------------------
Constraints, transforms, distributions and divergences are rows of text: a head, and expressions
behind names, in which parameters stand for attributes of the object. ``rows`` reads them,
``parameters_of`` their heads, ``method_of`` and ``attribute_of`` make members of expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np

import numgrad.torch as face
from numgrad.errors import NumgradNotImplementedError, NumgradValueError
from numgrad.random.generator import generator_from
from numgrad.torch.wrapping import wrap

torch: Any = face
"""The face, whose names follow from tables."""
Tensor: Any = torch.Tensor
euler_constant = np.euler_gamma


def lacking(name: str) -> Callable[..., Any]:
    """Return a method that raises: a class has no formula for it."""

    def member(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NumgradNotImplementedError(f"{type(self).__name__}.{name}: has no formula")

    member.__name__, member.__doc__ = name, f"Raise: there is no ``{name}``."
    return member


def rows(text: str) -> list[list[str]]:
    """Blocks of a table: their heads, and the lines below them, whose indentation is two blanks."""
    blocks = re.split(r"\n(?=\w)", text.strip())
    return [[re.sub(r"\s+", " ", r) for r in re.split(r"\n  (?=\S)", b)] for b in blocks]


def groups(pattern: str, text: str) -> Any:
    """The groups of a pattern that the whole of a head has to match."""
    match = re.fullmatch(pattern, text)
    assert match is not None, text
    return match.groups()


def parameters_of(text: str) -> dict[str, tuple[str, str]]:
    """Parameters ``name: constraint = default`` of a head, the last two of which may be empty."""
    parts = re.split(r", (?=\w+(?::|,| =|$))| \| ", text) if text else []
    found = [re.fullmatch(r"(\w+)(?:: (.*?))?(?: = (.*))?", part) for part in parts]
    return {m[1]: (m[2] or "", m[3] or "None" * (m[1] in ("probs", "logits"))) for m in found if m}


def initializer(parameters: dict[str, tuple[str, str]], option: str) -> Callable[..., None]:
    """Return ``__init__`` of parameters and an option, which passes them to ``_begin``."""
    given = [f"{name}={value}" if value else name for name, (_, value) in parameters.items()]
    named = ", ".join(f"{name}={name}" for name in parameters)
    text = f"lambda {', '.join(['self', *given, option])}: self._begin(dict({named}), "
    return eval(text + option.partition("=")[0] + ")")


def method_of(text: str, names: Iterable[str], scope: Any, *operands: str) -> Callable[..., Any]:
    """Return a method that evaluates an expression of operands, ``self``, and its attributes."""
    used = [n for n in names if re.search(rf"\b{n}\b", text)]
    made = eval(f"lambda {', '.join(['self', *used, *operands])}: ({text})", scope)
    return lambda self, *given: made(self, *[getattr(self, n) for n in used], *given)


def attribute_of(text: str, names: Iterable[str], scope: Any, kind: Any = property) -> Any:
    """The value of an expression; of attributes or ``self``, a property."""
    if any(re.search(rf"\b{n}\b", text) for n in (*names, "self")):
        return kind(method_of(text, names, scope))
    return eval(text, scope)


def broadcast_all(*values: Any) -> Any:
    """Numbers and Tensors as Tensors of one shape; numbers in the dtype of the first Tensor."""
    if not all(isinstance(v, Tensor | int | float) for v in values):
        raise NumgradValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = torch.get_default_dtype() if like is None else like.dtype
    given = [v if isinstance(v, Tensor) else torch.tensor(v, dtype=dtype) for v in values]
    shapes = {v.shape for v in given}
    if len(shapes) == 1:
        return given
    shape = torch.broadcast_shapes(*shapes)
    return [v if v.shape == shape else v.expand(shape) for v in given]


def lazy_property(wrapped: Callable[[Any], Any]) -> Any:
    """An attribute that a function of the instance gives, until it is assigned."""
    return cached_property(torch.enable_grad()(wrapped))


def clamp_probs(probs: Any) -> Any:
    """Probabilities away from 0 and 1 by an epsilon, whose logarithms are finite."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Logarithms of probabilities, or if ``is_binary`` of their odds."""
    inner = clamp_probs(probs)
    return inner.log() - torch.log1p(-inner) if is_binary else inner.log()


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities by their logarithms, along the last axis, or if ``is_binary`` by their odds."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, -1)


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The lower triangle of matrices, row after row, up to a diagonal."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise NumgradValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[(..., *map(torch.from_numpy, np.tril_indices(n, diag)))]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Lower triangular matrices, zero above a diagonal, of vectors of their rows."""
    length, shift = vec.shape[-1], 1 + 2 * diag
    # the length is n (n + 1 + 2 diag) / 2, less what lies before the first column
    n = (-shift + (shift**2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if abs(round(n) - n) > torch.finfo(vec.dtype).eps:
        raise NumgradValueError(
            f"The size of last dimension is {length} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    size = round(n)
    mat = torch.zeros((*vec.shape[:-1], size, size), dtype=vec.dtype)
    return mat.index_put((..., *map(torch.from_numpy, np.tril_indices(size, diag))), vec)


def sum_rightmost(value: Any, dim: int) -> Any:
    """Sum over the last axes."""
    return value.reshape((*value.shape[: value.dim() - dim], -1)).sum(-1) if dim else value


def inside(support: Any, x: Any) -> Any:
    """Numbers that rounding to 0 or 1 has not taken out of a support that ends there."""
    bounds, info = support._bounds, torch.finfo(x.dtype)
    if "lower_bound" in bounds and isinstance(support.lower_bound, float):
        x = x.clamp(min=info.tiny)
    if "upper_bound" in bounds and isinstance(support.upper_bound, float):
        x = x.clamp(max=1 - info.eps / 2)
    return x


def inside_unit(p: Any) -> Any:
    """Numbers from 0 to 1, neither of them."""
    info = torch.finfo(p.dtype)
    return p.clamp(min=info.tiny, max=1 - info.eps)


def inner_uniform(shape: Any, like: Any) -> Any:
    """Uniform numbers between 0 and 1."""
    return inside_unit(torch.rand(torch.Size(shape), dtype=like.dtype))


def drawn(name: str, shape: Any, *parameters: Any) -> Any:
    """Numbers by a method of ``ng.random``, with gradients in the parameters and in their dtype."""
    given = [p.double() if p.is_floating_point() else p for p in parameters]
    method = getattr(generator_from("rsample", None), name)
    return wrap(method(*[p._tensor for p in given], size=tuple(shape))).to(parameters[0].dtype)
