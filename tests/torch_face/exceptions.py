"""Files of PyTorch's public tests that are run, and tests that are left out, each with a reason."""

FILES = [
    "test_autograd.py",
    "optim/test_optim.py",
    "optim/test_lrscheduler.py",
    "optim/test_swa_utils.py",
    "test_optim.py",
    "nn/test_init.py",
    "nn/test_module_hooks.py",
    "nn/test_packed_sequence.py",
    "nn/test_parametrization.py",
    "nn/test_pruning.py",
    "nn/test_load_state_dict.py",
    "nn/test_lazy_modules.py",
    "nn/test_dropout.py",
    "nn/test_embedding.py",
    "nn/test_pooling.py",
    "nn/test_convolution.py",
    "nn/test_multihead_attention.py",
    "autograd/test_functional.py",
    "autograd/test_complex.py",
    "test_nn.py",
    "test_dataloader.py",
    "test_torch.py",
    "test_indexing.py",
    "test_view_ops.py",
    "test_numpy_interop.py",
    "test_reductions.py",
    "test_shape_ops.py",
    "test_sort_and_select.py",
    "test_scatter_gather_ops.py",
    "test_type_promotion.py",
    "test_tensor_creation_ops.py",
    "test_unary_ufuncs.py",
    "test_complex.py",
    "test_type_info.py",
    "functorch/test_eager_transforms.py",
    "functorch/test_vmap.py",
    "distributions/test_distributions.py",
    "distributions/test_constraints.py",
    "distributions/test_transforms.py",
]

INTERNALS = {
    "how PyTorch is built": r"torch\._C\b|torch\.ops\.|torch\.library|Library\(",
    "PyTorch's compilers": r"torch\._dynamo|_inductor|make_fx|torch\.jit|torch\.fx|FakeTensor",
    "other devices": (
        r"\bcuda\b|onlyCUDA|TEST_CUDA|MULTIGPU"
        r"|pin_memory|\bmps\b|\bxla\b|['\"]meta['\"]"
    ),
    "dispatch modes": r"DispatchMode|FunctionMode|__torch_dispatch__|LoggingTensor|TwoTensor",
    "other layouts": (
        r"sparse_cs|sparse_coo|to_sparse"
        r"|layout=|_indices\(\)|_values\(\)|nested_tensor"
    ),
    "other dtypes": (
        r"quantize|qint|mkldnn|xnnpack|bfloat16|float16|\.half\(\)|torch\.half|float8"
        r"|_complex32\b|\bcomplex32\b|chalf"
    ),
    "a program that imports PyTorch": r"subprocess|check_call|script\s*=",
    "PyTorch's profiler": r"kineto|prof\b.*\bprofile|emit_nvtx|record_function|key_averages",
    "extensions in C++": r"scoped_load_inline|cpp_extension",
    "named tensors": r"named_tensor|[( ]names=\(|refine_names|rename\(",
}
"""What a test is about -> the pattern of its text; such tests are not run."""

REASONS = {
    "arrays are NumPy's: strides without elements, greatest sizes": """
        dim_reduction_less_than_64_cpu empty_slice_cpu resize_overflow_cpu
        index_put_accumulate_large_tensor_cpu
    """,
    "torch.from_file: np.memmap, and torch.from_numpy of it": """
        from_file_shared_False_cpu from_file_shared_True_cpu
    """,
    "there is one device, and no 16 bits": """
        randperm_large_cpu copy_from_numpy_cpu* copy_tensor_cpu* storage_setitem_cpu*
        index_select_cpu* item_cpu*
    """,
    "arrays of NumPy are operands, where PyTorch's test expects that they fail": """
        numpy_array_binary_ufunc_promotion_cpu*
    """,
    "workers of a DataLoader are threads, batches come in order, orders are drawn at once": """
        chain_iterable_style_dataset error error_workers excessive_thread_creation_warning
        get_worker_info invalid_ctor_args_combinations iterable_style_dataset iterable_dataset_err
        large_sampler_indices out_of_order_index_ds out_of_order_iterable_ds sampler_reproducibility
        splits_reproducibility
    """,
    "PyTorch 2.13 fails, too": """
        kaiser_cpu* kaiser_window_cpu* signal_window_functions_window_bartlett_cpu*
        signal_window_functions_window_blackman_cpu* signal_window_functions_window_hamming_cpu*
        signal_window_functions_window_hann_cpu* signal_windows_functions_window_bartlett_cpu*
        signal_windows_functions_window_blackman_cpu* signal_windows_functions_window_cosine_cpu*
        signal_windows_functions_window_hamming_cpu* signal_windows_functions_window_hann_cpu*
        signal_windows_functions_window_nuttall_cpu* quantile_cpu* AdaptiveLogSoftmax_cuda_fp32
        AdaptiveLogSoftmax_cuda_tf32 BCELoss_no_batch_dim_mean_cuda_fp32
        BCELoss_no_batch_dim_mean_cuda_tf32 BCELoss_no_batch_dim_none_cuda_fp32
        BCELoss_no_batch_dim_none_cuda_tf32 BCELoss_no_batch_dim_sum_cuda_fp32
        BCELoss_no_batch_dim_sum_cuda_tf32 BCEWithLogitsLoss_no_batch_dim_mean_cuda_fp32
        BCEWithLogitsLoss_no_batch_dim_mean_cuda_tf32 BCEWithLogitsLoss_no_batch_dim_none_cuda_fp32
        BCEWithLogitsLoss_no_batch_dim_none_cuda_tf32 BCEWithLogitsLoss_no_batch_dim_sum_cuda_fp32
        BCEWithLogitsLoss_no_batch_dim_sum_cuda_tf32 CosineEmbeddingLoss_no_batch_dim_mean_cuda_fp32
        CosineEmbeddingLoss_no_batch_dim_mean_cuda_tf32
        CosineEmbeddingLoss_no_batch_dim_none_cuda_fp32
        CosineEmbeddingLoss_no_batch_dim_none_cuda_tf32
        CosineEmbeddingLoss_no_batch_dim_sum_cuda_fp32
        CosineEmbeddingLoss_no_batch_dim_sum_cuda_tf32 Flatten_cuda
        HingeEmbeddingLoss_no_batch_dim_mean_cuda_fp32
        HingeEmbeddingLoss_no_batch_dim_mean_cuda_tf32
        HingeEmbeddingLoss_no_batch_dim_none_cuda_fp32
        HingeEmbeddingLoss_no_batch_dim_none_cuda_tf32 HingeEmbeddingLoss_no_batch_dim_sum_cuda_fp32
        HingeEmbeddingLoss_no_batch_dim_sum_cuda_tf32 HuberLoss_no_batch_dim_mean_cuda_fp32
        HuberLoss_no_batch_dim_mean_cuda_tf32 HuberLoss_no_batch_dim_none_cuda_fp32
        HuberLoss_no_batch_dim_none_cuda_tf32 HuberLoss_no_batch_dim_sum_cuda_fp32
        HuberLoss_no_batch_dim_sum_cuda_tf32 KLDivLoss_no_batch_dim_mean_cuda_fp32
        KLDivLoss_no_batch_dim_mean_cuda_tf32 KLDivLoss_no_batch_dim_none_cuda_fp32
        KLDivLoss_no_batch_dim_none_cuda_tf32 KLDivLoss_no_batch_dim_sum_cuda_fp32
        KLDivLoss_no_batch_dim_sum_cuda_tf32 L1Loss_no_batch_dim_mean_cuda_fp32
        L1Loss_no_batch_dim_mean_cuda_tf32 L1Loss_no_batch_dim_none_cuda_fp32
        L1Loss_no_batch_dim_none_cuda_tf32 L1Loss_no_batch_dim_sum_cuda_fp32
        L1Loss_no_batch_dim_sum_cuda_tf32 Linear_cuda_fp32 Linear_cuda_tf32 Linear_no_bias_cuda_fp32
        Linear_no_bias_cuda_tf32 MSELoss_no_batch_dim_mean_cuda_fp32
        MSELoss_no_batch_dim_mean_cuda_tf32 MSELoss_no_batch_dim_none_cuda_fp32
        MSELoss_no_batch_dim_none_cuda_tf32 MSELoss_no_batch_dim_sum_cuda_fp32
        MSELoss_no_batch_dim_sum_cuda_tf32 MarginRankingLoss_no_batch_dim_mean_cuda_fp32
        MarginRankingLoss_no_batch_dim_mean_cuda_tf32 MarginRankingLoss_no_batch_dim_none_cuda_fp32
        MarginRankingLoss_no_batch_dim_none_cuda_tf32 MarginRankingLoss_no_batch_dim_sum_cuda_fp32
        MarginRankingLoss_no_batch_dim_sum_cuda_tf32 MaxUnpool?d_net_cuda
        MaxUnpool?d_net_no_batch_dim_* ModuleList MultiLabelMarginLoss_no_batch_dim_mean_cuda_fp32
        MultiLabelMarginLoss_no_batch_dim_mean_cuda_tf32
        MultiLabelMarginLoss_no_batch_dim_none_cuda_fp32
        MultiLabelMarginLoss_no_batch_dim_none_cuda_tf32
        MultiLabelMarginLoss_no_batch_dim_sum_cuda_fp32
        MultiLabelMarginLoss_no_batch_dim_sum_cuda_tf32
        MultiLabelSoftMarginLoss_no_batch_dim_mean_cuda_fp32
        MultiLabelSoftMarginLoss_no_batch_dim_mean_cuda_tf32
        MultiLabelSoftMarginLoss_no_batch_dim_none_cuda_fp32
        MultiLabelSoftMarginLoss_no_batch_dim_none_cuda_tf32
        MultiLabelSoftMarginLoss_no_batch_dim_sum_cuda_fp32
        MultiLabelSoftMarginLoss_no_batch_dim_sum_cuda_tf32 NLLLoss_no_batch_dim_mean_cuda_fp32
        NLLLoss_no_batch_dim_mean_cuda_tf32 NLLLoss_no_batch_dim_none_cuda_fp32
        NLLLoss_no_batch_dim_none_cuda_tf32 NLLLoss_no_batch_dim_sum_cuda_fp32
        NLLLoss_no_batch_dim_sum_cuda_tf32 ParameterDict ParameterList
        PoissonNLLLoss_no_batch_dim_mean_cuda_fp32 PoissonNLLLoss_no_batch_dim_mean_cuda_tf32
        PoissonNLLLoss_no_batch_dim_none_cuda_fp32 PoissonNLLLoss_no_batch_dim_none_cuda_tf32
        PoissonNLLLoss_no_batch_dim_sum_cuda_fp32 PoissonNLLLoss_no_batch_dim_sum_cuda_tf32
        RReLU_cuda RReLU_with_up_down_cuda Sequential_add Sequential_append Sequential_delitem
        Sequential_extend Sequential_getitem Sequential_iadd Sequential_imul Sequential_insert
        Sequential_mul Sequential_pop Sequential_rmul SmoothL1Loss_no_batch_dim_mean_cuda_fp32
        SmoothL1Loss_no_batch_dim_mean_cuda_tf32 SmoothL1Loss_no_batch_dim_none_cuda_fp32
        SmoothL1Loss_no_batch_dim_none_cuda_tf32 SmoothL1Loss_no_batch_dim_sum_cuda_fp32
        SmoothL1Loss_no_batch_dim_sum_cuda_tf32 SoftMarginLoss_no_batch_dim_mean_cuda_fp32
        SoftMarginLoss_no_batch_dim_mean_cuda_tf32 SoftMarginLoss_no_batch_dim_none_cuda_fp32
        SoftMarginLoss_no_batch_dim_none_cuda_tf32 SoftMarginLoss_no_batch_dim_sum_cuda_fp32
        SoftMarginLoss_no_batch_dim_sum_cuda_tf32 TripletMarginLoss_no_batch_dim_mean_cuda_fp32
        TripletMarginLoss_no_batch_dim_mean_cuda_tf32 TripletMarginLoss_no_batch_dim_none_cuda_fp32
        TripletMarginLoss_no_batch_dim_none_cuda_tf32 TripletMarginLoss_no_batch_dim_sum_cuda_fp32
        TripletMarginLoss_no_batch_dim_sum_cuda_tf32 as_subclass basic_vitals
        basic_vitals_read_write complex_half_experimental_warning_cpu* conv_backcompat
        copy_transpose cross_entropy_loss_precision dataloader_vitals deepcopy_cpu* function
        getattr_with_property grad_empty_inputs grad_scaling_update_scale_cpu*
        grid_sample_large_index_?d_cpu* invalid_arg_error_handling l1_loss_correct
        lr_scheduler_verbose_deprecation_warning_LRClass* manual_seed module_backcompat
        naughty_anomaly_access naughty_autograd_function_attribute_access
        nondeterministic_alert_put_cpu* not_implemented_grad parameter_assignment
        permute_conv?d_issue_120211 pyscalar_conversions_cpu*
        resnet18_per_sample_grads_mechanism_functional_call_cpu*
        resnet18_per_sample_grads_mechanism_make_functional_cpu* storage_dead_weak_ref
        swap_subclass_swap_True_assign_False swap_subclass_swap_True_assign_True
        tensor_dead_weak_ref unflatten vonmises_sample warn_always_caught_cpu*
    """,
    "private names": """
        parallel_cow_materialize_error_cpu* ParameterDict_replication ParameterList_replication
        add_relu add_relu_broadcasting always_called_forward_hooks assert_async
        autograd_function_disables_fwd_grad_cpu* bytes_to_scalar_cpu* check check_tensor_all_cpu*
        check_tensor_internal_cpu* chunk_jacrev*_preallocate* compute_nparams_to_prune
        construct_standard_basis_for_base_tensor cycle_lr_scale_fn_restored_from_state_dict
        cycle_lr_state_dict_picklable disable_fwd_grad_inside_cpu* disable_fwd_grad_mixed_cpu*
        disable_fwd_grad_outside_cpu* extra_state_non_dict fallback_binary*
        fallback_does_not_warn_by_default fallback_unary_cpu* fallback_warning fallback_zero_dim
        has_internal_overlap instancenorm_raises_error_if_input_channels_is_not_num_*
        invalid_shapes_grid_sampler_cpu* load_state_dict_child_swap_* load_state_dict_invalid_swap_*
        load_state_dict_post_hook_backward_compatibility_swap_*
        module_forward_forward_hook_removable module_forward_preforward_hook_removable
        multihead_attention_average_attn_weights_False multihead_attention_average_attn_weights_True
        multiple_pruning_calls onecycle_lr_legacy_state_dict parameterlistdict_pickle
        random_structured_pruning_amount random_unary_out_of_place_use_generator_*
        register_state_dict_post_hook_private_False register_state_dict_pre_hook_backward_compat
        remove_kwarg_hooks rnn_pruning rnn_weight_norm tensor_fix_weakref_no_leak
        tensor_resurrected_weak_ref unstructured_pruning_same_magnitude validate_pruning_amount
        validate_pruning_amount_init
    """,
    "what PyTorch has no kernel for is computed": """
        adaptive_pooling_no_suppot_input_cpu* upsamplingBiMode2d_nonsupported_dtypes_*_mode_*
    """,
    "an argument that PyTorch takes or refuses is refused or taken": """
        AdaptiveMaxPool?d_indices_cpu_* MaxPool?d_indices_cpu_*
        adaptive_pooling_empty_output_size_cpu_* all_any_vs_numpy_cpu* cumprod_integer_upcast_cpu
        cumsum_integer_upcast_cpu prod_integer_upcast_cpu sum_integer_upcast_cpu
        histogram_error_handling_cpu* histogramdd_cpu* logcumsumexp_complex_cpu*
        minmax_illegal_dtype_cpu mode_wrong_dtype_cpu booleans_cpu indexing_fail_cpu block_diag_cpu
        block_diag_scipy_cpu cartesian_prod_cpu logspace_cpu* meshgrid_warns_if_no_indexing_cpu
        random_bool_cpu random_from_to_bool_cpu simple_scalar_cast_cpu tensor_factory_cpu
        tensor_from_sequence_cpu torch_complex_floating_dtype_error_cpu*
        abs_angle_complex_to_float_cpu* isposinf_isneginf_non_boolean_output_cpu* nonzero_static_cpu
        polygamma_neg_cpu silu_complex_cpu* hardshrink_cpu* hardshrink_edge_cases_cpu*
        log1p_complex_cpu* rot90_cpu narrow_tensor_cpu index_put_accumulate_empty_cpu
        take_along_dim_invalid_cpu* unravel_index_errors_cpu
        ctor_with_invalid_numpy_array_sequence_cpu from_list_of_ndarray_warning_cpu
        parse_numpy_int_cpu numpy_unresizable_cpu AdaptiveMaxPool_zero_batch_dim_cpu
        AvgPool2d_empty_cpu CTCLoss_typechecks EmbeddingBag_per_sample_weights_failures_cpu*
        FractionalMaxPool?d_zero_batch_cpu GroupNorm_raises_error_if_one_value_per_group_cpu*
        MaxPool_zero_batch_dim_cpu RNN_cell_forward_zero_hidden_size ReflectionPad_empty_cpu*
        Sequential_insert_fail_case Size Unfold_empty_cpu* advancedindex_mixed_devices_error_cpu*
        affine_grid_error_checking
        batchnorm_raises_error_if_running_var_or_running_mean_have_forward_grad
        clip_grad_norm_error_if_nonfinite_cpu* conv_empty_channel_cpu*
        cross_entropy_label_smoothing_errors_cpu* dim_function_empty_cpu*
        elu_inplace_with_neg_alpha_cpu* embedding_bag_padding_idx_error errors_index_copy_cpu*
        errors_parametrized_tensor_parametrization_swap_*
        errors_unparametrized_tensor_parametrization_swap_* fractional_max_pool?d_cpu
        gradient_spacing_list_length_error_cpu* huber_loss_invalid_delta
        leaky_relu_inplace_with_neg_slope_cpu* max_pool1d_corner_cases_cpu*
        multihead_attn_fast_path_invalid_shape multihead_attn_invalid_shape parsing_double
        parsing_int64 parsing_intlist pixel_shuffle_unshuffle pooling_zero_stride_cpu
        projections_errors_on_gru_and_rnn register_buffer_raises_error_if_attr_exists
        softshrink_negative_cpu* tensor_shape_empty_cpu* to_complex_cpu*
    """,
    "details of messages, classes of errors and metadata": """
        embedding_padding_idx_cpu_* tensor_compare_ops_argmax_argmix_kthvalue_dim_empty_cpu
        tensor_compare_ops_empty_cpu warn_invalid_degrees_of_freedom_cpu*
        affine_grid_backward_cl_cf_consistency_device_cpu_nd_? TestDistributions.normal assignment
        bernoulli copy_broadcast corrcoef_cpu_int32 cosine_similarity gaussian_nll_loss_scalar_var
        gradient_all_cpu_complex64 gradient_type_promotion_cpu* in_dims_multiple_inputs_cpu*
        in_dims_single_input_cpu* logcumsumexp_cpu* module_super_init no_grad_outside_vjp_only_cpu*
        normal_shape pad_sequence_with_non_iterable_sequences poisson_forward_ad
        scatter_zero_size_index_cpu* simple_view_cpu* skip_init_cpu*
    """,
    "what torch.func makes of a Function, or gives back, has another name or is another object": """
        grad_fn_name_cpu* inplace_fallback_unary
    """,
    "what torch.func restricts is allowed": """
        function_returns_input_inner_requires_grad_*_save_tensors_input_mark_dirty_False_cpu
        function_returns_input_inner_requires_grad_*_save_tensors_output_mark_dirty_False_cpu
        data_attribute grad_unsupported_interaction inplace_fallback_nary_different_levels
        inplace_on_captures_cpu* jacfwd_with_random_cpu* kwarg_only_tensors_cpu*
        not_enough_in_dims_err_msg unsupported_op_err_msg unsupported_random_cpu*
    """,
    "memory is that of an ndarray: there are no storages": """
        from_buffer from_file resizable scalar_check_cpu* share_memory sizeof storage_cycle_via_dict
        storage_dealloc storage_dealloc_resurrected storage_dealloc_subclass_resurrected
        storage_dealloc_subclass_zombie storage_dict_dealloc storage_fix_weakref_no_leak
        storage_from_tensor_dealloc storage_from_tensor_dealloc_resurrected
        storage_from_tensor_dealloc_zombie storage_resurrected_weak_ref storage_weakref_dealloc
        tensor_set
    """,
    "torch.quasirandom: scipy.stats.qmc has such sequences": """
        sobolengine_*
    """,
    "other classes of errors, and prints of batches": """
        tensor_print_* transformer_args_check transformer_layer_args_check meshgrid_empty_cpu
    """,
    "results are contiguous: there are no memory formats": """
        max_pool2d_nhwc_cpu_* avg_pool2d_nhwc_cpu_* Dropout?d_cpu*
        adaptive_avg_pool2d_output_size_one_cpu adaptive_pooling_max_nhwc_cpu*
        clone_not_memory_dense_cpu* max_unpool?d_nhwc_cpu memory_format_* pixel_shuffle_nhwc_cpu*
        pooling_max_nhwc_cpu* preserves_memory_format strides_propagation_cpu* to_memory_format
        upsamplingTrilinear?d_align_corners_False_memory_format1_cpu*
        upsamplingTrilinear?d_align_corners_True_memory_format1_cpu*
    """,
    "an external case of PyTorch that is no use of Tensors": """
        max_elementwise_cpu min_elementwise_cpu view_copy_out_cpu apply contains dim_order
        doc_template map2 module_to_argparse new pyobj_preserved reversed subclass_preserved
        tensor_cycle_via_dict torch_from_file type wildcard_import
    """,
    "backward hooks of modules see no dictionaries of Tensors": """
        call_supports_python_dict_output
    """,
    "another dtype, quantisation or a build of PyTorch": """
        log_softmax_cpu_cpu_* softmax_cpu_cpu_* masked_softmax_lowp_cpu_* batch_norm_update_stats
        binomial_bfloat16 binomial_half checkpointing_non_reentrant_autocast_cpu* cxx_flags
        grad_scale_will_not_overflow_cpu* is_signed_cpu* native_channel_shuffle_return_alias_of_self
        parallel_info show_config transfer_parametrizations_*
    """,
    "an entropy that PyTorch lacks is compared with too few draws of a heavy tail": """
        TestKL.entropy_monte_carlo
    """,
    "random numbers of a seed are not PyTorch's, for which the bounds of the test are set": """
        beta_sample binomial_sample chi2_sample fishersnedecor_sample gamma_sample gumbel_sample
        laplace laplace_sample logisticnormal_sample mixture_same_family_sample
        multivariate_normal_moments pareto_sample studentT_sample trunc_normal_generator
        wishart_moments wishart_sample
    """,
    "layers take no axes of numbers": """
        normalize
    """,
    "writes to overlapping memory are refused, or computed as if from a copy": """
        like_fn_stride_proparation_vs_tensoriterator_unary_op_cpu copy_mem_overlap_cpu*
        index_*_mem_overlap* masked_fill_mem_overlap_cpu* put_mem_overlap_cpu*
        scatter_mem_overlap_cpu* threshold_inplace_overlap_cpu* warning_unimplemented_constraints
    """,
    "torch.use_deterministic_algorithms: all results are deterministic": """
        deterministic_empty_cpu* deterministic_resize_cpu* deterministic_flag
        deterministic_interpolate_bilinear_cpu* gather_backward_deterministic_path_cpu*
        gather_backward_one_dim_cpu* index_add_deterministic_cpu* index_copy_deterministic_cpu*
        index_put_non_accumulate_deterministic_cpu* scatter_add_one_dim_deterministic_cpu*
    """,
    "conjugates and negatives are computed: there are no lazy bits": """
        conj_neg_view_numpy_error_cpu conj_imag_view_cpu* conj_view_with_shared_memory_cpu
        conj_bit_cpu* copy_math_view_cpu* copy_transpose_math_view_cpu* cuda_device_idx_cpu*
        metadata_check_check_conj metadata_check_when_primal_has_conj_bit
        metadata_check_when_primal_has_neg_bit with_math_views
    """,
    "torch.nn.grad, conv_tbc: use autograd.grad, conv1d": """
        conv_tbc functional_grad_conv functional_grad_conv?d grad_conv?d_input grad_conv?d_weight
        multihead_self_attn_two_masks_fast_path_cpu*
    """,
    "warnings about names that PyTorch once had": """
        deprecation_transforms_transform_* deprecation_vmap_cpu* hook_non_full_warning
    """,
    "takes longer than the driver waits": """
        ReplicationPad3d_large_cpu
        maml_omniglot_mechanism_functional_call_cpu*
    """,
    "what PyTorch has no derivative of has one": """
        not_implemented_fwad scatter_index_reduce_prod_gradgrad_error_cpu*
    """,
    "sums of float32 are rounded in another order than in NumPy, which the test compares with": """
        histogram_cpu_float32 nansum_vs_numpy_cpu_float32
    """,
    "classes of the face pickle in their own way": """
        pickle_function
    """,
    "PyTorch's gradient is wrong, as the test says; ours is that of the values": """
        autograd_inplace_views_cross_dtype
    """,
    "a view without elements has memory of its own": """
        autograd_inplace_views_creation_meta
    """,
    "a Function of several results may write to views, and views of constants be written to": """
        autograd_python_custom_function_inplace inplace_not_requires_grad
    """,
    "nodes are numgrad's: a linear layer is one, a variance and a mean are two": """
        backward_hook_relative_ordering grad_fn_prehooks_multiple_outputs inplace_on_view_backward
        once_differentiable
    """,
    "checkpoints in both ways do all that either does": """
        checkpoint_valid_reset_on_error checkpointing_without_reentrant_custom_function_works
        checkpointing_without_reentrant_detached_tensor_use_reentrant_True
    """,
    "Note [Identity]: saved results, and what hooks pack, are other objects over the memory": """
        view_as_complex_cpu view_as_real_cpu* checkpointing_without_reentrant_saved_object_identity
        no_unnecessary_unwrapping tensor_ressurecting_clear
    """,
    "a jvp need not write to tangents, nor make a view of one for an input that is returned": """
        custom_function_forward_mode_forward_is_no_op custom_function_forward_mode_inplace_checks
        custom_function_mark_dirty_not_differentiable
    """,
    "a batch needs setup_context, and no writes to what all examples share": """
        gradcheck_forward_ad_respects_requires_grad
        gradcheck_forward_ad_runs_with_no_requires_grad inplace_on_view_not_same_layout
        inplace_on_view_same_layout
    """,
    "messages are numgrad's": """
        grad
    """,
    "hooks are not called where no gradient arrives": """
        grad_nonleaf_register_hook gradcheck_undefined_grad
    """,
    "hooks see the gradient of the value at their registration, apart from .grad": """
        post_accumulate_grad_hook_ordering tensor_hooks_inplace_over_view
    """,
    "set_ gives a leaf other memory, not another place in the graph": """
        grad_to_node_set
    """,
    "private or deprecated names": """
        gradcheck_get_analytical_jacobian gradcheck_get_numerical_jacobian integer_outputs
        set_sequence_nr_cpu* view_replay_enabled volatile_deprecated
    """,
    "gradients are copied into .grad, unless a kernel made them for it": """
        no_grad_copy
    """,
    "detach_ of a saved operand: first derivatives are right, second ones raise": """
        saved_variable_saved_original_inplace_detach
    """,
    "a tangent may lie in memory of another size than its primal's": """
        metadata_check_checks_storage_numel metadata_check_for_storage_numel_skipped
    """,
    "levels of forward mode may be nested": """
        nested_level
    """,
    "there are no sparse layouts, nor traces for VTune": """
        sparse_add_cpu sparse_div_cpu sparse_mul_cpu sparse_sub_cpu sparse_dense_dim_cpu*
        gradcheck_input profiler_emit_itt_cpu*
    """,
    "views of inference tensors that require grad are recorded, those made inside stay": """
        inference_mode_handle_indirect_view_on_rebase
        inference_mode_inf_tensor_in_normal_mode_view_op
    """,
}
"""Why tests may fail -> their names, without ``test_`` and with ``*`` for any characters."""

EXCEPTIONS = {name: reason for reason, names in REASONS.items() for name in names.split()}
"""Names of tests -> the reason for which they may fail."""
