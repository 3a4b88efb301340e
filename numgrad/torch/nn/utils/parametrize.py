"""Parameters that are functions of others: ``torch.nn.utils.parametrize``."""

from __future__ import annotations

from numgrad.torch.specialization import GIVEN, specialize

_base = specialize("numgrad.nn.utils.parametrize", asarray=lambda value: value)
ParametrizationList, cached = _base.ParametrizationList, _base.cached
is_parametrized = _base.is_parametrized
register_parametrization = _base.register_parametrization
remove_parametrizations = _base.remove_parametrizations
type_before_parametrizations = _base.type_before_parametrizations
GIVEN["register_parametrization"] = register_parametrization
