"""Filters and interpolation of images: functions of ``scipy.ndimage``, with gradients."""

from numgrad.core.absent import absent as _absent
from numgrad.operations.images.linear_filters import convolve1d as convolve1d
from numgrad.operations.images.linear_filters import correlate1d as correlate1d
from numgrad.operations.images.linear_filters import gaussian_filter as gaussian_filter
from numgrad.operations.images.linear_filters import gaussian_filter1d as gaussian_filter1d
from numgrad.operations.images.linear_filters import laplace as laplace
from numgrad.operations.images.linear_filters import ndimage_convolve as convolve
from numgrad.operations.images.linear_filters import ndimage_correlate as correlate
from numgrad.operations.images.linear_filters import prewitt as prewitt
from numgrad.operations.images.linear_filters import sobel as sobel
from numgrad.operations.images.linear_filters import uniform_filter as uniform_filter
from numgrad.operations.images.linear_filters import uniform_filter1d as uniform_filter1d
from numgrad.operations.images.rank import maximum_filter as maximum_filter
from numgrad.operations.images.rank import median_filter as median_filter
from numgrad.operations.images.rank import minimum_filter as minimum_filter
from numgrad.operations.images.spline_interpolation import affine_transform as affine_transform
from numgrad.operations.images.spline_interpolation import map_coordinates as map_coordinates
from numgrad.operations.images.spline_interpolation import ndimage_shift as shift
from numgrad.operations.images.spline_interpolation import rotate as rotate
from numgrad.operations.images.spline_interpolation import spline_filter as spline_filter
from numgrad.operations.images.spline_interpolation import spline_filter1d as spline_filter1d
from numgrad.operations.images.spline_interpolation import zoom as zoom

__all__ = [
    "affine_transform",
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "gaussian_filter",
    "gaussian_filter1d",
    "laplace",
    "map_coordinates",
    "maximum_filter",
    "median_filter",
    "minimum_filter",
    "prewitt",
    "rotate",
    "shift",
    "sobel",
    "spline_filter",
    "spline_filter1d",
    "uniform_filter",
    "uniform_filter1d",
    "zoom",
]


__getattr__ = _absent(__name__, __all__, {})


def __dir__() -> list[str]:
    return __all__
