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

In a function of ``ng.jit`` a generator from outside goes on from call to call, and one that the
function makes begins anew at each call, as in eager code.
"""

from numgrad.random.generator import Generator as Generator
from numgrad.random.generator import default_rng as default_rng
from numgrad.random.generator import get_state as get_state
from numgrad.random.generator import manual_seed as manual_seed
from numgrad.random.generator import set_state as set_state

__all__ = ["Generator", "default_rng", "get_state", "manual_seed", "set_state"]


def __dir__() -> list[str]:
    return __all__
