"""The whole of a function, its gradient included, as one native kernel.

Note [Map of ng.jit]
--------------------
``api`` is ``ng.jit`` itself. A call goes through these rooms; ``trace``, ``passes`` and ``lower``
have work once for each kind of arguments.

1. ``call`` says what a call is: ``signature`` the kind of its arguments, its inputs
   and results, ``captures`` what the function reads from outside, each from a ``source``; names in
   its code come from ``core.bytecode``, ``process_state`` says what changes for all of a process.
2. ``trace`` runs the function once on Tensors whose arrays are without numbers (``arrays`` and, for
   all of numgrad, ``core.abstract``). ``tracing`` is one such run. ``builder`` adds nodes to the
   graph, ``arrays`` take in what the function captures, ``tracer`` has what it does besides;
   ``interpreter`` and ``traced_calls`` are what operations, arrays and a user's
   Functions mean in a trace, ``custom_rules`` functions and hooks with rules of their own.
   ``views`` turns views and in-place code into values, ``promoted_numbers`` floats that change into
   inputs, ``function_state`` makes results of Tensors that are set around the function,
   ``side_effects`` refuses those of loop bodies, ``diagnostics`` warns of what is frozen.
   Where the tape goes on outside, ``cut`` parts the graph into a forward and a backward.
3. ``graph`` is what comes out. Lengths are symbols: ``sizes``. ``evaluate`` runs a graph one
   operation at a time, as a reference. What loops and branches have in common is there too.
4. ``passes`` rewrite the graph so that less is computed; ``rewriting`` is how.
5. ``lower`` reads it as terms: scalar functions, reductions and index maps. ``expand`` reads
   formulas; ``lowering`` finds how those operations are written that are no formula of single
   elements: by ``lookup``, ``matrices``, or the module that the operation names. From
   terms the source of kernels is made by ``codegen.nests``, which has a map of its own.
6. ``run`` computes. ``program`` puts kernels and what runs between them into one Python function; a
   kernel is compiled when it is first called. ``dispatch`` writes the Python function that
   recognises arguments, checks the guards, and runs the program. ``specialise`` holds one kind of
   arguments with its program and makes it a node of the eager tape, ``check`` compares calls
   with eager ones; ``replay`` there calls the operations of a graph again.
7. ``loops`` has operations that are given a graph, which ``trace.body`` traces: ``body`` has the
   derivatives of a graph, ``scan``, ``while_loop`` (adaptive loops of solvers too) and
   ``subgraph`` (branches) the rules of a body primitive, ``loop_program`` runs loops.

For people: ``inspect`` has ``report`` with costs, why a function was traced again, and
``nests.account`` (what a loop computes and moves, and whether LLVM vectorised it), and
``sparsity``; ``messages`` has the user's line in errors and warnings, and what is shown
while a function is compiled.
"""
