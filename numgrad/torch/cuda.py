"""``torch.cuda``: there is no GPU, and this says so."""

from __future__ import annotations

from typing import Any

from numgrad.errors import NumgradAttributeError


def is_available() -> bool:
    """Whether there is a GPU: no."""
    return False


is_initialized = is_bf16_supported = is_available


def device_count() -> int:
    """Number of GPUs: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the generators of GPUs, of which there are none."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Give memory of GPUs back, of which there is none."""


def __getattr__(name: str) -> Any:
    raise NumgradAttributeError(
        f"torch.cuda.{name}: there is no GPU; numgrad computes on the CPU. Scripts that ask "
        "torch.cuda.is_available() take that way"
    )
