"""Kullback-Leibler divergences: those of ``ng.stats`` by pairs of families, and users' own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any

from numgrad.errors import NumgradNotImplementedError, NumgradTypeError
from numgrad.stats.divergence import kl_divergence as of_families
from numgrad.torch.distributions import utils
from numgrad.torch.distributions.composed import Independent, TransformedDistribution
from numgrad.torch.distributions.distribution import Distribution
from numgrad.torch.distributions.tables import TableDistribution
from numgrad.torch.wrapping import wrap

KL_REGISTRY: dict[tuple[type, type], Callable[..., Any]] = {}
"""Formulas by pairs of classes."""


def register_kl(type_p: Any, type_q: Any) -> Callable[..., Any]:
    """Give the divergence of two classes, as a decorator of a function of ``p`` and ``q``."""
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise NumgradTypeError(f"Expected a Distribution subclass but got {kind!r}")

    def decorator(function: Any) -> Any:
        KL_REGISTRY[type_p, type_q] = function
        return function

    return decorator


def kl_divergence(p: Any, q: Any) -> Any:
    """Kullback-Leibler divergence ``KL(p || q)``, one number for each of the batch.

    The formula is that of the nearest classes among the bases, those of ``p`` first.

    Raises
    ------
    NumgradNotImplementedError
        If there is none; ``register_kl`` adds one.

    Examples
    --------
    >>> from numgrad.torch.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    for kinds in product(type(p).__mro__, type(q).__mro__):
        if kinds in KL_REGISTRY:
            return KL_REGISTRY[kinds](p, q)
    raise _lacking(p, q)


def _lacking(p: Any, q: Any) -> Exception:
    return NumgradNotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
        f"{type(q).__name__}; add it by register_kl"
    )


@register_kl(TableDistribution, TableDistribution)
def _rows(p: Any, q: Any) -> Any:
    """Divergence of two families of ``ng.stats``."""
    if p._frozen and q._frozen:
        with suppress(NotImplementedError):
            return wrap(of_families(p._frozen(), q._frozen()))
    return _transformed(p, q)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NumgradNotImplementedError("the numbers of axes of the events differ")
    return utils.sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    applied, other = (getattr(d, "transforms", None) for d in (p, q))
    if applied is None or applied != other or p.event_shape != q.event_shape:
        raise _lacking(p, q)
    base = kl_divergence(p.base_dist, q.base_dist)
    return utils.sum_rightmost(base, base.dim() - len(p.batch_shape))
