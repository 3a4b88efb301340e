"""Anomaly mode as PyTorch has it: gradients are looked at, and no results."""

from __future__ import annotations

from typing import Any

from numgrad.autograd import anomaly as base
from numgrad.torch.autograd.graph import node_name


class _OfGradients:
    def _changes(self) -> dict[str, Any]:
        changes = super()._changes()  # pyright: ignore[reportAttributeAccessIssue]
        changes["check_nan"] = changes["check_nan"] and base.GRADIENTS
        return {**changes, "anomaly": changes["anomaly"] and node_name}


class detect_anomaly(_OfGradients, base.detect_anomaly):
    """Find the operation whose backward fails or returns NaN."""


class set_detect_anomaly(_OfGradients, base.set_detect_anomaly):
    """Turn anomaly mode on or off, at once or for a block."""
