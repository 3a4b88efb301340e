"""Names of PyTorch's database of operations that differ, by check, each with a reason."""

REASONS: dict[str, str] = {
    "arguments that PyTorch refuses have a result": """
        error: arange complex masked_fill nn.functional.max_pool1d
        nn.functional.max_pool3d narrow narrow_copy multinomial bucketize trace tril triu
        mean linalg.cross
    """,
    "numbers and lists are taken where PyTorch takes Tensors only": """
        error: clamp_max clamp_min atan2 bitwise_left_shift bitwise_right_shift copysign eq fmax
        fmin fmod remainder ge gt le ldexp logaddexp lt maximum minimum logical_and logical_or
        logical_xor bitwise_and bitwise_or bitwise_xor heaviside lcm gcd isclose nextafter igamma
        igammac ne pow float_power __radd__ __rdiv__ __rmul__ __rand__ __ror__ __rxor__ rsub hsplit
        vsplit polar hypot xlogy special.xlog1py special.zeta special.chebyshev_polynomial_t
        special.chebyshev_polynomial_u special.chebyshev_polynomial_v
        special.chebyshev_polynomial_w special.hermite_polynomial_h special.hermite_polynomial_he
        special.laguerre_polynomial_l special.legendre_polynomial_p
        special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u
        special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w
    """,
    "PyTorch enlarges the object": """
        inplace: addbmm
    """,
    "matrices lie row by row, where LAPACK leaves them column by column in PyTorch": """
        strides: cholesky cholesky_inverse cholesky_solve geqrf lu lu_solve ormqr qr
        triangular_solve svd_lowrank pca_lowrank linalg.cholesky linalg.cholesky_ex linalg.eig
        linalg.eigh linalg.householder_product linalg.lstsq linalg.lstsq.grad_oriented linalg.qr
        linalg.lu_factor linalg.lu_factor_ex linalg.lu_solve linalg.inv linalg.inv_ex linalg.solve
        linalg.solve_ex linalg.svd linalg.tensorinv
    """,
    "PyTorch has fewer digits: compared with more precise numbers, the face's are right": """
        value: svd_lowrank special.bessel_j0 special.bessel_y1
        second: cov
        forward: cholesky_inverse cov logcumsumexp
        vmap: special.airy_ai
        dtypes: matrix_exp polygamma.polygamma_n_0 polygamma.polygamma_n_1 polygamma.polygamma_n_2
        polygamma.polygamma_n_3 polygamma.polygamma_n_4 logcumsumexp
        special.polygamma.special_polygamma_n_0
    """,
    "an argument is looked at, which one of a batch cannot be": """
        vmap: linspace.tensor_overload logspace.tensor_overload
        special.chebyshev_polynomial_t special.chebyshev_polynomial_u
        special.chebyshev_polynomial_v special.chebyshev_polynomial_w special.hermite_polynomial_h
        special.hermite_polynomial_he special.laguerre_polynomial_l special.legendre_polynomial_p
        special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u
        special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w
    """,
    "results lie in the order of their axes": """
        strides: unsafe_chunk nn.functional.pad.reflect
        nn.functional.pad.replicate nn.functional.pad.replicate_negative
        nn.functional.max_unpool2d.grad topk unsafe_split ravel nonzero repeat_interleave
        nn.functional.pixel_shuffle nn.functional.pixel_unshuffle
    """,
    "PyTorch has no derivative, or NaN, where there is one": """
        first: istft
        second: linalg.norm.subgradients_at_zero masked.logaddexp
    """,
    "sparse layouts: see ng.sparse": """
        value: sparse.sampled_addmm sparse.mm.reduce to_sparse
        dtypes: to_sparse
    """,
    "equal elements are in the order of a stable sort": """
        dtypes: kthvalue topk sort argsort
    """,
    "out= may share memory with operands, and numbers are cast to its dtype": """
        error: kthvalue masked_select aminmax gather index_select take bernoulli cat
    """,
    "integers wrap around in PyTorch before they become floats": """
        dtypes: nn.functional.softmin.with_dtype nn.functional.margin_ranking_loss
        nn.functional.triplet_margin_loss nn.functional.triplet_margin_with_distance_loss trapz
        trapezoid cumulative_trapezoid nn.functional.pairwise_distance
    """,
    "a linear layer's weight has two axes": """
        error: nn.functional.linear_cross_entropy nn.functional.linear_cross_entropy.chunked
        nn.functional.linear_cross_entropy.chunked_none
    """,
    "memory is what belongs to an operand, or to one example of it": """
        value: as_strided.partial_views
        vmap: as_strided as_strided.partial_views as_strided_copy
        dtypes: as_strided.partial_views
    """,
    "PyTorch's derivative differs from differences of its values, the face's does not": """
        first: as_strided_scatter nn.functional.max_unpool1d nn.functional.max_unpool2d
        nn.functional.max_unpool3d nn.functional.ctc_loss linalg.pinv.hermitian
    """,
    "names that the face has not: internal ones, LDL factors, segments, hashes": """
        value: _native_batch_norm_legit _batch_norm_with_update _upsample_bilinear2d_aa
        max_pool2d_with_indices_backward slice _unsafe_masked_index
        _unsafe_masked_index_put_accumulate _chunk_cat hash_tensor
        _segment_reduce.lengths _segment_reduce.offsets linalg.ldl_factor linalg.ldl_factor_ex
        linalg.ldl_solve
        dtypes: max_pool2d_with_indices_backward
    """,
    "layers compute with real floating numbers": """
        dtypes: nn.functional.avg_pool1d nn.functional.avg_pool3d nn.functional.conv_transpose1d
        nn.functional.conv_transpose2d nn.functional.conv_transpose3d nn.functional.conv1d
        nn.functional.conv2d nn.functional.conv3d nn.functional.rms_norm
        nn.functional.interpolate.bilinear nn.functional.interpolate.bicubic
        nn.functional.upsample_bilinear nn.functional.avg_pool2d nn.functional.silu.complex
        nn.functional.softsign nn.functional.tanhshrink nn.functional.hardtanh nn.functional.relu6
        nn.functional.cosine_embedding_loss
    """,
    "an error of another class": """
        error: nn.functional.multi_margin_loss empty_permuted amax amin signal.windows.hamming
        signal.windows.hann signal.windows.bartlett signal.windows.blackman signal.windows.cosine
        signal.windows.exponential signal.windows.gaussian signal.windows.kaiser
        signal.windows.general_cosine signal.windows.general_hamming signal.windows.nuttall
    """,
    "of complex numbers or short integers it is not made, or has another dtype": """
        value: nn.functional.silu.complex
        dtypes: einsum linalg.vander masked.cumsum masked.cumprod masked.logsumexp
    """,
    "the database calls internal functions of PyTorch": """
        inplace: nn.functional.hardsigmoid nn.functional.mish
    """,
    "formats of memory are ignored: Tensors are contiguous": """
        strides: bool byte char double float int long short cdouble cfloat
    """,
    "layers with channels take operands of two axes or more": """
        value: nn.functional.batch_norm
        dtypes: nn.functional.batch_norm
    """,
    "dtypes of half the precision": """
        value: bfloat16 half chalf
        dtypes: bfloat16 half chalf
    """,
    "edges of histograms ascend": """
        value: histogramdd
        dtypes: histogramdd
    """,
    "programs for GPUs": """
        value: jiterator_unary jiterator_binary jiterator_4inputs_with_extra_args
        jiterator_binary_return_by_ref jiterator_2inputs_2outputs
    """,
    "nn.MultiheadAttention has the parameters of this function": """
        value: nn.functional.multi_head_attention_forward
        dtypes: nn.functional.multi_head_attention_forward
    """,
    "transforms lie in the order of their axes, PyTorch's in that of its plans": """
        strides: fft.fft fft.fft2 fft.fftn fft.hfft fft.hfft2 fft.hfftn fft.rfft fft.rfft2
        fft.rfftn fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft fft.irfft2
        fft.irfftn
    """,
    "PyTorch does not write to out=": """
        out: fft.ihfft2 fft.ihfftn
    """,
    "PyTorch gives the operand for one without axes": """
        value: masked.argmax masked.argmin
        dtypes: masked.argmax masked.argmin
    """,
}
"""Why names differ -> ``check: name name ...``, for each check."""


def _exceptions() -> dict[str, dict[str, str]]:
    known: dict[str, dict[str, str]] = {}
    for reason, text in REASONS.items():
        check = ""
        for word in text.split():
            if word.endswith(":"):
                check = word[:-1]
            else:
                known.setdefault(word, {})[check] = reason
    return known


EXCEPTIONS = _exceptions()
"""Name -> check -> reason."""
BY_PROCESSOR = {
    "PyTorch has fewer digits: compared with more precise numbers, the face's are right",
    "equal elements are in the order of a stable sort",
}
"""Reasons that PyTorch's kernels for another processor may not show."""
