"""Optimizers: PyTorch's names and rules, one compiled kernel a step."""

from numgrad.optim import lr_scheduler as lr_scheduler
from numgrad.optim.adam import Adam as Adam
from numgrad.optim.adam import AdamW as AdamW
from numgrad.optim.minimize import minimize as minimize
from numgrad.optim.optimizer import Optimizer as Optimizer
from numgrad.optim.optimizer import (
    register_optimizer_step_post_hook as register_optimizer_step_post_hook,
)
from numgrad.optim.optimizer import (
    register_optimizer_step_pre_hook as register_optimizer_step_pre_hook,
)
from numgrad.optim.sgd import SGD as SGD
