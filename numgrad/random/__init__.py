"""Random Tensors from NumPy's generators: a seed gives the same numbers as in NumPy.

>>> import numgrad as ng
>>> rng = ng.random.default_rng(0)
>>> rng.normal(size=2), rng.integers(10)
(tensor([ 0.12573022, -0.13210486]), tensor(3))

Numbers of continuous distributions have gradients in their parameters, of which
``tensors.reparameterised`` says more; integers have none, and refuse parameters that require it.

What takes no generator, such as dropout, the first values of parameters and the order of a
``DataLoader``, draws from NumPy's global one, ``np.random``, which ``manual_seed`` sets,
``get_state`` and ``set_state`` read and write, and ``checkpoint`` puts back.

``uniform_at`` and ``normal_at`` are functions of a seed and counters, without any state: loops of
compiled functions compute them, and functions that leave Python.

In a function of ``ng.jit`` a generator from outside goes on from call to call, and one that the
function makes begins anew at each call, as in eager code.
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.random.counters": "normal_at uniform_at",
        "numgrad.random.generator": "Generator default_rng get_state manual_seed set_state",
    },
)
