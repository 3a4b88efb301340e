"""Optimizers: PyTorch's names and rules, one compiled kernel a step.

An optimizer changes parameters by their gradients: build one from a module's parameters or a list
of Tensors, then clear the gradients, compute the loss, call its ``backward`` and ``step``. Options
stand in ``param_groups``, where they may be changed between steps, and are saved by ``state_dict``.

=================  ================================================================================
``SGD``            gradient descent, with momentum or Nesterov's
``Adam``           running averages of the gradient and of its square; AMSGrad
``AdamW``          Adam with weight decay apart from the gradient: where to begin for networks
``Adamax``         Adam with a decaying maximum in place of the mean square
``NAdam``          Adam that looks ahead along the momentum
``RAdam``          Adam whose first steps wait for the variance to be known
``Adagrad``        steps that shrink where gradients have been large; row-sparse gradients
``Adadelta``       steps scaled by the size of former steps
``RMSprop``        steps scaled by a running average of squared gradients
``Rprop``          steps from the signs of gradients; for whole data sets
``ASGD``           gradient descent that keeps the average of its iterates
``Adafactor``      second moments of matrices kept as one number a row and a column
``Muon``           momentum made orthogonal, for weight matrices
``SparseAdam``     Adam for the row-sparse gradients of embeddings
``LBFGS``          quasi-Newton steps with a line search, for smooth losses without noise
``minimize``       SciPy's minimizers on Tensors: BFGS, Newton, trust regions, bounds
``Zero...``        ``ZeroRedundancyOptimizer``: one of these, its state divided over processes
``Optimizer``      the base class, for an optimizer of one's own
``lr_scheduler``   schedules of learning rates: ``StepLR``, ``OneCycleLR``, ...
``swa_utils``      averages of a model's parameters over its training
=================  ================================================================================

``register_optimizer_step_pre_hook`` and ``register_optimizer_step_post_hook`` call a function
before and after each step of every optimizer.

Examples
--------
>>> import numgrad as ng
>>> x = ng.tensor([3.0, -2.0], requires_grad=True)
>>> optimizer = ng.optim.AdamW([x], lr=0.1, weight_decay=0.0)
>>> schedule = ng.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
>>> for _ in range(200):
...     optimizer.zero_grad()
...     loss = ng.sum((x - 1) ** 2)
...     loss.backward()
...     optimizer.step()
...     schedule.step()
>>> ng.round(x.detach(), 3)
tensor([1., 1.])
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.optim": "lr_scheduler swa_utils",
        "numgrad.optim.adafactor": "Adafactor",
        "numgrad.optim.adagrad": "Adadelta Adagrad",
        "numgrad.optim.adam": "Adam AdamW Adamax NAdam RAdam SparseAdam",
        "numgrad.optim.lbfgs": "LBFGS",
        "numgrad.optim.muon": "Muon",
        "numgrad.optim.optimizer": "Optimizer register_optimizer_step_post_hook "
        "register_optimizer_step_pre_hook",
        "numgrad.optim.rmsprop": "RMSprop",
        "numgrad.optim.sgd": "ASGD Rprop SGD",
        "numgrad.optim.zero_redundancy_optimizer": "ZeroRedundancyOptimizer",
    },
    late={"numgrad.optim.scipy_minimizers": "minimize"},  # it imports SciPy
)
