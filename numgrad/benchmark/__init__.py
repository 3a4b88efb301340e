"""Benchmarks of functions of your own: ``python -m numgrad bench FILE``.

A benchmark is a function whose name begins with ``bench_``. It is timed as it is, compiled by
``ng.jit``, and at its first call; what one call allocates is counted. Put this into a file:

    import numpy as np
    import numgrad as ng

    def energy(x):
        return np.sum(np.exp(np.tanh(x)) * x)

    @ng.benchmark.parametrize("n", [100, 10_000])
    @ng.benchmark.setup(lambda n: {"x": np.linspace(0.0, 1.0, n)})
    def bench_gradient(x):
        return ng.grad(energy)(x)

    @ng.benchmark.against(bench_gradient, "jax")
    def jax_gradient(x):
        import jax
        ...
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(globals(), {"numgrad.benchmark.declaration": "against parametrize setup"})
