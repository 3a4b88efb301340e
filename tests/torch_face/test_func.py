"""``torch.func``: nestings of Tensors through all transforms, conditions as PyTorch has them."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest

import numgrad.torch as torch
from numgrad.torch import func, nn

Pair = namedtuple("Pair", "u v")


@dataclass
class Fields:
    u: Any
    v: Any


X = torch.tensor([1.0, 2.0])
V = torch.tensor([3.0, 5.0])
KINDS = [
    Pair,
    Fields,
    lambda u, v: (u, v),
    lambda u, v: [u, v],
    lambda u, v: {"u": u, "v": v},
    lambda u, v: OrderedDict(u=u, v=v),
    lambda u, v: {"z": (u,), "w": Fields(v, X)},
]


def _parts(tree):
    """Both Tensors of any of these nestings."""
    if isinstance(tree, dict):
        return (tree["u"], tree["v"]) if "u" in tree else (tree["z"][0], tree["w"].u)
    return (tree.u, tree.v) if hasattr(tree, "u") else tuple(tree)


def _product(tree):
    u, v = _parts(tree)
    return u * v


@pytest.mark.parametrize("kind", KINDS, ids=range(len(KINDS)))
def test_transforms_take_and_give_nestings(kind):
    tree, other = kind(X, V), kind(V, X)
    product = {"y": X * V, "z": [X]}
    results = [
        _parts(func.grad(lambda t: _product(t).sum())(tree)),
        _parts(func.vjp(_product, tree)[1](torch.ones(2))[0]),
        [j.diagonal() for j in _parts(func.jacrev(_product)(tree))],
        [j.diagonal() for j in _parts(func.jacfwd(_product)(tree))],
        _parts(func.vjp(lambda t: kind(*_parts(t)), tree)[1](other)[0]),
        _parts(func.vmap(lambda t: kind(*_parts(t)[::-1]))(tree)),
        _parts(func.vmap(lambda a, b: kind(b, a))(X, V)),
    ]
    for u, v in results:
        assert type(u) is type(v) is torch.Tensor
        assert (u.tolist(), v.tolist()) == ([3, 5], [1, 2])
    assert type(func.grad(lambda t: _product(t).sum())(tree)) is type(tree)
    value, tangent = func.jvp(_product, (tree,), (other,))
    assert (value.tolist(), tangent.tolist()) == ([3, 10], [10, 29])
    value, pushed = func.linearize(_product, tree)
    assert pushed(other).tolist() == [10, 29]
    gradient, (value, aux) = func.grad_and_value(
        lambda t: (_product(t).sum(), product), has_aux=True
    )(tree)
    assert value.item() == 13
    assert aux["z"][0].tolist() == [1, 2]
    assert _parts(gradient)[0].tolist() == [3, 5]


def _returns(value):
    return lambda *args: value


def _checkpointed(x):
    with torch.autograd.graph.save_on_cpu():
        return x.sin().sum()


class _Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g


Z = torch.tensor([1j])
CONDITIONS = {
    "argnums -3": lambda: func.grad(torch.mul, -3)(X, X),
    "argnums 2": lambda: func.grad(torch.mul, 2)(X, X),
    "argnums list": lambda: func.grad(torch.dot, [0])(X, X),
    "argnums ()": lambda: func.jacrev(torch.sin, ())(X),
    "argnums (0, 0)": lambda: func.jacfwd(torch.sin, (0, 0))(X),
    "argnums 0.0": lambda: func.hessian(torch.sin, 0.0)(X),
    "None": lambda: func.jacrev(_returns(None))(X),
    "()": lambda: func.jacfwd(_returns(()))(X),
    "number": lambda: func.vjp(_returns(1.0), X),
    "no pair": lambda: func.grad(_returns([X, X]), has_aux=True)(X),
    "aux of numbers": lambda: func.jvp(_returns((X, [X, 1])), (X,), (X,), has_aux=True),
    "complex argument": lambda: func.jacrev(torch.abs)(Z),
    "complex result": lambda: func.jacfwd(lambda x: x + 1j)(X),
    "structure of cotangents": lambda: func.vjp(lambda x: (x, x), X)[1](X),
    "structure of tangents": lambda: func.jvp(torch.sin, (X,), [X]),
    "no primals": lambda: func.jvp(torch.sin, (), ()),
    "primals": lambda: func.jvp(torch.sin, X, (X,)),
    "numbers": lambda: func.jvp(torch.sin, (1.0,), (X,)),
    "strict": lambda: func.jvp(lambda x: (x, X), (X,), (X,), strict=True),
    "linearize": lambda: func.linearize(torch.sin, X)[1](X, X),
    "requires_grad_": lambda: func.grad(lambda x: x.requires_grad_().sum())(X),
    "retain_grad": lambda: func.grad(lambda x: x.sin().retain_grad())(X),
    "functional": lambda: func.vmap(lambda x: torch.autograd.functional.vjp(torch.sin, x))(X),
    "saved": lambda: func.grad(_checkpointed)(X),
    "Function": lambda: func.jacrev(_Plain.apply)(X),
    "no models": lambda: func.stack_module_state([]),
    "modes": lambda: func.stack_module_state([nn.Linear(1, 1), nn.Linear(1, 1).eval()]),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_raise_runtime_errors(name):
    with pytest.raises(RuntimeError):
        CONDITIONS[name]()


@pytest.mark.parametrize(
    "call",
    [
        lambda: func.vmap(torch.mul, [0, 0])(X, X),
        lambda: func.vmap(torch.mul, (0,))(X, X),
        lambda: func.vmap(torch.mul, "lol")(X, X),
        lambda: func.vmap(torch.sin, out_dims="lol")(X),
        lambda: func.vmap(torch.sin, out_dims=None)(X),
        lambda: func.vmap(torch.sin)(2.0),
        lambda: func.vmap(torch.sin, chunk_size=0),
        lambda: func.grad(torch.sin)(2.0),
        lambda: func.vjp(torch.sin, 2.0),
    ],
)
def test_axes_of_examples_and_numbers_raise_value_errors(call):
    with pytest.raises(ValueError, match=r"vmap|chunk|takes Tensors"):
        call()


def test_errors_of_the_function_are_its_own():
    def function(x):
        raise KeyError("mine")

    for call in (func.grad(function), func.vmap(function)):
        with pytest.raises(KeyError, match="mine"):
            call(X)
    with pytest.raises(TypeError):  # an operation's
        func.grad(lambda x: torch.sum(x, nothing=1))(X)


def test_examples_print_and_have_memory_of_their_own():
    shown = []

    def function(x, y):
        shown.append(repr(x))
        own = y.new_zeros(1)
        own[0] = x
        return own, "same"

    result, text = func.vmap(function, out_dims=(0, None))(X, V)
    assert (result.tolist(), text) == ([[1], [2]], "same")
    assert shown == ["BatchedTensor(lvl=1, bdim=0, value=tensor([1., 2.]))"]
    assert func.vmap(lambda x: x + V, out_dims=(1,))(X).tolist() == [[4, 5], [6, 7]]
    assert func.vmap(lambda x, *, y: x + y)(X, y=V).tolist() == [[4, 6], [5, 7]]


def test_a_rule_for_batches_gets_axes_in_the_nesting_of_the_arguments():
    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(x, others, *, scale=1.0):
            return scale * (x + sum(others))

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, others, *, scale):
            assert in_dims == (0, [None, 0])
            if scale == 3:
                return scale * x
            return Sum.apply(x, others, scale=scale), (None,) if scale == 2 else 0

    def call(scale):
        return func.vmap(lambda x: Sum.apply(x, [V[0], x], scale=scale))(X)

    assert call(1.0).tolist() == [5, 7]
    for scale, match in ((2.0, "batch axes"), (3.0, "return a pair")):
        with pytest.raises(RuntimeError, match=match):
            call(scale)
    with pytest.raises(NotImplementedError, match="by name"):
        func.vmap(lambda x: Sum.apply(x, [V[0], x], scale=x))(X)


def test_random_numbers_like_an_example_differ_by_example_or_not():
    x = torch.ones(3, 2)
    for randomness, count in (("different", 6), ("same", 2)):
        drawn = func.vmap(lambda x: x * torch.rand_like(x), randomness=randomness)(x)
        assert drawn.shape == (3, 2)
        assert len(set(drawn.flatten().tolist())) == count
    with pytest.raises(RuntimeError, match="randomness='same'"):
        func.vmap(torch.rand_like)(x)
    for outer, inner, count in (("different", "same", 6), ("same", "different", 10)):
        draw = func.vmap(lambda x: x * torch.rand_like(x), randomness=inner)
        drawn = func.vmap(draw, randomness=outer)(torch.ones(3, 5, 2))
        assert len(set(drawn.flatten().tolist())) == count
        draw = func.vmap(lambda x, y: y + torch.rand_like(x), (None, 0), randomness=inner)
        drawn = func.vmap(draw, (0, None), randomness=outer)(torch.ones(3, 2), torch.ones(5, 2))
        assert len(set(drawn.flatten().tolist())) == count
