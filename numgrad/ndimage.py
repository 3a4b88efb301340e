"""Filters and interpolation of images: functions of ``scipy.ndimage``, with gradients."""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.operations.images.linear_filters": "convolve1d correlate1d gaussian_filter "
        "gaussian_filter1d laplace convolve=ndimage_convolve correlate=ndimage_correlate prewitt "
        "sobel uniform_filter uniform_filter1d",
        "numgrad.operations.images.rank": "maximum_filter median_filter minimum_filter",
        "numgrad.operations.images.spline_interpolation": "affine_transform map_coordinates "
        "shift=ndimage_shift rotate spline_filter spline_filter1d zoom",
    },
)
