"""Choices of behaviour that PyTorch offers: ``torch.__future__``.

Parameters always stay the objects that they are when a module is converted or loaded, so that
``swap`` and ``overwrite`` give the same values here, and are only remembered.
"""

from __future__ import annotations

_chosen = {"swap": False, "overwrite": False}


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Remember whether conversions swap parameters."""
    _chosen["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversions swap parameters, as was set."""
    return _chosen["swap"]


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Remember whether conversions overwrite parameters."""
    _chosen["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversions overwrite parameters, as was set."""
    return _chosen["overwrite"]
