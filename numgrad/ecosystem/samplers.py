"""Samplers of other libraries: emcee, dynesty, BlackJAX and nutpie; their draws for ArviZ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.core.tree import align
from numgrad.ecosystem.vectors import (
    check_objective,
    imported,
    shaped,
    values_and_gradients_at,
    values_at,
)
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.optimize.objective import Objective


def log_density(objective: Objective) -> Callable[[Any], Any]:
    """The log density as samplers without gradients call it: at one vector, or many at once.

    Parameters
    ----------
    objective
        What ``ng.objective(log_density, start)`` makes; with ``jit=True`` a batch is one call of
        compiled code.

    Returns
    -------
    callable
        Takes an array of shape (..., size), vectors as ``objective.ravel`` makes them, and returns
        values of shape (...); a float for one vector. No gradient is computed, nothing is kept
        between calls, and values that are not finite come out as they are.

    Raises
    ------
    NumgradTypeError
        If it gets something else.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> normal = ng.objective(lambda x: -0.5 * np.sum(x**2), np.zeros(2))
    >>> log_density = ng.ecosystem.log_density(normal)
    >>> log_density([1.0, 2.0]), log_density(np.ones((3, 2)))
    (-2.5, array([-1., -1., -1.]))
    >>> import emcee  # doctest: +SKIP
    >>> sampler = emcee.EnsembleSampler(8, 2, log_density, vectorize=True)  # doctest: +SKIP
    >>> _ = sampler.run_mcmc(np.random.normal(size=(8, 2)), 10)  # doctest: +SKIP
    """
    return values_at(check_objective("log_density", objective))


def prior_transform(objective: Objective, distributions: Any) -> Callable[[Any], np.ndarray]:
    """The function from the unit cube to parameters that nested samplers call, of distributions.

    Parameters
    ----------
    objective
        What ``ng.objective(log_likelihood, start)`` makes.
    distributions
        Nested as the start, with a frozen distribution (of ``scipy.stats``, say) or its ``ppf``, a
        function of an array of probabilities, in place of each array.

    Returns
    -------
    callable
        Takes a vector of numbers between 0 and 1, and returns one that ``log_density(objective)``
        takes.

    Raises
    ------
    NumgradTypeError
        If a distribution has no ``ppf``, or the start is complex.
    NumgradValueError
        If distributions are nested otherwise than the start.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> from scipy import stats
    >>> likelihood = ng.objective(lambda p: -np.sum((p["a"] - p["b"]) ** 2), {"a": 0.0, "b": 1.0})
    >>> priors = {"a": stats.norm(0, 2), "b": stats.uniform(0, 5)}
    >>> prior = ng.ecosystem.prior_transform(likelihood, priors)
    >>> prior(np.array([0.5, 0.5]))
    array([0. , 2.5])
    >>> import dynesty  # doctest: +SKIP
    >>> sampler = dynesty.NestedSampler(
    ...     ng.ecosystem.log_density(likelihood), prior, 2, nlive=30
    ... )  # doctest: +SKIP
    """
    name = "prior_transform"
    unknowns = check_objective(name, objective).unknowns
    if unknowns.packing.is_complex:
        raise NumgradTypeError(f"{name}: complex parameters have no ppf; give two real ones each")
    several: list[Any] = []
    where = align(unknowns.nesting, distributions, several, "distributions")
    if where is not None:
        raise NumgradValueError(
            f"{name}: at {where} the nesting is another than that of the start, "
            f"{unknowns.outline()}; give a distribution in place of each array"
        )
    functions = [getattr(d, "ppf", d) for d in several]
    for called, function in zip(unknowns.names, functions, strict=True):
        if not callable(function):
            raise NumgradTypeError(
                f"{name}: for {called} got a {type(function).__name__}; give a frozen distribution "
                "such as scipy.stats.norm(0, 1), or its ppf"
            )

    def transform(u: Any) -> np.ndarray:
        parts = shaped(objective, np.asarray(u, np.float64))
        return unknowns.packing.pack(
            [
                np.broadcast_to(np.asarray(ppf(part), np.float64), part.shape)
                for ppf, part in zip(functions, parts, strict=True)
            ]
        )

    return transform


def jax_function(objective: Objective) -> Callable[[Any], Any]:
    """The function in JAX, with its gradient: for BlackJAX, NumPyro, optax and the like.

    JAX calls it back (``jax.pure_callback``) at one point, or under ``jax.vmap`` for all at once.

    Parameters
    ----------
    objective
        What ``ng.objective(f, start)`` makes, of real numbers.

    Returns
    -------
    callable
        Takes a nesting like the start, of arrays of JAX, or its vector; returns a number of JAX.
        It can be transformed by ``jax.jit``, ``grad``, ``jvp`` and ``vmap``; second derivatives
        raise an error. Numbers are of the dtype that JAX has for them, float32 unless
        ``jax_enable_x64`` is set, though computed in float64.

    Raises
    ------
    NumgradRuntimeError
        If JAX is not installed.
    NumgradTypeError
        If the start is complex.
    NumgradValueError
        If it is called with another nesting.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> normal = ng.objective(lambda p: -0.5 * np.sum(p["x"] ** 2), {"x": np.zeros(2)})
    >>> import jax  # doctest: +SKIP
    >>> log_density = ng.ecosystem.jax_function(normal)  # doctest: +SKIP
    >>> jax.jit(jax.grad(log_density))({"x": jax.numpy.ones(2)})["x"].tolist()  # doctest: +SKIP
    [-1.0, -1.0]
    """
    name = "jax_function"
    jax = imported(name, "jax")
    unknowns = check_objective(name, objective).unknowns
    if unknowns.packing.is_complex:
        raise NumgradTypeError(f"{name}: takes real parameters, the start has complex ones")
    values, both = values_at(objective), values_and_gradients_at(objective)

    def value_back(x: Any) -> Any:
        return np.asarray(values(x), x.dtype)

    def both_back(x: Any) -> Any:
        value, gradient = both(x)
        return np.asarray(value, x.dtype), np.asarray(gradient, x.dtype)

    def called(function: Callable[..., Any], shapes: Any, x: Any) -> Any:
        return jax.pure_callback(function, shapes, x, vmap_method="expand_dims")

    @jax.custom_jvp
    def of_vector(x: Any) -> Any:
        return called(value_back, jax.ShapeDtypeStruct((), x.dtype), x)

    @of_vector.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (direction,) = primals, tangents
        shapes = jax.ShapeDtypeStruct((), x.dtype), jax.ShapeDtypeStruct(x.shape, x.dtype)
        value, gradient = called(both_back, shapes, x)
        return value, jax.numpy.dot(gradient, direction)

    def function(x: Any) -> Any:
        if getattr(x, "shape", None) == objective.x0.shape:
            return of_vector(jax.numpy.asarray(x, float))
        leaves: list[Any] = []
        where = align(unknowns.nesting, x, leaves, "x")
        shapes = [np.shape(leaf) for leaf in leaves]
        if where is not None or shapes != [tuple(shape) for shape in unknowns.packing.shapes]:
            raise NumgradValueError(
                f"{name}: called with another nesting than the start's; give {unknowns.outline()}, "
                f"or the vector of its {objective.x0.size} numbers"
            )
        parts = [jax.numpy.reshape(jax.numpy.asarray(leaf, float), -1) for leaf in leaves]
        return of_vector(jax.numpy.concatenate(parts))

    return function


def nutpie_model(objective: Objective, **options: Any) -> Any:
    """The model that ``nutpie.sample`` takes, of a log density and its gradient.

    Parameters
    ----------
    objective
        What ``ng.objective(log_density, start)`` makes, of real numbers, whose density is positive
        everywhere (so take the logarithm of what is positive). Chains start within 1 of its start,
        in each number.
    **options
        As for ``nutpie.compiled_pyfunc.from_pyfunc``: ``coords``, ``dims`` and the like.

    Returns
    -------
    nutpie model
        Whose draws have the arrays of the start by name.

    Raises
    ------
    NumgradRuntimeError
        If nutpie is not installed.
    NumgradTypeError
        If the start is complex.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> normal = ng.objective(lambda p: -0.5 * np.sum(p["x"] ** 2), {"x": np.zeros(2)}, jit=True)
    >>> import nutpie  # doctest: +SKIP
    >>> draws = nutpie.sample(
    ...     ng.ecosystem.nutpie_model(normal), draws=100, tune=100, chains=1, progress_bar=False
    ... )  # doctest: +SKIP
    >>> draws.posterior["x"].shape  # doctest: +SKIP
    (1, 100, 2)
    """
    name = "nutpie_model"
    module = imported(name, "nutpie", "nutpie.compiled_pyfunc")
    packing = check_objective(name, objective).unknowns.packing
    if packing.is_complex:
        raise NumgradTypeError(f"{name}: takes real parameters, the start has complex ones")
    labels, both = objective.unknowns.labels(), values_and_gradients_at(objective)

    def expand(x: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(labels, shaped(objective, x), strict=True))

    def start(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return objective.x0 + rng.uniform(-1.0, 1.0, objective.x0.shape)

    return module.from_pyfunc(
        objective.x0.size,
        lambda: both,
        lambda *seeds: expand,
        packing.dtypes,
        packing.shapes,
        labels,
        **{"make_initial_point_fn": start} | options,
    )


def arviz_draws(objective: Objective, draws: Any, **groups: Any) -> Any:
    """Draws of vectors as ArviZ holds them, with the arrays of the start by name.

    Parameters
    ----------
    objective
        What ``ng.objective(log_density, start)`` makes.
    draws
        An array of shape (chains, draws, size), or (draws, size) for one chain. emcee's
        ``get_chain()`` has chains second: give it ``.swapaxes(0, 1)``.
    **groups
        Further groups and options for ``arviz.from_dict``, such as ``coords`` and ``dims``.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree
        As ``arviz.from_dict`` of the installed version makes it; the latter since ArviZ 1.0.

    Raises
    ------
    NumgradRuntimeError
        If ArviZ is not installed.
    NumgradValueError
        If draws have another shape.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> normal = ng.objective(lambda p: -0.5 * np.sum(p["x"] ** 2), {"x": np.zeros(2)})
    >>> draws = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> data = ng.ecosystem.arviz_draws(normal, draws)  # doctest: +SKIP
    >>> data.posterior["x"].shape  # doctest: +SKIP
    (4, 100, 2)
    """
    name = "arviz_draws"
    size = check_objective(name, objective).x0.size
    arviz = imported(name, "arviz")
    draws = np.asarray(draws, np.float64)
    if draws.ndim not in (2, 3) or draws.shape[-1] != size:
        raise NumgradValueError(
            f"{name}: draws have shape {draws.shape}; give (chains, draws, {size}), or "
            f"(draws, {size}) for one chain"
        )
    chains = draws if draws.ndim == 3 else draws[None]
    posterior = dict(zip(objective.unknowns.labels(), shaped(objective, chains), strict=True))
    if int(arviz.__version__.partition(".")[0]) < 1:
        return arviz.from_dict(posterior=posterior, **groups)
    options = {key: groups.pop(key) for key in ("coords", "dims", "attrs") if key in groups}
    return arviz.from_dict({"posterior": posterior, **groups}, **options)
