"""The figures numgrad promises against other libraries, as cases to time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ordering import CODES

LIBRARIES = ("numgrad", "numpy", "torch", "autograd", "jax")
HANDWRITTEN = "handwritten"
FORCED = ("serial", "parallel")
"""numgrad with one thread, and with as many as allowed whatever the work."""

Contestant = tuple[str, str, dict[str, Any]]
"""Library, the method of ``peers`` that builds the statement, and its parameters."""


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes
    ----------
    contestants
        By label; the label ``numgrad`` is the one judged.
    against
        Labels whose smallest time the judged one is divided by; with ``add``, whose sum.
    target
        Largest ratio that is good, or None where none is promised.
    threads
        Threads to use, or None for what the command line says.
    """

    name: str
    contestants: Mapping[str, Contestant]
    against: tuple[str, ...]
    target: float | None
    threads: int | None = None
    recording: bool = True
    add: bool = False
    rounds: float = 1.0
    """Factor on the number of rounds."""


def _same(
    kind: str, libraries: tuple[str, ...] = LIBRARIES, **params: Any
) -> dict[str, Contestant]:
    return {library: (library, kind, params) for library in libraries}


def cases() -> list[Case]:
    """Every case that is timed in worker processes, in the order of the table."""
    found = [
        Case(f"chain/{n}", _same("chain", n=n), ("torch",), target)
        for n, target in ((100, 1 / 3), (1_000, 1 / 3), (100_000, 0.9), (10_000_000, 1.0))
    ]
    # torch hands even 100 numbers to two threads, which costs it milliseconds on a busy machine
    found += [
        Case(f"chain/{n}/one thread", _same("chain", n=n), ("torch",), target, threads=1)
        for n, target in ((100, 1 / 2.6), (1_000, 1 / 2.6), (100_000, 0.9))
    ]
    eager = ("numgrad", "numpy", "torch")
    vector = {"a": [100], "b": [100]}
    operations = (
        ("a*b", "a * b", vector),
        ("a*2.0", "a * 2.0", {"a": [100]}),
        ("(32,64)+(64,)", "a + b", {"a": [32, 64], "b": [64]}),
        ("a[2:50]", "a[2:50]", {"a": [100]}),
        ("16x16@16x16", "a @ b", {"a": [16, 16], "b": [16, 16]}),
    )
    for name, code, shapes in operations:
        contestants = _same("operation", eager, code=code, shapes=shapes)
        found.append(Case(f"record/{name}", contestants, ("torch",), 0.85))
    contestants = _same("operation", eager, code="a * b", shapes=vector)
    found.append(Case("no_grad/a*b", contestants, ("torch",), None, recording=False))
    elementary = ("sqrt", "exp", "log", "tanh", "sin", "cos", "erf", "pow", "sigmoid")
    for kind, target in (("kernel", 1.10), ("elementary", None)):
        for dtype in ("float64", "float32"):
            for function in elementary:
                params = {"function": function, "n": 100_000, "dtype": dtype}
                found.append(
                    Case(
                        f"{kind}/{function}/{dtype}",
                        _same(kind, eager, **params),
                        ("numpy", "torch"),
                        target,
                        threads=1,
                    )
                )
    for dtype in ("float64", "float32"):
        for function in ("gammaln", "digamma", "erfinv", "ndtri", "i0e"):
            contestants = _same("elementary", eager, function=function, n=1_000_000, dtype=dtype)
            name = f"special/{function}/{dtype}"
            found.append(Case(name, contestants, ("numpy", "torch"), 1.0, threads=1))
    for threads, note, target in ((None, "", 1.0), (1, "/one thread", None)):
        for function in ("sum", "mean", "max", "logsumexp"):
            for axis in (0, 1, None):
                contestants = _same("reduction", eager, function=function, axis=axis)
                name = f"reduce/{function}/axis={axis}{note}"
                found.append(Case(name, contestants, ("numpy",), target, threads=threads))
    for function in CODES:
        for gradient in (False, True)[: 1 if function == "argsort" else 2]:
            libraries = ("numgrad", "torch") if gradient else eager
            found.append(
                Case(
                    f"order/{function}{'/gradient' if gradient else ''}",
                    _same("ordering", libraries, function=function, gradient=gradient),
                    libraries[1:],
                    1.0,
                    recording=gradient,
                )
            )
    for threads, note in ((None, ""), (1, "/one thread")):
        contestants = _same("spectrum", ("numgrad", "torch"), n=1_000_000)
        name = f"rfft and irfft/1000000{note}"
        found.append(Case(name, contestants, ("torch",), 1.2, threads=threads))
    for parallel in ("kernel", "operation"):
        labels = {"numgrad": "both", "kernel": "kernel", "product": "product"}
        contestants = {
            label: ("numgrad", "alternation", {"part": part, "parallel": parallel})
            for label, part in labels.items()
        }
        name = f"alternate/{parallel} with 500x500 matmul"
        found.append(Case(name, contestants, ("kernel", "product"), 1.2, add=True, rounds=2.0))
    return [
        *found,
        *training_cases(),
        *compiled_cases(),
        *loop_cases(),
        *matrix_cases(),
        *solver_cases(),
        *thread_cases(),
        *transform_cases(),
    ]


def training_cases() -> list[Case]:
    """Steps of optimizers and of training, against torch with its fastest implementation."""
    both = ("numgrad", "torch")

    def case(name: str, target: float | None, kind: str, **params: Any) -> Case:
        return Case(name, _same(kind, both, **params), ("torch",), target)

    def step(
        name: str, tensors: str, target: float, dtype: str = "float64", **options: Any
    ) -> Case:
        label = f"step/{name}/{tensors}/{dtype}"
        params = {"algorithm": name, "tensors": tensors, "dtype": dtype, "options": options}
        return case(label, target, "optimizer", **params)

    found = [step("Adam", "100 x 64", 1 / 12)]
    for dtype in ("float32", "float64"):
        for name, options in (("Adam", {}), ("AdamW", {}), ("SGD", {"momentum": 0.9})):
            found.append(step(name, "8 x 1024x1024", 1 / 1.15, dtype, **options))
        # 80 % of the bandwidth of a triad that moves as many bytes as Adam, which reads four
        # arrays of 8 MiB elements and writes three
        size = 7 * 8 * 1024 * 1024 // 3 * (1 if dtype == "float64" else 0.5)
        contestants: dict[str, Contestant] = {
            "numgrad": (
                "numgrad",
                "optimizer",
                {"algorithm": "Adam", "tensors": "8 x 1024x1024", "dtype": dtype, "options": {}},
            ),
            "triad": ("numgrad", "bandwidth", {"size": int(size)}),
        }
        found.append(Case(f"step/Adam/bandwidth/{dtype}", contestants, ("triad",), 1 / 0.8))
    for name in (
        "Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop",
    ):  # fmt: skip
        found.append(step(name, "4 x (256x256 + 256)", 1 / 3))
    found.append(step("Muon", "4 x 256x256", 1.0, "float32"))
    for search in (None, "strong_wolfe"):
        tensors = "4 x (256x256 + 256)"
        found.append(
            case(f"step/LBFGS/{search}", 1.0, "lbfgs", tensors=tensors, line_search=search)
        )
    found.append(
        case(
            "step/SparseAdam/512 of 10000 x 64",
            1.0,
            "sparse_adam",
            rows=10_000,
            columns=64,
            touched=512,
        )
    )
    large = {"sizes": [64, 256, 256, 10], "batch": 128, "dtype": "float32", "loss": "cross_entropy"}
    small = {"sizes": [10, 32, 1], "batch": 16, "dtype": "float64", "loss": "mse_loss"}
    return [
        *found,
        case("train/MLP 64-256-256-10/float32", 1.0, "mlp", **large),
        case("train/MLP 10-32-1/float64", 1 / 2.5, "mlp", **small),
        case("train/CNN epoch/float32", 1.5, "cnn", samples=1437, batch=64),
    ]


def thread_cases() -> list[Case]:
    """numgrad as it is against itself with one thread and with several."""
    found: list[Case] = []

    def case(name: str, kind: str, **params: Any) -> None:
        contestants = _same(kind, ("numgrad", *FORCED), **params)
        found.append(Case(f"threads/{name}", contestants, FORCED, 1.1, recording=False))

    for exponent in range(2, 8):
        n = 10**exponent
        case(f"a*b/{n}", "operation", code="a * b", shapes={"a": [n], "b": [n]})
        for function in ("exp", "sum"):
            case(f"{function}/{n}", "call", function=function, shape=[n])
        case(f"softmax/{n}", "call", function="softmax", shape=[n // 10, 10], axis=1)
        case(f"jit chain/{n}", "gradient", problem="chain", n=n)
        case(f"step Adam/{n}", "optimizer", algorithm="Adam", tensors=f"1 x {n}", dtype="float64",
             options={})  # fmt: skip
    for n in (10, 30, 100, 300, 1000):
        case(f"a@b/{n} x {n}", "operation", code="a @ b", shapes={"a": [n, n], "b": [n, n]})
    for layers, batch in (([32] * 9, 64), ([64] * 9, 256), ([64, 256, 256, 10], 128)):
        case(
            f"jit MLP {len(layers) - 1} x {layers[1]}/{batch}",
            "gradient",
            problem="mlp",
            batch=batch,
            layers=layers,
        )
    case("jit mixture/d=10 K=25", "gradient", problem="mixture", n=1000, d=10, components=25)
    return found


def compiled_cases() -> list[Case]:
    """A function and its gradient as one kernel: against JAX, and against kernels by hand."""
    found: list[Case] = []

    def case(
        name: str, problem: str, against: tuple[str, ...], target: float | None, **sizes: Any
    ) -> None:
        contestants = _same("gradient", ("numgrad", "torch", "jax"), problem=problem, **sizes)
        found.append(Case(f"jit/{name}", contestants, against, target))

    def by_hand(
        name: str, problem: str, target: float | None, contract: bool = False, **sizes: Any
    ) -> None:
        params = {"problem": problem, **sizes}
        given = {**params, "contract": contract}
        contestants: dict[str, Contestant] = {"numgrad": ("numgrad", "gradient", given)}
        for label, parallel in (("serial", False), ("parallel", True)):
            contestants[label] = (HANDWRITTEN, "gradient", {**params, "parallel": parallel})
        label = f"jit/{name}{'/contract' if contract else ''}/handwritten"
        found.append(Case(label, contestants, ("serial", "parallel"), target))

    lengths = ((100, 6.0, None), (1000, 10.0, None), (100_000, 1.5, 1.15), (10_000_000, 3.5, 1.15))
    for n, jax, hand in lengths:
        case(f"chain/{n}", "chain", ("jax",), 1 / jax, n=n)
        by_hand(f"chain/{n}", "chain", hand, n=n)
    for n in (40_000, 160_000, 10_000_000):  # the last: large temporaries, which a pool keeps
        case(f"logsumexp/{n}", "log sum", ("jax",), 0.8, n=n)
    sizes = {"samples": 10_000, "features": 50}
    case("logistic/10000 x 50", "logistic", ("jax",), 1 / 1.7, **sizes)
    by_hand("logistic/10000 x 50", "logistic", 1.2, **sizes)
    sizes = {"samples": 4096, "classes": 1000}
    case("cross entropy/4096 x 1000", "cross_entropy", ("jax",), 1 / 1.3, **sizes)
    by_hand("cross entropy/4096 x 1000", "cross_entropy", 1.2, **sizes)
    for d, components, jax, hand in (
        (2, 5, 1 / 1.5, 2.0), (10, 25, 1 / 1.5, 1.4), (32, 25, 1 / 1.5, 1.4), (64, 25, 0.9, None),
    ):  # fmt: skip
        sizes = {"n": 1000, "d": d, "components": components}
        case(f"mixture/d={d} K={components}", "mixture", ("jax",), jax, **sizes)
        by_hand(f"mixture/d={d} K={components}", "mixture", hand, **sizes)
        by_hand(f"mixture/d={d} K={components}", "mixture", hand, contract=True, **sizes)
    case("two peaks, Jacobian/1000 x 6", "gaussians", ("jax",), 1 / 3, points=1000)
    by_hand("two peaks, Jacobian/1000 x 6", "gaussians", None, points=1000)
    layers = [64, 256, 256, 10]
    label = "MLP 64-256-256-10/float32"
    case(label, "mlp", ("jax", "torch"), 1.0, batch=128, layers=layers)
    params = {"sizes": layers, "batch": 128, "dtype": "float32"}
    for library, target in (("torch", 1 / 1.3), ("jax", 1.0)):
        contestants = _same("mlp_step", ("numgrad", library), **params)
        name = f"jit/{label}/step against {library}"
        found.append(Case(name, contestants, (library,), target))
    return found


def loop_cases() -> list[Case]:
    """Loops and batches with their derivatives: against JAX, and against kernels by hand."""
    found: list[Case] = []

    def case(
        name: str,
        problem: str,
        target: float | None,
        against: str = "jax",
        threads: int | None = None,
        **sizes: Any,
    ) -> None:
        contestants = _same("loop", ("numgrad", against), problem=problem, **sizes)
        note = "" if against == "jax" else f"/{against}"
        found.append(Case(f"loop/{name}{note}", contestants, (against,), target, threads=threads))

    fields = {"points": 1000, "steps": 1000}
    text = {"characters": 1024, "letters": 14}
    for name, problem, jax, hand, sizes in (
        ("Lorenz/10000 steps", "lorenz", 1 / 30, 1.3, {"steps": 10_000}),
        ("LSTM/1024 characters", "lstm", 1 / 4, 2.5, text),
        ("Kalman filter/1000 x 4", "kalman", 1 / 5, None, {"observations": 1000}),
        ("heat/1000 x 1000", "heat", 1 / 5, 1.5, fields),
        ("wave/1000 x 1000", "wave", 1 / 5, 1.5, fields),
        ("hidden Markov/10000 x 32", "hidden_markov", 1 / 3, 1.5, {"states": 32, "steps": 10_000}),
    ):
        case(name, problem, jax, **sizes)
        if hand is not None:
            case(name, problem, hand, HANDWRITTEN, **sizes)
    for times in (20, 100, 1000):
        name = f"Lotka-Volterra/{times} times"
        case(name, "lotka_volterra", 1 / 10, observations=times)
    name = "gradients by sample/1000 of 10-32-1"
    case(name, "examples", 1 / 1.5, threads=1, samples=1000)
    case(name, "examples", 1 / 20, "torch", samples=1000)
    likelihood: dict[str, Any] = {"samples": 1000, "parameters": 30}
    name = "Hessian/30 parameters"
    case(name, "likelihood", None, derivative="hessian", **likelihood)
    parts = {
        label: (
            "numgrad",
            "loop",
            {"problem": "likelihood", "derivative": derivative, "compiled": False, **likelihood},
        )
        for label, derivative in (("numgrad", "hessian"), ("gradient", "grad"))
    }
    found.append(Case(f"loop/{name}/eager, in gradients", parts, ("gradient",), 10.0))
    return found


def matrix_cases() -> list[Case]:
    """Linear algebra: values with gradients, against torch, and stacks, against a loop of NumPy."""
    both = ("numgrad", "torch")
    found = []
    for n, target in ((8, 0.7), (200, 1.1)):
        for function in ("solve", "cholesky", "eigh", "svd"):
            contestants = _same("matrices", both, function=function, n=n, stack=[])
            found.append(Case(f"linalg/{function}/{n} x {n}", contestants, ("torch",), target))
    for function in ("solve", "cholesky"):
        sizes = {"function": function, "n": 4, "stack": [10_000]}
        name = f"linalg/{function}/10000 of 4 x 4"
        found.append(Case(name, _same("matrices", both, **sizes), ("torch",), 0.7))
        contestants = _same("matrix_values", ("numgrad", "numpy", "torch"), **sizes)
        found.append(Case(f"{name}/value", contestants, ("torch",), 0.7))
        found.append(Case(f"{name}/loop", contestants, ("numpy",), 1 / 3))
    contestants = _same("gaussian_process", both, points=500)
    found.append(Case("linalg/Gaussian process/500 points", contestants, ("torch",), 0.8))
    return found


def transform_cases() -> list[Case]:
    """Second and nested derivatives, eager: against JAX without jit, and in first ones."""
    found = []
    problems: tuple[tuple[str, str, dict[str, int]], ...] = (
        ("chain/1000", "chain", {"n": 1000}),
        ("logistic/1000 x 20", "logistic", {"samples": 1000, "features": 20}),
    )
    for name, problem, sizes in problems:
        for transform in ("hvp", "hessian", "grad of grad", "grad of grad of grad", "grad of jvp",
                          "vmap of hessian"):  # fmt: skip
            if problem == "chain" and "hessian" in transform:
                continue  # a million numbers, of which a thousand are not 0
            more = {"examples": 10} if transform.startswith("vmap") else {}
            params = {"problem": problem, "transform": transform, **sizes, **more}
            contestants = _same("derivative", ("numgrad", "jax"), **params)
            found.append(Case(f"transform/{transform}/{name}", contestants, ("jax",), 1.5))

    def multiple(name: str, transform: str, unit: str, target: float, **params: Any) -> None:
        contestants: dict[str, Contestant] = {
            label: ("numgrad", "derivative", {"transform": each, **params})
            for label, each in (("numgrad", transform), (unit, unit))
        }
        found.append(Case(f"transform/{transform}/{name}, in {unit}", contestants, (unit,), target))

    large = {"samples": 10_000, "features": 50}
    for name, problem, sizes in (*problems, ("logistic/10000 x 50", "logistic", large)):
        multiple(name, "hvp", "value_and_grad", 3.0, problem=problem, **sizes)
    points = {"problem": "gaussians", "points": 1000}
    multiple("two peaks, 1000 x 6", "jacobian", "value", 12.0, **points)
    multiple("Bratu, 100 x 100", "sparse jacobian", "value", 10.0, problem="bratu", side=102)
    return found


def solver_cases() -> list[Case]:
    """SciPy's solvers with exact derivatives."""
    found = []
    for how, jit, target in (("eager", False, 1 / 3), ("jit", True, 1 / 10)):
        contestants: dict[str, Contestant] = {
            "numgrad": ("numgrad", "minimized", {"n": 100, "jit": jit}),
            "autograd": ("autograd", "minimized", {"n": 100}),
        }
        found.append(Case(f"solve/Rosenbrock, L-BFGS-B/{how}", contestants, ("autograd",), target))
    fits = [(name, "compiled", "differences") for name in ("ENSO", "Gauss1", "Thurber")]
    for name, ours, theirs in (*fits, ("ENSO", "demo", "3-point")):
        contestants = {
            label: ("numgrad", "fitted", {"problem": name, "start": 1, "how": how})
            for label, how in (("numgrad", ours), (theirs, theirs))
        }
        found.append(Case(f"solve/{name}, {ours}", contestants, (theirs,), 1.0))
    return found
