"""What is public: the names of ``numgrad`` and of its public modules, and nothing else."""

import importlib
import pickle
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.op import OPS, Op
from numgrad.nn.activation_formulas import elu

NAMES = """
GradcheckError NumgradAssertionError NumgradAttributeError NumgradError NumgradIndexError
NumgradKeyError NumgradLinAlgError NumgradNotImplementedError NumgradOverflowError
NumgradRuntimeError NumgradTraceError
NumgradTypeError NumgradValueError RowSparseTensor Tensor abs absolute acos acosh add all allclose
amax amin angle any append apply_along_axis apply_over_axes arange arccos arccosh arcsin arcsinh
arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array_api array_split
asarray asin asinh associative_scan astype atan atan2 atanh atleast_1d atleast_2d atleast_3d
autograd average benchmark bincount bitwise_and bitwise_count bitwise_invert bitwise_left_shift
bitwise_not bitwise_or bitwise_right_shift bitwise_xor block broadcast_arrays broadcast_to c_ cat
cbrt ceil checkpoint checkpoint_sequential choose clamp clip column_stack complex128 complex64
compress concat concatenate cond config conj conjugate constraint convolve copy copysign corrcoef
correlate cos cosh count_nonzero cov cross cummax cummin cumprod cumsum cumulative_prod
cumulative_sum cumulative_trapezoid curve_fit curve_jac custom_jvp custom_vjp data deg2rad degrees
delete diag diag_embed diagflat diagonal diagonal_scatter diff digamma digitize distributed divide
divmod dot dsplit dstack e ediff1d einsum elementwise empty empty_like enable_grad equal erf erfc
erfinv errors exp exp2 expand expand_dims expit expm1 extract eye fabs fft fill fix flatnonzero
flatten flip fliplr flipud float32 float64 float_power floor floor_divide fmax fmin fmod fori_loop
frexp from_numpy full full_like func gamma gammaln gcd geomspace get_num_threads grad gradient
greater greater_equal heaviside hessian histogram histogram2d histogram_bin_edges histogramdd
hsplit hstack hvp hypot i0 imag implicit index_add index_copy index_fill index_put inf
inference_mode inner insert int16 int32 int64 int8 interp intersect1d invert io is_grad_enabled
is_inference_mode_enabled isclose isfinite isin isinf isnan isneginf isposinf ix_ jacfwd jacobian
jacrev jit jit_stats jvp kernel kron lcm ldexp least_squares left_shift less less_equal lexsort lgamma
linalg linear_operator linear_recurrence linearize linspace load log log10 log1p log2 log_sigmoid
log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit
logspace logsumexp map masked_fill masked_scatter matmul matrix_norm matrix_transpose matvec max
maximum mean median meshgrid min minimize minimum mod modf moveaxis multiply nan nan_to_num
nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod
nanquantile nanstd nansum nanvar ndimage negative newaxis nextafter nn no_grad nonzero norm
not_equal objective odeint ones ones_like ops optim outer pad parallel partition percentile permute
permute_dims pi piecewise poly polyadd polyder polydiv polyfit polygamma polyint polymul polysub
polyval positive power primitive prod profiler psi ptp put quad quantile r_ rad2deg radians random
ravel real real_if_close reciprocal relu remainder renorm repeat reshape resize
right_shift rint roll
rollaxis root roots rot90 round save scan scatter scatter_add scatter_reduce searchsorted select
select_scatter set_checkpoint_early_stop set_grad_enabled set_num_threads setdiff1d setxor1d
sigmoid sign signal signbit simpson sin sinc sinh slice_scatter sliding_window_view softmax
softplus solve_ivp sort sort_complex spacing sparse special split sqrt square squeeze stack stats
std stop_gradient subtract sum swapaxes switch take take_along_axis tan tanh tensor tensordot
testing tile topk trace transpose trapezoid tree tril trim_zeros triu true_divide trunc uint16
uint32 uint64 uint8 unbind unfold union1d unique unique_all unique_consecutive
unique_counts unique_inverse
unique_values unsqueeze unstack unwrap value_and_grad vander var vdot vecdot vecmat vector_norm vhp
viz vjp vmap vsplit vstack where while_loop zeros zeros_like zeta
"""
"""All names of ``numgrad``: whoever adds or removes one says so here."""

MODULES = """
array_api array_api.fft array_api.linalg autograd autograd.forward_ad autograd.function
autograd.functional autograd.graph benchmark config data distributed distributed.checkpoint errors
fft func implicit io linalg ndimage nn nn.functional nn.init nn.parallel nn.utils optim
optim.lr_scheduler optim.swa_utils parallel profiler random signal sparse special stats testing
tree viz
"""


def run(program):
    """What a program prints in a process of its own."""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_names_of_the_package():
    assert ng.__all__ == NAMES.split()
    assert [name for name in dir(ng) if name[0] != "_"] == NAMES.split()
    modules = {name for name in ng.__all__ if isinstance(getattr(ng, name), ModuleType)}
    assert modules == {name for name in MODULES.split() if "." not in name}
    assert {"__doc__", "__version__"} <= set(dir(ng))


@pytest.mark.parametrize("name", ["", *MODULES.split()])
def test_all_is_what_shows_and_what_a_star_imports(name):
    module = importlib.import_module(f"numgrad.{name}".rstrip("."))
    public = {found for found in dir(module) if found[0] != "_"}
    assert public == set(module.__all__)
    assert len(public) == len(module.__all__)
    space = {}
    exec(f"from {module.__name__} import *", space)
    assert set(space) - {"__builtins__"} == public
    for found in public:
        value = getattr(module, found)
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        if isinstance(value, type) and issubclass(value, np.generic):
            continue  # a dtype
        if name:  # dtypes and constants are NumPy's, settings are plain values
            assert (home or "numgrad").startswith(("numgrad", "builtins")), found


def test_operations_of_the_package_are_those_of_mathematics():
    shown = {name: value for name, value in vars(ng).items() if isinstance(value, Op)}
    for name, op in shown.items():
        assert not op.internal, name
        assert op.function.__module__.startswith("numgrad.operations."), name
        assert OPS[op.name] is op
    layers = {op.name for op in OPS.values() if op.__module__.startswith("numgrad.nn.")}
    assert "convolution" in layers
    assert not layers & set(dir(ng.Tensor))


def test_an_unknown_name_is_an_attribute_error_that_leads_on():
    with pytest.raises(ng.NumgradAttributeError, match=r"'conv2d'.*ng\.nn\.functional"):
        _ = ng.conv2d  # pyright: ignore
    assert not hasattr(ng, "tensors_")


def test_what_is_not_used_is_not_loaded():
    parts = ("nn", "optim", "compiler", "data", "diagrams", "io", "testing", "viz", "cli")
    program = (
        "import sys, numgrad as ng; x = ng.tensor([1.0], requires_grad=True);"
        "(x * x.relu()).sum().backward(); dir(ng);"
        "print(sorted({m.split('.')[1] for m in sys.modules if m.startswith('numgrad.')}))"
    )
    assert not set(parts) & set(eval(run(program)))


START = "import pickle, sys, threading; import numpy as np; import numgrad as ng\n"


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize(
    "program",
    [
        "f = ng.jit(lambda x: ng.nn.functional.softsign(x)); print(f(np.ones(1))[0])",
        "import numgrad.nn.functional as F; print(F.softsign(ng.ones(1))[0].item())",
        "from numgrad import nn, ops; print(ops['softsign'](ng.ones(1))[0].item())",
        "import scipy.special as s; assert ng.exp(ng.asarray(s.log_expit(ng.zeros(1))))[0] == 0.5\n"
        "print(s.ndtr(ng.zeros(1)).item())",
        "with ng.inference_mode(): layer = ng.nn.Linear(1, 1, bias=False)\n"
        "print(0.5 if not ng.nn.Linear(1, 1).weight.is_inference() else 0)",
        f"print(pickle.loads({pickle.dumps(elu)!r})(ng.tensor([0.5]), 1.0).item())",
        "seen = []\n"
        "def use(): seen.append(ng.nn.functional.softsign(np.exp(ng.zeros(1))).item())\n"
        "threads = [threading.Thread(target=use) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(0.5 if seen == [0.5] * 4 else seen)",
        "@ng.elementwise()\ndef twice(x): return x + x\nprint(twice(ng.tensor(0.25)).item())",
        "try:\n  @ng.elementwise()\n  def mish(x): return x\n"
        "except ng.NumgradRuntimeError: print(0.5)",
    ],
)
def test_first_use_in_any_order(program):
    assert float(run(START + program)) == 0.5
