"""Machine code over CPython's objects: the one room that reads offsets, flags and reference counts.

Note [Machine code over objects]
--------------------------------
Small calls cost what Python's interpreter takes, not what their kernels take. So five things are
done by functions in machine code that read and write CPython's objects and NumPy's arrays as C
does: a kernel's arguments are read (``kernel_entry``); a call of an operation on Tensors finds its
plan, runs the kernel and records the node (``recorded_calls``); a backward walks over common nodes
(``backward_walk``). A fourth reads the addresses of many arrays at once (``addresses``), a fifth
the arrays of a step of an optimizer (``group_arrays``).

*Known versions.* CPython 3.11 to 3.15 with the global lock, on 64 bits, and NumPy 2: ``KNOWN`` and
the table of offsets in ``offsets``, which each process compares with objects at hand before it uses
any. Where classes of numgrad have their slots is found out by name (``offsets.slots``).

*Fallback.* Whatever a function does not handle it leaves to Python's form of the same work, which
is complete, gives the same results, and is all there is under other versions: ``SlowEntry``, the
templates in ``tensors.entries``, the loop of ``autograd.engine.walk``.

*Switch.* ``NUMGRAD_MACHINE_CODE=0``, or ``ng.config.machine_code = False`` at any time: calls and
walks that begin after it are done in Python, and kernels loaded after it get their entry in Python.
``python -m numgrad doctor`` says which form is in use, and why.

A function's text is in the language of kernels with the instructions of ``objects``; ``builtin``
makes a function of it, ``hot_paths`` says when it comes into use, ``records`` what it has to know,
``c_api`` calls Python's C functions. The room knows no Tensor: who uses it hands in the classes
(``tensors.recorder``, ``autograd.engine.walk``).
"""
