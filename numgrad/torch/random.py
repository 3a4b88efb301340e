"""Random numbers: generators, functions that draw, and what fills Tensors in place.

Numbers come from NumPy's global generator, which the rest of numgrad draws from too, or from that
of a ``Generator``. They are not those of PyTorch for the same seed; distributions are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from threading import local
from typing import Any

import numpy as np

from numgrad.core.interpreter import drawn as by_interpreter
from numgrad.errors import NumgradRuntimeError
from numgrad.random.generator import at_once
from numgrad.torch import dtypes
from numgrad.torch.creation import default, finished, like, maker, makers
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.wrapping import Tensor, unwrap, wrapped


class Generator:
    """A source of random numbers with a seed of its own."""

    def __init__(self, device: Any = "cpu", _source: Any = None) -> None:
        self.device = dtypes.device(device)
        self._source = np.random.RandomState(0) if _source is None else _source
        self._seed = _SEED
        if _source is None:
            self.manual_seed(_SEED)

    def manual_seed(self, seed: int) -> Generator:
        """Begin anew from a seed; of the default generator, ``torch.manual_seed``, NumPy as well.

        Examples
        --------
        >>> import numgrad.torch as torch
        >>> torch.manual_seed(0).initial_seed()
        0
        """
        self._seed = int(seed)
        self._source.seed([abs(self._seed) >> 32 & 0xFFFFFFFF, abs(self._seed) & 0xFFFFFFFF])
        return self

    def seed(self) -> int:
        """Begin anew from a seed that the system gives, and return it."""
        seed = int(np.random.SeedSequence().entropy) % 2**63  # pyright: ignore
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed."""
        return self._seed

    def get_state(self) -> Tensor:
        """The state, as a Tensor of bytes."""
        _, keys, *numbers = self._source.get_state()
        parts = np.asarray(keys).view(np.uint8), np.array(numbers, np.float64).view(np.uint8)
        return finished(np.concatenate(parts))

    def set_state(self, new_state: Any) -> Generator:
        """Go on from a state that ``get_state`` gave.

        Raises
        ------
        NumgradRuntimeError
            If it is another's, such as one of PyTorch's, whose numbers are others.
        """
        given = np.array(getattr(new_state, "_tensor", new_state))
        if given.dtype != np.uint8 or given.shape != (2520,):
            raise NumgradRuntimeError(
                "set_rng_state: needs a uint8 tensor of 2520 elements that numgrad's "
                f"get_rng_state() gave, got {given.dtype} of shape {given.shape}; PyTorch's states "
                "are of another generator: use manual_seed"
            )
        keys, numbers = np.split(given, [2496])
        position, has_gauss, gauss = numbers.view(np.float64).tolist()
        keys = keys.view(np.uint32)
        self._source.set_state(("MT19937", keys, int(position), int(has_gauss), gauss))
        return self


_SEED = 67280421310721
worker = local()
"""In threads that are workers of a ``DataLoader``, ``generator`` is the one that is drawn from."""


def _present() -> Generator:
    return getattr(worker, "generator", default_generator)


default_generator = Generator(_source=np.random)
"""The generator that functions draw from: NumPy's global one, in workers one of their own."""


def _of_present(name: str) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        return getattr(_present(), name)(*args)

    function.__name__, function.__doc__ = name, getattr(Generator, name).__doc__
    return function


manual_seed, seed, initial_seed, get_rng_state, set_rng_state = map(
    _of_present, ("manual_seed", "seed", "initial_seed", "get_state", "set_state")
)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Any:
    """Put the state of the default generator back at the end of a block."""
    before = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(before)


def drawn(
    draw: Callable[..., Any], shape: tuple[int, ...], d: Any, generator: Any = None,
    parameters: Any = (), independent: bool = True,
) -> Any:  # fmt: skip
    """Random numbers of a dtype: a Tensor, in ``vmap`` of numbers as its ``randomness`` says.

    ``draw`` gets the source, the shape, the dtype and the numbers of the parameters.
    """
    source, d = (generator or _present())._source, np.dtype(d)
    parameters = [unwrap(p) for p in parameters]

    def numbers(*given: Any) -> Any:
        return np.asarray(draw(source, given[-1], d, *given[:-1])).astype(d)

    if at_once():
        return finished(numbers(*[getattr(p, "_array", p) for p in parameters], shape))
    given: Any = np.random.get_bit_generator if source is np.random else None  # pyright: ignore
    bits = source._bit_generator if given is None else given()
    return wrapped(by_interpreter(numbers, bits, parameters, shape, d, independent))


def _by_element(draw: Callable[..., Any], generator: Any, like: Any, *parameters: Any) -> Tensor:
    """Random numbers, one for each element of parameters, of the dtype of ``like``."""
    shape = np.broadcast_shapes(*[getattr(p, "shape", ()) for p in (like, *parameters)])
    return drawn(draw, shape, like.dtype.numpy, generator, parameters)


def _require(holds: Any, text: str) -> None:
    if not holds:
        raise NumgradRuntimeError(text)


def _draw_normal(source: Any, shape: tuple, d: Any, mean: Any = 0.0, std: Any = 1.0) -> Any:
    _require(np.all(np.asarray(std) >= 0), f"normal_ expects std >= 0.0, but found std {std}")
    z = source.standard_normal(shape)
    if d.kind == "c":
        z = (z + 1j * source.standard_normal(shape)) * np.sqrt(0.5)
    return z * std + mean


def _draw_uniform(source: Any, shape: tuple, d: Any, low: Any = 0.0, high: Any = 1.0) -> Any:
    bounds = f"from={low} > to={high}"
    _require(low <= high, f"uniform_ expects to return a [from, to) range, but found {bounds}")
    u = source.random_sample(shape)
    if d.kind == "c":
        u = u + 1j * source.random_sample(shape)
    return low + (high - low) * u


def _draw_bernoulli(source: Any, shape: tuple, d: Any, p: Any) -> Any:
    p = np.asarray(p)
    _require(((p >= 0) & (p <= 1)).all(), "bernoulli: Expected p_in >= 0 && p_in <= 1 to be true")
    return source.random_sample(shape) < p


def _draw_integers(source: Any, shape: tuple, d: Any, low: Any, high: Any) -> Any:
    low, high = (0, low) if high is None else (low, high)
    if high is None:
        high = 2**24 if d.kind == "f" else int(np.iinfo(d).max)
    bounds = f"from={low} >= to={high}"
    _require(low < high, f"random_ expects 'from' to be less than 'to', but got {bounds}")
    return source.randint(low, high, shape, np.int64)


def _draw_rows(source: Any, shape: tuple, weights: Any, replacement: bool) -> Any:
    """Indices by the weights of rows; without replacement as a race of exponential numbers.

    P. Efraimidis, P. Spirakis, "Weighted random sampling with a reservoir", 2006.
    """
    weights, count = weights.astype(np.float64), shape[-1]
    _require(
        (weights >= 0).all() and (weights.sum(-1) > 0).all() and np.isfinite(weights).all(),
        "multinomial: probability tensor contains either `inf`, `nan` or element < 0, or sums to 0",
    )
    _require(
        replacement or (np.count_nonzero(weights, -1) >= count).all(),
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    )
    weights = np.broadcast_to(weights, (*shape[:-1], weights.shape[-1]))
    if not replacement:
        with np.errstate(divide="ignore"):
            return np.argsort(source.exponential(size=weights.shape) / weights, -1)[..., :count]
    sums = weights.reshape(-1, weights.shape[-1]).cumsum(-1)
    edges, reached = sums[:, :-1], source.random_sample((len(sums), count)) * sums[:, -1:]
    if len(edges) > count:
        drawn = [np.count_nonzero(edges <= u[:, None], -1) for u in reached.T]
        return np.stack(drawn, -1).reshape(shape) if count else np.empty(shape)
    drawn = [np.searchsorted(e, u, "right") for e, u in zip(edges, reached, strict=True)]
    return np.array(drawn).reshape(shape)


rand, randn, randperm, bernoulli, multinomial, poisson, binomial = makers(
    globals(),
    """
{rand=uniform randn=normal}(*args, size=None, generator=None): drawn(
    _draw_@, dtypes.sizes(args if size is None else (size,)), default(dtype), generator)
randperm(n, *, generator=None): drawn(
    lambda s, shape, d: s.random_sample(shape).argsort(-1) if shape[1:] else s.permutation(*shape),
    dtypes.sizes((n,)), np.int64, generator)
bernoulli(input, p=None, *, generator=None): _by_element(
    _draw_bernoulli, generator, input, input if p is None else p)
multinomial(input, num_samples, replacement=False, *, generator=None): drawn(
    lambda s, shape, d, weights: _draw_rows(s, shape, weights, replacement),
    (*input.shape[:-1], num_samples), np.int64, generator, (input,), independent=False)
poisson(input, generator=None): _by_element(
    lambda s, shape, d, rate: s.poisson(rate, shape), generator, input, input)
binomial(count, prob, generator=None): _by_element(
    lambda s, shape, d, n, p: s.binomial(n.astype(np.int64), p, shape), generator, count, count,
    prob)
""",
)


@maker
def randint(
    low: int, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None
) -> Any:
    """Return integers from ``low`` (0 if it is left out) to below ``high``."""
    if size is None:
        low, high, size = 0, low, high
    return drawn(_draw_integers, dtypes.sizes((size,)), dtype or np.int64, generator, (low, high))


@maker
def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None
) -> Any:
    """Return normal numbers, of means and standard deviations by element or of a shape."""
    given = [x for x in (mean, std) if isinstance(x, Tensor)]
    if size is None and given:
        return _by_element(_draw_normal, generator, given[0], mean, std)
    return drawn(_draw_normal, dtypes.sizes((size,)), default(dtype), generator, (mean, std))


rand_like, randn_like = map(like, (rand, randn))


def randint_like(input: Any, *bounds: int, dtype: Any = None, **rest: Any) -> Tensor:
    """Return integers in the shape and dtype of a Tensor."""
    return randint(*bounds, size=tuple(input.shape), dtype=dtype or input.dtype, **rest)


def _filling(row: str) -> tuple[str, Callable[..., Tensor]]:
    """A method that fills a Tensor: ``name(parameters) if condition: numbers of a shape``."""
    head, _, body = row.partition(": ")
    head, _, needs = head.partition(" if ")
    name, _, parameters = head.rstrip(")").partition("(")
    names = ", ".join([each.partition("=")[0] for each in parameters.split(", ")])
    values, holds = eval(f"lambda {parameters}: ({names},)"), eval(f"lambda {names}: {needs or 1}")
    draw = eval(f"lambda s, shape, d, {names}: {body}", globals())

    def method(self: Tensor, *args: Any, generator: Any = None, **given: Any) -> Tensor:
        numbers, target = values(*args, **given), self._tensor
        if not holds(*numbers):
            raise NumgradRuntimeError(f"{name} expects {needs}, but found {names} = {numbers}")
        target.copy_(drawn(draw, tuple(target.shape), target.dtype, generator, numbers)._tensor)
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Fill with random numbers: ``{body}``."
    return name, method


_FILLING = """
normal_(mean=0.0, std=1.0): _draw_normal(s, shape, d, mean, std)
uniform_(low=0.0, to=1.0): _draw_uniform(s, shape, d, low, to)
random_(low=None, to=None): _draw_integers(s, shape, d, low, to)
bernoulli_(p=0.5): _draw_bernoulli(s, shape, d, p)
exponential_(lambd=1.0) if lambd > 0.0: s.exponential(1 / lambd, shape)
geometric_(p=0.5) if 0 < p < 1: s.geometric(p, shape)
cauchy_(median=0.0, sigma=1.0) if sigma > 0.0: median + sigma * s.standard_cauchy(shape)
log_normal_(mean=1.0, std=2.0) if std > 0.0: s.lognormal(mean, std, shape)
"""
METHODS: dict[str, Callable[..., Tensor]] = dict(map(_filling, _FILLING.strip().split("\n")))
METHODS |= {"bernoulli": bernoulli, "multinomial": multinomial}
"""Methods of Tensors that fill them, and of probabilities."""


__getattr__ = _refuse(globals())
