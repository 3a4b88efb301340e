"""The whole of a function, its gradient included, as one native kernel.

Note [Map of ng.jit]
--------------------
A call goes through these stages; the first three happen once for each kind of arguments.

1. *Trace.* ``traced`` runs the function once on Tensors whose arrays are without numbers
   (``arrays`` and, for all of numgrad, ``op.abstract``). ``trace`` is the tracer, ``interpreter``
   and ``calls`` what operations mean in a trace, ``views`` and ``memory`` turn views and in-place
   code into values, ``infer`` finds shapes, ``effects`` notes what happens besides. ``closure``
   finds what the function reads from outside, ``shown`` views of that which plain NumPy makes.
   ``shared`` says which results share memory. Lengths are symbols: ``sizes``, on ``polynomial``,
   ``shapes``. The result is a ``graph``. Where the tape goes on outside, ``cut`` parts it into a
   forward and a backward.
2. *Passes* rewrite the graph so that less is computed (``passes``; ``passes.rewriting`` is how).
3. *Lowering* (``lower``). ``expand`` reads operations as ``terms``: scalar functions, reductions
   and index maps; ``lookup``, ``placing``, ``losses`` and ``product`` hold the operations that are
   no formula of single elements. ``stored`` decides what is kept in memory, ``statements`` gives
   each of that its loops, ``tree`` nests and joins these, ``write`` and ``kernel`` write the
   source. ``program`` puts kernels and what runs between them into one Python function; a kernel is
   compiled when it is first called. ``evaluate`` runs a graph one operation at a time, as a
   reference.
4. *Dispatch.* ``signature`` and ``nesting`` say what kind of arguments a call has, ``layout`` and
   ``dispatch`` write the Python function that recognises them, checks the guards, and runs the
   program. ``specialise`` holds one kind with its program, ``tape`` makes it a node of the eager
   tape, ``api`` is ``ng.jit`` itself (``methods`` of objects, one ``lock``); ``check`` compares
   calls with eager ones, ``replay`` calls the operations of a graph anew.

For people: ``report`` and ``stats``, with ``lower.account`` (what a loop computes and moves) and
``lower.outline`` (which loops LLVM vectorised); ``reasons`` (why a function was traced again),
``messages`` (the user's line in errors and warnings), ``progress``.
"""
