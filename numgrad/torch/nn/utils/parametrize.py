"""Parameters that are functions of others: ``torch.nn.utils.parametrize``."""

from __future__ import annotations

from numgrad.torch.specialization import GIVEN, expose, specialize

_base = specialize("numgrad.nn.utils.parametrize", {"asarray": lambda value: value})
expose(globals(), "numgrad.nn.utils.parametrize", _base)
GIVEN["register_parametrization"] = _base.register_parametrization
