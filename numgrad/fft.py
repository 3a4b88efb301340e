"""Fourier, cosine and sine transforms: what ``numpy.fft`` and ``scipy.fft`` have, with gradients.

``np.fft.rfft(tensor)`` finds them. SciPy's functions take Tensors where it is told that these are
another implementation of them:

>>> import scipy.fft
>>> import numgrad as ng
>>> with scipy.fft.set_backend(ng.fft):
...     scipy.fft.dct(ng.tensor([1.0, 2.0, 4.0]), type=1)
tensor([ 9., -3.,  1.])
"""

from typing import Any

from numgrad.core.namespaces import namespace as _namespace
from numgrad.tensors.tensor import Tensor as _Tensor

_namespace(
    globals(),
    {
        "numgrad.operations.fourier.cosine_sine": "dct dctn dst dstn idct idctn idst idstn",
        "numgrad.operations.fourier.transforms": "fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn "
        "ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftfreq "
        "rfftn",
    },
)

__ua_domain__ = "numpy.scipy.fft"


def __ua_function__(method: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """SciPy's call of one of its functions, of which those of Tensors are ours."""
    operation = globals().get(method.__name__)
    if operation is None or not any(isinstance(a, _Tensor) for a in (*args, *kwargs.values())):
        return NotImplemented
    return operation(*args, **kwargs)
