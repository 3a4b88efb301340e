"""Sample calls of operations: images."""

import numpy as np

from numgrad.operations.images.linear_filters import (
    convolve1d,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    laplace,
    ndimage_convolve,
    ndimage_correlate,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from numgrad.operations.images.rank import maximum_filter, medfilt, median_filter, minimum_filter
from numgrad.operations.images.spline_interpolation import (
    affine_transform,
    map_coordinates,
    ndimage_shift,
    rotate,
    spline_filter,
    spline_filter1d,
    zoom,
)

CALLS = {
    # numgrad.operations.images.linear_filters
    ndimage_correlate: [
        (((3, 2), (2, 2)), lambda x, w: ndimage_correlate(x, w)),
        (((0, 2), (2, 2)), lambda x, w: ndimage_correlate(x, w)),
    ],
    ndimage_convolve: [
        (((3, 2), (2, 3)), lambda x, w: ndimage_convolve(x, w, mode="constant", cval=2.0))
    ],
    correlate1d: [(((2, 3), (3,)), lambda x, w: correlate1d(x, w, 0, mode="wrap", origin=1))],
    convolve1d: [(((2, 3), (4,)), lambda x, w: convolve1d(x, w, mode="nearest"))],
    sobel: [(((2, 3),), lambda x: sobel(x))],
    prewitt: [(((2, 3),), lambda x: prewitt(x, 0))],
    laplace: [(((2, 3),), lambda x: laplace(x, mode="wrap"))],
    gaussian_filter1d: [(((4,),), lambda x: gaussian_filter1d(x, 1.0, order=1, radius=2))],
    gaussian_filter: [
        (((2, 3), ()), lambda x, s: gaussian_filter(x, s * s + 1, radius=1, mode="mirror"))
    ],
    uniform_filter1d: [(((4,),), lambda x: uniform_filter1d(x, 3))],
    uniform_filter: [(((2, 3),), lambda x: uniform_filter(x, (2, 3)))],
    # numgrad.operations.images.rank
    maximum_filter: [
        (((4, 3),), lambda x: maximum_filter(x, (3, 2))),
        (((4,),), lambda x: maximum_filter(x, footprint=[1, 0, 1], mode="wrap")),
    ],
    minimum_filter: [(((4, 3),), lambda x: minimum_filter(x, (1, 3), mode="nearest"))],
    median_filter: [(((4, 3),), lambda x: median_filter(x, 3, mode="constant"))],
    medfilt: [(((4,),), lambda x: medfilt(x))],
    # numgrad.operations.images.spline_interpolation
    spline_filter1d: [
        (((2, 3),), lambda x: spline_filter1d(x, 3, 1, mode="reflect")),
        (((4,),), lambda x: spline_filter1d(x, 2, mode="grid-wrap")),
    ],
    spline_filter: [(((2, 3),), lambda x: spline_filter(x, 5))],
    map_coordinates: [
        (
            ((3, 4), (2, 3)),
            lambda x, at, order=order, mode=mode: map_coordinates(
                x, at * 0.4 + 1.3, order=order, mode=mode
            ),
        )
        for order, mode in ((1, "constant"), (3, "mirror"), (2, "grid-constant"), (0, "nearest"))
    ],
    ndimage_shift: [(((3, 4), (2,)), lambda x, d: ndimage_shift(x, d * 0.3 + 0.1, order=1))],
    zoom: [(((2, 3),), lambda x: zoom(x, 1.5, order=2, mode="grid-wrap"))],
    affine_transform: [
        (
            ((3, 4), (2, 2), (2,)),
            lambda x, m, o: affine_transform(x, m * 0.1 + np.eye(2), o * 0.1, mode="reflect"),
        )
    ],
    rotate: [(((3, 4), ()), lambda x, a: rotate(x, a * 5 + 20, reshape=False, mode="nearest"))],
}
