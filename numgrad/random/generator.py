"""NumPy's ``Generator`` with Tensors as results: draws, seeds and states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from operator import index
from typing import Any

import numpy as np

from numgrad.core.abstract import AbstractLength, broadcast_lengths
from numgrad.core.axis import normalize_axes
from numgrad.core.foreign import refuse_mask
from numgrad.core.interpreter import drawn, state
from numgrad.core.op import OPS
from numgrad.errors import NumgradError, NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_operand
from numgrad.tensors.reparameterised import PATHS, STANDARD, allowed, differentiated, fixed
from numgrad.tensors.tensor import Tensor


def drawn_shape(operation: str, size: Any, *shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape of what is drawn, to which parameters of these shapes have to broadcast.

    Raises
    ------
    NumgradValueError
        If they do not.

    Examples
    --------
    >>> from numgrad.random.generator import drawn_shape
    >>> drawn_shape("deal", None, (3, 1), (4,)), drawn_shape("deal", 4, (4,))
    ((3, 4), (4,))
    """
    try:
        common = broadcast_lengths(*shapes)
        if size is None:
            return common
        requested = tuple(size) if isinstance(size, tuple | list) else (size,)
        if len(common) > len(requested) or broadcast_lengths(common, requested) != requested:
            raise ValueError
    except ValueError:
        described = ", ".join(str(tuple(shape)) for shape in shapes)
        raise NumgradValueError(
            f"{operation}: parameters of shapes {described} do not broadcast to size={size}"
        ) from None
    return requested


def draw_seed() -> Any:
    """A random integer below ``2**53`` from NumPy's global generator, to seed an operation with.

    While a function is compiled it is drawn anew at each call of that.

    Examples
    --------
    >>> from numgrad.random.generator import draw_seed
    >>> 0 <= draw_seed() < 2**53
    True
    """
    if any(each.draws for each in state.interpreters):
        return drawn(_seeds, np.random.get_bit_generator(), (), (), np.int64)  # pyright: ignore
    return state.ground.seed()


def _seeds(size: Any) -> np.ndarray:
    return np.asarray(np.random.random_sample(size) * 2**53).astype(np.int64)


def at_once() -> bool:
    """Whether what NumPy draws now is the result: not in a compiled function or a batch.

    Examples
    --------
    >>> from numgrad.random.generator import at_once
    >>> at_once()
    True
    """
    return not (state.ground.deferred or any(each.draws for each in state.interpreters))


def numbers(
    method: Callable[..., Any], bounds: tuple, size: Any, dtype: Any = None, kind: Any = np.float64,
    **options: Any,
) -> Tensor:  # fmt: skip
    """Numbers between bounds, in an array of a size or of the shape that these broadcast to."""
    draw = method if dtype is None else lambda *arguments: method(*arguments, dtype, **options)
    operands = [checked_parameter(bound, method.__name__) for bound in bounds]
    return asked(method, draw, operands, size, np.dtype(dtype or kind))


def _source(method: Any) -> Any:
    """The generator of which NumPy's method draws."""
    return method.__self__.bit_generator


def places(permutation: Callable[..., Any], count: Any) -> Tensor:
    """The integers below ``count`` in random order."""
    source = _source(permutation)
    return drawn(
        lambda n, _: permutation(int(n)), source, (count,), count, np.int64, independent=False
    )


def checked_parameter(value: Any, name: str = "") -> Any:
    """A parameter, which is no Tensor that is to be differentiated."""
    refuse_mask(f"random{name and '.'}{name}", value)
    if differentiated(value):
        raise NumgradRuntimeError(
            f"random{name and '.'}{name}: a parameter of shape {value.shape} is to be "
            "differentiated, in which these numbers have no gradients; draw from a distribution "
            "whose numbers have some (normal, gamma, beta, ...), choose rows with "
            "x[rng.permutation(n)], or detach() it"
        )
    return value


def plain(value: Any) -> Any:
    """A parameter as NumPy takes it."""
    return value.numpy() if isinstance(checked_parameter(value), Tensor) else value


def drawn_now(method: Callable[..., Any], *args: Any) -> Tensor:
    """Numbers as NumPy draws them."""
    return Tensor(np.asarray(named(method, method, *args)))


def named(method: Callable[..., Any], draw: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of ``draw``, whose errors name the method of NumPy."""
    try:
        return draw(*args, **options)
    except NumgradError:
        raise
    except (ValueError, OverflowError, MemoryError, RuntimeError) as error:
        raise NumgradValueError(f"random.{method.__name__}: {error}") from None
    except (TypeError, KeyError) as error:
        raise NumgradTypeError(f"random.{method.__name__}: {error}") from None


def asked(method: Callable[..., Any], draw: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of ``draw``, now or in the compiled run; errors name the method of NumPy."""
    later = draw if at_once() else partial(named, method, draw)
    return named(method, drawn, later, _source(method), *args, **options)


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
        """The bit generator of NumPy's generator."""
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

        result = asked(numpys, draw, were, (*lead, *mean.shape), np.float64, independent=False)
        if not (differentiated(mean) or differentiated(cov)):
            return result
        moved = np.linalg.cholesky(cov) @ np.linalg.inv(np.linalg.cholesky(were[1]))
        return mean + (result - were[0]) @ moved.T

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
        return asked(method, draw, (n, pvals), shape, np.int64, independent=False)

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
        return asked(numpys, draw, (colors, nsample), shape, np.int64, independent=False)

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
        arguments = tuple(p if isinstance(p, int | float) else as_operand(p) for p in parameters)
        size = drawn_shape(f"random.{name}", size, *[getattr(p, "shape", ()) for p in arguments])
        were, method = tuple(map(fixed, arguments)), getattr(self.generator, name)
        standard = STANDARD.get(name, ())
        remaining = len(were) - len(standard)
        known = (*were[:remaining], *standard)
        if state.ground.inner:  # these may depend on what the body computes
            result = PATHS[name](numbers(method, known, size), known, *arguments)
            return result * np.where(allowed(name, were), 1.0, np.nan) if standard else result

        def draw(*drawn_with: Any) -> Any:
            *parameters, shape = drawn_with
            method(*parameters, (0, *shape))  # NumPy checks them also where it draws nothing
            return method(*parameters[:remaining], *standard, shape)

        return PATHS[name](asked(method, draw, were, size, np.float64), known, *arguments)

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
            positions = np.arange(shape[along]).reshape((-1,) + (1,) * (len(shape) - along - 1))
            return method(np.broadcast_to(positions, shape), axis=along)

        order = asked(method, draw, (), tuple(row.shape), np.int64, independent=False)
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
            arguments = rest[0] if weights else None
            return method(int(count), rest[-1], replace, arguments, 0, shuffle)

        size = () if size is None else size
        result = asked(method, choose, (count, *weights), size, np.int64, independent=False)
        return result if rows is None else OPS["take"](rows, result, axis=axis)


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
    """The result of ``make`` for a seed; its errors name the operation and the seed."""
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


def manual_seed(seed: int) -> None:
    """Let what draws from NumPy's global generator give the same numbers again.

    Parameters
    ----------
    seed
        An integer from 0 up to ``2**32``, which is left out.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.random.manual_seed(0)
    >>> first = ng.nn.functional.dropout(ng.ones(8))
    >>> ng.random.manual_seed(0)
    >>> (ng.nn.functional.dropout(ng.ones(8)) == first).all().item()
    True
    """
    seeded("manual_seed", np.random.seed, seed)
    state.ground.reseeded(seed)


def get_state(generator: Generator | np.random.Generator | None = None) -> dict[str, Any]:
    """The state of a generator, by default NumPy's global one: what it draws next follows from it.

    Returns
    -------
    dict
        Numbers, strings and an array, which ``ng.save`` and pickle keep; for ``set_state``.

    Raises
    ------
    NumgradTypeError
        If ``generator`` is none.

    Examples
    --------
    >>> import numgrad as ng
    >>> state = ng.random.get_state()
    >>> first = ng.nn.functional.dropout(ng.ones(8))
    >>> ng.random.set_state(state)
    >>> (ng.nn.functional.dropout(ng.ones(8)) == first).all().item()
    True
    """
    _refuse_trace("get_state")
    if generator is None:
        return dict(np.random.get_state(legacy=False))  # pyright: ignore
    return dict(generator_of("get_state", generator).bit_generator.state)


def set_state(
    state: Mapping[str, Any], generator: Generator | np.random.Generator | None = None
) -> None:
    """Let a generator, by default NumPy's global one, go on from a state of ``get_state``.

    Raises
    ------
    NumgradTypeError
        If ``state`` is no dictionary, or ``generator`` is none.
    NumgradValueError
        If it is not the state of such a generator, which stays as it was.

    Examples
    --------
    >>> import numgrad as ng
    >>> rng = ng.random.default_rng(0)
    >>> state = ng.random.get_state(rng)
    >>> first = rng.normal()
    >>> ng.random.set_state(state, rng)
    >>> rng.normal() == first
    tensor(True)
    """
    _refuse_trace("set_state")
    target: Any = np.random
    if generator is not None:
        target = generator_of("set_state", generator).bit_generator
    if not isinstance(state, Mapping):
        raise NumgradTypeError(
            f"set_state: takes a dictionary as get_state returns it, got {type(state).__name__}"
        )
    kind = type(np.random.get_bit_generator() if generator is None else target)  # pyright: ignore
    trial: Any = kind(0)
    if generator is None:
        trial = np.random.RandomState(trial)
    try:
        _check_words(state, trial.get_state(legacy=False) if generator is None else trial.state)
        _put(trial, state)
    except Exception as error:
        raise NumgradValueError(
            f"set_state: this is no state of a {kind.__name__} ({error}); give what get_state "
            "returned for a generator of that kind"
        ) from None
    _put(target, state)


def _put(source: Any, state: Mapping[str, Any]) -> None:
    if isinstance(source, np.random.BitGenerator):
        source.state = dict(state)
    else:
        source.set_state(dict(state))


def _check_words(state: Mapping[str, Any], like: Mapping[str, Any]) -> None:
    """Raise unless ``state`` has what ``like`` has; NumPy takes places outside of arrays."""
    for name, value in like.items():
        if name not in state:
            raise ValueError(f"it has no {name!r}")
        entry = state[name]
        if isinstance(value, Mapping):
            if not isinstance(entry, Mapping):
                raise ValueError(f"its {name!r} is a {type(entry).__name__}")
            _check_words(entry, value)
        elif isinstance(value, np.ndarray):
            array = np.asarray(entry)
            if array.shape != value.shape or array.dtype != value.dtype:
                raise ValueError(f"its {name!r} has shape {array.shape} and dtype {array.dtype}")
        elif isinstance(value, float):
            float(entry)
        elif isinstance(value, str):
            if entry != value:
                raise ValueError(f"its {name!r} is {entry!r}")
        else:
            length = max([v.size for v in like.values() if isinstance(v, np.ndarray)], default=0)
            if not 0 <= index(entry) <= (length if name in ("pos", "buffer_pos") else 2**128):
                raise ValueError(f"its {name!r} is {entry}")


def _refuse_trace(name: str) -> None:
    state.ground.once(
        f"{name}: the state of a generator is read and set outside of a compiled function, "
        "whose random numbers are drawn at each call"
    )
