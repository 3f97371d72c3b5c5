"""MLPerf's minigo, a guest: its rules, recipes, target, log and files.

Source: MLPerf training v2.1, minigo. The files are TensorFlow's: checkpoints of version
2, frozen graphs, and examples of self-play in record files. They are read here without
TensorFlow. What is in a file is data: lengths are bounded, checksums are checked, and a
damaged file is one ``RunError``.

The guest registers where anyone does: its recipes in ``tengen.recipes.registry``, its
role ``eval`` in ``tengen.roles.role``, its commands in ``tengen.cli``. Its network is
``tengen.nets.minigo``, and its search is the policy ``minigo`` of the core.
"""
