"""Files of nested values with arrays, saved and loaded without pickle; ``ng.save`` and ``ng.load``.

>>> import io
>>> import numgrad as ng
>>> file = io.BytesIO()
>>> ng.save({"weights": [ng.ones(2)], "epoch": 3}, file)
>>> _ = file.seek(0)
>>> ng.load(file)
{'weights': [tensor([1., 1.])], 'epoch': 3}
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(globals(), {"numgrad.io.files": "load save"})
