"""NumPy's ``Generator`` with Tensors as results, and the one that an argument means."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from numgrad.core.abstract import AbstractLength
from numgrad.core.axis import normalize_axes
from numgrad.core.interpreter import state
from numgrad.core.masks import refuse_mask
from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_operand
from numgrad.random.draws import (
    asked,
    at_once,
    checked_parameter,
    drawn_now,
    drawn_shape,
    named,
    numbers,
    places,
    plain,
)
from numgrad.tensors.reparameterised import PATHS, STANDARD, allowed, differentiated, fixed
from numgrad.tensors.tensor import Tensor


class Generator:
    """NumPy's ``Generator`` with Tensors as results; the wrapped one is ``generator``.

    Parameters
    ----------
    generator
        One of NumPy's generators, or of its bit generators, such as ``np.random.PCG64(5)``.

    Raises
    ------
    NumgradTypeError
        If it is neither.
    """

    def __init__(self, generator: np.random.Generator | np.random.BitGenerator | Generator) -> None:
        if isinstance(generator, np.random.BitGenerator):
            generator = np.random.Generator(generator)
        self.generator = generator_of("random.Generator", generator)
        state.ground.wrapped(self.generator.bit_generator)

    def __deepcopy__(self, memo: dict[int, Any]) -> Generator:
        made = _made(deepcopy(self.generator, memo))
        state.ground.begun(made, self)
        return made

    def __repr__(self) -> str:
        return f"numgrad.random.{self.generator!r}"

    @property
    def bit_generator(self) -> Any:
        """What NumPy's generator draws from."""
        return self.generator.bit_generator

    def spawn(self, n_children: int) -> list[Generator]:
        """New generators that are independent of this one and of each other."""
        state.ground.once("random.spawn: makes generators outside of a compiled function")
        method = self.generator.spawn
        return [Generator(each) for each in named(method, method, n_children)]

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        state.ground.once("random.bytes: is no array; draw integers of dtype uint8")
        return named(self.generator.bytes, self.generator.bytes, length)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Normal numbers of mean ``loc`` and standard deviation ``scale``."""
        return self._followed("normal", (loc, scale), size)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64) -> Tensor:
        """Normal numbers of mean 0 and standard deviation 1, float64 or float32."""
        return numbers(self.generator.standard_normal, (), size, dtype)

    def standard_exponential(self, size: Any = None, dtype: Any = np.float64) -> Tensor:
        """Exponential numbers of mean 1, float64 or float32."""
        return numbers(self.generator.standard_exponential, (), size, dtype)

    def standard_cauchy(self, size: Any = None) -> Tensor:
        """Cauchy numbers around 0 of scale 1."""
        return numbers(self.generator.standard_cauchy, (), size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
        """Numbers spread evenly over the interval from ``low`` up to ``high``."""
        return self._followed("uniform", (low, high), size)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Laplace numbers around ``loc``."""
        return self._followed("laplace", (loc, scale), size)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Logistic numbers around ``loc``."""
        return self._followed("logistic", (loc, scale), size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Gumbel numbers, limits of maxima."""
        return self._followed("gumbel", (loc, scale), size)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Tensor:
        """Exponentials of normal numbers."""
        return self._followed("lognormal", (mean, sigma), size)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Exponential numbers of mean ``scale``."""
        return self._followed("exponential", (scale,), size)

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Rayleigh numbers."""
        return self._followed("rayleigh", (scale,), size)

    def weibull(self, a: Any, size: Any = None) -> Tensor:
        """Weibull numbers of shape ``a``."""
        return self._followed("weibull", (a,), size)

    def pareto(self, a: Any, size: Any = None) -> Tensor:
        """Pareto numbers of shape ``a``, less 1: they begin at 0."""
        return self._followed("pareto", (a,), size)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Tensor:
        """Gamma numbers, whose gradients in ``shape`` are implicit ones."""
        return self._followed("gamma", (shape, scale), size)

    def standard_gamma(self, shape: Any, size: Any = None) -> Tensor:
        """Gamma numbers of scale 1."""
        return self._followed("standard_gamma", (shape,), size)

    def chisquare(self, df: Any, size: Any = None) -> Tensor:
        """Chi-squared numbers of ``df`` degrees of freedom."""
        return self._followed("chisquare", (df,), size)

    def beta(self, a: Any, b: Any, size: Any = None) -> Tensor:
        """Beta numbers, whose gradients are implicit ones."""
        return self._followed("beta", (a, b), size)

    def power(self, a: Any, size: Any = None) -> Tensor:
        """Numbers from 0 to 1 whose density is a power, ``a - 1``."""
        return self._followed("power", (a,), size)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Tensor:
        """Numbers whose density is a triangle with its top at ``mode``."""
        return self._followed("triangular", (left, mode, right), size)

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Tensor:
        """Angles around ``mu``, whose gradients in ``kappa`` are implicit ones."""
        return self._followed("vonmises", (mu, kappa), size)

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Tensor:
        """Times until a motion with a drift arrives; gradients are implicit ones."""
        return self._followed("wald", (mean, scale), size)

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Tensor:
        """Ratios of chi-squared numbers over degrees of freedom; gradients are implicit ones."""
        return self._followed("f", (dfnum, dfden), size)

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Tensor:
        """Sums of squares of normal numbers that are not around 0; gradients are implicit ones."""
        return self._followed("noncentral_chisquare", (df, nonc), size)

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Tensor:
        """Ratios of such sums to chi-squared numbers; gradients are implicit ones."""
        return self._followed("noncentral_f", (dfnum, dfden, nonc), size)

    def standard_t(self, df: Any, size: Any = None) -> Tensor:
        """Numbers of Student's distribution, whose gradients are implicit ones."""
        return self._followed("standard_t", (df,), size)

    def dirichlet(self, alpha: Any, size: Any = None) -> Tensor:
        """Probabilities that add up to 1: gamma numbers of shapes ``alpha`` over their sum."""
        alpha = as_operand(alpha)
        lead = () if size is None else tuple(size) if isinstance(size, tuple | list) else (size,)
        drawn = self.standard_gamma(alpha, (*lead, *alpha.shape))
        return drawn / drawn.sum(axis=-1, keepdims=True)

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, check_valid: str = "warn", tol: float = 1e-8,
        *, method: str = "svd",
    ) -> Tensor:  # fmt: skip
        """Normal vectors, whose gradients in ``cov`` are those of its Cholesky factor."""
        mean, cov = as_operand(mean), as_operand(cov)
        if mean.ndim != 1 or tuple(cov.shape) != (*mean.shape, *mean.shape):
            raise NumgradValueError(
                f"random.multivariate_normal: a mean of shape {tuple(mean.shape)} and a covariance "
                f"matrix of shape {tuple(cov.shape)}; they must be (n,) and (n, n)"
            )
        lead = () if size is None else tuple(size) if isinstance(size, tuple | list) else (size,)
        were = (fixed(mean), fixed(cov))

        numpys: Any = self.generator.multivariate_normal

        def draw(mean: Any, cov: Any, shape: Any) -> Any:
            return numpys(mean, cov, shape[:-1], check_valid, tol, method=method)

        found = asked(numpys, draw, were, (*lead, *mean.shape), np.float64, apart=False)
        if not (differentiated(mean) or differentiated(cov)):
            return found
        moved = np.linalg.cholesky(cov) @ np.linalg.inv(np.linalg.cholesky(were[1]))
        return mean + (found - were[0]) @ moved.T

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Tensor:
        """Numbers of events of mean ``lam``."""
        return numbers(self.generator.poisson, (lam,), size, kind=np.int64)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Tensor:
        """Numbers of successes in ``n`` trials of probability ``p``."""
        return numbers(self.generator.binomial, (n, p), size, kind=np.int64)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Tensor:
        """Counts of ``n`` draws of classes with probabilities along the last axis of ``pvals``."""
        n, pvals = map(as_operand, map(checked_parameter, (n, pvals)))
        lead = drawn_shape("random.multinomial", size, n.shape, pvals.shape[:-1])
        method = self.generator.multinomial

        def draw(n: Any, p: Any, shape: Any) -> Any:
            return method(n, p, shape[:-1])

        shape = (*lead, pvals.shape[-1])
        return asked(method, draw, (n, pvals), shape, np.int64, apart=False)

    def multivariate_hypergeometric(
        self, colors: Any, nsample: Any, size: Any = None, method: str = "marginals"
    ) -> Tensor:
        """Counts of each kind among ``nsample`` drawn without putting back of ``colors`` each."""
        colors, nsample = map(as_operand, map(checked_parameter, (colors, nsample)))
        lead = () if size is None else tuple(size) if isinstance(size, tuple | list) else (size,)
        numpys: Any = self.generator.multivariate_hypergeometric

        def draw(colors: Any, nsample: Any, shape: Any) -> Any:
            return numpys(colors, int(nsample), shape[:-1], method)

        shape = (*lead, *colors.shape)
        return asked(numpys, draw, (colors, nsample), shape, np.int64, apart=False)

    def geometric(self, p: Any, size: Any = None) -> Tensor:
        """Numbers of trials until one of probability ``p`` succeeds."""
        return numbers(self.generator.geometric, (p,), size, kind=np.int64)

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Tensor:
        """Numbers of failures before the ``n``-th success of probability ``p``."""
        return numbers(self.generator.negative_binomial, (n, p), size, kind=np.int64)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Tensor:
        """Numbers of good ones among ``nsample`` that are drawn without putting them back."""
        return numbers(self.generator.hypergeometric, (ngood, nbad, nsample), size, kind=np.int64)

    def logseries(self, p: Any, size: Any = None) -> Tensor:
        """Positive integers whose probabilities are terms of the logarithm's series."""
        return numbers(self.generator.logseries, (p,), size, kind=np.int64)

    def zipf(self, a: Any, size: Any = None) -> Tensor:
        """Positive integers with probabilities proportional to their power ``-a``."""
        return numbers(self.generator.zipf, (a,), size, kind=np.int64)

    def _followed(self, name: str, parameters: tuple, size: Any) -> Tensor:
        """Numbers with gradients in the parameters: ``tensors.reparameterised``.

        They follow from numbers of standard location and scale, drawn as NumPy draws them: so a
        scale may be 0, and in the body of a loop or branch these are drawn before it.
        """
        if not (state.ground.inner or any(map(differentiated, parameters))):
            return numbers(getattr(self.generator, name), parameters, size)
        given = tuple(p if isinstance(p, int | float) else as_operand(p) for p in parameters)
        size = drawn_shape(f"random.{name}", size, *[getattr(p, "shape", ()) for p in given])
        were, method = tuple(map(fixed, given)), getattr(self.generator, name)
        standard = STANDARD.get(name, ())
        kept = len(were) - len(standard)
        known = (*were[:kept], *standard)
        if state.ground.inner:  # these may depend on what the body computes
            found = PATHS[name](numbers(method, known, size), known, *given)
            return found * np.where(allowed(name, were), 1.0, np.nan) if standard else found

        def draw(*drawn_with: Any) -> Any:
            *parameters, shape = drawn_with
            method(*parameters, (0, *shape))  # NumPy checks them also where it draws nothing
            return method(*parameters[:kept], *standard, shape)

        return PATHS[name](asked(method, draw, were, size, np.float64), known, *given)

    def random(self, size: Any = None, dtype: Any = np.float64) -> Tensor:
        """Numbers spread evenly over the interval from 0 up to 1, float64 or float32."""
        return numbers(self.generator.random, (), size, dtype)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64,
        endpoint: bool = False,
    ) -> Tensor:  # fmt: skip
        """Integers from ``low`` up to ``high``, which is left out unless ``endpoint``."""
        if high is None:
            low, high = 0, low
        return numbers(self.generator.integers, (low, high), size, dtype, endpoint=endpoint)

    def permutation(self, x: Any, axis: int = 0) -> Tensor:
        """The rows of ``x``, or the integers below ``x``, in random order."""
        if at_once() and not differentiated(x):
            return drawn_now(self.generator.permutation, plain(x), axis)
        if isinstance(x, int | AbstractLength):
            return places(self.generator.permutation, x)
        x = as_operand(x)
        return OPS["take"](x, places(self.generator.permutation, x.shape[axis]), axis=axis)

    def permuted(self, x: Any, axis: int | None = None) -> Tensor:
        """The elements in random order, each part along ``axis`` in one of its own."""
        x = as_operand(x)
        row = OPS["reshape"](x, (-1,)) if axis is None else x
        method = self.generator.permuted
        along = 0 if axis is None else normalize_axes("random.permuted", axis, row.ndim)[0]

        def draw(shape: Any) -> Any:
            places = np.arange(shape[along]).reshape((-1,) + (1,) * (len(shape) - along - 1))
            return method(np.broadcast_to(places, shape), axis=along)

        order = asked(method, draw, (), tuple(row.shape), np.int64, apart=False)
        return OPS["reshape"](OPS["take_along_axis"](row, order, axis=along), tuple(x.shape))

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Put the parts of ``x`` along an axis in random order, in place."""
        if isinstance(x, Tensor):
            x[...] = self.permutation(x, axis)
        else:
            state.ground.once(
                "random.shuffle: of what is no Tensor is done in place while the function is "
                "traced, and not at each call; take x = rng.permutation(x), which is a new array"
            )
            refuse_mask("random.shuffle", x)
            named(self.generator.shuffle, self.generator.shuffle, x, axis)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0,
        shuffle: bool = True,
    ) -> Tensor:  # fmt: skip
        """Random rows of ``a``, or integers below ``a``, with probabilities ``p``."""
        if at_once() and not differentiated(a):
            return drawn_now(
                self.generator.choice, plain(a), size, replace, plain(p), axis, shuffle
            )
        rows = None if isinstance(a, int | AbstractLength) else as_operand(a)
        count = a if rows is None else rows.shape[axis]
        weights = () if p is None else (as_operand(p),)
        method = self.generator.choice

        def choose(count: Any, *rest: Any) -> Any:
            given = rest[0] if weights else None
            return method(int(count), rest[-1], replace, given, 0, shuffle)

        size = () if size is None else size
        found = asked(method, choose, (count, *weights), size, np.int64, apart=False)
        return found if rows is None else OPS["take"](rows, found, axis=axis)


def generator_of(
    operation: str, generator: Generator | np.random.Generator | None
) -> np.random.Generator:
    """NumPy's generator that is meant; for None one over the state of NumPy's global generator.

    Raises
    ------
    NumgradTypeError
        If ``generator`` is anything else; the message begins with the name of the operation.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.random.generator import generator_of
    >>> generator_of("deal", ng.random.default_rng(0)).integers(10)
    np.int64(8)
    """
    if generator is None:
        return np.random.Generator(np.random.get_bit_generator())  # pyright: ignore
    if isinstance(generator, Generator):
        return generator.generator
    if isinstance(generator, np.random.Generator):
        return generator
    raise NumgradTypeError(
        f"{operation}: the generator is one of ng.random or of NumPy, got "
        f"{type(generator).__name__}; make one with ng.random.default_rng"
    )


def generator_from(operation: str, seed: Any) -> Generator:
    """The generator that SciPy's parameter ``random_state`` means.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If it is neither None, a generator nor a seed.

    Examples
    --------
    >>> from numgrad.random.generator import generator_from
    >>> generator_from("rvs", 0).integers(10)
    tensor(8)
    """
    if isinstance(seed, Generator):
        return seed
    if seed is None or isinstance(seed, np.random.Generator):
        return Generator(generator_of(operation, seed))
    return _from_seed(operation, seed)


def default_rng(seed: Any = None) -> Generator:
    """A new generator; equal seeds give equal numbers.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.random.default_rng(0).normal(size=2)
    tensor([ 0.12573022, -0.13210486])
    """
    if isinstance(seed, Generator):
        return seed
    if isinstance(seed, np.random.Generator | np.random.BitGenerator):
        return Generator(seed)
    return _from_seed("default_rng", seed)


def _from_seed(operation: str, seed: Any) -> Generator:
    """A new generator; without a seed it is another at each call, so that it may go on as well."""
    made = _made(seeded(operation, np.random.default_rng, seed))
    if seed is not None:
        state.ground.begun(made)
    return made


def _made(generator: np.random.Generator) -> Generator:
    """A generator over one that is known to be new."""
    made = Generator.__new__(Generator)
    made.generator = generator
    return made


def seeded(name: str, make: Callable[..., Any], seed: Any) -> Any:
    """What ``make`` gives for a seed; its errors name the operation and the seed."""
    if isinstance(seed, Tensor) and (numbers := state.ground.numbers(seed)) is not None:
        seed = numbers[()]
    if isinstance(seed, Tensor):
        message = (
            f"{name}: the seed is an array of shape {tuple(seed.shape)} whose numbers are not "
            "known while a function is compiled or batched; make the generator outside of it, pass "
            "the seed as a static argument (static_argnums, static_argnames), or draw the numbers "
            "of all steps from one generator"
        )
        state.ground.once(message)
        raise NumgradTypeError(message)
    try:
        return make(seed)
    except ValueError as error:
        raise NumgradValueError(f"{name}: seed {seed!r}: {error}") from None
    except TypeError as error:
        raise NumgradTypeError(f"{name}: seed {seed!r}: {error}") from None
