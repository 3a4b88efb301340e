"""Pictures of recorded graphs."""

from numgrad.viz.drawing import Drawing as Drawing
from numgrad.viz.recorded_graph import make_dot as make_dot

__all__ = ["Drawing", "make_dot"]


def __dir__() -> list[str]:
    return __all__
