"""Neural networks: modules are functions with parameters, made of one another.

Derive from ``Module`` or put modules together with ``Sequential``; ``parameters()`` goes to an
optimizer of ``ng.optim``. Layers: ``Linear``, ``Conv2d``, ``LSTM``, ``Transformer``, ``LayerNorm``,
``Dropout``, ``Embedding``, ``MaxPool2d``, ``Upsample`` and their kin; losses end with ``Loss``.
``functional`` has the same as functions of their parameters, ``init`` fills parameters, ``utils``
clips gradients, parametrizes modules and packs sequences, ``parallel`` trains on several processes.

>>> import numgrad as ng
>>> model = ng.nn.Sequential(ng.nn.Linear(3, 8), ng.nn.Tanh(), ng.nn.Linear(8, 1))
>>> loss = ng.nn.functional.mse_loss(model(ng.ones((5, 3))), ng.zeros((5, 1)))
>>> loss.backward()
>>> model[0].weight.grad.shape
(8, 3)
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.nn": "functional init parallel utils",
        "numgrad.nn.activation_layers": "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish "
        "Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid "
        "Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold",
        "numgrad.nn.adaptive_softmax": "AdaptiveLogSoftmaxWithLoss",
        "numgrad.nn.attention": "MultiheadAttention",
        "numgrad.nn.average_pooling": "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d "
        "AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d",
        "numgrad.nn.batch_normalization": "BatchNorm1d BatchNorm2d BatchNorm3d",
        "numgrad.nn.container": "Flatten ModuleDict ModuleList ParameterDict ParameterList "
        "Sequential Unflatten",
        "numgrad.nn.convolution": "Conv1d Conv2d Conv3d",
        "numgrad.nn.dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d "
        "FeatureAlphaDropout",
        "numgrad.nn.embedding": "Embedding",
        "numgrad.nn.embedding_bag": "EmbeddingBag",
        "numgrad.nn.fractional_pooling": "FractionalMaxPool2d FractionalMaxPool3d",
        "numgrad.nn.instance_normalization": "InstanceNorm1d InstanceNorm2d InstanceNorm3d "
        "LocalResponseNorm",
        "numgrad.nn.layer_normalization": "GroupNorm LayerNorm RMSNorm",
        "numgrad.nn.lazy": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d "
        "LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d "
        "LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear LazyModuleMixin",
        "numgrad.nn.linear": "Bilinear Identity Linear",
        "numgrad.nn.loss.cross_entropy": "CrossEntropyLoss NLLLoss",
        "numgrad.nn.loss.ctc": "CTCLoss",
        "numgrad.nn.loss.likelihood": "BCELoss BCEWithLogitsLoss GaussianNLLLoss KLDivLoss "
        "PoissonNLLLoss",
        "numgrad.nn.loss.ranking": "CosineEmbeddingLoss CosineSimilarity PairwiseDistance "
        "TripletMarginLoss HingeEmbeddingLoss MarginRankingLoss MultiLabelMarginLoss "
        "MultiLabelSoftMarginLoss MultiMarginLoss SoftMarginLoss TripletMarginWithDistanceLoss",
        "numgrad.nn.loss.regression": "HuberLoss L1Loss MSELoss SmoothL1Loss",
        "numgrad.nn.max_pooling": "AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d MaxPool1d "
        "MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
        "numgrad.nn.module.functional_call": "functional_call replace_all_batch_norm_modules_ "
        "stack_module_state",
        "numgrad.nn.module.hooks": "register_module_buffer_registration_hook "
        "register_module_forward_hook register_module_forward_pre_hook "
        "register_module_full_backward_hook register_module_full_backward_pre_hook "
        "register_module_module_registration_hook register_module_parameter_registration_hook",
        "numgrad.nn.module.members": "Buffer Parameter",
        "numgrad.nn.module.module": "Module",
        "numgrad.nn.module.uninitialized": "UninitializedBuffer UninitializedParameter",
        "numgrad.nn.padding": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d "
        "ConstantPad2d ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d "
        "ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d",
        "numgrad.nn.parallel.batch_norm": "SyncBatchNorm",
        "numgrad.nn.rearrangement": "ChannelShuffle Fold PixelShuffle PixelUnshuffle Unfold",
        "numgrad.nn.recurrent": "GRU GRUCell LSTM LSTMCell RNN RNNCell",
        "numgrad.nn.resampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
        "numgrad.nn.transformer": "Transformer TransformerDecoder TransformerDecoderLayer "
        "TransformerEncoder TransformerEncoderLayer",
        "numgrad.nn.transposed_convolution": "ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    },
    {
        "DataParallel": "DistributedDataParallel of nn.parallel, a process for each part",
        "NLLLoss2d": "NLLLoss takes images too",
        "Container": "Module",
        "CrossMapLRN2d": "LocalResponseNorm, which is right at the first channels too",
        "LinearCrossEntropyLoss": "Linear and CrossEntropyLoss",
        "RNNBase": "RNN, LSTM or GRU",
        "RNNCellBase": "RNNCell, LSTMCell or GRUCell",
        "quant*": "there are no quantized kernels",
        "qat": "there are no quantized kernels",
        "intrinsic": "there are no quantized kernels",
    },
)
