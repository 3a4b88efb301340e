"""Size of the spot that a lens of six spherical surfaces makes of a bundle of rays."""

import numpy

SIZES = {"tiny": [5], "small": [100], "middle": [3000], "large": [100_000]}
ARGNUMS = (0, 1, 2)


def arguments(rays):
    """Curvatures, distances to the next surface, ratios of refractive indices; where rays enter."""
    curvatures = numpy.array([0.05, -0.02, -0.04, 0.045, 0.01, -0.05])
    distances = numpy.array([2.0, 1.5, 0.8, 1.2, 2.0, 30.0])
    ratios = numpy.array([1 / 1.6, 1.6, 1 / 1.7, 1.7, 1 / 1.6, 1.6])
    angle, radius = 2.4 * numpy.arange(rays), 3.0 * numpy.sqrt((numpy.arange(rays) + 0.5) / rays)
    return curvatures, distances, ratios, radius * numpy.cos(angle), radius * numpy.sin(angle)


def program(library):
    np = library.np

    def spot(curvatures, distances, ratios, x, y):
        def surface(ray, lens):
            (x, y, z, dx, dy, dz), (c, distance, ratio) = ray, lens
            # where the ray meets the sphere whose vertex is the origin
            toward = dz - c * (x * dx + y * dy + z * dz)
            square = c * (x * x + y * y + z * z) - 2.0 * z
            way = square / (toward + np.sqrt(toward * toward - c * square))
            x, y, z = x + way * dx, y + way * dy, z + way * dz
            # Snell's law, along the normal (-c x, -c y, 1 - c z)
            nx, ny, nz = -c * x, -c * y, 1.0 - c * z
            cosine = dx * nx + dy * ny + dz * nz
            bend = np.sqrt(1.0 - ratio**2 * (1.0 - cosine**2)) - ratio * cosine
            dx, dy, dz = ratio * dx + bend * nx, ratio * dy + bend * ny, ratio * dz + bend * nz
            return (x, y, z - distance, dx, dy, dz), None

        zero, one = np.zeros_like(x), np.ones_like(x)
        start = x, y, zero, zero, zero, one
        ray, _ = library.scan(surface, start, (curvatures, distances, ratios))
        x, y, z, dx, dy, dz = ray
        x, y = x - z / dz * dx, y - z / dz * dy
        return np.mean((x - np.mean(x)) ** 2 + (y - np.mean(y)) ** 2)

    return spot
