"""Bessel, Struve and Kelvin functions, scaled and spherical forms, and their integrals."""

import math

import numpy as np

from numgrad.operations.shared_rules import is_complex
from numgrad.operations.special_functions import declare
from numgrad.operations.special_functions.gamma import rgamma


def _of_order(name: str, text: str) -> declare.SpecialFunction:
    """A derivative in the order, as an operation."""

    def function(v, z):
        raise NotImplementedError

    function.__name__, function.__doc__ = name, text
    return declare.derivative(domain=(0.3, 4.0))(function)


def _at_complex_place(z):
    return is_complex(getattr(z, "dtype", type(z)))  # a Python number has none


def _declare_derivatives(f, slope, kernel=None):
    """Derivatives in order and argument; ``slope(f, v, z)`` is that in the argument.

    Note [Differences in a parameter] of ``kernels.differences`` has the method: the second
    derivative in the order is one of first ones, and a third raises. At complex arguments they are
    differences of the function, of which there are differences again.
    """
    name = kernel or f.name
    if kernel is None:
        first = _of_order(f"{name}_v", f"Derivative of ``{name}`` with respect to the order.")
        second = _of_order(f"{name}_vv", f"Second derivative of ``{name}`` in the order.")
        first.vjp(v=lambda g, v, z: g * second(v, z), z=lambda g, v, z: g * slope(first, v, z))
        second.vjp(z=lambda g, v, z: g * slope(second, v, z))
        _FIRST[name] = first
    in_order = _FIRST[name]

    def by_order(g, v, z):
        if not _at_complex_place(z):
            return g * in_order(v, z)
        change = declare.central_difference(lambda v: f(v, z), v)
        return g * (change if f.holomorphic else np.conj(change))

    f.vjp(v=by_order, z=lambda g, v, z: g * slope(f, v, z))


_FIRST: dict[str, declare.SpecialFunction] = {}


@declare.special(domain=(0.3, 4.0), aliases=("jn",))
def jv(v, z):
    """Bessel function of the first kind of real order.

    Derivatives in the order are differences of order ten, right to about eleven digits, second ones
    to about eight; a third raises. So it is for all these functions.

    Examples
    --------
    >>> ng.special.jv(0.5, ng.tensor([0.0, 1.0, 10.0]))
    tensor([ 0.        ,  0.67139671, -0.13726374])
    """


@declare.special(domain=(0.3, 4.0))
def yv(v, z):
    """Bessel function of the second kind of real order.

    Examples
    --------
    >>> ng.special.yv(0.5, ng.tensor([1.0, 10.0]))
    tensor([-0.43109887,  0.21170887])
    """


@declare.special(domain=(0.3, 4.0))
def iv(v, z):
    """Modified Bessel function of the first kind of real order.

    Examples
    --------
    >>> ng.special.iv(0.5, ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.93767489])
    """


@declare.special(domain=(0.3, 4.0))
def kv(v, z):
    """Modified Bessel function of the second kind of real order.

    Examples
    --------
    >>> ng.special.kv(0.5, ng.tensor([1.0, 10.0]))
    tensor([4.61068504e-01, 1.79934781e-05])
    """


@declare.special(domain=(0.3, 4.0))
def jve(v, z):
    """``jv(v, z) * exp(-abs(imag(z)))``, which is ``jv`` for real arguments.

    Examples
    --------
    >>> ng.special.jve(0.5, ng.tensor([1.0, 10.0]))
    tensor([ 0.67139671, -0.13726374])
    """


@declare.special(domain=(0.3, 4.0))
def yve(v, z):
    """``yv(v, z) * exp(-abs(imag(z)))``, which is ``yv`` for real arguments.

    Examples
    --------
    >>> ng.special.yve(0.5, ng.tensor([1.0, 10.0]))
    tensor([-0.43109887,  0.21170887])
    """


@declare.special(domain=(0.3, 4.0))
def ive(v, z):
    """``iv(v, z) * exp(-abs(real(z)))``.

    Examples
    --------
    >>> ng.special.ive(0.5, ng.tensor([1.0, 1000.0]))
    tensor([0.34495131, 0.01261566])
    """


@declare.special(domain=(0.3, 4.0))
def kve(v, z):
    """``kv(v, z) * exp(z)``.

    Examples
    --------
    >>> ng.special.kve(0.5, ng.tensor([1.0, 1000.0]))
    tensor([1.25331414, 0.03963327])
    """


def _wave_slope(f, v, z):
    return 0.5 * (f(v - 1, z) - f(v + 1, z))


def _decay_slope(f, v, z):
    return -0.5 * (f(v - 1, z) + f(v + 1, z))


_declare_derivatives(jv, _wave_slope)
_declare_derivatives(yv, _wave_slope)
_declare_derivatives(jve, _wave_slope, "jv")
_declare_derivatives(yve, _wave_slope, "yv")
_declare_derivatives(iv, lambda f, v, z: 0.5 * (f(v - 1, z) + f(v + 1, z)))
_declare_derivatives(kv, _decay_slope)
_declare_derivatives(ive, lambda f, v, z: 0.5 * (f(v - 1, z) + f(v + 1, z)) - np.sign(z) * f(v, z))
_declare_derivatives(kve, lambda f, v, z: f(v, z) - 0.5 * (f(v - 1, z) + f(v + 1, z)))


def _scaled_by_part(f, slope, component, direction):
    """A gradient where the scale is by a ``component`` of complex numbers: no derivative, but two.

    ``slope`` is that of the function without the scale, ``direction`` that in which it changes.
    """
    of_real = f.formulas["z"].function

    def vjp(g, v, z):
        if not _at_complex_place(z):
            return of_real(g, v, z)
        scale = np.sign(component(z)) * np.real(g * np.conj(f(v, z)))
        return g * np.conj(slope(f, v, z)) - direction * scale

    f.holomorphic = False
    f.vjp(z=vjp)


_scaled_by_part(jve, _wave_slope, np.imag, 1j)
_scaled_by_part(yve, _wave_slope, np.imag, 1j)
_scaled_by_part(ive, lambda f, v, z: 0.5 * (f(v - 1, z) + f(v + 1, z)), np.real, 1)

# ------------------------------------------------------------------------------ orders 0 and 1


@declare.special()
def j0(x):
    """Bessel function of the first kind of order 0.

    Examples
    --------
    >>> ng.special.j0(ng.tensor([0.0, 1.0]))
    tensor([1.        , 0.76519769])
    """


@declare.special()
def j1(x):
    """Bessel function of the first kind of order 1.

    Examples
    --------
    >>> ng.special.j1(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.44005059])
    """


@declare.special(domain=(0.3, 4.0))
def y0(x):
    """Bessel function of the second kind of order 0.

    Examples
    --------
    >>> ng.special.y0(ng.tensor([0.0, 1.0]))
    tensor([      -inf, 0.08825696])
    """


@declare.special(domain=(0.3, 4.0))
def y1(x):
    """Bessel function of the second kind of order 1.

    Examples
    --------
    >>> ng.special.y1(ng.tensor([0.0, 1.0]))
    tensor([       -inf, -0.78121282])
    """


@declare.special()
def i0(x):
    """Modified Bessel function of the first kind of order 0.

    Examples
    --------
    >>> ng.special.i0(ng.tensor([0.0, 1.0]))
    tensor([1.        , 1.26606588])
    """


@declare.special()
def i1(x):
    """Modified Bessel function of the first kind of order 1.

    Examples
    --------
    >>> ng.special.i1(ng.tensor([0.0, 1.0]))
    tensor([0.       , 0.5651591])
    """


@declare.special(smooth=False)
def i0e(x):
    """``i0(x) * exp(-abs(x))``.

    Examples
    --------
    >>> ng.special.i0e(ng.tensor([0.0, 1.0, 1000.0]))
    tensor([1.        , 0.46575961, 0.01261724])
    """


@declare.special()
def i1e(x):
    """``i1(x) * exp(-abs(x))``.

    Examples
    --------
    >>> ng.special.i1e(ng.tensor([0.0, 1.0, 1000.0]))
    tensor([0.        , 0.20791042, 0.01261093])
    """


@declare.special(domain=(0.3, 4.0))
def k0(x):
    """Modified Bessel function of the second kind of order 0.

    Examples
    --------
    >>> ng.special.k0(ng.tensor([0.0, 1.0]))
    tensor([       inf, 0.42102444])
    """


@declare.special(domain=(0.3, 4.0))
def k1(x):
    """Modified Bessel function of the second kind of order 1.

    Examples
    --------
    >>> ng.special.k1(ng.tensor([0.0, 1.0]))
    tensor([       inf, 0.60190723])
    """


@declare.special(domain=(0.3, 4.0))
def k0e(x):
    """``k0(x) * exp(x)``.

    Examples
    --------
    >>> ng.special.k0e(ng.tensor([1.0, 1000.0]))
    tensor([1.14446308, 0.03962832])
    """


@declare.special(domain=(0.3, 4.0))
def k1e(x):
    """``k1(x) * exp(x)``.

    Examples
    --------
    >>> ng.special.k1e(ng.tensor([1.0, 1000.0]))
    tensor([1.63615349, 0.03964813])
    """


j0.vjp(x=lambda g, x: -g * j1(x))
j1.vjp(x=lambda g, x: g * (0.5 * (j0(x) - jv(2, x))))
y0.vjp(x=lambda g, x: -g * y1(x))
y1.vjp(x=lambda g, x: g * (0.5 * (y0(x) - yv(2, x))))
i0.vjp(x=lambda g, x: g * i1(x))
i1.vjp(x=lambda g, x: g * (0.5 * (i0(x) + iv(2, x))))


_FAR = 30.0


def _far_slope(order, sign, scale):
    """Derivative of a scaled function far on the right, by its asymptotic series.

    What differences of neighbours have there is the last digits of both.
    """
    terms, term = [], 1.0
    for k in range(17):
        terms.append(-(k + 0.5) * term * scale)
        term *= sign * (4 * order * order - (2 * k + 1) ** 2) / (8 * (k + 1))

    def slope(x):
        inverse = 1 / x
        total = 0.0
        for term in reversed(terms):
            total = term + inverse * total
        return total * inverse * np.sqrt(inverse)

    return slope


def _split_range(x, size):
    """Whether an operand is far from 0 by its size, that there, and itself elsewhere."""
    far = size > _FAR
    return far, np.where(far, size, _FAR), np.where(far, 1, x)


_ROOTS = 1 / math.sqrt(2 * math.pi), math.sqrt(math.pi / 2)
_I0E, _I1E = (_far_slope(order, -1, _ROOTS[0]) for order in (0, 1))
_K0E, _K1E = (_far_slope(order, 1, _ROOTS[1]) for order in (0, 1))


def _i0e_vjp(g, x):
    far, size, near = _split_range(x, np.abs(x))
    slope = i1e(near) - np.sign(near) * i0e(near)
    return g * np.where(far, np.sign(x) * _I0E(size), slope)


def _i1e_vjp(g, x):
    far, size, near = _split_range(x, np.abs(x))
    slope = 0.5 * (i0e(near) + ive(2, near)) - np.sign(near) * i1e(near)
    return g * np.where(far, _I1E(size), slope)


def _k0e_vjp(g, x):
    far, size, near = _split_range(x, x)
    return g * np.where(far, _K0E(size), k0e(near) - k1e(near))


def _k1e_vjp(g, x):
    far, size, near = _split_range(x, x)
    return g * np.where(far, _K1E(size), k1e(near) - 0.5 * (k0e(near) + kve(2, near)))


i0e.vjp(x=_i0e_vjp)
i0e.kink(x=([0.0], [0]))
i1e.vjp(x=_i1e_vjp)
k0.vjp(x=lambda g, x: -g * k1(x))
k1.vjp(x=lambda g, x: g * (-0.5 * (k0(x) + kv(2, x))))
k0e.vjp(x=_k0e_vjp)
k1e.vjp(x=_k1e_vjp)


@declare.special(domain=(0.3, 4.0))
def yn(n, x):
    """Bessel function of the second kind of integer order; others are truncated.

    Examples
    --------
    >>> ng.special.yn(2, ng.tensor([1.0, 10.0]))
    tensor([-1.65068261, -0.00586808])
    """


@declare.special(domain=(0.3, 4.0))
def kn(n, x):
    """Modified Bessel function of the second kind of integer order; others are truncated.

    Examples
    --------
    >>> ng.special.kn(2, ng.tensor([1.0, 10.0]))
    tensor([1.6248389e+00, 2.1509817e-05])
    """


yn.vjp(x=lambda g, n, x: g * _wave_slope(yn, np.trunc(n), x))
kn.vjp(x=lambda g, n, x: g * _decay_slope(kn, np.trunc(n), x))

# ----------------------------------------------------------------------------------- spherical


@declare.special(domain=(0.3, 4.0))
def spherical_jn(n, z):
    """Spherical Bessel function of the first kind of integer order from 0 on.

    Examples
    --------
    >>> ng.special.spherical_jn(2, ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.06203505])
    """


@declare.special(domain=(0.3, 4.0))
def spherical_yn(n, z):
    """Spherical Bessel function of the second kind.

    Examples
    --------
    >>> ng.special.spherical_yn(2, ng.tensor([1.0, 10.0]))
    tensor([-3.60501757, -0.0650693 ])
    """


@declare.special(domain=(0.3, 4.0))
def spherical_in(n, z):
    """Modified spherical Bessel function of the first kind.

    Examples
    --------
    >>> ng.special.spherical_in(2, ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.07156287])
    """


@declare.special(domain=(0.3, 4.0))
def spherical_kn(n, z):
    """Modified spherical Bessel function of the second kind.

    Examples
    --------
    >>> ng.special.spherical_kn(2, ng.tensor([1.0, 10.0]))
    tensor([4.04504572e+00, 9.48476771e-06])
    """


def _spherical_slope(f, n, z, low, high):
    """Neighbours with weights ``n`` and ``n + 1``; there is none below order 0."""
    n = np.trunc(n)
    below = f(np.where(n == 0, 1, n) - 1, z)
    return (low * n * below + high * (n + 1) * f(n + 1, z)) / (2 * n + 1)


spherical_jn.vjp(z=lambda g, n, z: g * _spherical_slope(spherical_jn, n, z, 1, -1))
spherical_yn.vjp(z=lambda g, n, z: g * _spherical_slope(spherical_yn, n, z, 1, -1))
spherical_in.vjp(z=lambda g, n, z: g * _spherical_slope(spherical_in, n, z, 1, 1))
spherical_kn.vjp(z=lambda g, n, z: g * _spherical_slope(spherical_kn, n, z, -1, -1))

# -------------------------------------------------------------------------------------- Struve


@declare.special(domain=(0.3, 4.0))
def struve(v, x):
    """Struve function; derivatives in the order are differences, as those of ``jv``.

    Examples
    --------
    >>> ng.special.struve(0.5, ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.36678569])
    """


@declare.special(domain=(0.3, 4.0))
def modstruve(v, x):
    """Modified Struve function; derivatives in the order are differences, as those of ``jv``.

    Examples
    --------
    >>> ng.special.modstruve(0.5, ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.43331565])
    """


def _inhomogeneity(v, x):
    return np.power(0.5 * x, v) * rgamma(v + 1.5) / math.sqrt(math.pi)


struve.vjp(
    v=lambda g, v, x: g * declare.central_difference(lambda p: struve(p, x), v),
    x=lambda g, v, x: g * (0.5 * (struve(v - 1, x) - struve(v + 1, x) + _inhomogeneity(v, x))),
)
modstruve.vjp(
    v=lambda g, v, x: g * declare.central_difference(lambda p: modstruve(p, x), v),
    x=lambda g, v, x: (
        g * (0.5 * (modstruve(v - 1, x) + modstruve(v + 1, x) + _inhomogeneity(v, x)))
    ),
)


@declare.special(domain=(0.3, 4.0))
def ber(x):
    """Kelvin function ber, the real part of ``J0(x exp(3 pi i / 4))``.

    Examples
    --------
    >>> ng.special.ber(ng.tensor([0.0, 1.0]))
    tensor([1.        , 0.98438178])
    """


@declare.special(domain=(0.3, 4.0))
def bei(x):
    """Kelvin function bei, the imaginary part of ``J0(x exp(3 pi i / 4))``.

    Examples
    --------
    >>> ng.special.bei(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.24956604])
    """


@declare.special(domain=(0.3, 4.0), signed_zeros=False)
def berp(x):
    """Derivative of the Kelvin function ber.

    Examples
    --------
    >>> ng.special.berp(ng.tensor([0.0, 1.0]))
    tensor([ 0.        , -0.06244575])
    """


@declare.special(domain=(0.3, 4.0))
def beip(x):
    """Derivative of the Kelvin function bei.

    Examples
    --------
    >>> ng.special.beip(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.49739651])
    """


@declare.special(domain=(0.3, 4.0))
def ker(x):
    """Kelvin function ker, the real part of ``K0(x exp(pi i / 4))``.

    Examples
    --------
    >>> ng.special.ker(ng.tensor([1.0, 3.0]))
    tensor([ 0.28670621, -0.06702923])
    """


@declare.special(domain=(0.3, 4.0))
def kei(x):
    """Kelvin function kei, the imaginary part of ``K0(x exp(pi i / 4))``.

    Examples
    --------
    >>> ng.special.kei(ng.tensor([1.0, 3.0]))
    tensor([-0.49499464, -0.05112188])
    """


@declare.special(domain=(0.3, 4.0))
def kerp(x):
    """Derivative of the Kelvin function ker.

    Examples
    --------
    >>> ng.special.kerp(ng.tensor([1.0, 3.0]))
    tensor([-0.69460389,  0.02147619])
    """


@declare.special(domain=(0.3, 4.0))
def keip(x):
    """Derivative of the Kelvin function kei.

    Examples
    --------
    >>> ng.special.keip(ng.tensor([1.0, 3.0]))
    tensor([0.35236991, 0.09204305])
    """


_NEAR = 1.0
_BEI = [(-1) ** k * (2 * k + 1) / (2 * math.factorial(2 * k + 1) ** 2) for k in range(6)]
_BER = [(-1) ** k * k / math.factorial(2 * k) ** 2 for k in range(1, 7)]


def _over(x, y, terms, first):
    """``y / x``, near 0 by ``first`` times a series of ``(x / 2)**4``: derivatives would cancel."""
    near = np.abs(x) < _NEAR
    s = np.square(np.square(0.5 * np.where(near, x, 0)))
    total = 0.0
    for term in reversed(terms):
        total = term + s * total
    return np.where(near, first * total, y / np.where(near, 1, x))


def berp_over(x, y):
    """``berp(x) / x``, by the first of them."""
    return _over(x, y, _BER, 0.25 * x * x)


def beip_over(x, y):
    """``beip(x) / x``, by the first of them."""
    return _over(x, y, _BEI, 1.0)


ber.vjp(x=lambda g, x: g * berp(x))
bei.vjp(x=lambda g, x: g * beip(x))
berp.vjp(x=lambda g, x, y: g * (-bei(x) - berp_over(x, y)))
beip.vjp(x=lambda g, x, y: g * (ber(x) - beip_over(x, y)))
ker.vjp(x=lambda g, x: g * kerp(x))
kei.vjp(x=lambda g, x: g * keip(x))
kerp.vjp(x=lambda g, x, y: g * (-kei(x) - y / x))
keip.vjp(x=lambda g, x, y: g * (ker(x) - y / x))


@declare.special(domain=(0.3, 4.0))
def itstruve0(x):
    """Integral of the Struve function of order 0 from 0 to ``x``.

    Examples
    --------
    >>> ng.special.itstruve0(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.30109043])
    """


@declare.special(domain=(0.3, 4.0))
def it2struve0(x):
    """Integral of the Struve function of order 0 over its argument, from ``x`` on.

    Examples
    --------
    >>> ng.special.it2struve0(ng.tensor([1.0, 2.0]))
    tensor([0.95719735, 0.46909296])
    """


@declare.special(domain=(0.3, 4.0))
def itmodstruve0(x):
    """Integral of the modified Struve function of order 0 from 0 to ``x``.

    Examples
    --------
    >>> ng.special.itmodstruve0(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.33647263])
    """


# the first is even, the integrand of the second has a value at 0, the third is even
itstruve0.vjp(x=lambda g, x: g * struve(0, x))


def _struve_share(x):
    """``struve(0, x) / x``, which goes on at 0."""
    none = x == 0
    near = (2 / math.pi) * (1 - x * x / 9)
    return np.where(none, near, struve(0, x) / np.where(none, 1, x))


it2struve0.vjp(x=lambda g, x: -g * _struve_share(x))
itmodstruve0.vjp(x=lambda g, x: g * modstruve(0, x))


@declare.special(domain=(0.3, 1.5))
def besselpoly(a, lmb, nu):
    """Integral of ``x**lmb * jv(nu, 2 * a * x)`` from 0 to 1; with a gradient in ``a`` alone.

    Parameters
    ----------
    lmb
        Power.
    nu
        Order.

    Examples
    --------
    >>> ng.special.besselpoly(ng.tensor([0.0, 1.0]), 0.5, 1.0)
    tensor([0.        , 0.30092457])
    """


besselpoly.vjp(
    a=lambda g, a, lmb, nu: g * (besselpoly(a, lmb + 1, nu - 1) - besselpoly(a, lmb + 1, nu + 1))
)
