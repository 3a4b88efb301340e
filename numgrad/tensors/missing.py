"""Answers about names that NumPy, SciPy or PyTorch have and ``numgrad`` or its Tensors have not.

Note [Reasons]
--------------
Every public function of ``numpy``, ``numpy.linalg``, ``numpy.fft``, and of ``special``, ``linalg``,
``fft``, ``signal`` and ``ndimage`` of SciPy, is an operation, or handled on Tensors otherwise, or
stands here; a test holds us to it, and ``python -m numgrad table`` prints it. A reason counts for
as long as there is no operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from importlib import import_module

from numgrad.core.namespaces import close_matches

# -------------------------------------------------------------------------------------------- names


_NUMPYS = "is about memory; x.numpy() is the ndarray"
_CPU = "there is no other device than the CPU"

_SHARED = {
    "bmm": "x @ y", "chunk": "ng.array_split(x, n)", "div": "x / y", "eq": "x == y", "ge": "x >= y",
    "gt": "x > y", "index_select": "ng.take(x, places, axis=0)", "inverse": "ng.linalg.inv(x)",
    "le": "x <= y", "lt": "x < y", "mm": "x @ y", "movedim": "ng.moveaxis(x, 0, 1)", "mul": "x * y",
    "mv": "x @ v", "ne": "x != y", "neg": "-x", "numel": "x.size", "pow": "x ** y",
    "rsqrt": "1 / ng.sqrt(x)", "sub": "x - y", "t": "x.T",
}  # fmt: skip
TENSOR_EXPRESSIONS = _SHARED | {
    "H": "ng.conj(x.mT)", "bool": "x.astype(bool)", "double": "x.astype(ng.float64)",
    "element_size": "x.itemsize", "float": "x.astype(ng.float32)", "int": "x.astype(ng.int32)",
    "det": "ng.linalg.det(x)", "long": "x.astype(ng.int64)", "nelement": "x.size",
    "new_ones": "ng.ones(shape)", "new_zeros": "ng.zeros(shape)", "dim": "x.ndim",
    "to_numpy": "x.detach().numpy()", "values": "x.detach().numpy()",
    "view_as": "ng.reshape(x, y.shape)",
}  # fmt: skip
"""Attributes of PyTorch's tensors and of others, and expressions that give the same."""
_OF_TENSOR = {
    "apply_": "write it with operations, or ng.vmap",
    "at": "x[i] = value writes, and ng.index_put gives another Tensor",
    "contiguous": "operations take Tensors however they lie in memory; copy() lies in order",
    "cpu": "all Tensors are in the memory of the CPU",
    "creator": "what grad_fn was called in 2017; use grad_fn",
    "cuda": _CPU,
    "data_ptr": _NUMPYS,
    "dump": "ng.save writes a file, pickle.dump too",
    "dumps": "pickle.dumps(x) gives bytes",
    "fill": "fill_(number) fills it, as PyTorch calls it",
    "gather": "ng.take_along_axis(x, indices, axis) is PyTorch's",
    "half": "float16 has no kernels; use astype(ng.float32)",
    "is_cuda": _CPU,
    "layout": "all Tensors are dense",
    "narrow": "brackets do it: x[start : start + length]",
    "normal_": "ng.nn.init.normal_(x) fills it, ng.random.default_rng().normal draws another",
    "pin_memory": _CPU,
    "put": "np.put(x, places, values) writes to it, in C order",
    "resize": "a Tensor keeps its shape; np.resize(x, shape) makes another",
    "share_memory_": "processes share what ng.parallel sends them",
    "storage": _NUMPYS,
    "stride": "strides gives bytes, as NumPy's",
    "to": f"astype(dtype) converts, and {_CPU}",
    "tofile": "ng.save writes a file; x.numpy() is the ndarray",
    "type": "dtype is its kind, astype(dtype) converts",
    "uniform_": "ng.nn.init.uniform_(x) fills it, ng.random.default_rng().uniform draws another",
    "view": "reshape(x, shape) shows the same memory, astype converts",
    "zero_grad": "set x.grad = None, and of parameters call zero_grad() of the optimizer",
    **dict.fromkeys(
        ("base", "byteswap", "ctypes", "flags", "getfield", "setfield", "setflags"), _NUMPYS
    ),
    **{name: f"{text} is the same" for name, text in TENSOR_EXPRESSIONS.items()},
}

EXPRESSIONS = _SHARED | {
    "addmm": "c + x @ y", "as_tensor": "ng.asarray(x)",
    "cdist": "ng.linalg.norm(x[:, None] - y, axis=-1)", "identity": "ng.eye(n)",
    "is_tensor": "isinstance(x, ng.Tensor)", "masked_select": "x[x > 0]",
    "matrix_exp": "ng.linalg.expm(x)",
}  # fmt: skip
"""Functions of PyTorch's and NumPy's, and expressions that give the same."""
_OF_MODULE = {
    **{name: f"{text} is the same" for name, text in EXPRESSIONS.items()},
    "Parameter": "it is ng.nn.Parameter",
    "array": "ng.tensor copies data, ng.asarray takes what is there",
    "backends": _CPU,
    "compile": "ng.jit compiles functions",
    "cuda": _CPU,
    "device": _CPU,
    "double": "it is ng.float64",
    "float": "PyTorch's is ng.float32, Python's is ng.float64",
    "float16": "it has no kernels; use ng.float32",
    "float128": "it has no kernels; use ng.float64",
    "half": "float16 has no kernels; use ng.float32",
    "gather": "ng.take_along_axis(x, indices, axis) is PyTorch's",
    "int": "PyTorch's is ng.int32, Python's is ng.int64",
    "long": "it is ng.int64",
    "object": "Tensors hold numbers",
    "matrix": "a Tensor of two axes, and @ for products",
    "seed": "ng.random.manual_seed is PyTorch's, np.random.seed NumPy's",
    "set_default_dtype": "the default is float64; give dtype= where a Tensor is made",
    "set_default_device": _CPU,
    "set_printoptions": "np.set_printoptions is for Tensors too",
    "utils": "ng.nn.utils and ng.data have what torch.utils has",
    **dict.fromkeys(
        ("bisect", "brentq", "brenth", "fsolve", "newton", "ridder", "root_scalar", "toms748"),
        "solutions with gradients are ng.implicit.root, solvers with exact Jacobians ng.root",
    ),
    **dict.fromkeys(
        ("brent", "fmin_bfgs", "fmin_cg", "golden", "minimize_scalar"),
        "solutions with gradients are ng.implicit.argmin, solvers with exact ones ng.minimize",
    ),
    **dict.fromkeys(("dblquad", "nquad", "tplquad"), "ng.quad may be called in ng.quad"),
    **dict.fromkeys(
        ("normal", "rand", "randint", "randn", "randperm", "random_sample", "uniform", "rand_like",
         "randn_like", "permutation", "shuffle"),
        "generators draw, as ng.random.default_rng().normal(size=3), which may have gradients",
    ),
}  # fmt: skip
_ROOMS = ("linalg", "random", "fft", "special", "signal", "ndimage", "implicit", "nn",
          "nn.functional", "optim", "autograd", "stats", "data")  # fmt: skip
"""Where names may be that are looked for at the top, in this order."""


def said(name: str, names: list[str]) -> str:
    """The message for an attribute of a Tensor; ``names`` are those that there are."""
    remedy = _OF_TENSOR.get(name)
    if remedy is None:
        remedy = _nearest(name, names)
    return f"a Tensor has no attribute {name!r}: {remedy}"


def said_of_module(name: str, names: list[str]) -> str:
    """The same for a name of ``numgrad`` itself."""
    remedy = _OF_MODULE.get(name) or _elsewhere(name) or _nearest(name, names)
    return f"module 'numgrad' has no attribute {name!r}: {remedy}"


def _elsewhere(name: str) -> str | None:
    for room in _ROOMS:
        if name in getattr(import_module(f"numgrad.{room}"), "__all__", ()):
            return f"it is in ng.{room}: ng.{room}.{name}"
    return None


def _nearest(name: str, names: Iterable[str]) -> str:
    """Names spelled alike; forms that write in place are for names that say so."""
    own = [n for n in names if n[0] != "_" and (n[-1] != "_" or name[-1] == "_")]
    close = close_matches(name, own, 1, 0.75)
    return f"the nearest is {close[0]}" if close else "nothing comes near it"


# ------------------------------------------------------------------- functions without an operation


_DISCRETE = "returns integers, booleans, dtypes or text, which have no derivative"
_MAKES = (
    "makes arrays of numbers; on a Tensor that requires grad it raises: use ng.asarray and ng.r_"
)
_FILES = "writes or reads files; use ng.save and ng.load"
_ABOUT_NUMPY = "is about the library itself"
_NODES = "makes polynomials, nodes or zeros of integer orders, which have no derivative"
NO_FORMULA = (
    "has no formula for its derivatives here; custom_vjp and custom_jvp give a function yours"
)

_REASONS = {
    "numpy": {
        _DISCRETE: """array2string array_equal array_equiv base_repr binary_repr bitwise_count
            broadcast_shapes busday_count busday_offset can_cast common_type datetime_as_string
            datetime_data diag_indices diag_indices_from einsum_path format_float_positional
            format_float_scientific gcd histogram_bin_edges indices is_busday iscomplex isdtype
            isfortran isnat isneginf isposinf isreal isscalar issubdtype iterable lcm mask_indices
            may_share_memory min_scalar_type mintypecode packbits promote_types ravel_multi_index
            shares_memory spacing tril_indices tril_indices_from triu_indices triu_indices_from
            typename unpackbits unravel_index""",
        _MAKES: """arange array asanyarray asarray asarray_chkfinite ascontiguousarray
            asfortranarray asmatrix bartlett blackman bmat empty eye from_dlpack frombuffer
            fromfunction fromiter fromstring full hamming hanning identity kaiser ones require tri
            zeros""",
        _FILES: """fromfile fromregex genfromtxt load loadtxt save savetxt savez
            savez_compressed""",
        _ABOUT_NUMPY: """frompyfunc get_include get_printoptions getbufsize geterr geterrcall info
            nested_iters printoptions set_printoptions setbufsize seterr seterrcall show_config
            show_runtime test""",
        "joins rows as vstack does": "row_stack",
        "is the older name of trapezoid": "trapz",
        "is isin of arrays that are raveled": "in1d",
    },
    "numpy.linalg": {_ABOUT_NUMPY: "test"},
    "numpy.fft": {
        _ABOUT_NUMPY: "test",
        "makes arrays of numbers; array_api.fft makes Tensors of them": "fftfreq rfftfreq",
    },
    "numpy.lib.stride_tricks": {"takes no Tensors; ng.as_strided does": "as_strided"},
    "scipy.special": {
        _ABOUT_NUMPY: "geterr seterr errstate test",
        _NODES: """*_zeros *_roots roots_* bernoulli euler legendre chebyt chebyu chebyc chebys
            jacobi laguerre genlaguerre hermite hermitenorm gegenbauer sh_legendre sh_chebyt
            sh_chebyu sh_jacobi jnjnp_zeros *_seq mathieu_even_coef mathieu_odd_coef""",
        "is of integers; gamma, gammaln and binom take real numbers": """factorial2 factorialk
            stirling2""",
        "returns values of all orders and derivatives at a number, no array": "lmbda lqmn lqn "
        "riccati_* clpmn lpmn lpn",
        "SciPy's values and derivatives of it contradict each other": "obl_rad2* pro_rad2*",
        "has no formula for its derivatives; eval_legendre, lpmv and eval_jacobi have": """
            assoc_legendre_p* legendre_p* sph_harm sph_harm_y* sph_legendre_p*""",
        NO_FORMULA: """ellip_harm ellip_harm_2 ellip_normal mathieu_a mathieu_b
            ncfdtridfd ncfdtridfn ncfdtrinc nctdtr* obl_cv pro_cv smirnov smirnovi zetac""",
    },
    "scipy.linalg": {
        _ABOUT_NUMPY: "test find_best_blas_type get_blas_funcs get_lapack_funcs",
        _DISCRETE: "bandwidth ishermitian issymmetric",
        "makes matrices of integers": """dft hadamard helmert hilbert invhilbert invpascal
            pascal""",
        "puts numbers into a matrix; toeplitz, companion and diag have derivatives": """diagsvd
            convolution_matrix fiedler fiedler_companion leslie""",
        "is random": "clarkson_woodruff_transform",
        "is solve_continuous_lyapunov": "solve_lyapunov",
        "takes bands, of which solve_banded and functions of whole matrices have derivatives": """
            cho_solve_banded cholesky_banded""",
        "is solve of circulant": "solve_circulant",
        "changes a factorization, of which qr of the matrix has derivatives": """qr_delete
            qr_insert qr_multiply qr_update rq""",
        "is the derivative itself: jvp of expm": "expm_frechet expm_cond",
        "is of any function; functions of matrices with names have derivatives": "funm",
        NO_FORMULA: "cdf2rdf cossin matrix_balance ordqz subspace_angles",
    },
    "scipy.fft": {
        _ABOUT_NUMPY: "*_backend *_workers get_workers skip_backend test",
        _DISCRETE: "next_fast_len prev_fast_len",
        "makes arrays of numbers": "fftfreq rfftfreq",
        NO_FORMULA: "fht fhtoffset ifht",
    },
    "scipy.signal": {
        _ABOUT_NUMPY: "test",
        _DISCRETE: """argrel* check_* choose_conv_method correlation_lags find_peaks* peak_*
            unique_roots max_len_seq""",
        "designs filters, from numbers to numbers": """abcd_normalize band_stop_obj bessel besselap
            bilinear* butt* cheb* ellip* findfreqs firls firwin* gammatone iir* kaiser_* lp2*
            kaiserord minimum_phase normalize remez closest_STFT_dual_window *2sos *2tf *2ss
            *2zpk""",
        "is of systems of differential equations; ng.odeint and ng.solve_ivp have gradients": """
            bode cont2discrete dbode dfreqresp dimpulse dlsim dstep freqresp impulse lsim
            place_poles step""",
        "makes signals of numbers": """chirp gausspulse gauss_spline sawtooth square sweep_poly
            unit_impulse czt_points""",
        "has other functions beside: spectra by stft and csd": "spectrogram coherence",
        NO_FORMULA: """cspline* qspline* czt decimate deconvolve envelope freqs* freqz* group_delay
            hilbert2 invres* lfiltic lombscargle medfilt2d order_filter resample_poly residue*
            sepfir2d sosfreqz spline_filter symiirorder* upfirdn vectorstrength whittaker_henderson
            wiener zoom_fft""",
    },
    "scipy.ndimage": {
        _ABOUT_NUMPY: "test",
        _DISCRETE: """binary_* *_position find_objects generate_binary_structure
            iterate_structure label distance_transform_* value_indices watershed_ift histogram""",
        "calls a function of yours at each place; write it with operations": """generic_*
            geometric_transform labeled_comprehension vectorized_filter""",
        "is of labelled places: bincount with weights and scatter_reduce have derivatives": """
            center_of_mass extrema maximum mean median minimum standard_deviation sum sum_labels
            variance""",
        "is made of others that have derivatives": """*_tophat gaussian_gradient_magnitude
            gaussian_laplace grey_* morphological_* fourier_* maximum_filter1d minimum_filter1d
            percentile_filter rank_filter""",
    },
}
"""Module -> reason -> names, or patterns of names."""


def reason(home: str, name: str) -> str | None:
    """The reason why a function of a module has no operation; None if nothing says so."""
    for text, names in _REASONS.get(home, {}).items():
        if any(fnmatchcase(name, pattern) for pattern in names.split()):
            return text
    return None
