"""Optimizers: PyTorch's names and rules, one compiled kernel a step."""

from numgrad.optim import lr_scheduler as lr_scheduler
from numgrad.optim import swa_utils as swa_utils
from numgrad.optim.adadelta import Adadelta as Adadelta
from numgrad.optim.adafactor import Adafactor as Adafactor
from numgrad.optim.adagrad import Adagrad as Adagrad
from numgrad.optim.adam import Adam as Adam
from numgrad.optim.adam import AdamW as AdamW
from numgrad.optim.adamax import Adamax as Adamax
from numgrad.optim.asgd import ASGD as ASGD
from numgrad.optim.lbfgs import LBFGS as LBFGS
from numgrad.optim.muon import Muon as Muon
from numgrad.optim.nadam import NAdam as NAdam
from numgrad.optim.optimizer import Optimizer as Optimizer
from numgrad.optim.optimizer import (
    register_optimizer_step_post_hook as register_optimizer_step_post_hook,
)
from numgrad.optim.optimizer import (
    register_optimizer_step_pre_hook as register_optimizer_step_pre_hook,
)
from numgrad.optim.radam import RAdam as RAdam
from numgrad.optim.rmsprop import RMSprop as RMSprop
from numgrad.optim.rprop import Rprop as Rprop
from numgrad.optim.scipy_minimizers import minimize as minimize
from numgrad.optim.sgd import SGD as SGD
from numgrad.optim.sparse_adam import SparseAdam as SparseAdam
