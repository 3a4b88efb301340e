"""Autograd of the face as PyTorch has it: scripts, and what they give with either."""

import warnings

import pytest

import numgrad.torch as ng_torch


def names_of_nodes(torch):
    a = torch.tensor([[0.3, 0.5], [0.6, 0.2]], requires_grad=True)
    v = a.clone()
    v[0] = 1.0
    results = [a + a, a**2, a / 2, -a, a @ a, a.exp(), a.sum(), a.sum(0), a[1:], a[0],
               a[None], a.expand(3, 2, 2), torch.cat([a, a]), a.double(), v]  # fmt: skip
    node = results[0].grad_fn
    ends = [type(n).__name__ for n, _ in node.next_functions]
    assert isinstance(node, torch.autograd.graph.Node)
    assert results[0].grad_fn is node
    node.metadata["mine"] = 3
    texts = [repr(results[6]).partition("grad_fn")[2], repr(node).partition(" ")[0]]
    names = " ".join(r.grad_fn.name() for r in results)
    return names.replace("Backward0", "").replace("Backward1", "(1)"), ends, node.metadata, texts


def saved_values(torch):
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    y, seen = a.exp(), []

    def pack(t):
        seen.append(type(t) is torch.Tensor)
        return t

    assert type(y.grad_fn._raw_saved_result) is torch.autograd.SavedTensor
    y.grad_fn._raw_saved_result.register_hooks(pack, lambda t: t)
    z = a * 3
    with torch.no_grad():
        looked_at = a.tanh().grad_fn
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as store:
        b = a.clone()
        out = (b**2).sum()
        b.mul_(5)
        copies = len(store.cloned)
    try:
        out.backward()
    except AssertionError:
        return seen, copies, looked_at, z.requires_grad
    return None


def writes_into_an_expand(torch):
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    z = torch.tensor([5.0, 7.0], requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)
    base = x * 2
    y = base.expand(3, 2)
    y[0] = z * z
    y[:, 1][1].mul_(w)
    (y * torch.arange(6.0).reshape(3, 2)).sum().backward()
    refused = _refuses(lambda: base.expand(3, 2).add_(1))
    copied = torch.expand_copy(x.detach(), (2, 2))
    copied[0] = 9.0
    return [*_lists(x.grad, z.grad, w.grad, y, base, copied), y._version, refused]


def functions(torch):
    class Reversed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.note = 7
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.saved_tensors[0] is leaf)
            return -g

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, g, h):
            return 2 * g + 2 * h

    seen, grads = [], []
    leaf = torch.arange(4.0, requires_grad=True)
    y = Reversed.apply(leaf)
    y.sum().backward()
    for view in (
        lambda y: y.as_strided((2, 2), (1, 1)),
        lambda y: y.unfold(0, 2, 1),
        lambda y: torch.view_as_complex(y.view(2, 2)).real,
    ):
        x = torch.arange(4.0, requires_grad=True)
        view(Reversed.apply(x * 1)).sum().backward()
        grads.append(x.grad)
    x = torch.ones(2, requires_grad=True)
    a, b = Twice.apply(x)
    (a * 3 + b).sum().backward()
    kinds = [type(y.grad_fn).__name__, type(y.grad_fn) is Reversed._backward_cls, y.grad_fn.note]
    return _lists(*grads, x.grad, leaf.grad), a is b, seen, kinds


def shown_otherwise(torch):
    """Leaves stay leaves where nothing is recorded; views of what may not be written to."""
    w = torch.nn.Parameter(torch.arange(6.0).view(2, 3))
    with torch.no_grad():
        w.t_().unsqueeze_(0)
    (w * 2).sum().backward()
    base = torch.ones(2, 3, requires_grad=True) * 1
    with torch.no_grad():
        view = base[0]
    part = base.unbind()[0].view(3)
    v = torch.zeros(2)
    with torch.no_grad():
        leaf = v.view(2)
    of_leaf = leaf.requires_grad_(True).view(2)
    refused = [
        _refuses(f)
        for f in (view.t_, lambda: part.mul_(2), lambda: of_leaf.mul_(2), lambda: w.t_())
    ]
    s, *_ = (base + base).unsafe_chunk(2)
    s.mul_(3)
    x = torch.zeros(1, 2)
    before = x._version
    x.data = torch.zeros(2, 3)
    return [w.is_leaf, tuple(w.shape), tuple(w.grad.shape), refused, *_lists(s), before, x._version]


def inference(torch):
    a = torch.ones(2, requires_grad=True) * 1
    with torch.inference_mode():
        view = a.view(-1)
        part = a[:1]
        own = torch.ones(2, requires_grad=True)
        own.add_(1)
        flags = [view.requires_grad, view.is_leaf, view._is_view(), view.is_inference(),
                 part.requires_grad, own.requires_grad, own.view(-1).requires_grad]  # fmt: skip
    return [*flags, (view * view).requires_grad, own.view(-1)._is_view(),
            _refuses(lambda: view.add_(1)), _refuses(own.t_)]  # fmt: skip


def forward_mode(torch):
    fw = torch.autograd.forward_ad
    integers, floats = torch.ones(2, dtype=torch.int64), torch.ones(2)
    with fw.dual_level():
        dual = fw.make_dual(torch.ones(2), torch.ones(2))
        kinds = [
            _refuses(lambda: fw.make_dual(integers, floats), ValueError),
            _refuses(lambda: fw.make_dual(floats, integers), ValueError),
            _refuses(lambda: torch.add(floats, floats, out=dual)),
            _refuses(lambda: torch.add(dual, floats, out=floats)),
        ]
        return kinds, "tangent=tensor([1., 1.])" in repr(dual)


def views_in_forward_mode(torch):
    """Writes to views reach their base and its tangent."""
    fw, results = torch.autograd.forward_ad, []
    with fw.dual_level():
        for view in (
            lambda x: x.unfold(0, 2, 2)[0],
            lambda x: x.as_strided((2,), (1,)),
            lambda x: torch.view_as_real(torch.view_as_complex(x.view(2, 2)))[0],
            lambda x: x[:1].expand(2)[:1],
        ):
            dual = fw.make_dual(torch.arange(1.0, 5.0), torch.ones(4))
            x = dual * dual
            part = view(x)
            part.mul_(dual[0] * 3)
            late = view(x)
            x.mul_(2)
            results += _lists(*fw.unpack_dual(x), fw.unpack_dual(part)[1], fw.unpack_dual(late)[1])
    twice = torch.func.vmap(lambda x: x.unfold(0, 2, 2).mul(2))(torch.ones(2, 4))
    return results, twice.sum().item()


def checks(torch):
    def depends(x):
        return torch.cat([x, x]) if bool((x >= 1).all()) else x

    def wrong(x):
        y = x.clone()
        y.register_hook(lambda g: g * 2)
        return y

    gradcheck, x = torch.autograd.gradcheck, torch.ones(1, dtype=torch.float64, requires_grad=True)
    error = __import__(gradcheck.__module__, fromlist=["GradcheckError"]).GradcheckError
    edge = torch.autograd.graph.get_gradient_edge(x * 1)
    with torch.autograd.set_multithreading_enabled(False):
        threads = torch.autograd.is_multithreading_enabled()
    return [
        _refuses(lambda: gradcheck(depends, (x,)), AssertionError),
        _refuses(lambda: gradcheck(wrong, (x,)), error),
        gradcheck(wrong, (x,), raise_exception=False),
        _refuses(lambda: gradcheck(wrong, (x,), check_backward_ad=False), AssertionError),
        _refuses(lambda: torch.autograd.grad(x * 2, [x, edge], materialize_grads=True)),
        threads,
    ]


def anomalies(torch):
    """Warnings name the operation, and those in whose backward it was recorded."""

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            g = g.clone()
            g[0] /= 0 * g[0]
            return g * float("nan")

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return Inner.apply(g * ctx.saved_tensors[0])

    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            (g,) = torch.autograd.grad(Outer.apply(x), x, create_graph=True)
            failed = _refuses(g.sum().backward)
    texts = [str(w.message) for w in log]
    names = ("Anomaly Detection has been enabled", "InnerBackward", "OuterBackward")
    found = [any(name in text for text in texts) for name in names]
    return failed, len(texts), found


def functions_of_batches(torch):
    """What a backward writes to memory that it makes, also of gradients in batches."""

    class Head(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.size = x.size()
            y, n = x.narrow(0, 0, 2) * 3, x * 2
            ctx.mark_non_differentiable(n)
            ctx._materialize_non_diff_grads = False
            return y, n

        @staticmethod
        def backward(ctx, g, none):
            seen.append(none)
            whole = torch.zeros_like(g).new_zeros(ctx.size)
            whole.narrow(0, 0, 2).copy_(g)
            return 3 * whole

    class Own(torch.Tensor):
        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return cls(func(*[getattr(a, "inner", a) for a in args], **(kwargs or {})))

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    seen = []
    x = torch.arange(3.0, requires_grad=True)
    y, _ = Head.apply(x)
    (rows,) = torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)
    own = Same.apply(Own(torch.ones(2)))
    return rows.tolist(), seen, type(own) is Own, own.inner.tolist()


def deleted(torch):
    """Attributes that are no one's own are not deleted; warnings name nodes as PyTorch does."""
    x = torch.ones(2, requires_grad=True)
    x.mine = 3
    del x.mine, x.grad
    y = x * 1
    z = y**2
    y += 1
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        with torch.autograd.set_detect_anomaly(True):
            failed = _refuses(z.sum().backward)
    named = ["Error detected in PowBackward0" in str(w.message) for w in log]
    names = "_grad_fn", "data", "_backward_hooks"
    return [_refuses(lambda name=name: delattr(x, name)) for name in names], failed, named


def memory(torch):
    x = torch.arange(6.0).view(2, 3)
    y, z = x[1:, ::2], x.t()
    s, bytes_ = y.storage(), y.untyped_storage()
    y.storage()[3] = 9.0
    return [
        len(s), s.data_ptr() == x.data_ptr() == z.untyped_storage().data_ptr(), bytes_.nbytes(),
        z.storage().tolist(), y.data_ptr() - bytes_.data_ptr(), s.size(), list(s.untyped()[12:16]),
        str(s.dtype), y[0].tolist(),
    ]  # fmt: skip


def _refuses(call, kind=RuntimeError):
    try:
        call()
    except kind:
        return True
    return False


def _lists(*tensors):
    return [t.tolist() for t in tensors]


SCRIPTS = {
    names_of_nodes: (
        "Add Pow Div Neg Mm Exp Sum Sum(1) Slice Select Unsqueeze Expand Cat ToCopy "
        "torch::autograd::CopySlices",
        ["AccumulateGrad", "AccumulateGrad"],
        {"mine": 3},
        ["=<SumBackward0>)", "<AddBackward0"],
    ),
    saved_values: ([True], 1, None, True),
    writes_into_an_expand: [
        [[0.0, 0.0]], [60.0, 378.0], 441.0, [[25.0, 147.0]] * 3, [[25.0, 147.0]],
        [[9.0, 9.0], [1.0, 2.0]], 2, True,
    ],
    functions: (
        [[-1.0, -2.0, -1.0, 0.0], [-1.0, -2.0, -2.0, -1.0], [-1.0, 0.0, -1.0, 0.0], [8.0, 8.0],
         [-1.0] * 4],
        True, [True, False, False, False], ["ReversedBackward", True, 7],
    ),
    shown_otherwise: [
        True, (1, 3, 2), (1, 3, 2), [True] * 4, [[6.0] * 3], 0, 0,
    ],
    inference: [True, True, True, False, True, True, False, True, False, True, True],
    forward_mode: ([True] * 4, True),
    views_in_forward_mode: (
        [
            *([[6.0, 24.0, 18.0, 32.0], [18.0, 48.0, 12.0, 16.0], [18.0, 48.0], [18.0, 48.0]] * 3),
            *[[6.0, 8.0, 18.0, 32.0], [18.0, 8.0, 12.0, 16.0], [18.0], [18.0]],
        ],
        16.0,
    ),
    checks: [True, True, False, True, True, False],
    memory: [
        6, True, 24, [0.0, 1.0, 2.0, 9.0, 4.0, 5.0], 12, 6, [0, 0, 16, 65], "torch.float32",
        [9.0, 5.0],
    ],
    anomalies: (True, 3, [True] * 3),
    functions_of_batches: ([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0]], [None], True, [1.0, 1.0]),
    deleted: ([True, True, True], True, [True]),
}  # fmt: skip
"""Scripts and what they give, by hand."""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
@pytest.mark.filterwarnings("ignore:Input #0 requires gradient and")
def test_script(script):
    assert script(ng_torch) == SCRIPTS[script]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
@pytest.mark.filterwarnings("ignore")
def test_truth(script):
    torch = pytest.importorskip("torch")
    assert script(torch) == SCRIPTS[script]
