"""Distances between points, with gradients: ``ng.spatial.distance``."""

from numgrad.core.namespaces import namespace as _namespace

_namespace(globals(), {"numgrad.spatial": "distance"})
