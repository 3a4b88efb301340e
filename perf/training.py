"""Steps of optimizers and of training, written once for the two libraries that share the names.

``library`` is numgrad or torch: what they name alike is used from either.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from harness import Statement

SHAPES = {
    "100 x 64": [(64,)] * 100,
    "4 x (256x256 + 256)": [(256, 256), (256,)] * 4,
    "8 x 1024x1024": [(1024, 1024)] * 8,
    "4 x 256x256": [(256, 256)] * 4,
    **{f"1 x {10**k}": [(10**k,)] for k in range(2, 8)},
}
IMPLEMENTATIONS = dict.fromkeys(("Adam", "AdamW", "SGD"), "fused")
"""What of torch's is timed; where nothing is said, ``foreach``."""


def _draw(seed: int, *shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _options(library: Any, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """``options``, for torch with the implementation that is timed."""
    if library.__name__ != "torch" or name in ("LBFGS", "Muon", "SparseAdam"):
        return options
    return {**options, IMPLEMENTATIONS.get(name, "foreach"): True}


def optimizer(
    library: Any, algorithm: str, tensors: str, dtype: str, options: dict[str, Any]
) -> Statement:
    """One step over tensors whose gradients are there."""
    params = []
    for k, shape in enumerate(SHAPES[tensors]):
        param = library.tensor(_draw(k, *shape, dtype=dtype), requires_grad=True)
        param.grad = library.tensor(_draw(k + 1000, *shape, dtype=dtype))
        params.append(param)
    options = _options(library, algorithm, options)
    made = getattr(library.optim, algorithm)(params, **options)
    return Statement("step()", {"step": made.step})


def lbfgs(library: Any, tensors: str, line_search: str | None) -> Statement:
    """A step of 20 iterations on a quadratic whose gradient costs little."""
    start = [_draw(k, *shape) for k, shape in enumerate(SHAPES[tensors])]
    params = [library.tensor(a, requires_grad=True) for a in start]
    first = [library.tensor(a) for a in start]
    scales = [library.tensor(np.abs(_draw(k + 1000, *a.shape)) + 0.01) for k, a in enumerate(start)]

    def closure() -> Any:
        loss = 0.0
        with library.no_grad():
            for param, scale in zip(params, scales, strict=True):
                param.grad = param * scale
                loss = loss + 0.5 * (param * param.grad).sum()
        return loss

    def run() -> None:
        with library.no_grad():
            for param, a in zip(params, first, strict=True):
                param.copy_(a)
        library.optim.LBFGS(params, line_search_fn=line_search).step(closure)

    return Statement("run()", {"run": run})


def sparse_adam(library: Any, rows: int, columns: int, touched: int) -> Statement:
    """A step over a table of which some rows have a gradient."""
    table = library.tensor(_draw(0, rows, columns), requires_grad=True)
    indices = np.random.default_rng(1).integers(0, rows, touched)
    values = _draw(2, touched, columns)
    if library.__name__ == "torch":
        grad = library.sparse_coo_tensor(indices[None], values, (rows, columns))
    else:
        grad = library.RowSparseTensor(indices, values, (rows, columns))
    table.grad = grad
    return Statement("step()", {"step": library.optim.SparseAdam([table]).step})


def perceptron(library: Any, sizes: list[int], dtype: str) -> Any:
    nn, of = library.nn, getattr(library, dtype)
    layers: list[Any] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs, dtype=of), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _labels(library: Any, classes: int, batch: int) -> Any:
    return library.tensor(np.random.default_rng(1).integers(0, classes, batch))


def mlp(library: Any, sizes: list[int], batch: int, dtype: str, loss: str) -> Statement:
    """A training step: forward, loss, backward, Adam."""
    model = perceptron(library, sizes, dtype)
    x = library.tensor(_draw(0, batch, sizes[0], dtype=dtype))
    if loss == "cross_entropy":
        target = _labels(library, sizes[-1], batch)
    else:
        target = library.tensor(_draw(1, batch, sizes[-1], dtype=dtype))
    return _training(library, model, getattr(library.nn.functional, loss), [(x, target)])


def compiled_mlp(library: Any, sizes: list[int], batch: int, dtype: str) -> Statement:
    """The same with cross-entropy as one compiled function, which changes the model in place."""
    model = perceptron(library, sizes, dtype)
    made = library.optim.Adam(model.parameters())
    cross_entropy = library.nn.functional.cross_entropy

    @library.jit
    def train(x: Any, target: Any) -> Any:
        made.zero_grad()
        loss = cross_entropy(model(x), target)
        loss.backward()
        made.step()
        return loss

    names = {
        "train": train,
        "x": library.tensor(_draw(0, batch, sizes[0], dtype=dtype)),
        "target": _labels(library, sizes[-1], batch),
    }
    return Statement("train(x, target)", names)


def cnn(library: Any, samples: int, batch: int) -> Statement:
    """An epoch of the demo's network on images of 8 x 8, float32."""
    nn, of = library.nn, library.float32
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, dtype=of),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, dtype=of),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10, dtype=of),
    )
    images = _draw(0, samples, 1, 8, 8, dtype="float32")
    labels = np.random.default_rng(1).integers(0, 10, samples)
    batches = [
        (library.tensor(images[k : k + batch]), library.tensor(labels[k : k + batch]))
        for k in range(0, samples, batch)
    ]
    return _training(library, model, nn.functional.cross_entropy, batches)


def _training(library: Any, model: Any, loss: Any, batches: list[tuple[Any, Any]]) -> Statement:
    made = library.optim.Adam(model.parameters(), **_options(library, "Adam", {}))

    def train() -> None:
        for x, target in batches:
            made.zero_grad()
            loss(model(x), target).backward()
            made.step()

    return Statement("train()", {"train": train})


def bandwidth(size: int) -> Statement:
    """A triad over arrays that no cache holds: what memory can do for a kernel on all threads."""
    from numgrad.codegen import threads
    from numgrad.codegen.compile import compile_kernel

    source = (
        "from numba import prange\n"
        "def kernel(x, y, z):\n"
        "    for i in prange(x.size):\n"
        "        z[i] = x[i] + 3.0 * y[i]\n"
    )
    triad = compile_kernel(
        "perf_triad", source, f"void({', '.join(['float64[::1]'] * 3)})", parallel=True
    )
    arrays = [np.ones(size) for _ in range(3)]
    return Statement("triad()", {"triad": lambda: threads.launch(triad.entry, 2, *arrays)})
