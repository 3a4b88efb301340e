"""Functions on pieces of their data: on executors of ``concurrent.futures``, and on Dask.

>>> import numpy as np
>>> import numgrad as ng
>>> def loss(w, x):
...     return np.sum((x * w) ** 2)
>>> value, gradient = ng.parallel.value_and_grad(loss, chunks=2)(3.0, np.arange(4.0))
>>> float(value), float(gradient)
(126.0, 84.0)
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(globals(), {"numgrad.parallel.mapping": "map value_and_grad"})
