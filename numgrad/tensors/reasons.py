"""Why a function of NumPy's or SciPy's has no operation.

Note [Reasons]
--------------
Every public function of ``numpy``, ``numpy.linalg``, ``numpy.fft``, and of ``special``, ``linalg``,
``fft``, ``signal`` and ``ndimage`` of SciPy, is an operation, or handled on Tensors otherwise, or
stands here; a test holds us to it, and ``python -m numgrad table`` prints it. A reason counts for
as long as there is no operation.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

_DISCRETE = "returns integers, booleans, dtypes or text, which have no derivative"
_MAKES = (
    "makes arrays of numbers; on a Tensor that requires grad it raises: use ng.asarray and ng.r_"
)
_FILES = "writes or reads files; use ng.save and ng.load"
_NUMPYS = "is about the library itself"
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
        _NUMPYS: """frompyfunc get_include get_printoptions getbufsize geterr geterrcall info
            nested_iters printoptions set_printoptions setbufsize seterr seterrcall show_config
            show_runtime test""",
        "joins rows as vstack does": "row_stack",
        "is the older name of trapezoid": "trapz",
        "is isin of arrays that are raveled": "in1d",
    },
    "numpy.linalg": {
        _NUMPYS: "test",
    },
    "numpy.fft": {
        _NUMPYS: "test",
        "makes arrays of numbers; array_api.fft makes Tensors of them": "fftfreq rfftfreq",
    },
    "numpy.lib.stride_tricks": {
        "shows memory several times; use sliding_window_view or unfold": "as_strided",
    },
    "scipy.special": {
        _NUMPYS: "geterr seterr errstate test",
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
        _NUMPYS: "test find_best_blas_type get_blas_funcs get_lapack_funcs",
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
        _NUMPYS: "*_backend *_workers get_workers skip_backend test",
        _DISCRETE: "next_fast_len prev_fast_len",
        "makes arrays of numbers": "fftfreq rfftfreq",
        NO_FORMULA: "fht fhtoffset ifht",
    },
    "scipy.signal": {
        _NUMPYS: "test",
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
        _NUMPYS: "test",
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
    """Why a function of a module has no operation; None if nothing says so."""
    for text, names in _REASONS.get(home, {}).items():
        if any(fnmatchcase(name, pattern) for pattern in names.split()):
            return text
    return None
