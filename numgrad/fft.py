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

from numgrad.core.absent import absent as _absent
from numgrad.operations.fourier.cosine_sine import dct as dct
from numgrad.operations.fourier.cosine_sine import dctn as dctn
from numgrad.operations.fourier.cosine_sine import dst as dst
from numgrad.operations.fourier.cosine_sine import dstn as dstn
from numgrad.operations.fourier.cosine_sine import idct as idct
from numgrad.operations.fourier.cosine_sine import idctn as idctn
from numgrad.operations.fourier.cosine_sine import idst as idst
from numgrad.operations.fourier.cosine_sine import idstn as idstn
from numgrad.operations.fourier.transforms import fft as fft
from numgrad.operations.fourier.transforms import fft2 as fft2
from numgrad.operations.fourier.transforms import fftfreq as fftfreq
from numgrad.operations.fourier.transforms import fftn as fftn
from numgrad.operations.fourier.transforms import fftshift as fftshift
from numgrad.operations.fourier.transforms import hfft as hfft
from numgrad.operations.fourier.transforms import hfft2 as hfft2
from numgrad.operations.fourier.transforms import hfftn as hfftn
from numgrad.operations.fourier.transforms import ifft as ifft
from numgrad.operations.fourier.transforms import ifft2 as ifft2
from numgrad.operations.fourier.transforms import ifftn as ifftn
from numgrad.operations.fourier.transforms import ifftshift as ifftshift
from numgrad.operations.fourier.transforms import ihfft as ihfft
from numgrad.operations.fourier.transforms import ihfft2 as ihfft2
from numgrad.operations.fourier.transforms import ihfftn as ihfftn
from numgrad.operations.fourier.transforms import irfft as irfft
from numgrad.operations.fourier.transforms import irfft2 as irfft2
from numgrad.operations.fourier.transforms import irfftn as irfftn
from numgrad.operations.fourier.transforms import rfft as rfft
from numgrad.operations.fourier.transforms import rfft2 as rfft2
from numgrad.operations.fourier.transforms import rfftfreq as rfftfreq
from numgrad.operations.fourier.transforms import rfftn as rfftn
from numgrad.tensors.tensor import Tensor as _Tensor

__all__ = [
    "dct",
    "dctn",
    "dst",
    "dstn",
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


__getattr__ = _absent(__name__, __all__, {})


def __dir__() -> list[str]:
    return __all__


__ua_domain__ = "numpy.scipy.fft"


def __ua_function__(method: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """SciPy's call of one of its functions, of which those of Tensors are ours."""
    operation = globals().get(method.__name__)
    if operation is None or not any(isinstance(a, _Tensor) for a in (*args, *kwargs.values())):
        return NotImplemented
    return operation(*args, **kwargs)
