"""Initial values that do not depend on the library: drawn by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Train = Callable[[int], list[float]]
"""The training loop of a program: a number of steps -> losses."""


def draw(torch: Any, *shape: int, scale: float = 1.0, seed: int = 0) -> Any:
    """Draw a float32 tensor from a normal distribution."""
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    return torch.from_numpy(values.astype("float32"))


def fill(torch: Any, module: Any, scale: float = 0.2, seed: int = 0) -> Any:
    """Fill the matrices of a module with normal numbers, and leave biases and gains as they are."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for param in module.parameters():
            values = rng.standard_normal(tuple(param.shape)).astype("float32") * scale
            if param.dim() > 1:
                param.copy_(torch.from_numpy(values))
            else:
                param.fill_(0.0 if param.mean().item() < 0.9 else 1.0)
    return module
