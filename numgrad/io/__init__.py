"""Files of nested values with arrays, saved and loaded without pickle; ``ng.save`` and ``ng.load``.

>>> import io
>>> import numgrad as ng
>>> file = io.BytesIO()
>>> ng.save({"weights": [ng.ones(2)], "epoch": 3}, file)
>>> _ = file.seek(0)
>>> ng.load(file)
{'weights': [tensor([1., 1.])], 'epoch': 3}
"""

from numgrad.io.files import load as load
from numgrad.io.files import save as save

__all__ = ["load", "save"]


def __dir__() -> list[str]:
    return __all__
