# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Loops and batches
#
# Time stepping, filters, recurrences: a step that is made thousands of times. Under `ng.jit` a Python
# loop is unrolled, step by step. `ng.scan` says instead what one step does: it is traced once, and
# becomes a native loop, and so does its gradient. Every result here is compared with one that was
# computed in another way.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from scipy.special import logsumexp

import numgrad as ng

# %% [markdown]
# A step takes what is carried along and one element of the input; it returns the new carry and
# what is to be collected. Without `ng.jit` the loop is a Python loop with the same result.


# %%
def smoothed(weight, xs):
    """Exponential moving averages."""

    def step(mean, x):
        mean = mean + weight * (x - mean)
        return mean, mean

    return ng.scan(step, 0.0, xs)[1]


xs = np.array([1.0, 2.0, 4.0])
print(smoothed(0.5, xs), ng.jit(smoothed)(0.5, xs))
np.testing.assert_array_equal(smoothed(0.5, xs), [0.5, 1.25, 2.625])
np.testing.assert_array_equal(ng.jit(smoothed)(0.5, xs), [0.5, 1.25, 2.625])

# %% [markdown]
# ## Lorenz's system: a fit
#
# Three parameters of a chaotic system from a noisy path. A step is one of the classical method of
# Runge and Kutta.


# %%
def slope(s, p):
    """Lorenz's right-hand side."""
    x, y, z = s
    return np.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])


def path(p, start, steps, h=0.01):
    """The states after each step."""

    def step(s, _):
        k1 = slope(s, p)
        k2 = slope(s + h / 2 * k1, p)
        k3 = slope(s + h / 2 * k2, p)
        k4 = slope(s + h * k3, p)
        s = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return s, s

    return ng.scan(step, start, length=steps)[1]


truth, start = np.array([10.0, 28.0, 8 / 3]), np.array([1.0, 2.0, 20.0])
states = ng.jit(lambda p: path(p, start, 200))(truth)

times = 0.01 * np.arange(1, 201)
solved = solve_ivp(
    lambda t, s: slope(s, truth), (0, 2), start, t_eval=times, rtol=1e-11, atol=1e-11
)
print("largest difference from SciPy's solution:", np.abs(states - solved.y.T).max())
np.testing.assert_allclose(states, solved.y.T, atol=2e-3)

# %%
rng = np.random.default_rng(0)
seen = states + 0.1 * rng.normal(size=states.shape)
misfit = ng.jit(ng.value_and_grad(lambda p: np.mean((path(p, start, 200) - seen) ** 2)))

found = minimize(misfit, [11.0, 30.0, 3.0], jac=True, method="BFGS")
print(found.x, f"after {found.nfev} evaluations")
np.testing.assert_allclose(found.x, truth, rtol=5e-3)

# %% [markdown]
# Its cost is that of a loop written in C: the carry lives in registers, on the way back too.

# %%
long = ng.jit(ng.value_and_grad(lambda p: np.sum(path(p, start, 10_000, 0.001)[-1])))
long(truth)
began = time.perf_counter()
long(truth)
print(f"10,000 steps with their gradient: {1e3 * (time.perf_counter() - began):.1f} ms")

# %% [markdown]
# ## A Kalman filter: the Nile
#
# The yearly flow at Aswan from 1871 to 1970, as a level that walks at random and is seen with an error:
# $y_t = m_t + \varepsilon_t$, $m_{t+1} = m_t + \eta_t$. The variances of both are estimated by maximum
# likelihood.

# %%
flows = np.array([
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180,
    799, 958, 1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833,
    701, 916, 692, 1020, 1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845,
    864, 862, 698, 845, 744, 796, 1040, 759, 781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649,
    846, 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918, 986, 797, 923, 975, 815,
    1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
], dtype=float)  # fmt: skip


def likelihood(logs, flows):
    """The logarithm, given the first year; ``logs`` are those of both variances."""
    error, walk = np.exp(logs)

    def step(carry, y):
        level, variance = carry
        variance = variance + walk
        total = variance + error
        miss = y - level
        gain = variance / total
        term = -0.5 * (np.log(2 * np.pi * total) + miss**2 / total)
        return (level + gain * miss, variance * (1 - gain)), (term, level + gain * miss)

    # nothing was known before the first year: then the level is its flow, up to the error
    _, (terms, levels) = ng.scan(step, (flows[0], error), flows[1:])
    return np.sum(terms), levels


# %% [markdown]
# All years together are one normal distribution, which gives the same likelihood, for a hundred
# times the work: the covariance of two years' differences from the first.

# %%
logs = np.log([15000.0, 1500.0])
value, _ = likelihood(logs, flows)
k = np.arange(1, 100)
covariance = 1500 * np.minimum.outer(k, k) + 15000 * (np.eye(99) + 1)
miss = flows[1:] - flows[0]
joint = -0.5 * (
    99 * np.log(2 * np.pi)
    + np.linalg.slogdet(covariance)[1]
    + miss @ np.linalg.solve(covariance, miss)
)
print(value, joint)
np.testing.assert_allclose(value, joint, rtol=1e-12)

# %%
objective = ng.jit(ng.value_and_grad(lambda logs: -likelihood(logs, flows)[0]))
found = minimize(objective, np.log([1e4, 1e4]), jac=True, method="BFGS")
print("variances", np.exp(found.x), "logarithm of the likelihood", -found.fun)
np.testing.assert_allclose(np.exp(found.x), [15099, 1469.1], rtol=1e-3)  # Durbin and Koopman's

# %% tags=["gallery"]
figure, axes = plt.subplots(figsize=(7, 2.5))
years = np.arange(1871, 1971)
axes.plot(years, flows, ".", color="0.6", label="flow")
axes.plot(years[1:], np.asarray(likelihood(found.x, flows)[1]), label="level")
axes.set_xlabel("year")
axes.legend()
plt.show()

# %% [markdown]
# With statsmodels at hand (`pip install statsmodels`) the same model takes a line.

# %%
try:
    from statsmodels.tsa.statespace.structural import UnobservedComponents
except ImportError:
    print("statsmodels is not installed")
else:
    model = UnobservedComponents(flows, "local level", use_exact_diffuse=True)
    print("variances", model.fit(disp=0).params)
    theirs = [model.loglike(variances) for variances in (np.exp(found.x), [15000.0, 1500.0])]
    # up to a constant, of the first year
    np.testing.assert_allclose(theirs[0] - theirs[1], -found.fun - value, rtol=1e-6)

# %% [markdown]
# ## A hidden Markov model: the forward algorithm
#
# The likelihood of a sequence of symbols, over all paths of states that nobody sees. What is carried
# along is the logarithm of the probability to have seen the sequence so far and to be in each state.

# %%
draw = np.random.default_rng(1)
moves, emits = draw.normal(size=(3, 3)), draw.normal(size=(3, 4))
symbols = draw.integers(0, 4, 300)


def normal(x):
    """Logarithms of probabilities that add up to 1 in each row."""
    return x - ng.logsumexp(x, axis=1)[:, None]


def forward(emissions, transitions, symbols):
    """Logarithm of the likelihood."""

    def step(likely, k):
        return ng.logsumexp(likely[:, None] + transitions, axis=0) + emissions[:, k], None

    first = emissions[:, symbols[0]] - np.log(3)
    return ng.logsumexp(ng.scan(step, first, symbols[1:])[0], axis=0)


hidden = ng.jit(ng.value_and_grad(forward, argnums=0))
log_moves, log_emits = np.asarray(normal(moves)), np.asarray(normal(emits))
value, by_emission = hidden(log_emits, log_moves, symbols)

# %% [markdown]
# Independently: the product of matrices. Every partial product comes from `ng.associative_scan`, which
# needs a number of calls that grows with the logarithm of the length.

# %%
steps = np.exp(log_moves)[None] * np.exp(log_emits).T[symbols[1:], None, :]
products = ng.associative_scan(np.matmul, steps)
at_last = (np.exp(log_emits[:, symbols[0]]) / 3) @ products[-1]
print(value, np.log(at_last.sum()))
np.testing.assert_allclose(value, np.log(at_last.sum()), rtol=1e-12)

# %% [markdown]
# The gradient in an emission's logarithm is how often the state is expected to have sent the symbol.
# The textbook computes that by a pass forward and one backward.

# %%
alpha, beta = [log_emits[:, symbols[0]] - np.log(3)], [np.zeros(3)]
for s in symbols[1:]:
    alpha.append(logsumexp(alpha[-1][:, None] + log_moves, axis=0) + log_emits[:, s])
for s in symbols[:0:-1]:
    beta.append(logsumexp(log_moves + log_emits[:, s] + beta[-1], axis=1))
share = np.exp(np.array(alpha) + np.array(beta[::-1]) - value)
counts = np.stack([share[symbols == s].sum(axis=0) for s in range(4)], axis=1)
np.testing.assert_allclose(by_emission, counts, rtol=1e-10)
print(by_emission.round(1))

# %% [markdown]
# ## The heat equation
#
# A bar of 200 pieces whose conductivity differs from place to place, as a ring. Which conductivity
# turns one distribution of heat into another one? A field of 200 unknowns costs one gradient.

# %%
n, steps = 200, 400
place = 2 * np.pi * np.arange(n) / n


def heated(c, u, steps=steps):
    """The temperatures at the end."""

    def step(u, _):
        return u + c * (np.roll(u, 1) - 2 * u + np.roll(u, -1)), None

    return ng.scan(step, u, length=steps)[0]


even = ng.jit(heated)(np.full(n, 0.3), np.cos(3 * place))
decay = 1 - 4 * 0.3 * np.sin(3 * np.pi / n) ** 2
np.testing.assert_allclose(even, decay**steps * np.cos(3 * place), atol=1e-12)  # one wave decays

# %%
conductivity = 0.25 + 0.1 * np.sin(place)
u = np.cos(5 * place) + 0.5 * np.sin(2 * place)
value, gradient = ng.jit(ng.value_and_grad(lambda c: np.sum(heated(c, u) ** 2)))(conductivity)

# %% [markdown]
# A step is a matrix, $A = 1 + \mathrm{diag}(c) L$, so what comes out is $A^k u$, and the derivative in
# $c_i$ a sum over the steps.

# %%
lap = np.roll(np.eye(n), 1, axis=0) - 2 * np.eye(n) + np.roll(np.eye(n), -1, axis=0)
matrix = np.eye(n) + conductivity[:, None] * lap
rows = [u]
for _ in range(steps):
    rows.append(matrix @ rows[-1])
pulled, expected = 2 * rows[-1], np.zeros(n)
for row in rows[-2::-1]:
    expected += pulled * (lap @ row)
    pulled = matrix.T @ pulled
np.testing.assert_allclose(value, np.sum(rows[-1] ** 2), rtol=1e-12)
np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)
print(f"{n} derivatives agree with those of the matrix")

# %% [markdown]
# ## Bodies in orbit: leapfrog
#
# A nesting as carry: places and velocities. The leapfrog method keeps areas of phase space, so its
# derivative $J$ is symplectic: $J^T \Omega J = \Omega$, whatever the step. That holds only if
# every entry of the Jacobian is right.

# %%
masses, itself = np.array([1.0, 0.1, 0.05]), np.eye(3)


def acceleration(q):
    """Gravity between all pairs."""
    apart = q[None] - q[:, None]
    cubes = (np.sum(apart**2, axis=2) + itself) ** 1.5  # of a body with itself: 0 / 1
    return np.sum(masses[:, None] * apart / cubes[:, :, None], axis=1)


def flight(state, steps=200, h=0.01):
    """Places and velocities after some steps."""

    def step(carry, _):
        q, v = carry
        v = v + h / 2 * acceleration(q)
        q = q + h * v
        return (q, v + h / 2 * acceleration(q)), None

    q, v = ng.scan(step, (state[:6].reshape(3, 2), state[6:].reshape(3, 2)), length=steps)[0]
    return np.concatenate([q.ravel(), v.ravel()])


start = np.array([0, 0, 1, 0, -1.5, 0, 0, -0.05, 0, 1, 0, -0.8])
jacobian = ng.jit(ng.jacobian(flight))(start)
momenta = np.diag(np.concatenate([np.ones(6), np.repeat(masses, 2)]))
of_momenta = momenta @ jacobian @ np.linalg.inv(momenta)
omega = np.block([[np.zeros((6, 6)), np.eye(6)], [-np.eye(6), np.zeros((6, 6))]])
error = np.abs(of_momenta.T @ omega @ of_momenta - omega).max()
print(f"J^T Omega J differs from Omega by {error:.1e}")
assert error < 1e-10

# %%
push = np.random.default_rng(2).normal(size=12)
difference = (flight(start + 1e-6 * push) - flight(start - 1e-6 * push)) / 2e-6
np.testing.assert_allclose(jacobian @ push, difference, rtol=1e-6, atol=1e-7)

# %% [markdown]
# ## Derivatives by example
#
# `ng.vmap` makes of a function of one example a function of many. With `ng.grad` inside it gives the
# gradients of single examples, for which a training step would add them up: to clip them one by one,
# or to see which example pulls where.


# %%
def loss(w, x, y):
    """Logistic loss of one example."""
    z = x @ w
    return np.logaddexp(0, z) - y * z


w, x = draw.normal(size=5), draw.normal(size=(1000, 5))
y = (draw.random(1000) < 0.5).astype(float)
single = ng.jit(ng.vmap(ng.grad(loss), in_axes=(None, 0, 0)))(w, x, y)

expected = (1 / (1 + np.exp(-x @ w)) - y)[:, None] * x
np.testing.assert_allclose(single, expected, rtol=1e-12, atol=1e-14)
norms = np.sqrt(np.sum(single**2, axis=1))
clipped = np.mean(single * np.minimum(1, 1 / norms)[:, None], axis=0)
print(single.shape, f"{np.mean(norms > 1):.0%} of the gradients were clipped;", clipped.round(3))

# %% [markdown]
# A loop inside of `vmap` is a loop of batches: many paths at once, each with its own parameters.

# %%
several = truth * np.array([[0.9], [1.0], [1.1]])
start = np.array([1.0, 2.0, 20.0])
together = ng.jit(ng.vmap(lambda p: path(p, start, 50)[-1]))(several)

for p, state in zip(several, together, strict=True):
    ends = solve_ivp(lambda t, s: slope(s, p), (0, 0.5), start, rtol=1e-11, atol=1e-11).y[:, -1]  # noqa: B023
    np.testing.assert_allclose(state, ends, rtol=2e-4)
    s, h = start, 0.01
    for _ in range(50):  # the same steps by NumPy
        k1 = slope(s, p)
        k2 = slope(s + h / 2 * k1, p)
        k3 = slope(s + h / 2 * k2, p)
        s = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(s + h * k3, p))
    np.testing.assert_allclose(state, s, rtol=1e-11)
print(together)

# %% [markdown]
# ## A script that has loops, in four ways
#
# Three bodies again, as a script has them: a loop over time that calls a double loop over bodies. As it
# stands each of its many small operations is recorded. What to change first is in the table below.

# %%
places = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.8]])
speeds = np.array([[0.0, -0.2], [0.0, 0.9], [-0.7, 0.0]])


def pulls(q, m):
    """Accelerations."""
    a = ng.zeros_like(q)  # np.zeros_like(q) would be an ndarray, which takes no gradients
    for i in range(3):
        for j in range(3):
            if i != j:
                d = q[j] - q[i]
                a[i] += m[j] * d / (d @ d + 1e-3) ** 1.5
    return a


def spread(m, pulls, q=places, v=speeds, h=0.01, steps=200):
    """Squares of distances along the path."""
    total, a = 0.0, pulls(q, m)
    for _ in range(steps):
        v = v + h / 2 * a
        q = q + h * v
        a = pulls(q, m)
        v = v + h / 2 * a
        total = total + np.sum(q**2)
    return total


def as_scan(m, q=places, v=speeds, h=0.01, steps=200):
    """The loop over time as ng.scan."""

    def step(carry, _):
        q, v, a = carry
        v = v + h / 2 * a
        q = q + h * v
        a = pulls(q, m)
        return (q, v + h / 2 * a, a), np.sum(q**2)

    return np.sum(ng.scan(step, (q, v, pulls(q, m)), length=steps)[1])


@ng.kernel
def as_kernel(m, q, v, h=0.01, steps=200):
    """Both loops as they are, compiled; arrays of NumPy's are made inside."""
    total, a = 0.0, np.zeros_like(q)
    for k in range(steps + 1):
        if k > 0:
            v = v + h / 2 * a
            q = q + h * v
        a = np.zeros_like(q)
        for i in range(len(m)):
            for j in range(len(m)):
                if i != j:
                    d = q[j] - q[i]
                    a[i] += m[j] * d / (d @ d + 1e-3) ** 1.5
        if k > 0:
            v = v + h / 2 * a
            total += np.sum(q**2)
    return total


compiled_pulls = ng.jit(pulls)
ways = {
    "as it is": ng.value_and_grad(lambda m: spread(m, pulls)),
    "ng.jit on what an iteration calls": ng.value_and_grad(lambda m: spread(m, compiled_pulls)),
    "ng.kernel": ng.value_and_grad(lambda m: as_kernel(m, places, speeds)),
    "ng.scan under ng.jit": ng.jit(ng.value_and_grad(as_scan)),
}
masses = np.array([0.9, 0.5, 0.4])
results = {}
for name, way in ways.items():
    results[name] = way(masses)  # compiles
    begin = time.perf_counter()
    for _ in range(3):
        way(masses)
    print(f"{name:36s}{(time.perf_counter() - begin) / 3 * 1e3:10.2f} ms")
for value, gradient in results.values():
    np.testing.assert_allclose(value, results["as it is"][0], rtol=1e-10)
    np.testing.assert_allclose(gradient, results["as it is"][1], rtol=1e-8)
push = 1e-5 * np.array([1.0, -2.0, 0.5])
difference = (as_scan(masses + push) - as_scan(masses - push)) / 2
np.testing.assert_allclose(difference, gradient @ push, rtol=1e-5)
