"""Drawings of recorded graphs, which Jupyter shows and which are saved as SVG or DOT.

>>> import numgrad as ng
>>> x = ng.tensor(1.0, requires_grad=True)
>>> drawing = ng.viz.make_dot(x.exp() * x, params={"x": x})
>>> "MultiplyBackward" in drawing.source
True
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(globals(), {"numgrad.viz.drawing": "Drawing make_dot"})
