"""Programs of NVIDIA Warp's examples, in Warp and as ``ng.kernel``: ``perf/against_warp.py``.

Warp is an optional peer: ``python -m pip install warp-lang``. The programs are written again from
their equations, in float32 as there:

- ``particles``: a step of smoothed particle hydrodynamics (Mueller et al., 2003), with a
  list of neighbours in place of a hash grid; the kinetic energy by positions and velocities;
- ``distortion``: the symmetric Dirichlet energy of a triangulation (Smith and Schaefer, 2015) in
  linear finite elements, by positions of nodes;
- ``fluid``: stable fluids (Stam, 1999) through time steps, pressure by Jacobi's method; how far
  the dye ends from a target, by the velocities at the start;
- ``in place``: ``u *= k`` three times, of which Warp's manual says that its gradient is wrong;
- ``squares``: sums of loops, each of them squared, of which Warp's gradient is 0. That of
  ``particles`` is wrong for the same reason: as in the example, such a sum is divided.

For each: how far both values are from that in float64; how far both gradients are, along a random
direction, from central differences in float64; the CPU time of value and gradient in turns, on one
thread; and our wall-clock time with ``--threads`` by Warp's, which runs on one thread of a CPU.
"""


# no `from __future__ import annotations`: Warp reads annotations as values

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numba import prange
from scipy.spatial import cKDTree

import numgrad as ng

# ------------------------------------------------------------------------------------ in numgrad


def particles(x, v, neighbours, counts, radius, stiffness, rest, viscosity, gravity, dt):
    n = x.shape[0]
    density = np.empty_like(x[:, 0])
    scale = 315.0 / (64.0 * math.pi * radius**9)
    for i in prange(n):
        rho = radius**6
        for k in range(counts[i]):
            j = neighbours[i, k]
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            q = radius * radius - (dx * dx + dy * dy + dz * dz)
            if q > 0.0:
                rho += q * q * q
        density[i] = scale * rho
    energy = 0.0
    for i in prange(n):
        pressure = stiffness * (density[i] - rest)
        ax, ay, az = 0.0, 0.0, 0.0
        for k in range(counts[i]):
            j = neighbours[i, k]
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            r = math.sqrt(dx * dx + dy * dy + dz * dz)
            if r < radius:
                other = stiffness * (density[j] - rest)
                push = -(pressure + other) / (2.0 * density[j]) * (radius - r) ** 2 / r
                drag = viscosity * (radius - r) / density[j]
                ax += push * dx + drag * (v[j, 0] - v[i, 0])
                ay += push * dy + drag * (v[j, 1] - v[i, 1])
                az += push * dz + drag * (v[j, 2] - v[i, 2])
        vx = v[i, 0] + dt * ax / density[i]
        vy = v[i, 1] + dt * (ay / density[i] + gravity)
        vz = v[i, 2] + dt * az / density[i]
        energy += 0.5 * (vx * vx + vy * vy + vz * vz)
    return energy


def distortion(u, triangles, inverse, areas):
    energy = 0.0
    for t in prange(triangles.shape[0]):
        i, j, k = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ax, ay = u[j, 0] - u[i, 0], u[j, 1] - u[i, 1]
        bx, by = u[k, 0] - u[i, 0], u[k, 1] - u[i, 1]
        f00 = ax * inverse[t, 0, 0] + bx * inverse[t, 1, 0]
        f01 = ax * inverse[t, 0, 1] + bx * inverse[t, 1, 1]
        f10 = ay * inverse[t, 0, 0] + by * inverse[t, 1, 0]
        f11 = ay * inverse[t, 0, 1] + by * inverse[t, 1, 1]
        square = f00 * f00 + f01 * f01 + f10 * f10 + f11 * f11
        det = f00 * f11 - f01 * f10
        energy += 0.5 * areas[t] * square * (1.0 + 1.0 / (det * det))
    return energy


def advected(field, vx, vy, dt, out):
    n, m = field.shape
    for i in range(n):
        for j in range(m):
            a, b = i - vx[i, j] * dt, j - vy[i, j] * dt
            p, q = math.floor(a), math.floor(b)
            s, t = a - p, b - q
            p0, q0 = int(p) % n, int(q) % m
            p1, q1 = (p0 + 1) % n, (q0 + 1) % m
            out[i, j] = (1.0 - s) * ((1.0 - t) * field[p0, q0] + t * field[p0, q1]) + s * (
                (1.0 - t) * field[p1, q0] + t * field[p1, q1]
            )


def fluid(vx, vy, dye, target, steps, iterations, dt):
    n, m = vx.shape
    u, w, d = vx.copy(), vy.copy(), dye.copy()
    a, b, e = np.empty_like(vx), np.empty_like(vx), np.empty_like(vx)
    div, p, q = np.empty_like(vx), np.zeros_like(vx), np.zeros_like(vx)
    for _ in range(steps):
        advected(u, u, w, dt, a)
        advected(w, u, w, dt, b)
        for i in range(n):
            for j in range(m):
                div[i, j] = a[i, j] - a[i - 1, j] + b[i, j] - b[i, j - 1]
        for _ in range(iterations):
            for i in range(n):
                up, down = (i + 1) % n, (i - 1) % n
                for j in range(m):
                    around = p[down, j] + p[up, j] + p[i, (j - 1) % m] + p[i, (j + 1) % m]
                    q[i, j] = p[i, j] / 3.0 + (around - div[i, j]) / 6.0
            p, q = q, p
        for i in range(n):
            for j in range(m):
                u[i, j] = a[i, j] - (p[(i + 1) % n, j] - p[i, j])
                w[i, j] = b[i, j] - (p[i, (j + 1) % m] - p[i, j])
        advected(d, u, w, dt, e)
        d, e = e, d
    loss = 0.0
    for i in range(n):
        for j in range(m):
            loss += (d[i, j] - target[i, j]) ** 2
    return loss / (n * m)


def in_place(u, k):
    v = u.copy()
    for _ in range(3):
        for i in range(v.shape[0]):
            v[i] *= k[i]
    total = 0.0
    for i in range(v.shape[0]):
        total += v[i]
    return total


def squares(u, counts):
    total = 0.0
    for i in range(len(counts)):
        f = 0.0
        for k in range(counts[i]):
            f += u[k]
        total += f * f
    return total


# --------------------------------------------------------------------------------------- in Warp


def warp_programs(wp: Any) -> dict[str, Callable[..., Callable[[], Any]]]:
    """By name, what makes a call that gives value and gradients in Warp."""

    @wp.kernel
    def densities(
        x: wp.array(dtype=wp.vec3), neighbours: wp.array2d(dtype=int), counts: wp.array(dtype=int),
        radius: float, density: wp.array(dtype=float),
    ):  # fmt: skip
        i = wp.tid()
        rho = float(radius * radius * radius * radius * radius * radius)
        for k in range(counts[i]):
            d = x[neighbours[i, k]] - x[i]
            q = wp.max(radius * radius - wp.dot(d, d), 0.0)
            rho += q * q * q
        density[i] = 315.0 / (64.0 * wp.pi * wp.pow(radius, 9.0)) * rho

    @wp.kernel
    def accelerations(
        x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), density: wp.array(dtype=float),
        neighbours: wp.array2d(dtype=int), counts: wp.array(dtype=int), radius: float,
        stiffness: float, rest: float, viscosity: float, gravity: float,
        a: wp.array(dtype=wp.vec3),
    ):  # fmt: skip
        i = wp.tid()
        pressure = stiffness * (density[i] - rest)
        force = wp.vec3()
        for k in range(counts[i]):
            j = neighbours[i, k]
            d = x[j] - x[i]
            r = wp.length(d)
            if r < radius:
                other = stiffness * (density[j] - rest)
                near = radius - r
                force += -d * ((pressure + other) / (2.0 * density[j]) * near * near / r)
                force += (v[j] - v[i]) * (viscosity * near / density[j])
        a[i] = force / density[i] + wp.vec3(0.0, gravity, 0.0)

    @wp.kernel
    def energies(
        v: wp.array(dtype=wp.vec3), a: wp.array(dtype=wp.vec3), dt: float,
        energy: wp.array(dtype=float),
    ):  # fmt: skip
        i = wp.tid()
        w = v[i] + dt * a[i]
        wp.atomic_add(energy, 0, 0.5 * wp.dot(w, w))

    @wp.kernel
    def distortions(
        u: wp.array(dtype=wp.vec2), triangles: wp.array2d(dtype=int),
        inverse: wp.array(dtype=wp.mat22), areas: wp.array(dtype=float),
        energy: wp.array(dtype=float),
    ):  # fmt: skip
        t = wp.tid()
        o = u[triangles[t, 0]]
        a, b = u[triangles[t, 1]] - o, u[triangles[t, 2]] - o
        f = wp.mat22(a[0], b[0], a[1], b[1]) * inverse[t]
        det = wp.determinant(f)
        square = wp.ddot(f, f) * (1.0 + 1.0 / (det * det))
        wp.atomic_add(energy, 0, 0.5 * areas[t] * square)

    @wp.func
    def cyclic(i: int, n: int):
        k = i % n
        if k < 0:
            k += n
        return k

    @wp.kernel
    def advect(
        field: wp.array2d(dtype=float), vx: wp.array2d(dtype=float), vy: wp.array2d(dtype=float),
        dt: float, n: int, out: wp.array2d(dtype=float),
    ):  # fmt: skip
        i, j = wp.tid()
        a, b = float(i) - vx[i, j] * dt, float(j) - vy[i, j] * dt
        p, q = wp.floor(a), wp.floor(b)
        s, t = a - p, b - q
        p0, q0 = cyclic(int(p), n), cyclic(int(q), n)
        p1, q1 = cyclic(p0 + 1, n), cyclic(q0 + 1, n)
        lower = (1.0 - t) * field[p0, q0] + t * field[p0, q1]
        upper = (1.0 - t) * field[p1, q0] + t * field[p1, q1]
        out[i, j] = (1.0 - s) * lower + s * upper

    @wp.kernel
    def divergence(
        a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), n: int,
        out: wp.array2d(dtype=float),
    ):  # fmt: skip
        i, j = wp.tid()
        out[i, j] = a[i, j] - a[cyclic(i - 1, n), j] + b[i, j] - b[i, cyclic(j - 1, n)]

    @wp.kernel
    def jacobi(
        p: wp.array2d(dtype=float), div: wp.array2d(dtype=float), n: int,
        out: wp.array2d(dtype=float),
    ):  # fmt: skip
        i, j = wp.tid()
        around = p[cyclic(i - 1, n), j] + p[cyclic(i + 1, n), j]
        around += p[i, cyclic(j - 1, n)] + p[i, cyclic(j + 1, n)]
        out[i, j] = p[i, j] / 3.0 + (around - div[i, j]) / 6.0

    @wp.kernel
    def project(
        p: wp.array2d(dtype=float), a: wp.array2d(dtype=float), b: wp.array2d(dtype=float),
        n: int, u: wp.array2d(dtype=float), w: wp.array2d(dtype=float),
    ):  # fmt: skip
        i, j = wp.tid()
        u[i, j] = a[i, j] - (p[cyclic(i + 1, n), j] - p[i, j])
        w[i, j] = b[i, j] - (p[i, cyclic(j + 1, n)] - p[i, j])

    @wp.kernel
    def distance(
        d: wp.array2d(dtype=float), target: wp.array2d(dtype=float), scale: float,
        loss: wp.array(dtype=float),
    ):  # fmt: skip
        i, j = wp.tid()
        e = d[i, j] - target[i, j]
        wp.atomic_add(loss, 0, e * e * scale)

    @wp.kernel
    def multiplied(u: wp.array(dtype=float), k: wp.array(dtype=float)):
        i = wp.tid()
        u[i] *= k[i]

    @wp.kernel
    def summed(u: wp.array(dtype=float), total: wp.array(dtype=float)):
        wp.atomic_add(total, 0, u[wp.tid()])

    @wp.kernel
    def squared(
        u: wp.array(dtype=float), counts: wp.array(dtype=int), total: wp.array(dtype=float)
    ):
        f = float(0.0)  # noqa: UP018 - a variable, of Warp
        for k in range(counts[wp.tid()]):
            f += u[k]
        wp.atomic_add(total, 0, f * f)

    def moving(value: Any, dtype: Any = float) -> Any:
        return wp.array(value, dtype=dtype, requires_grad=True)

    def call(inputs: list[Any], run: Callable[[Any], None]) -> Callable[[], Any]:
        """Value and gradients by ``inputs`` of what ``run`` adds to its argument."""
        loss = moving(np.zeros(1, np.float32))
        seed = wp.array(np.ones(1, np.float32))

        def fresh() -> Any:
            loss.zero_()
            own = wp.Tape()
            with own:
                run(loss)
            own.backward(grads={loss: seed})
            out = float(loss.numpy()[0]), [x.grad.numpy().copy() for x in inputs]
            own.zero()
            return out

        return fresh

    def of_particles(x, v, neighbours, counts, radius, *constants):
        *constants, dt = constants
        px, pv = moving(x, wp.vec3), moving(v, wp.vec3)
        near, many = wp.array(neighbours, dtype=int), wp.array(counts, dtype=int)
        rho, a = moving(np.zeros(len(x), np.float32)), moving(np.zeros_like(x), wp.vec3)

        def run(loss):
            wp.launch(densities, len(x), [px, near, many, radius], [rho])
            wp.launch(accelerations, len(x), [px, pv, rho, near, many, radius, *constants], [a])
            wp.launch(energies, len(x), [pv, a, dt], [loss])

        return call([px, pv], run)

    def of_distortion(u, triangles, inverse, areas):
        nodes, own = moving(u, wp.vec2), wp.array(triangles, dtype=int)
        given = [own, wp.array(inverse, dtype=wp.mat22), wp.array(areas, dtype=float)]
        return call(
            [nodes], lambda loss: wp.launch(distortions, len(triangles), [nodes, *given], [loss])
        )

    def of_fluid(vx, vy, dye, target, steps, iterations, dt):
        n = len(vx)
        zeros = np.zeros_like(vx)
        starts = [moving(vx), moving(vy), moving(dye)]
        goal = wp.array(target, dtype=float)
        names = ("a", "b", "div", "u", "w", "d")
        rows = [{name: moving(zeros) for name in names} for _ in range(steps)]
        pressures = [moving(zeros) for _ in range(steps * iterations + 1)]

        def run(loss):
            u, w, d = starts
            for k, row in enumerate(rows):
                wp.launch(advect, (n, n), [u, u, w, dt, n], [row["a"]])
                wp.launch(advect, (n, n), [w, u, w, dt, n], [row["b"]])
                wp.launch(divergence, (n, n), [row["a"], row["b"], n], [row["div"]])
                own = pressures[k * iterations : (k + 1) * iterations + 1]
                for before, after in pairwise(own):
                    wp.launch(jacobi, (n, n), [before, row["div"], n], [after])
                given = [own[-1], row["a"], row["b"], n]
                wp.launch(project, (n, n), given, [row["u"], row["w"]])
                u, w = row["u"], row["w"]
                wp.launch(advect, (n, n), [d, u, w, dt, n], [row["d"]])
                d = row["d"]
            wp.launch(distance, (n, n), [d, goal, 1.0 / (n * n)], [loss])

        return call(starts[:2], run)

    def of_in_place(u, k):
        start, factor, own = moving(u), moving(k), moving(u)

        def run(loss):
            wp.copy(own, start)
            for _ in range(3):
                wp.launch(multiplied, len(u), [own, factor])
            wp.launch(summed, len(u), [own], [loss])

        return call([start, factor], run)

    def of_squares(u, counts):
        start, many = moving(u), wp.array(counts, dtype=int)
        return call([start], lambda loss: wp.launch(squared, len(counts), [start, many], [loss]))

    return {
        "particles": of_particles,
        "distortion": of_distortion,
        "fluid": of_fluid,
        "in place": of_in_place,
        "squares": of_squares,
    }


# ----------------------------------------------------------------------------------- comparison


@dataclass
class Example:
    """A program: function, arguments, the places of those that are differentiated."""

    function: Callable[..., Any]
    arguments: list[Any]
    places: tuple[int, ...]


def examples(size: int) -> dict[str, Example]:
    rng = np.random.default_rng(5)
    single = np.float32
    edge = max(3, round((size * 8) ** (1 / 3)))
    grid = np.stack(np.meshgrid(*[np.arange(edge)] * 3, indexing="ij"), -1).reshape(-1, 3)
    x = (0.5 * grid + rng.normal(scale=0.05, size=grid.shape)).astype(single)
    near = [
        np.array(sorted(set(row) - {i}))
        for i, row in enumerate(cKDTree(x).query_ball_point(x, 1.1))
    ]
    counts = np.array(list(map(len, near)), np.int32)
    neighbours = np.zeros((len(x), counts.max()), np.int32)
    for i, row in enumerate(near):
        neighbours[i, : len(row)] = row
    v = rng.normal(size=x.shape).astype(single)
    side = round((4 * size) ** 0.5)
    points = np.stack(np.meshgrid(*[np.arange(side)] * 2, indexing="ij"), -1).reshape(-1, 2)
    points = (points + rng.uniform(-0.2, 0.2, points.shape)) / side
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1, 1)
    halves = [corner + np.array(step) for step in ((0, side, side + 1), (0, side + 1, 1))]
    triangles = np.concatenate(halves).astype(np.int32)
    sides = np.stack([points[triangles[:, k]] - points[triangles[:, 0]] for k in (1, 2)], -1)
    areas = 0.5 * np.abs(np.linalg.det(sides))
    u = (points * [1.3, 0.8] + 0.05 * np.sin(3.0 * points[:, ::-1])).astype(single)
    n = max(8, round(size**0.5 * 2.8))
    at = 0.1 + np.arange(n) * 2 * np.pi / n  # no point moves by a whole cell
    wave = np.sin(at)[:, None] * np.cos(at)
    flow = [(0.8 * wave).astype(single), (-0.8 * wave.T).astype(single)]
    dye = (wave > 0).astype(single)
    target = np.roll(dye, n // 8, 0)
    particle = [x, v, neighbours, counts, 1.0, 20.0, 6.0, 1.5, -0.1, 0.01]
    mesh = [u, triangles, np.linalg.inv(sides).astype(single), areas.astype(single)]
    factors = [rng.uniform(1, 2, n).astype(single) for _ in "uk"]
    return {
        "particles": Example(particles, particle, (0, 1)),
        "distortion": Example(distortion, mesh, (0,)),
        "fluid": Example(fluid, [*flow, dye, target, 10, 20, 1.0], (0, 1)),
        "in place": Example(in_place, factors, (0, 1)),
        "squares": Example(squares, [factors[0], np.arange(n, dtype=np.int32)], (0,)),
    }


def directional(example: Example) -> tuple[float, float, list[np.ndarray]]:
    """In float64 the value, its derivative along a direction by differences, and the direction."""
    rng = np.random.default_rng(11)
    kernel = ng.kernel(example.function)
    given = [
        a.astype(np.float64) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a
        for a in example.arguments
    ]
    along = [rng.normal(size=given[k].shape) for k in example.places]

    def value(step: float) -> float:
        moved = list(given)
        for k, d in zip(example.places, along, strict=True):
            moved[k] = given[k] + step * d
        return float(kernel(*moved))

    h = 1e-7
    return value(0.0), (value(h) - value(-h)) / (2 * h), along


def in_turns(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least CPU time of each."""
    least = dict.fromkeys(calls, float("inf"))
    end = time.process_time() + seconds
    while time.process_time() < end:
        for name, call in calls.items():
            start = time.process_time()
            call()
            least[name] = min(least[name], time.process_time() - start)
    return least


def wall(call: Callable[[], Any], seconds: float) -> float:
    least, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--size", type=int, default=2000, help="particles, nodes by 4, cells by 8")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds for each")
    parser.add_argument("--threads", type=int, default=2, help="of ours, for the last column")
    options = parser.parse_args()
    try:
        import warp as wp
    except ImportError:
        print("warp is not installed: python -m pip install warp-lang; nothing is compared")
        return
    wp.config.quiet = True
    wp.init()
    wp.set_device("cpu")
    programs = warp_programs(wp)
    print(f"{'':12}{'errors of value':>20}{'of derivative':>20}{'CPU ms':>16}{'ratio':>7}  wall")
    print(f"{'':12}{'ours, warp':>20}{'ours, warp':>20}{'ours, warp':>16}")
    for name, example in examples(options.size).items():
        theirs = programs[name](*example.arguments)
        gradient = ng.value_and_grad(ng.kernel(example.function), argnums=example.places)
        calls = {"ours": lambda f=gradient, a=example.arguments: f(*a), "warp": theirs}
        value, slope, along = directional(example)
        errors = {}
        for own, call in calls.items():
            got, gradients = call()
            total = sum(float(np.sum(g * d)) for g, d in zip(gradients, along, strict=True))
            errors[own] = abs(float(got) / value - 1), abs(total / slope - 1)
        ng.set_num_threads(1)
        least = in_turns(calls, options.seconds)
        ng.set_num_threads(options.threads)
        ours = wall(calls["ours"], options.seconds / 2)
        texts = [", ".join(f"{errors[o][k]:.1e}" for o in calls) for k in (0, 1)]
        times = ", ".join(f"{least[o] * 1e3:.2f}" for o in calls)
        ratio = least["ours"] / least["warp"]
        print(
            f"{name:12}{texts[0]:>20}{texts[1]:>20}{times:>16}{ratio:7.2f}  "
            f"{ours / wall(theirs, options.seconds / 2):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
