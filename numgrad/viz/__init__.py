"""Drawings of recorded graphs, which Jupyter shows and which are saved as SVG or DOT.

>>> import numgrad as ng
>>> x = ng.tensor(1.0, requires_grad=True)
>>> drawing = ng.viz.make_dot(x.exp() * x, params={"x": x})
>>> "MultiplyBackward" in drawing.source
True
"""

from numgrad.viz.drawing import Drawing as Drawing
from numgrad.viz.drawing import make_dot as make_dot

__all__ = ["Drawing", "make_dot"]


def __dir__() -> list[str]:
    return __all__
