"""Finding the operation behind a failing backward: promise 108 of SEMANTICS.md."""

import warnings

import numpy as np
import pytest

import numgrad as ng

pytestmark = pytest.mark.filterwarnings("ignore:.*nomaly.*:UserWarning")


def leaf(lib, values=(0.0, 2.0)):
    return lib.tensor(list(values), requires_grad=True)


def with_nan(lib, x):
    """A backward of this has ``0 * inf``: the square root of zero."""
    return (x.sqrt() * 0.0).sum()


def fail(*_):
    raise KeyError("mine")


def test_entering_the_block_warns(lib):
    """Promise 108."""
    with pytest.warns(UserWarning, match=r"(?i)anomaly"):
        lib.autograd.detect_anomaly()


def test_a_nan_raises_and_shows_its_line(lib):
    """Promise 108."""
    x = leaf(lib)
    with lib.autograd.detect_anomaly():
        y = with_nan(lib, x)  # the line that is named
        with (
            pytest.warns(UserWarning, match=r"(?s)test_anomaly\.py.*with_nan\(lib, x\)"),
            pytest.raises(RuntimeError, match=r"(?i)SqrtBackward.*nan"),
        ):
            y.backward()
    assert x.grad is None


def test_the_error_names_the_gradient():
    """Promise 108."""
    x, y = leaf(ng), leaf(ng)
    with ng.autograd.detect_anomaly(), np.errstate(invalid="ignore"):
        z = (x / y).sum()  # of 0 / 0 the first derivative is inf, the second NaN
        with (
            pytest.warns(UserWarning, match="DivideBackward"),
            pytest.raises(RuntimeError, match=r"DivideBackward.*operand 1, of shape \(2,\)"),
        ):
            z.backward()


@pytest.mark.parametrize("create_graph", [True, False])
def test_a_nan_is_found_in_both_walks(lib, create_graph):
    """Promise 108."""
    x = leaf(lib)
    with lib.autograd.detect_anomaly():
        y = with_nan(lib, x)
        with (
            pytest.warns(UserWarning, match="Sqrt"),
            pytest.raises(RuntimeError, match=r"(?i)nan"),
        ):
            lib.autograd.grad(y, x, create_graph=create_graph)


def test_says_so_where_no_line_was_recorded(lib):
    """Promise 108."""
    y = with_nan(lib, leaf(lib))
    words = "outside anomaly mode" if lib is ng else "No forward pass information"
    with (
        lib.autograd.detect_anomaly(),
        pytest.warns(UserWarning, match=words),
        pytest.raises(RuntimeError, match=r"(?i)nan"),
    ):
        y.backward()


def test_an_error_keeps_its_type_and_gets_a_line():
    """Promise 108."""
    x = leaf(ng)
    with ng.autograd.detect_anomaly():
        y = x * 3  # here
        y.grad_fn.register_prehook(fail)
        with (
            pytest.warns(UserWarning, match=r"(?s)MultiplyBackward.*y = x \* 3  # here"),
            pytest.raises(KeyError, match="mine"),
        ):
            y.sum().backward()


def test_warnings_that_are_errors_hide_none(capsys):
    x = leaf(ng)
    with ng.autograd.detect_anomaly():
        y = x * 3
        y.grad_fn.register_prehook(fail)
        with warnings.catch_warnings(action="error"), pytest.raises(KeyError, match="mine"):
            y.sum().backward()
    assert "Error detected in MultiplyBackward" in capsys.readouterr().err


def test_lines_are_those_of_the_caller():
    """Promise 108."""
    x = leaf(ng, [1.0, 2.0])
    with ng.autograd.detect_anomaly():
        for y in (x * 2, x[0], np.exp(x), x.sum(), ng.split(x, 2)[0], ng.log_softmax(x)):
            lines = y.grad_fn.extras.trace.splitlines()
            assert "test_anomaly.py" in lines[-2]
            assert "for y in" in lines[-1]


def test_in_place_operations_remember_their_line():
    """Promise 108."""
    y = leaf(ng, [1.0, 2.0]).clone()
    with ng.autograd.detect_anomaly():
        y[0] = 3.0  # here
        assert y.grad_fn.extras.trace.splitlines()[-1].endswith("# here")
        y.mul_(2)  # there
        assert y.grad_fn.extras.trace.splitlines()[-1].endswith("# there")


def test_check_nan_off_only_adds_lines(lib):
    """Promise 108."""
    x = leaf(lib)
    with lib.autograd.set_detect_anomaly(True, check_nan=False):
        assert lib.is_anomaly_enabled() if lib is not ng else ng.autograd.is_anomaly_enabled()
        with_nan(lib, x).backward()
    assert np.isnan(x.grad.tolist()[0])


def test_no_lines_are_remembered_outside_the_block():
    """Promise 108."""
    x = leaf(ng, [1.0, 2.0])
    with ng.autograd.detect_anomaly():
        pass
    assert not ng.autograd.is_anomaly_enabled()
    assert (x * 2).grad_fn.extras is None


def test_blocks_nest(lib):
    """Promise 108."""
    with lib.autograd.detect_anomaly(check_nan=False):
        with lib.autograd.detect_anomaly():
            pass
        x = leaf(lib)
        with_nan(lib, x).backward()
    assert x.grad is not None


def test_set_detect_anomaly_acts_at_once(lib):
    """Promise 108."""
    enabled = ng.autograd.is_anomaly_enabled if lib is ng else lib.is_anomaly_enabled
    lib.autograd.set_detect_anomaly(True)
    try:
        assert enabled()
    finally:
        lib.autograd.set_detect_anomaly(False)
    assert not enabled()


def test_an_error_is_explained_once():
    """Promise 108."""
    x = leaf(ng)
    outer = x * 3

    def inner(_):
        with ng.enable_grad():
            with_nan(ng, x).backward()

    outer.register_hook(inner)
    with ng.autograd.detect_anomaly(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match="NaN"):
            outer.sum().backward()
    assert sum("its backward failed" in str(w.message) for w in caught) == 1


def test_kernels_heed_no_errstate():
    """Promise 119."""
    x = ng.tensor([-1.0, 0.0])
    with np.errstate(all="raise"):
        for log in (np.log, ng.jit(np.log)):
            assert np.array_equal(log(x), [np.nan, -np.inf], equal_nan=True)


@pytest.mark.parametrize(
    ("function", "operand", "kind"),
    [(np.log, -1.0, "invalid"), (np.log, 0.0, "divide"), (lambda x: x / x, 0.0, "invalid")],
)
def test_operations_heed_errstate_in_anomaly_mode(function, operand, kind):
    """Promise 119."""
    x = ng.tensor([1.0, operand], requires_grad=True)
    with ng.autograd.detect_anomaly():
        with pytest.warns(RuntimeWarning, match="of finite operands") as met:
            function(x)
        assert [w.filename for w in met] == [__file__]
        with np.errstate(**{kind: "raise"}), pytest.raises(FloatingPointError, match="errstate"):
            function(x)
        with np.errstate(**{kind: "ignore"}):
            y = function(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.exp(y - y) + np.where(x > 2, x, np.inf)  # what is NaN or infinite before
