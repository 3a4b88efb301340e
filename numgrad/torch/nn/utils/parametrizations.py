"""Norms of one, spectral norms, orthonormal rows: ``torch.nn.utils.parametrizations``."""

from __future__ import annotations

from numgrad.nn.utils import parametrizations as _numgrad
from numgrad.torch.nn.layers import Layer, layer_class
from numgrad.torch.nn.utils import parametrize as parametrize  # whose functions those here call
from numgrad.torch.specialization import expose, specialize
from numgrad.torch.wrapping import face_function


class PowerIteration(_numgrad.PowerIteration):
    """Steps towards the largest singular value, of Tensors of this room."""

    as_matrix = face_function(_numgrad.PowerIteration.as_matrix)
    started = face_function(_numgrad.PowerIteration.started)
    stepped = face_function(_numgrad.PowerIteration.stepped)
    value = staticmethod(face_function(_numgrad.PowerIteration.value))


_classes = {
    name: layer_class(name, getattr(_numgrad, name), (Layer,))
    for name in ("_Orthogonal", "_SpectralNorm", "_WeightNorm")
}
_base = specialize(
    "numgrad.nn.utils.parametrizations",
    {"asarray": lambda value: value},
    **_classes,
    PowerIteration=PowerIteration,
    directed=face_function(_numgrad.directed),
    norm_except=face_function(_numgrad.norm_except),
)
expose(globals(), "numgrad.nn.utils.parametrizations", _base)
before_calls = specialize("numgrad.nn.utils.reparametrize")
"""``weight_norm`` and ``spectral_norm`` of older programs."""
