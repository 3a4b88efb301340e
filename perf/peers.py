"""How each library does each case; run as a script, it is the worker of one library.

A method builds the statement of one kind of case. A library without the method does not take part.
Statements have the same form in every library, and each uses the library's own functions.
"""

from __future__ import annotations

import importlib
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import matrices
import numpy as np
import solvers
import training
from derivatives import derived
from harness import Statement, serve
from loops import LOOPS
from ordering import ordering
from problems import PROBLEMS

RANGES = {"sqrt": (0.0, 100.0), "log": (1e-3, 100.0), "sin": (-100.0, 100.0)} | {
    "cos": (-100.0, 100.0),
    "exp": (-10.0, 10.0),
    "tanh": (-4.0, 4.0),
    "erf": (-4.0, 4.0),
    "sigmoid": (-10.0, 10.0),
    "pow": (0.01, 10.0),
    "gammaln": (0.1, 50.0),
    "digamma": (0.1, 50.0),
    "erfinv": (-0.999, 0.999),
    "ndtri": (0.001, 0.999),
    "i0e": (-30.0, 30.0),
}
"""Where the arguments of elementary functions are drawn from."""


SPECIAL = ("gammaln", "digamma", "erfinv", "ndtri", "i0e")
"""Those of them that are in a namespace of special functions."""


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

        own = {"pow": np.power, "sigmoid": special.expit}
        return own.get(name) or getattr(np, name, None) or getattr(special, name)

    def reduction(self, function: str, axis: int | None) -> Statement:
        from scipy.special import logsumexp

        f = logsumexp if function == "logsumexp" else getattr(np, function)
        return Statement(f"f(x, axis={axis})", {"f": f, "x": numbers(1000, 1000)})

    def matrix_values(self, function: str, **params: Any) -> Statement:
        """One matrix after the other."""
        statement = matrices.value(function, np.linalg, np.asarray, **params)
        names, code = statement.names, statement.code
        names["stack"] = list(zip(names.pop("a"), names.pop("b"), strict=True))
        return Statement(f"[{code} for a, b in stack]", names)

    def ordering(self, **params: Any) -> Statement:
        return Statement(*ordering("numpy", np, **params))


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
        from numgrad.core.op import OPS

        operands = arguments(function, n, dtype)
        plan = OPS["power" if function == "pow" else function].plan(operands)
        names: dict[str, Any] = {"x": operands[0], "y": operands[-1], "out": np.empty(n, dtype)}
        names |= {"f": plan.entry}
        return Statement("f(x, y, out)" if function == "pow" else "f(x, out)", names)

    def elementary(self, function: str, n: int, dtype: str) -> Statement:
        operands = [self.ng.tensor(x) for x in arguments(function, n, dtype)]
        home = self.ng.special if function in SPECIAL else self.ng
        f = getattr(home, "power" if function == "pow" else function)
        names = {"f": f, "x": operands[0], "y": operands[-1]}
        return Statement("f(x, y)" if function == "pow" else "f(x)", names)

    def spectrum(self, n: int) -> Statement:
        names = self._leaves({"x": numbers(n)})
        names |= {"rfft": self.ng.fft.rfft, "irfft": self.ng.fft.irfft}
        return Statement(SPECTRUM, {**names, "w": numbers(n, seed=1), "n": n})

    def reduction(self, function: str, axis: int | None) -> Statement:
        names = {"f": getattr(self.ng, function), "x": self.ng.tensor(numbers(1000, 1000))}
        return Statement(f"f(x, axis={axis})", names)

    def ordering(self, **params: Any) -> Statement:
        return Statement(*ordering("numgrad", self.ng, **params))

    def call(self, function: str, shape: list[int], **params: Any) -> Statement:
        """One function of a tensor."""
        f = partial(getattr(self.ng, function), **params)
        return Statement("f(x)", {"f": f, "x": self.ng.tensor(numbers(*shape))})

    def gradient(self, problem: str, contract: bool = False, **sizes: int) -> Statement:
        """A function with its gradient or Jacobian, as one kernel."""
        ng, stated = self.ng, PROBLEMS[problem]
        f = stated.written(np, ng.logsumexp, **sizes)
        gradient = ng.jit(getattr(ng, stated.transform)(f, stated.argnums), contract=contract)
        return Statement(
            "gradient(*args)", {"gradient": gradient, "args": stated.arguments(**sizes)}
        )

    def derivative(self, **params: Any) -> Statement:
        """A transform of a function, eager."""
        f, x = derived(self.ng, np, np.asarray, **params)
        return Statement("f(x)", {"f": f, "x": x})

    def loop(self, problem: str, compiled: bool = True, **sizes: Any) -> Statement:
        """A loop or a batch with its derivatives, as one kernel or eager."""
        stated = LOOPS[problem]
        f = stated.written(np, self.ng, **sizes)
        names = {"f": self.ng.jit(f) if compiled else f, "args": stated.arguments(**sizes)}
        return Statement("f(*args)", names)

    def matrices(self, function: str, **params: Any) -> Statement:
        grad = self.ng.autograd.grad
        return matrices.gradient(function, self.ng.linalg, self._leaf, grad, **params)

    def matrix_values(self, function: str, **params: Any) -> Statement:
        return matrices.value(function, self.ng.linalg, self.ng.tensor, **params)

    def gaussian_process(self, **params: Any) -> Statement:
        return matrices.gaussian_process(self.ng, self._leaf, self.ng.autograd.grad, **params)

    def _leaf(self, x: np.ndarray) -> Any:
        return self.ng.tensor(x, requires_grad=True)

    def mlp_step(self, **params: Any) -> Statement:
        return training.compiled_mlp(self.ng, **params)

    def minimized(self, **params: Any) -> Statement:
        return solvers.minimized(self.ng, **params)

    def fitted(self, **params: Any) -> Statement:
        return solvers.fitted(**params)

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
        from numgrad.codegen import threads
        from numgrad.codegen.compile import compile_kernel

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


class Serial(Numgrad):
    """numgrad with one thread."""

    def configure(self, threads: int, recording: bool) -> None:
        super().configure(1, recording)


class Parallel(Numgrad):
    """numgrad with as many threads as allowed, whatever the work."""

    def configure(self, threads: int, recording: bool) -> None:
        super().configure(threads, recording)
        decisions = importlib.import_module("numgrad.codegen.threads")
        decisions.WORK_PER_THREAD_NS = 1e-3
        decisions.PATIENCE = 0


CHAIN = "total(exp(tanh(a * b) + a)).backward(); a.grad = None; b.grad = None"
SPECTRUM = "(irfft(rfft(x), n) * w).sum().backward(); x.grad = None"


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
        home = self.torch.special if function in SPECIAL else self.torch
        names = {"f": getattr(home, function), "x": operands[0], "y": operands[-1]}
        return Statement("f(x, y)" if function == "pow" else "f(x)", names)

    def spectrum(self, n: int) -> Statement:
        torch = self.torch
        names = self._leaves({"x": numbers(n)})
        names |= {"rfft": torch.fft.rfft, "irfft": torch.fft.irfft}
        return Statement(SPECTRUM, {**names, "w": torch.tensor(numbers(n, seed=1)), "n": n})

    def reduction(self, function: str, axis: int | None) -> Statement:
        torch = self.torch
        f = torch.amax if function == "max" else getattr(torch, function)
        axes = (0, 1) if axis is None else axis
        return Statement(f"f(x, {axes})", {"f": f, "x": torch.tensor(numbers(1000, 1000))})

    def ordering(self, **params: Any) -> Statement:
        return Statement(*ordering("torch", self.torch, **params))

    def gradient(self, problem: str, **sizes: int) -> Statement:
        """A function with its gradient, or its Jacobian by forward mode over all parameters."""
        torch, stated = self.torch, PROBLEMS[problem]
        assert stated.torch is not None
        f = stated.torch(torch, **sizes)
        args = [
            [torch.from_numpy(a) for a in arg] if isinstance(arg, list) else torch.from_numpy(arg)
            for arg in stated.arguments(**sizes)
        ]
        if stated.transform == "jacobian":
            names = {"gradient": torch.func.jacfwd(f, stated.argnums), "args": args}
            return Statement("gradient(*args)", names)
        argnums = (stated.argnums,) if isinstance(stated.argnums, int) else stated.argnums
        chosen = [args[number] for number in argnums]
        leaves = [leaf for arg in chosen for leaf in (arg if isinstance(arg, list) else [arg])]
        for leaf in leaves:
            leaf.requires_grad_()

        def gradient() -> tuple:
            value = f(*args)
            return value, torch.autograd.grad(value, leaves)

        return Statement("gradient()", {"gradient": gradient})

    def loop(self, problem: str, **sizes: Any) -> Statement:
        """A batch with its derivatives."""
        torch, stated = self.torch, LOOPS[problem]
        args = [
            [torch.tensor(a) for a in arg] if isinstance(arg, list) else torch.tensor(arg)
            for arg in stated.arguments(**sizes)
        ]
        return Statement(
            "f(*args)", {"f": stated.written(torch, torch.func, **sizes), "args": args}
        )

    def matrices(self, function: str, **params: Any) -> Statement:
        torch = self.torch
        return matrices.gradient(function, torch.linalg, self._leaf, torch.autograd.grad, **params)

    def matrix_values(self, function: str, **params: Any) -> Statement:
        return matrices.value(function, self.torch.linalg, self.torch.tensor, **params)

    def gaussian_process(self, **params: Any) -> Statement:
        torch = self.torch
        return matrices.gaussian_process(torch, self._leaf, torch.autograd.grad, **params)

    def _leaf(self, x: np.ndarray) -> Any:
        return self.torch.tensor(x, requires_grad=True)

    def mlp_step(self, **params: Any) -> Statement:
        return training.mlp(self.torch, loss="cross_entropy", **params)


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

    def minimized(self, n: int) -> Statement:
        f = self.autograd.value_and_grad(solvers.rosenbrock(self.anp))
        return solvers.minimized_with(f, n)


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

    def gradient(self, problem: str, **sizes: int) -> Statement:
        """A function with its gradient, or its Jacobian by forward mode."""
        jax, stated = self.jax, PROBLEMS[problem]
        f = stated.written(jax.numpy, jax.nn.logsumexp, **sizes)
        transform = jax.jacfwd if stated.transform == "jacobian" else jax.value_and_grad
        names = {
            "gradient": jax.jit(transform(f, stated.argnums)),
            "args": jax.tree.map(jax.numpy.asarray, stated.arguments(**sizes)),
            "ready": jax.block_until_ready,
        }
        return Statement("ready(gradient(*args))", names)

    def derivative(self, **params: Any) -> Statement:
        """A transform of a function without ``jit``."""
        f, x = derived(self.jax, self.jax.numpy, self.jax.numpy.asarray, **params)
        return Statement("ready(f(x))", {"f": f, "x": x, "ready": self.jax.block_until_ready})

    def loop(self, problem: str, **sizes: Any) -> Statement:
        """A loop or a batch with its derivatives."""
        jax, stated = self.jax, LOOPS[problem]
        library = SimpleNamespace(
            grad=jax.grad,
            hessian=jax.hessian,
            logsumexp=jax.nn.logsumexp,
            odeint=importlib.import_module("jax.experimental.ode").odeint,
            scan=jax.lax.scan,
            value_and_grad=jax.value_and_grad,
            vmap=jax.vmap,
        )
        names = {
            "f": jax.jit(stated.written(jax.numpy, library, **sizes)),
            "args": jax.tree.map(jax.numpy.asarray, stated.arguments(**sizes)),
            "ready": jax.block_until_ready,
        }
        return Statement("ready(f(*args))", names)

    def mlp_step(self, sizes: list[int], batch: int, dtype: str) -> Statement:
        """A training step with Adam; the old parameters and state are given up to the new ones."""
        jax, jnp, stated = self.jax, self.jax.numpy, PROBLEMS["mlp"]
        f = stated.written(jnp, jax.nn.logsumexp)
        params, x, labels = jax.tree.map(
            lambda a: jnp.asarray(a, dtype if a.dtype.kind == "f" else None),
            stated.arguments(batch=batch, layers=sizes),
        )
        zeros = jax.tree.map(jnp.zeros_like, params)
        state = [params, zeros, jax.tree.map(jnp.zeros_like, params), jnp.zeros((), dtype)]

        def step(state: list, x: Any, labels: Any) -> tuple:
            params, means, squares, count = state
            loss, grads = jax.value_and_grad(f)(params, x, labels)
            count = count + 1
            tree_map = jax.tree.map
            means = tree_map(lambda m, g: 0.9 * m + 0.1 * g, means, grads)
            squares = tree_map(lambda s, g: 0.999 * s + 0.001 * g * g, squares, grads)
            rate, scale = 1e-3 / (1 - 0.9**count), 1 / jnp.sqrt(1 - 0.999**count)
            params = tree_map(
                lambda p, m, s: p - rate * m / (jnp.sqrt(s) * scale + 1e-8), params, means, squares
            )
            return [params, means, squares, count], loss

        compiled = jax.jit(step, donate_argnums=0)

        def train() -> Any:
            nonlocal state
            state, loss = compiled(state, x, labels)
            return jax.block_until_ready((state, loss))

        return Statement("train()", {"train": train})


class Handwritten:
    """Kernels in ``handwritten/``, on the thread pool and with the memory that numgrad uses."""

    def __init__(self) -> None:
        from numgrad.codegen import memory, threads

        memory.keep_freed_memory()
        threads.prepare_pool()
        self.version = "-"

    def configure(self, threads: int, recording: bool) -> None:
        import numba

        numba.set_num_threads(threads)

    def gradient(self, problem: str, parallel: bool, **sizes: int) -> Statement:
        """The serial or the parallel kernel."""
        module = importlib.import_module(f"handwritten.{problem}")
        names = {
            "gradient": module.parallel if parallel else module.serial,
            "args": PROBLEMS[problem].arguments(**sizes),
        }
        return Statement("gradient(*args)", names)

    def loop(self, problem: str, **sizes: Any) -> Statement:
        """The kernel of a loop, which has one thread."""
        names = {
            "f": importlib.import_module(f"handwritten.{problem}").serial,
            "args": LOOPS[problem].arguments(**sizes),
        }
        return Statement("f(*args)", names)


LIBRARIES = {
    "numgrad": Numgrad,
    "numpy": NumPy,
    "torch": Torch,
    "autograd": Autograd,
    "jax": Jax,
    "handwritten": Handwritten,
    "serial": Serial,
    "parallel": Parallel,
}
if __name__ == "__main__":
    serve(LIBRARIES[sys.argv[1]]())
