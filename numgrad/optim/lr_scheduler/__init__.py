"""Schedules of learning rates: build one on an optimizer, and step it after the optimizer.

=============================== ===================================================================
``StepLR``                      a factor every so many steps
``MultiStepLR``                 a factor at given steps
``ConstantLR``                  a factor until a step
``LinearLR``                    along a straight line, for instance to warm up
``ExponentialLR``               a factor at every step
``PolynomialLR``                to 0 as a power of what is left
``CosineAnnealingLR``           to the lowest rate along a cosine
``CosineAnnealingWarmRestarts`` along a cosine again and again, from the start
``CyclicLR``                    up and down between two bounds
``OneCycleLR``                  up once and far down, with the momentum against it
``LambdaLR``                    the first rate times a function of the step
``MultiplicativeLR``            the present rate times a function of the step
``ReduceLROnPlateau``           a factor when a metric no longer improves
``SequentialLR``                one schedule after another
``ChainedScheduler``            several at once
``LRScheduler``                 the base class, for a schedule of one's own
=============================== ===================================================================

Examples
--------
>>> import numgrad as ng
>>> optimizer = ng.optim.SGD([ng.ones(2, requires_grad=True)], lr=1.0)
>>> schedule = ng.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
>>> for _ in range(4):
...     optimizer.step()
...     schedule.step()
>>> schedule.get_last_lr()
[0.25]
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.optim.lr_scheduler.base": "LRScheduler",
        "numgrad.optim.lr_scheduler.composite": "ChainedScheduler SequentialLR",
        "numgrad.optim.lr_scheduler.factor": "ConstantLR ExponentialLR LambdaLR LinearLR "
        "MultiStepLR MultiplicativeLR PolynomialLR StepLR ReduceLROnPlateau",
        "numgrad.optim.lr_scheduler.periodic": "CosineAnnealingLR CosineAnnealingWarmRestarts "
        "CyclicLR OneCycleLR",
    },
)
