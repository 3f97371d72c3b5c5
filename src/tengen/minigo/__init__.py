"""The MLPerf benchmark minigo: its rules, recipes, target, log and file formats.

Source: MLPerf training v2.1, minigo. The file formats are TensorFlow's: checkpoints of
version 2, frozen graphs, and record files of self-play examples. They are read without
TensorFlow. The files are not trusted: lengths are bounded, checksums are verified, and
a damaged file raises ``RunError``.

The package's recipes are registered in ``tengen.recipes.registry``, its role ``eval``
in ``tengen.roles.role`` and its commands in ``tengen.cli``. Its network is
``tengen.nets.minigo``, and its search is the core's search policy ``minigo``.
"""
