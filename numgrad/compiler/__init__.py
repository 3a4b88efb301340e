"""The whole of a function, its gradient included, as one native kernel.

Note [Map of ng.jit]
--------------------
A call goes through these stages; the first three happen once for each kind of arguments.

1. *Trace* (``trace``). ``capture`` runs the function once on Tensors whose arrays are without
   numbers (``arrays`` and, for all of numgrad, ``core.abstract``). ``tracer`` and ``builder`` write
   what is computed into a graph; ``interpreter``, ``calls`` and ``function`` say what operations
   mean in a trace; ``views`` and ``memory`` turn views and in-place code into values; ``infer``
   finds shapes; ``effects`` notes what happens besides. ``captured`` is what is read from outside,
   ``shown`` the views of that which plain NumPy makes. ``shared`` says which results share memory.
   Where the tape goes on outside, ``cut`` parts the graph into a forward and a backward. The
   result is a ``graph.graph``, whose lengths are symbols: ``graph.sizes``, on
   ``graph.polynomial``, and ``graph.shapes``.
2. *Passes* (``passes``) rewrite the graph so that less is computed; ``rewriting`` is how.
3. *Lowering* (``lower``). ``expand`` reads operations as ``terms``: scalar functions, reductions
   and index maps; ``lookup``, ``placing``, ``losses`` and ``product`` hold the operations that are
   no formula of single elements. ``stored`` decides what is kept in memory, ``statements`` gives
   each of that its loops, ``tree`` nests and joins these, ``nest``, ``write`` and ``kernel`` write
   the source. ``run.program`` puts kernels and what runs between them into one Python function; a
   kernel is compiled when it is first called. ``graph.evaluate`` runs a graph one operation at a
   time, as a reference.
4. *Dispatch* (``call``, ``run``). ``signature`` and ``nesting`` say what kind of arguments a call
   has, ``closure`` what the function reads besides; ``layout`` and ``dispatch`` write the Python
   function that recognises them, checks the guards, and runs the program. ``specialise`` holds one
   kind with its program, ``tape`` makes it a node of the eager tape, ``api`` is ``ng.jit`` itself
   (``methods`` is for methods of objects); ``check`` compares calls with eager ones, ``replay``
   calls the operations of a graph anew.

For people: ``inspect.report`` and ``inspect.stats``, with ``lower.account`` (what a loop computes
and moves) and ``lower.outline`` (which loops LLVM vectorised); ``inspect.reasons`` (why a function
was traced again), ``messages`` (the user's line in errors and warnings), ``progress``.
"""
