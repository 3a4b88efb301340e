"""In-place operations, versions and views: section 3 of the semantics, then what it leaves open.

Tests with ``lib`` state what holds in PyTorch, too.
"""

import gc
import weakref

import numpy as np
import pytest

import numgrad as ng
from numgrad.inplace_methods import OTHERS, has_inplace_form, inplace_names
from numgrad.op.base import OPS
from numgrad.testing.samples import draw
from tests.ops.reference import ELEMENTWISE, by_name, quiet

RuntimeErrors = ng.NumgradRuntimeError


def leaf(*shape, seed=0, dtype=float):
    values = np.random.default_rng([seed, *shape]).uniform(0.5, 1.5, shape)
    if np.dtype(dtype).kind == "c":
        values = values * (1 + 0.5j)
    return ng.tensor(values.astype(dtype), requires_grad=True)


def weighted(t):
    """A scalar that tells the elements apart."""
    return (t * np.cos(1.0 + np.arange(t.size)).reshape(t.shape)).sum()


def gradients(function, arrays):
    """Value of the function and gradients of its weighted sum."""
    leaves = [ng.tensor(a, requires_grad=True) for a in arrays]
    out = function(*leaves)
    weighted(out).backward()
    return out.detach().numpy(), [x.grad.numpy() for x in leaves]


def same_gradients(written, functional, *arrays):
    """A function that writes gives what one that does not gives."""
    out, found = gradients(written, arrays)
    expected, wanted = gradients(functional, arrays)
    np.testing.assert_allclose(out, expected, rtol=1e-13, strict=True)
    for g, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-14, strict=True)


def raises_and_changes_nothing(error, words, target, function, *others):
    """``function`` fails, and the target, its root and the others are what they were."""
    watched = [t for t in (target, target._base, *others) if t is not None]

    def state():
        return [
            (t.numpy(force=True).copy(), t._version, t.grad_fn, t.requires_grad, t.is_leaf)
            for t in watched
        ]

    before = state()
    with pytest.raises(error, match=words) as caught:
        function()
    assert isinstance(caught.value, ng.NumgradError)
    for old, new in zip(before, state(), strict=True):
        np.testing.assert_array_equal(old[0], new[0], strict=True)
        assert old[1:] == new[1:]


# ------------------------------------------------------------------------ section 3, line by line


def test_line_48_versions_are_shared(lib):
    x = lib.zeros(4)
    view, detached = x[:2], x.detach()
    assert x._version == 0
    view.add_(1.0)
    detached.mul_(2.0)
    with lib.no_grad():
        x[0] = 3.0
    assert x._version == view._version == detached._version == view.detach()._version == 3
    lib.autograd.graph.increment_version(x)
    assert view._version == 4
    assert x.clone()._version == 0


def test_line_48_every_operation_counts_once(lib):
    x = lib.ones(4)
    writes = [
        lambda: x.add_(1.0),
        lambda: x[::2].exp_(),
        lambda: x.fill_(1.0),
        lambda: x.zero_(),
        lambda: x.copy_(lib.ones(4)),
        lambda: x.__setitem__(slice(1, 3), 2.0),
        lambda: x.__setitem__([0, 2], 2.0),
        lambda: x.__setitem__(x > 1.0, 0.5),
        lambda: x.__iadd__(lib.ones(4)),
        lambda: x.clamp_(0.0, 1.0),
    ]
    for number, write in enumerate(writes, start=1):
        write()
        assert x._version == number


def test_line_49_leaf(lib, raises):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    for write in (lambda: x.add_(1.0), lambda: x.zero_(), lambda: x.copy_(lib.ones(2))):
        with raises(RuntimeError, "a leaf that requires grad"):
            write()
    assert x._version == 0
    with lib.no_grad():
        x.mul_(3.0)
    assert x.is_leaf
    assert x.requires_grad
    assert x.tolist() == [3.0, 6.0]
    v = lib.zeros(3)[:2].requires_grad_()  # a leaf that is a view
    with raises(RuntimeError, "a leaf that requires grad"):
        v.add_(1.0)


def test_line_50_view_of_a_leaf(lib, raises):
    x = lib.ones(3, requires_grad=True)
    with raises(RuntimeError, "a view of a leaf"):
        x[:2].mul_(2.0)
    with raises(RuntimeError, "a view of a leaf"):
        x[0] = 1.0
    late = lib.zeros(3)
    early = late[:2]
    late.requires_grad_()
    with raises(RuntimeError, "a view of a leaf"):  # made before the base required grad
        early[0] = 1.0
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert late.is_leaf


def test_line_51_saved_tensor_was_changed(lib):
    a = lib.tensor([1.0, 2.0], requires_grad=True)
    b = a.clone()
    out = b.sin().sum()
    b[:1].add_(1.0)
    with pytest.raises(RuntimeError, match="version 1") as caught:
        out.backward()
    if lib is ng:
        for words in ("SinBackward", r"(2,)", "CopySlicesBackward", "version 0", "detect_anomaly"):
            assert words in str(caught.value)


def test_line_51_saved_leaf_was_changed(lib):
    a = lib.tensor([1.0, 2.0], requires_grad=True)
    out = (a * a).sum()
    with lib.no_grad():
        a.add_(1.0)
    with pytest.raises(RuntimeError, match="leaf" if lib is ng else None):
        out.backward()


def test_line_52_only_what_is_needed_is_saved(lib):
    a = lib.tensor([1.0, 2.0], requires_grad=True)
    b, c = a * 2.0, lib.ones(2)
    out = (b + c).sum() + (b * 3.0).sum() + (b - c).sum() + (c * 4.0).sum()
    b.zero_()
    c.zero_()
    out.backward()
    assert a.grad.tolist() == [10.0, 10.0]


RESULT_SAVED = ("exp", "sqrt", "tanh", "sigmoid")
OPERAND_SAVED = ("sin", "log", "abs", "cos")


@pytest.mark.parametrize("name", RESULT_SAVED + OPERAND_SAVED)
def test_line_53_what_unary_operations_save(lib, name):
    a = lib.tensor([0.5, 0.7], requires_grad=True)
    x = a * 1.0
    y = getattr(lib, name)(x)
    getattr(lib, name)(x).sum().backward(retain_graph=True)  # both are as they were
    expected, a.grad = a.grad.tolist(), None
    changed, kept = (y, x) if name in RESULT_SAVED else (x, y)
    kept.mul_(3.0)
    y.sum().backward(retain_graph=True)
    scale = 1.0 if kept is x else 3.0  # a change of the result is part of its history
    np.testing.assert_allclose(a.grad.tolist(), scale * np.array(expected), rtol=1e-13)
    total = y.sum()
    changed.mul_(2.0)
    with pytest.raises(RuntimeError):
        total.backward()


def test_line_53_products_and_reductions(lib):
    a = lib.tensor([2.0, 5.0], requires_grad=True)
    for combine in (lambda x, y: x * y, lambda x, y: x / y):
        for number in (0, 1):
            pair = [a * 1.0, a * 2.0]
            out = combine(*pair).sum()
            pair[number].add_(1.0)
            with pytest.raises(RuntimeError):
                out.backward()
    x = a * 1.0
    out = (x + x * 1.0).sum()
    x.add_(1.0)  # a sum saves nothing
    out.backward()
    x = a * 1.0
    out = x.max()
    x.add_(1.0)
    with pytest.raises(RuntimeError):
        out.backward()


def test_line_54_a_write_through_a_view_rewrites_history(lib):
    a = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = lib.tensor(5.0, requires_grad=True)
    x = a * 2.0
    view, other = x[:2], x[1:]
    view.mul_(b)
    assert "CopySlices" in x.grad_fn.name()
    assert view.grad_fn is not None
    assert view.grad_fn.name() != x.grad_fn.name()
    (x.sum() + 10.0 * other.sum()).backward()
    assert a.grad.tolist() == [10.0, 110.0, 22.0]
    assert b.grad.item() == 2.0 + 4.0 + 40.0


def test_line_54_gradients_of_overwritten_parts_are_zero(lib):
    a = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = a * 2.0
    x[1] = 7.0
    x[2:] = x[0]
    x.sum().backward()
    assert a.grad.tolist() == [4.0, 0.0, 0.0]


@pytest.mark.parametrize("made_by", ["unstack", "split"])
def test_line_55_one_of_several_views(lib, raises, made_by):
    x = lib.ones((2, 2), requires_grad=True) * 1.0
    if lib is ng:
        parts = ng.unstack(x) if made_by == "unstack" else ng.split(x, 2)
    else:
        parts = x.unbind() if made_by == "unstack" else x.split(1)
    with raises(RuntimeError, "one of several views"):
        parts[0].mul_(2.0)
    with raises(RuntimeError, "one of several views"):
        parts[1][0] = 2.0
    assert x._version == 0
    with lib.no_grad():
        parts[0].mul_(2.0)
    assert x.tolist() == [[2.0, 2.0], [1.0, 1.0]]


def test_line_56_view_from_no_grad(lib, raises):
    for base in (lib.ones(3, requires_grad=True) * 1.0, lib.ones(3)):
        with lib.no_grad():
            view = base[:2]
        with raises(RuntimeError, "under no_grad"):
            view.mul_(lib.tensor(2.0, requires_grad=True))
        with raises(RuntimeError, "under no_grad"):
            view[:1][0] = lib.tensor(2.0, requires_grad=True)
        assert base._version == 0
        with lib.no_grad():
            view.mul_(2.0)
        assert base.tolist() == [2.0, 2.0, 1.0]
    leaf = lib.ones(3, requires_grad=True)
    with lib.no_grad():
        view = leaf[:2]
    with raises(RuntimeError, "under no_grad"):
        view.fill_(0.0)


def test_line_57_view_that_a_function_returned(lib, raises):
    if not hasattr(lib.autograd, "Function"):
        pytest.skip("no custom functions here")

    class Narrow(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:2]

        @staticmethod
        def backward(ctx, g):
            return lib.concat([g, lib.zeros(1)])

    x = lib.ones(3, requires_grad=True) * 1.0
    with raises(RuntimeError, "function of yours"):
        Narrow.apply(x).mul_(2.0)


def test_line_58_expanded_target(lib, raises):
    x = lib.ones((3, 1))
    wide = lib.broadcast_to(x, (3, 4))
    with raises(RuntimeError, "several times"):
        wide.add_(1.0)
    with raises(RuntimeError, "several times"):
        wide[0].add_(1.0)
    if lib is ng:  # PyTorch writes through a part that shows each element once
        with raises(RuntimeError, "read-only"):
            wide[:, 0].add_(1.0)
    assert x._version == 0


def test_line_59_detach_in_place(lib, raises):
    a = lib.ones(3, requires_grad=True)
    x = a * 2.0
    view = x[:2]
    with raises(RuntimeError, "detach_: the tensor is a view"):
        view.detach_()
    assert x.detach_() is x
    assert x.is_leaf
    assert not x.requires_grad
    assert view.requires_grad
    view.sum().backward()
    assert a.grad.tolist() == [2.0, 2.0, 0.0]


def test_line_60_out(lib, raises):
    a, out = lib.ones(2, requires_grad=True), lib.zeros(2)
    add = np.add if lib is ng else lib.add
    with raises(RuntimeError, "out="):
        add(a, a, out=out)
    with lib.no_grad():
        add(a, a, out=out)
    assert out.tolist() == [2.0, 2.0]
    assert not out.requires_grad
    assert out._version == 1


def test_line_61_assignment_makes_part_of_the_graph(lib):
    y = lib.ones(5, requires_grad=True)
    x = lib.zeros((5, 5))
    row = x[1]
    x[0] = y
    assert x.requires_grad
    assert not x.is_leaf
    assert row.requires_grad  # also a view made before
    (2.0 * x + x[0]).sum().backward()
    assert y.grad.tolist() == [7.0] * 5


def test_line_62_base(lib):
    x = lib.zeros((4, 4))
    view = x[1:]
    assert x._base is None
    assert not x._is_view()
    assert view._base is x
    assert view.reshape(-1)[2:][0]._base is x
    assert view._is_view()
    assert not view.clone()._is_view()
    assert not x.detach()._is_view()


def test_line_63_mutation_of_saved_tensors(lib):
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        a = lib.tensor([1.0, 2.0], requires_grad=True)
        b = a.clone()
        out = (b * b).sum() + b.exp().sum()
        b.sin_()
        b[0] = 100.0
        (out + b.sum()).backward()
    np.testing.assert_allclose(
        a.grad.tolist(), [2.0 + np.exp(1.0), 4.0 + np.exp(2.0) + np.cos(2.0)], rtol=1e-13
    )


def test_line_63_results_that_were_changed():
    with ng.autograd.graph.allow_mutation_on_saved_tensors():
        a = ng.tensor([1.0, 2.0], requires_grad=True)
        y = (a * 1.0).exp_()
        y.mul_(y)
        y.zero_()
        out = (a * 1.0).exp_()
        (y + out.mul_(3.0)).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 3 * np.exp([1.0, 2.0]), rtol=1e-14)


# ---------------------------------------------------------------------- nothing changes on errors


def graph():
    """A result, and a view of it."""
    x = leaf(3, 4) * 2.0
    return x, x[1:]


REFUSED = {
    "shape": (ValueError, r"add_.*\(3, [23], 4\)", lambda x: x.add_(np.ones((3, 1, 1)))),
    "values": (ValueError, r"copy_.*\(5,\)", lambda x: x.copy_(np.ones(5))),
    "values at an index": (ValueError, "setitem", lambda x: x.__setitem__(0, np.ones(3))),
    "values at a list": (ValueError, "index_put", lambda x: x.__setitem__([0, 1], np.ones(3))),
    "index": (IndexError, "getitem", lambda x: x.__setitem__(7, 1.0)),
    "list of indices": (IndexError, "index_put", lambda x: x.__setitem__([7], 1.0)),
    "floating index": (IndexError, "float64", lambda x: x.__setitem__(0.5, 1.0)),
    "mask": (IndexError, "boolean", lambda x: x.__setitem__([True] * 7, 1.0)),
    "complex": (TypeError, "mul_.*complex128", lambda x: x.mul_(1j)),
    "complex values": (TypeError, "setitem.*complex", lambda x: x.__setitem__(0, 1j)),
    "complex values at a list": (TypeError, "setitem", lambda x: x.__setitem__([0], 1j)),
    "complex number": (TypeError, "fill_", lambda x: x.fill_(1j)),
    "no number": (ValueError, "fill_", lambda x: x.fill_([1.0, 2.0])),
    "no values": (TypeError, "setitem|numeric", lambda x: x.__setitem__(0, "a")),
    "flattened": (ValueError, "cumsum_", lambda x: x.cumsum_()),
    "scatter": (IndexError, "scatter", lambda x: x.scatter_(np.full((1, 4), 9), 1.0, axis=0)),
    "matmul": (ValueError, "matmul", lambda x: x.__imatmul__(np.ones((4, 3)))),
    "detach_ of a view": (RuntimeError, "detach_", lambda x: x[:1].detach_()),
}


@pytest.mark.parametrize("which", ["root", "view"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused_write_changes_nothing(name, which):
    error, words, write = REFUSED[name]
    x, view = graph()
    target = x if which == "root" else view
    raises_and_changes_nothing(error, words, target, lambda: write(target))
    weighted(x).backward()


def test_refused_history_changes_nothing():
    x, y = leaf(3), leaf(3, seed=1)
    for write in (lambda: x.mul_(y), lambda: x[1:].mul_(2.0), lambda: x.__setitem__([0], y[0])):
        raises_and_changes_nothing(RuntimeErrors, "leaf that requires grad", x, write, y)
    base = ng.zeros((2, 3))
    part, _ = ng.unstack(base)
    raises_and_changes_nothing(RuntimeErrors, "several views", part, lambda: part.add_(y), y)
    with ng.no_grad():
        view = base[0]
    for write in (lambda: view.add_(y), lambda: view.copy_(y), lambda: view.__setitem__([0], y[0])):
        raises_and_changes_nothing(RuntimeErrors, "under no_grad", view, write, y)


def test_read_only_memory():
    array = np.zeros(3)
    array.flags.writeable = False
    x = ng.from_numpy(array)
    for write in (lambda: x.add_(1.0), lambda: x.__setitem__(0, 1.0), lambda: x[:2].fill_(1.0)):
        raises_and_changes_nothing(RuntimeErrors, "read-only", x, write)
    assert x.clone().add_(1.0).tolist() == [1.0] * 3


def test_target_is_no_tensor():
    with pytest.raises(ng.NumgradTypeError, match="add_: the target is a ndarray"):
        ng.Tensor.add_(np.zeros(2), 1.0)


# ------------------------------------------------------------------------------ overlapping memory


def test_interleaved_elements_do_not_overlap():
    """Strides alone do not tell: these elements lie between each other."""
    x = ng.zeros((2, 3, 4))
    ng.diagonal(x, axis1=1, axis2=2).add_(1.0)
    np.testing.assert_array_equal(x.numpy(), np.broadcast_to(np.eye(3, 4), (2, 3, 4)))
    sliding = ng.from_numpy(np.lib.stride_tricks.as_strided(np.zeros(4), (3, 2), (8, 8)))
    raises_and_changes_nothing(RuntimeErrors, "several times", sliding, lambda: sliding.add_(1.0))
    apart = ng.from_numpy(np.lib.stride_tricks.as_strided(np.zeros(9), (2, 2), (16, 24)))
    assert apart.add_(1.0).sum().item() == 4.0


ALIASES = {
    "itself": lambda x: x.multiply_(x),
    "reversed": lambda x: x.multiply_(x[::-1]),
    "transposed": lambda x: x.add_(x[:3, :3].T) if x.shape == (3, 3) else x.add_(x),
    "a row": lambda x: x.multiply_(x[:1]),
    "an element": lambda x: x.multiply_(x[0, 0]),
    "shifted": lambda x: x[1:].__iadd__(x[:-1]),
    "shifted back": lambda x: x[:-1].__imul__(x[1:]),
    "strided": lambda x: x[:, ::2].__imul__(x[:, 1::2]),
    "a column": lambda x: x[:, 1:].__imul__(x[:, :1]),
    "power": lambda x: x.pow_(x),
    "copied": lambda x: x[1:].copy_(x[:-1]) if isinstance(x, ng.Tensor) else None,
}
IN_NUMPY = {
    "itself": lambda x: x * x,
    "reversed": lambda x: x * x[::-1],
    "a row": lambda x: x * x[:1],
    "an element": lambda x: x * x[0, 0],
    "power": lambda x: x**x,
}
SHIFTS = {
    "shifted": lambda x: np.concatenate([x[:1], x[1:] + x[:-1]]),
    "shifted back": lambda x: np.concatenate([x[:-1] * x[1:], x[-1:]]),
    "copied": lambda x: np.concatenate([x[:1], x[:-1]]),
    "a column": lambda x: np.concatenate([x[:, :1], x[:, 1:] * x[:, :1]], axis=1),
    "strided": lambda x: np.stack([x[:, 0] * x[:, 1], x[:, 1], x[:, 2] * x[:, 3], x[:, 3]], axis=1),
}


@pytest.mark.parametrize("name", [*IN_NUMPY, *SHIFTS])
def test_operands_that_share_memory(name):
    functional = {**IN_NUMPY, **SHIFTS}[name]

    def written(a):
        x = a * 1.0
        ALIASES[name](x)
        return x

    array = np.random.default_rng(0).uniform(0.5, 1.5, (3, 4))
    np.testing.assert_allclose(
        written(ng.tensor(array)).numpy(), functional(array), rtol=1e-14, strict=True
    )
    same_gradients(written, functional, array)


def test_second_derivative_reaches_a_leaf_that_shares_memory_with_the_target():
    p = leaf(3)
    d = p.detach()
    start = p.detach().numpy().copy()
    (g,) = ng.autograd.grad(d.multiply_(p).sum(), p, create_graph=True)
    np.testing.assert_array_equal(g.detach().numpy(), start)  # of the other factor
    square = p.detach().numpy().copy()
    np.testing.assert_allclose(square, start * start, rtol=1e-15)
    (g,) = ng.autograd.grad(p.detach().pow_(p).sum(), p, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), square**square * np.log(square), rtol=1e-13)
    (h,) = ng.autograd.grad(g.sum(), p)  # the base is a number
    np.testing.assert_allclose(h.numpy(), square**square * np.log(square) ** 2, rtol=1e-13)


# -------------------------------------------------------------------------------- dtypes and shapes

CASTS = {
    # target, operation, operand, result or None for an error
    "float32 and float64": ("f4", "add_", np.float64(1.5), 2.5),
    "float and int": ("f8", "add_", np.int64(2), 3.0),
    "int and int": ("i8", "mul_", 3, 3),
    "int and float": ("i8", "add_", 1.5, None),
    "int divided": ("i8", "div_", 2, None),
    "int divided down": ("i8", "floor_divide_", 2, 0),
    "small int and int": ("i1", "add_", np.arange(1, 2), 2),
    "unsigned and signed": ("u1", "add_", np.arange(1, 2), None),
    "bool and bool": ("?", "bitwise_and_", False, False),
    "bool and int": ("?", "add_", np.arange(1, 2), None),
    "complex and float": ("c16", "mul_", 2.0, 2.0),
    "float and complex": ("f8", "mul_", 1j, None),
    "comparison": ("f8", "lt_", 2.0, 1.0),
    "copy float into int": ("i8", "copy_", 2.7, 2),
    "copy int into float": ("f4", "copy_", 2, 2.0),
    "copy into bool": ("?", "copy_", 2.5, True),
    "copy float into complex": ("c16", "copy_", 2.5, 2.5),
    "copy complex into float": ("f8", "copy_", 1j, None),
    "fill int": ("i4", "fill_", 2.7, 2),
    "zero": ("c8", "mul_", 0, 0),
}


@pytest.mark.parametrize("shape", [(), (0,), (2, 1), (5,)], ids=str)
@pytest.mark.parametrize("name", CASTS)
def test_dtypes(name, shape):
    dtype, operation, operand, expected = CASTS[name]
    if isinstance(operand, np.ndarray) and shape in ((), (0,)):
        operand = operand.reshape(shape) if shape == () else operand
    x = ng.ones(shape, dtype=dtype)
    write = lambda: getattr(x, operation)(operand)  # noqa: E731
    if expected is None:
        raises_and_changes_nothing(ng.NumgradTypeError, operation, x, write)
        return
    assert write() is x
    np.testing.assert_array_equal(x.numpy(), np.full(shape, expected, dtype), strict=True)
    assert x._version == 1


@pytest.mark.parametrize("index", [0, [0], slice(0, 1), [True, False, False]], ids=str)
def test_assignment_converts(index):
    for dtype in ("i4", "f4", "?", "c8"):
        x, expected = ng.zeros(3, dtype=dtype), np.zeros(3, dtype)
        x[index] = 2.7
        expected[index] = 2.7
        np.testing.assert_array_equal(x.numpy(), expected, strict=True)
    single = ng.zeros(3, dtype=np.float32)
    y = ng.tensor(2.0, requires_grad=True)
    single[index] = y * y
    single.sum().backward()
    assert single.dtype == np.float32
    assert y.grad.dtype == np.float64
    assert y.grad.item() == 4.0


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_floating_and_complex_targets(dtype):
    a = leaf(3, dtype=dtype)

    def run(x):
        x.mul_(x)
        x[1:] = x[:-1] * 2.0
        x.add_(1.0).exp_()
        return x

    def functional(x):
        x = x * x
        return ng.exp(ng.concat([x[:1], 2.0 * x[:-1]]) + 1.0)

    found = []
    for function in (run, functional):
        a.grad = None
        out = function(a * 1.0)
        assert out.dtype == dtype
        (ng.real(out).sum() if dtype[0] == "c" else out.sum()).backward()
        assert a.grad.dtype == dtype
        found.append(a.grad.numpy().copy())
    np.testing.assert_allclose(*found, rtol=1e-5 if dtype in ("f4", "c8") else 1e-13)


def test_integers_and_booleans_take_no_part():
    y = leaf(3)
    counts = ng.zeros(3, dtype=int)
    counts.copy_(y)
    counts[0] = y[0]
    counts[[1]] = y[1]
    assert not counts.requires_grad
    mask = ng.zeros(3, dtype=bool)
    mask |= y > 1.0
    assert not mask.requires_grad


def test_zero_dimensional_and_empty():
    a = leaf()
    x = a * 1.0
    x.mul_(3.0).sin_()
    x[()] = x * 2.0
    x[...] += 1.0
    (g,) = ng.autograd.grad(x, a)
    np.testing.assert_allclose(g.item(), 6 * np.cos(3 * a.item()), rtol=1e-14)
    b = leaf(0, 3)
    y = b * 1.0
    y[:, 1:].sin_()
    y[0:0] = 5.0
    y.T.add_(1.0)
    y.sum().backward()
    assert b.grad.shape == (0, 3)


TARGETS = {
    "transposed": lambda x: x.T,
    "columns": lambda x: x[:, 1:3],
    "steps": lambda x: x[::2, ::-1],
    "reversed": lambda x: x[::-1],
    "diagonal": lambda x: ng.diagonal(x) if isinstance(x, ng.Tensor) else np.diagonal(x),
    "reshaped": lambda x: x.reshape(2, 6)[:, 1:],
    "new axis": lambda x: x[:, None, 0],
    "flipped": lambda x: np.flip(x, axis=1),
}


@pytest.mark.parametrize("name", TARGETS)
def test_targets_that_are_not_contiguous(name):
    place = TARGETS[name]
    at = place(np.arange(12).reshape(3, 4))

    def written(a, b):
        x = a * 1.0
        place(x).mul_(b).exp_()
        return x

    def functional(a, b):
        flat = a.reshape(-1)
        new = ng.exp(flat[at.ravel()] * b)
        return ng.index_put(flat, new, index=at.ravel()).reshape(3, 4)

    arrays = np.random.default_rng(1).uniform(0.5, 1.0, (3, 4)), np.array(0.7)
    same_gradients(written, functional, *arrays)


def test_root_in_fortran_order():
    a = leaf(4)
    x = ng.from_numpy(np.asfortranarray(np.zeros((3, 4))))
    for k in range(3):
        x[k] = a * float(k)
    x.T[1:].mul_(2.0)
    x.sum().backward()
    assert a.grad.tolist() == [3.0, 6.0, 6.0, 6.0]


def test_leading_axes_of_length_one():
    y = leaf(1, 1, 3)
    x = ng.zeros(3)
    x[...] = y
    weighted(x).backward()
    np.testing.assert_allclose(y.grad.numpy().ravel(), np.cos(1.0 + np.arange(3)))
    raises_and_changes_nothing(ng.NumgradValueError, "add_", x, lambda: x.add_(y))


def test_values_that_broadcast():
    y = leaf(3, 1)
    x = ng.zeros((3, 4))
    x[:, 1:] = y
    x[[0, 1]] = y[0]
    x.fill_(y[2, 0])
    x[1].copy_(y[1])
    x.sum().backward()
    assert y.grad.ravel().tolist() == [0.0, 4.0, 8.0]


# ------------------------------------------------------------------------------------- assignment


def test_assignment_in_a_loop():
    y = leaf(6)
    out = ng.zeros((2, 3))
    for i in np.arange(2):
        for j in range(3):
            out[i, j] = y[3 * int(i) + j] ** 2
    weighted(out).backward()
    expected = 2 * y.detach().numpy() * np.cos(1.0 + np.arange(6))
    np.testing.assert_allclose(y.grad.numpy(), expected, rtol=1e-14)


def test_long_loop_neither_overflows_nor_forgets():
    y = leaf(1)
    out = ng.zeros(20_000)
    for i in range(len(out)):
        out[i] = y[0]
    (g,) = ng.autograd.grad(out.sum(), y)
    assert g.item() == 20_000.0
    del out


@pytest.mark.parametrize("fill", ["elements", "views", "augmented", "operations"])
def test_graph_is_released(fill):
    """Without the garbage collector: nothing refers to itself."""
    gc.collect()
    gc.disable()
    try:
        y = leaf(4)
        out = ng.zeros(4)
        for i in range(4):
            if fill == "elements":
                out[i] = y[i] * 2.0
            elif fill == "views":
                out[i : i + 1].copy_(y[i])
            elif fill == "augmented":
                out[i] += y[i] * 2.0
            else:
                out.add_(y).mul_(2.0).sin_()
        out.sum().backward()
        released = [weakref.ref(out), weakref.ref(out.grad_fn)]
        del out
        assert [r() for r in released] == [None, None]
    finally:
        gc.enable()


def test_base_that_was_dropped():
    y = leaf()
    x = ng.zeros(10).reshape(2, 5)
    x[0][1] = y * 3.0
    assert x.requires_grad
    weighted(x).backward()
    np.testing.assert_allclose(y.grad.item(), 3 * np.cos(2.0))
    assert x._base.shape == (10,)


def test_duplicate_indices_keep_the_last():
    v = leaf(3)
    x = ng.zeros(2)
    x[[0, 1, 0]] = v
    x.sum().backward()
    assert v.grad.tolist() == [0.0, 1.0, 1.0]
    np.testing.assert_array_equal(x.detach().numpy(), v.detach().numpy()[[2, 1]])


def test_assignment_of_lists_of_tensors():
    a, b = leaf(), leaf(seed=1)
    for index in (slice(1, 3), [1, 2]):
        x = ng.zeros(3)
        x[index] = [a, b * 2.0]
        ga, gb = ng.autograd.grad(x.sum(), (a, b))
        assert (ga.item(), gb.item()) == (1.0, 2.0)


def test_augmented_assignment():
    def written(a, b):
        x = a * 1.0
        x += b
        x[1] *= b[0]
        x[[0, 2]] -= b[1]
        x[x > 1.0] /= 2.0
        x **= 2
        x[::2] %= 1.7
        return x

    def functional(a, b):
        x = a + b
        x = ng.stack([x[0] - b[1], x[1] * b[0], x[2] - b[1]])
        x = ng.where(x > 1.0, x / 2.0, x)
        x = x * x
        return ng.stack([x[0] % 1.7, x[1], x[2] % 1.7])

    rng = np.random.default_rng(3)
    same_gradients(written, functional, rng.uniform(1, 2, 3), rng.uniform(0.5, 1, 3))


def test_matmul_in_place():
    a, b = np.random.default_rng(4).uniform(size=(2, 3, 3))

    def written(a, b):
        x = a * 1.0
        x @= b
        x @= x
        return x

    same_gradients(written, lambda a, b: (a @ b) @ (a @ b), a, b)
    square = ng.eye(3)
    raises_and_changes_nothing(
        ng.NumgradValueError, "matmul_", square, lambda: square.__imatmul__(np.ones(3))
    )


# --------------------------------------------------------------------------------- grad modes


def test_step_of_gradient_descent():
    p = leaf(3)
    start = p.detach().numpy().copy()
    (p * p).sum().backward()
    identity = p
    with ng.no_grad():
        p -= 0.1 * p.grad
        p[0] += 1.0
        p[1:].mul_(2.0)
    assert p is identity
    assert p.is_leaf
    assert p.requires_grad
    expected = 0.8 * start
    expected[0] += 1
    expected[1:] *= 2
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-14)
    p.grad *= 0.5
    p.grad.zero_()
    (p * p).sum().backward()
    np.testing.assert_allclose(p.grad.numpy(), 2 * expected)


def test_views_of_a_detached_tensor():
    p = leaf(3)
    d = p.detach()
    loss = (p * p).sum()
    d[:2].fill_(7.0)
    assert p.tolist()[:2] == [7.0, 7.0]
    assert p.is_leaf
    with pytest.raises(RuntimeErrors, match="version 1"):
        loss.backward()
    view = d[1:]
    view.mul_(leaf())  # the detached tensor joins a graph, the leaf does not
    assert d.requires_grad
    assert p.is_leaf


def test_value_changed_in_no_grad_keeps_its_history():
    a = leaf(3)
    x = a * 2.0
    with ng.no_grad():
        x[0] = 100.0
    x.sum().backward()
    assert a.grad.tolist() == [2.0, 2.0, 2.0]
    assert x[0].item() == 100.0


def test_view_made_in_no_grad_stays_a_constant():
    a = leaf(3)
    x = a * 2.0
    with ng.no_grad():
        view = x[:2]
    x.mul_(3.0)
    assert not view.requires_grad
    assert repr(view).endswith("grad_fn=<Invalid>)")
    np.testing.assert_array_equal(view.numpy(), x[:2].detach().numpy())


def test_view_of_a_base_that_was_written_to_and_detached():
    x = leaf(3) * 1.0
    view = x[:2]
    x.mul_(2.0)
    x.detach_()
    assert not view.requires_grad
    assert view.sum().grad_fn is None


def test_inference_mode():
    with ng.inference_mode():
        x = ng.ones(3) * 0.5
        x.add_(0.5)
        x[0] = 5.0
    assert x.tolist() == [5.0, 1.0, 1.0]
    for write in (lambda: x.add_(1.0), lambda: x.__setitem__(0, 1.0), lambda: x[:2].zero_()):
        with pytest.raises(RuntimeErrors, match="inference mode"):
            write()
    assert x.tolist() == [5.0, 1.0, 1.0]


# ------------------------------------------------------------------------------- saved values


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "exp", "tanh", "log1p", "arctan"])
def test_rare_arguments(name):
    """Some kernels look at their operands again for arguments of extreme size."""
    array = np.array([1e300, 1e22, 0.5, 1e-310, 3e5] * 5)
    x = ng.tensor(array)
    getattr(x, f"{name}_")()
    np.testing.assert_array_equal(x.numpy(), getattr(ng, name)(ng.tensor(array)).numpy())


@pytest.mark.parametrize("name", RESULT_SAVED)
def test_saved_result_of_an_in_place_operation_was_changed(name):
    for where in (slice(None), slice(1, 3)):
        x = leaf(4) * 0.9
        getattr(x[where], f"{name}_")()
        total = x.sum()
        x[:1].add_(1.0)  # shares the version, if not the memory
        with pytest.raises(RuntimeErrors, match=f"{name.capitalize()}Backward.*its own result"):
            total.backward()


@pytest.mark.parametrize("name", OPERAND_SAVED)
def test_saved_operand_of_an_in_place_operation_is_kept(name):
    def written(a):
        x = a * 1.0
        getattr(x, f"{name}_")()
        return x.mul_(3.0).add_(1.0)

    array = np.linspace(0.3, 1.0, 4)
    same_gradients(written, lambda a: getattr(ng, name)(a) * 3.0 + 1.0, array)


def test_operands_saved_by_in_place_operations():
    """The target is kept as it was, another operand is checked."""
    x, b = leaf(3) * 1.0, leaf(3, seed=1) * 1.0
    x.mul_(b)
    x.add_(1.0)
    total = x.sum()
    b.add_(1.0)
    with pytest.raises(RuntimeErrors, match=r"MultiplyBackward.*version 1"):
        total.backward()


def test_second_derivatives():
    a = leaf(3)

    def third(x):
        x = x * 1.0
        x.mul_(x).mul_(a)
        x[1:].sin_()
        x[:1] = x[1:2].clone() * x[:1].clone()
        return x.sum()

    assert ng.testing.gradgradcheck(third, [leaf(3, seed=5)])


# --------------------------------------------------------------------- hooks and retained gradients


def test_line_79_retained_gradient_follows(lib):
    a = lib.tensor([1.0, 2.0], requires_grad=True)
    x = a * 2.0
    view = x[:1]
    x.retain_grad()
    view.retain_grad()
    x.mul_(3.0)
    ((x * 5.0).sum() + (view * 7.0).sum()).backward()
    assert x.grad.tolist() == [12.0, 5.0]
    assert view.grad.tolist() == [7.0]
    assert a.grad.tolist() == [72.0, 30.0]


def test_line_79_retained_gradient_of_a_written_view(lib):
    a = lib.tensor([1.0, 2.0], requires_grad=True)
    x = a * 2.0
    x.retain_grad()
    x[:1].mul_(3.0)
    x[1] = 5.0
    (x * 5.0).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    assert a.grad.tolist() == [30.0, 0.0]


def test_line_80_hooks_stay_with_their_version(lib):
    a = lib.tensor([1.0], requires_grad=True)
    x = a.clone()
    seen = []

    def doubling(name):
        return lambda g: (seen.append((name, g.item())), g * 2.0)[1]

    x.register_hook(doubling("old"))
    x.mul_(1.0)
    x.register_hook(doubling("new"))
    x.add_(0.0)
    x.register_hook(doubling("newest"))
    x.sum().backward()
    assert seen == [("newest", 1.0), ("new", 2.0), ("old", 4.0)]
    assert a.grad.item() == 8.0


def test_hooks_of_a_base_and_its_views(lib):
    a = lib.ones(3, requires_grad=True)
    x = a * 1.0
    view = x[:2]
    seen = []
    x.register_hook(lambda g: seen.append(("before", g.tolist())))
    view.mul_(2.0)
    x.register_hook(lambda g: seen.append(("after", g.tolist())))
    view.register_hook(lambda g: seen.append(("view", g.tolist())))
    (x.sum() + view.sum()).backward()
    assert seen == [
        ("view", [1.0, 1.0]),
        ("after", [2.0, 2.0, 1.0]),
        ("before", [4.0, 4.0, 1.0]),
    ]


# ------------------------------------------------------------------------------------- the table


@pytest.mark.parametrize("op", **by_name([op for op in OPS.values() if has_inplace_form(op)]))
def test_methods_exist(op):
    for name in inplace_names(op):
        method = getattr(ng.Tensor, name)
        assert method.__name__ in inplace_names(op)
        assert op.name in method.__doc__
    assert f"{op.name}_" in inplace_names(op)


def test_methods_exist_for_what_keeps_the_shape():
    assert all(has_inplace_form(op) for op in ELEMENTWISE if not op.internal)
    assert {op.name for op in OPS.values() if has_inplace_form(op)} >= set(OTHERS)
    assert not hasattr(ng.Tensor, "matmul_")


def table_operands(op):
    """Operands of one call, the first of which has the result's shape."""
    drawn = [draw(op, shape, float, k) for k, shape in enumerate([(3, 4), (4,), (3, 1)])]
    return drawn[: len(op.inputs)]


def takes_floats(op):
    try:
        quiet(op.run, table_operands(op), dict(op.params))
    except ng.NumgradTypeError:
        return False
    return True


PLACES = {
    "root": (0, lambda t: t),
    "rows": (((1, 1), (0, 0)), lambda t: t[1:-1]),
    "strided": (((0, 0), (1, 1)), lambda t: t[::-1, 1:-1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("op", **by_name([op for op in ELEMENTWISE if not op.internal]))
def test_in_place_form_of_elementwise_operations(op, place):
    if not takes_floats(op):
        pytest.skip("integers only")
    padding, part = PLACES[place]
    first, *others = table_operands(op)
    arrays = [np.pad(first, padding, mode="edge") if padding else first, *others]

    def written(a, *rest):
        x = a * 1.0
        target = part(x)
        assert getattr(target, f"{op.name}_")(*rest) is target
        return x

    def functional(a, *rest):
        x = part(a * 1.0)
        new = op(x, *rest) + 0.0 * x  # a comparison is part of no graph, what it is written to is
        at = part(np.arange(a.size).reshape(a.shape))
        return ng.put(a * 1.0, at, new)

    leaves = [ng.tensor(a, requires_grad=True) for a in arrays]
    found = []
    for function in (written, functional):
        out = function(*leaves)
        grads = ng.autograd.grad(weighted(out), leaves, materialize_grads=True)
        found.append([t.detach().numpy() for t in (out, *grads)])
    for actual, expected in zip(*found, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-13, atol=1e-14, strict=True)


@pytest.mark.parametrize("op", **by_name([op for op in ELEMENTWISE if not op.internal]))
def test_in_place_form_of_integer_operations(op):
    if takes_floats(op):
        pytest.skip("of floats above")
    args = [np.array([6, 5, 12]), np.array([1, 2, 3])][: len(op.inputs)]
    x = ng.tensor(args[0])
    assert getattr(x, f"{op.name}_")(*args[1:]) is x
    np.testing.assert_array_equal(x.numpy(), op(*args).numpy(), strict=True)


OTHER_CALLS = {
    "clip": lambda v: ((0.8, 1.2), {}),
    "round": lambda v: ((), {"decimals": 1}),
    "nan_to_num": lambda v: ((), {}),
    "deg2rad": lambda v: ((), {}),
    "rad2deg": lambda v: ((), {}),
    "cumsum": lambda v: ((), {"axis": 1}),
    "cumprod": lambda v: ((), {"axis": 0}),
    "tril": lambda v: ((), {}),
    "triu": lambda v: ((), {"k": 1}),
    "index_add": lambda v: (([2, 0], v[:2]), {"axis": 0}),
    "index_copy": lambda v: (([2, 0], v[:2]), {"axis": 0}),
    "index_fill": lambda v: (([2, 0], v[0, 0]), {"axis": 0}),
    "index_put": lambda v: ((v[:2],), {"index": [2, 0]}),
    "scatter": lambda v: (([[0, 1, 2, 2]], v), {"axis": 0}),
    "scatter_add": lambda v: (([[0, 1, 2, 2]], v), {"axis": 0}),
    "masked_fill": lambda v: ((np.eye(3, 4, dtype=bool), v[0, 0]), {}),
    "masked_scatter": lambda v: ((np.eye(3, 4, dtype=bool), v), {}),
    "put": lambda v: (([1, -1], v[0, :2]), {}),
}


@pytest.mark.parametrize("place", ["root", "view"])
@pytest.mark.parametrize("name", OTHERS)
def test_in_place_form_of_other_operations(name, place):
    def written(a, v):
        x = a * 1.0
        target = x if place == "root" else x[1:]
        args, params = OTHER_CALLS[name](v)
        assert getattr(target, f"{name}_")(*args, **params) is target
        return target + 0.0 * v.sum()

    def functional(a, v):
        args, params = OTHER_CALLS[name](v)
        return OPS[name](a if place == "root" else a[1:], *args, **params) + 0.0 * v.sum()

    rng = np.random.default_rng(9)
    shape = (3, 4) if place == "root" else (4, 4)
    same_gradients(written, functional, rng.uniform(0.5, 1.5, shape), rng.uniform(0.5, 1.5, (3, 4)))
