"""Functions on pieces of their data: on executors of ``concurrent.futures``, and on Dask.

>>> import numpy as np
>>> import numgrad as ng
>>> def loss(w, x):
...     return np.sum((x * w) ** 2)
>>> value, gradient = ng.parallel.value_and_grad(loss, chunks=2)(3.0, np.arange(4.0))
>>> float(value), float(gradient)
(126.0, 84.0)
"""

from numgrad.parallel.mapping import map as map
from numgrad.parallel.mapping import value_and_grad as value_and_grad

__all__ = ["map", "value_and_grad"]


def __dir__() -> list[str]:
    return __all__
