"""What may be written where: errors that change nothing, overlaps, dtypes, shapes."""

import numpy as np
import pytest

import numgrad as ng
from tests.autograd.writing import leaf, raises_and_changes_nothing, same_gradients, weighted

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
        raises_and_changes_nothing(ng.NumgradRuntimeError, "leaf that requires grad", x, write, y)
    base = ng.zeros((2, 3))
    part, _ = ng.unstack(base)
    raises_and_changes_nothing(
        ng.NumgradRuntimeError, "several views", part, lambda: part.add_(y), y
    )
    with ng.no_grad():
        view = base[0]
    for write in (lambda: view.add_(y), lambda: view.copy_(y), lambda: view.__setitem__([0], y[0])):
        raises_and_changes_nothing(ng.NumgradRuntimeError, "under no_grad", view, write, y)


def test_read_only_memory():
    array = np.zeros(3)
    array.flags.writeable = False
    x = ng.from_numpy(array)
    for write in (lambda: x.add_(1.0), lambda: x.__setitem__(0, 1.0), lambda: x[:2].fill_(1.0)):
        raises_and_changes_nothing(ng.NumgradRuntimeError, "read-only", x, write)
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
    raises_and_changes_nothing(
        ng.NumgradRuntimeError, "several times", sliding, lambda: sliding.add_(1.0)
    )
    apart = ng.from_numpy(np.lib.stride_tricks.as_strided(np.zeros(9), (2, 2), (16, 24)))
    assert apart.add_(1.0).sum().item() == 4.0


ALIASES = {  # a write, and its result
    "itself": (lambda x: x.multiply_(x), lambda x: x * x),
    "reversed": (lambda x: x.multiply_(x[::-1]), lambda x: x * x[::-1]),
    "a row": (lambda x: x.multiply_(x[:1]), lambda x: x * x[:1]),
    "an element": (lambda x: x.multiply_(x[0, 0]), lambda x: x * x[0, 0]),
    "by name": (lambda x: x.multiply_(b=x), lambda x: x * x),
    "power": (lambda x: x.pow_(x), lambda x: x**x),
    "shifted": (
        lambda x: x[1:].__iadd__(x[:-1]),
        lambda x: np.concatenate([x[:1], x[1:] + x[:-1]]),
    ),
    "shifted back": (
        lambda x: x[:-1].__imul__(x[1:]),
        lambda x: np.concatenate([x[:-1] * x[1:], x[-1:]]),
    ),
    "copied": (lambda x: x[1:].copy_(x[:-1]), lambda x: np.concatenate([x[:1], x[:-1]])),
    "a column": (
        lambda x: x[:, 1:].__imul__(x[:, :1]),
        lambda x: np.concatenate([x[:, :1], x[:, 1:] * x[:, :1]], axis=1),
    ),
    "every other": (
        lambda x: x[:, ::2].__imul__(x[:, 1::2]),
        lambda x: np.stack([x[:, 0] * x[:, 1], x[:, 1], x[:, 2] * x[:, 3], x[:, 3]], axis=1),
    ),
    "added at indices": (
        lambda x: x.index_add_([0, 0], x[1:], axis=0),
        lambda x: np.concatenate([x[:1] + x[1:2] + x[2:], x[1:]]),
    ),
}


@pytest.mark.parametrize("name", ALIASES)
def test_operands_that_share_memory(name):
    write, functional = ALIASES[name]

    def written(a):
        x = a * 1.0
        write(x)
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
