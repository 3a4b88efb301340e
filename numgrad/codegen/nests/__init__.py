"""The generator of loops: terms in, the source of kernels out. It knows no operation.

Note [Map of nests]
-------------------
``terms`` are scalar functions, reductions and index maps over arrays, with lengths that are
``polynomial``s of those of axes; ``first_stored`` there decides which are kept in memory.
``statements`` gives each of these its loops, ``indices`` says where its body reads. ``loop_tree``
nests and fuses loops, ``lanes`` cuts some into blocks and ``block_products`` takes products out of
them: ``arrange`` in ``kernel`` does it all. ``tasks`` says where results are kept and calls loops
for ranges of iterations, ``nest`` writes these, on ``index_set_splitting`` and ``write``, long ones
in ``parts``;
``kernel`` puts the source together, ``loop`` that of a loop over steps. Small arrays of fixed shape
have no loops: ``small_arrays`` reads them as scalars, ``tasks`` writes these. ``arrays`` makes
kernels of eager operations, also of NumPy code that it reads; ``account`` is for reports.
"""
