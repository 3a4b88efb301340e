"""Distributions that keep their parameters."""

from functools import partial
from typing import Any

from numgrad.core.tree import register


class Frozen:
    """A distribution with its parameters, made by calling a family as ``ng.stats.norm(mu, sigma)``.

    It has the family's methods, which take what is left: ``pdf(x)``, ``ppf(q)``, ``mean()``,
    ``rvs(size)``, ``interval(confidence)``, ``expect(func)``. Gradients go to the parameters. It is
    a container of them for ``ng.tree``, so that transforms take it as an argument.

    Attributes
    ----------
    dist
        The family.
    args, kwds
        The parameters, by position and by name.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.grad(lambda mu: ng.stats.norm(mu, 2.0).logpdf(1.0))(0.0)
    np.float64(0.25)
    """

    def __init__(self, dist: Any, args: tuple = (), kwds: dict[str, Any] | None = None) -> None:
        self.dist, self.args, self.kwds = dist, args, dict(kwds or {})

    def __repr__(self) -> str:
        shown = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwds.items())]
        return f"<{self.dist!r} at {', '.join(shown)}>"

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_" or name == "dist":  # what protocols ask for, before there is one
            raise AttributeError(name)
        return partial(self._call, getattr(self.dist, name))

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *(name for name in dir(self.dist) if name[0] != "_")})

    def _call(self, method: Any, *given: Any, **named: Any) -> Any:
        return method(*given, *self.args, **self.kwds, **named)

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Random numbers, with gradients in the parameters where the numbers are continuous."""
        return self._call(self.dist.rvs, size=size, random_state=random_state)

    def stats(self, moments: str = "mv") -> Any:
        """Mean ``m`` and variance ``v``, of which ``moments`` names those that are returned."""
        return self._call(self.dist.stats, moments=moments)

    def expect(
        self, func: Any = None, lb: Any = None, ub: Any = None, conditional: bool = False,
        **kwds: Any,
    ) -> Any:  # fmt: skip
        """Mean of a function of the number, with gradients in the parameters: see the family's."""
        options = {"lb": lb, "ub": ub, "conditional": conditional} | kwds
        return self.dist._expect(func, self.args, self.kwds, **options)


def _split(frozen: Frozen) -> tuple[list[Any], Any]:
    return [*frozen.args, *frozen.kwds.values()], (frozen.dist, len(frozen.args), (*frozen.kwds,))


def _join(rest: Any, values: Any) -> Frozen:
    dist, count, names = rest
    values = list(values)
    return Frozen(dist, tuple(values[:count]), dict(zip(names, values[count:], strict=True)))


register(Frozen, _split, _join)
