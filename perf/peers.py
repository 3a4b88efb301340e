"""How each library does each case; run as a script, it is the worker of one library.

A method builds the statement of one kind of case. A library without the method does not take part.
Statements have the same form in every library, and each uses the library's own functions.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import training
from harness import Statement, serve

RANGES = {"sqrt": (0.0, 100.0), "log": (1e-3, 100.0), "sin": (-100.0, 100.0)} | {
    "cos": (-100.0, 100.0),
    "exp": (-10.0, 10.0),
    "tanh": (-4.0, 4.0),
    "erf": (-4.0, 4.0),
    "sigmoid": (-10.0, 10.0),
    "pow": (0.01, 10.0),
}
"""Where the arguments of elementary functions are drawn from."""


def numbers(*shape: int, low: float = -1.0, high: float = 1.0, seed: int = 0) -> np.ndarray:
    """Reproducible uniform numbers, the same in every library."""
    return np.random.default_rng(seed).uniform(low, high, shape)


def arguments(function: str, n: int, dtype: str) -> tuple[np.ndarray, ...]:
    """Operands of an elementary function."""
    low, high = RANGES[function]
    x = numbers(n, low=low, high=high).astype(dtype)
    return (x, numbers(n, low=-3, high=3, seed=1).astype(dtype)) if function == "pow" else (x,)


class NumPy:
    """NumPy, with SciPy for what it lacks; gradients are written by hand."""

    def __init__(self) -> None:
        self.version = np.__version__

    def configure(self, threads: int, recording: bool) -> None:
        """Nothing to set: these loops are serial."""

    def chain(self, n: int) -> Statement:
        def gradient(a: np.ndarray, b: np.ndarray) -> tuple:
            t = np.tanh(a * b)
            e = np.exp(t + a)
            inner = e * (1 - t * t)
            return np.sum(e), inner * b + e, inner * a

        names = {"gradient": gradient, "a": numbers(n), "b": numbers(n, seed=1)}
        return Statement("gradient(a, b)", names)

    def operation(self, code: str, shapes: dict[str, list[int]]) -> Statement:
        return Statement(code, {k: numbers(*s, seed=i) for i, (k, s) in enumerate(shapes.items())})

    def kernel(self, function: str, n: int, dtype: str) -> Statement:
        operands = arguments(function, n, dtype)
        names: dict[str, Any] = {"x": operands[0], "y": operands[-1], "out": np.empty(n, dtype)}
        names["f"] = self._function(function)
        return Statement("f(x, y, out=out)" if function == "pow" else "f(x, out=out)", names)

    def elementary(self, function: str, n: int, dtype: str) -> Statement:
        operands = arguments(function, n, dtype)
        names = {"f": self._function(function), "x": operands[0], "y": operands[-1]}
        return Statement("f(x, y)" if function == "pow" else "f(x)", names)

    @staticmethod
    def _function(name: str) -> Any:
        from scipy import special

        own = {"pow": np.power, "erf": special.erf, "sigmoid": special.expit}
        return own.get(name) or getattr(np, name)

    def reduction(self, function: str, axis: int | None) -> Statement:
        from scipy.special import logsumexp

        f = logsumexp if function == "logsumexp" else getattr(np, function)
        return Statement(f"f(x, axis={axis})", {"f": f, "x": numbers(1000, 1000)})


class Trained:
    """What ``training`` says once for the libraries that have optimizers and modules."""

    library: Any

    def optimizer(self, **params: Any) -> Statement:
        return training.optimizer(self.library, **params)

    def lbfgs(self, **params: Any) -> Statement:
        return training.lbfgs(self.library, **params)

    def sparse_adam(self, **params: Any) -> Statement:
        return training.sparse_adam(self.library, **params)

    def mlp(self, **params: Any) -> Statement:
        return training.mlp(self.library, **params)

    def cnn(self, **params: Any) -> Statement:
        return training.cnn(self.library, **params)


class Numgrad(Trained):
    """This package."""

    def __init__(self) -> None:
        import numgrad

        self.ng = self.library = numgrad
        self.version = numgrad.__version__

    def configure(self, threads: int, recording: bool) -> None:
        self.ng.set_num_threads(threads)
        self.ng.set_grad_enabled(recording)

    def _leaves(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        return {k: self.ng.tensor(v, requires_grad=True) for k, v in arrays.items()}

    def chain(self, n: int) -> Statement:
        ng = self.ng
        names = self._leaves({"a": numbers(n), "b": numbers(n, seed=1)})
        names |= {"exp": ng.exp, "tanh": ng.tanh, "total": ng.sum}
        return Statement(CHAIN, names)

    def operation(self, code: str, shapes: dict[str, list[int]]) -> Statement:
        return Statement(
            code,
            self._leaves({k: numbers(*s, seed=i) for i, (k, s) in enumerate(shapes.items())}),
        )

    def kernel(self, function: str, n: int, dtype: str) -> Statement:
        from numgrad.op.base import OPS

        operands = arguments(function, n, dtype)
        plan = OPS["power" if function == "pow" else function].plan(operands)
        names: dict[str, Any] = {"x": operands[0], "y": operands[-1], "out": np.empty(n, dtype)}
        names |= {"f": plan.entry}
        return Statement("f(x, y, out)" if function == "pow" else "f(x, out)", names)

    def elementary(self, function: str, n: int, dtype: str) -> Statement:
        operands = [self.ng.tensor(x) for x in arguments(function, n, dtype)]
        f = getattr(self.ng, "power" if function == "pow" else function)
        names = {"f": f, "x": operands[0], "y": operands[-1]}
        return Statement("f(x, y)" if function == "pow" else "f(x)", names)

    def reduction(self, function: str, axis: int | None) -> Statement:
        names = {"f": getattr(self.ng, function), "x": self.ng.tensor(numbers(1000, 1000))}
        return Statement(f"f(x, axis={axis})", names)

    def bandwidth(self, **params: Any) -> Statement:
        return training.bandwidth(**params)

    def alternation(self, part: str, parallel: str) -> Statement:
        """A parallel kernel and a matrix product, alone or in turns."""
        return Statement(
            {"kernel": "kernel()", "product": "product()", "both": "kernel(); product()"}[part],
            {"kernel": getattr(self, f"_{parallel}")(), "product": self._product()},
        )

    def _product(self) -> Any:
        a, b = self.ng.tensor(numbers(500, 500)), self.ng.tensor(numbers(500, 500, seed=1))
        matmul = self.ng.matmul
        return lambda: matmul(a, b)

    def _operation(self) -> Any:
        """The smallest ``exp`` that runs on two threads."""
        x = self.ng.tensor(numbers(100_000))
        exp = self.ng.exp
        return lambda: exp(x)

    def _kernel(self) -> Any:
        """A bare prange kernel of about 7 us, launched as numgrad launches its own."""
        from numgrad.kernels import threads
        from numgrad.kernels.jit import compile_kernel

        source = (
            "from numba import prange\n"
            "def kernel(x, y):\n"
            "    for i in prange(x.size):\n"
            "        y[i] = x[i] * 2.0 + 1.0\n"
        )
        kernel = compile_kernel(
            "perf_prange", source, "void(float64[::1], float64[::1])", parallel=True
        )
        x, y = numbers(20_000), np.empty(20_000)
        return lambda: threads.launch(kernel.entry, 2, x, y)


CHAIN = "total(exp(tanh(a * b) + a)).backward(); a.grad = None; b.grad = None"


class Torch(Trained):
    """PyTorch, eager."""

    def __init__(self) -> None:
        import torch

        self.torch = self.library = torch
        self.version = torch.__version__

    def configure(self, threads: int, recording: bool) -> None:
        self.torch.set_num_threads(threads)
        self.torch.set_grad_enabled(recording)

    def _leaves(self, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        return {k: self.torch.tensor(v, requires_grad=True) for k, v in arrays.items()}

    def chain(self, n: int) -> Statement:
        torch = self.torch
        names = self._leaves({"a": numbers(n), "b": numbers(n, seed=1)})
        names |= {"exp": torch.exp, "tanh": torch.tanh, "total": torch.sum}
        return Statement(CHAIN, names)

    def operation(self, code: str, shapes: dict[str, list[int]]) -> Statement:
        return Statement(
            code,
            self._leaves({k: numbers(*s, seed=i) for i, (k, s) in enumerate(shapes.items())}),
        )

    def kernel(self, function: str, n: int, dtype: str) -> Statement:
        operands = [self.torch.tensor(x) for x in arguments(function, n, dtype)]
        names = {"f": getattr(self.torch, function), "x": operands[0], "y": operands[-1]}
        names["out"] = self.torch.empty_like(operands[0])
        return Statement("f(x, y, out=out)" if function == "pow" else "f(x, out=out)", names)

    def elementary(self, function: str, n: int, dtype: str) -> Statement:
        operands = [self.torch.tensor(x) for x in arguments(function, n, dtype)]
        names = {"f": getattr(self.torch, function), "x": operands[0], "y": operands[-1]}
        return Statement("f(x, y)" if function == "pow" else "f(x)", names)

    def reduction(self, function: str, axis: int | None) -> Statement:
        torch = self.torch
        f = torch.amax if function == "max" else getattr(torch, function)
        axes = (0, 1) if axis is None else axis
        return Statement(f"f(x, {axes})", {"f": f, "x": torch.tensor(numbers(1000, 1000))})


class Autograd:
    """HIPS autograd."""

    def __init__(self) -> None:
        from importlib.metadata import version

        import autograd
        import autograd.numpy as anp

        self.autograd, self.anp = autograd, anp
        self.version = version("autograd")

    def configure(self, threads: int, recording: bool) -> None:
        """Nothing to set: its loops are NumPy's."""

    def chain(self, n: int) -> Statement:
        anp = self.anp

        def f(a: Any, b: Any) -> Any:
            return anp.sum(anp.exp(anp.tanh(a * b) + a))

        names = {
            "gradient": self.autograd.grad(f, (0, 1)),
            "a": numbers(n),
            "b": numbers(n, seed=1),
        }
        return Statement("gradient(a, b)", names)


class Jax:
    """JAX, with the function and its gradient compiled as a whole."""

    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax = jax
        self.version = jax.__version__

    def configure(self, threads: int, recording: bool) -> None:
        """The environment sets the size of XLA's thread pool."""

    def chain(self, n: int) -> Statement:
        jax, jnp = self.jax, self.jax.numpy

        def f(a: Any, b: Any) -> Any:
            return jnp.sum(jnp.exp(jnp.tanh(a * b) + a))

        names = {
            "gradient": jax.jit(jax.value_and_grad(f, (0, 1))),
            "a": jnp.asarray(numbers(n)),
            "b": jnp.asarray(numbers(n, seed=1)),
            "ready": jax.block_until_ready,
        }
        return Statement("ready(gradient(a, b))", names)


LIBRARIES = {
    "numgrad": Numgrad,
    "numpy": NumPy,
    "torch": Torch,
    "autograd": Autograd,
    "jax": Jax,
}
if __name__ == "__main__":
    serve(LIBRARIES[sys.argv[1]]())
