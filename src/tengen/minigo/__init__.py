"""The MLPerf benchmark minigo: its rules, recipes, target, log and file formats.

Source: MLPerf training v2.1, minigo. The file formats are TensorFlow's: checkpoints of
version 2, frozen graphs, and record files of self-play examples. They are read without
TensorFlow. File content is not trusted: lengths are bounded, checksums are verified,
and a damaged file raises one ``RunError``.

The package registers its recipes in ``tengen.recipes.registry``, its role ``eval`` in
``tengen.roles.role`` and its commands in ``tengen.cli``, like any other package. Its
network is ``tengen.nets.minigo``, and its search is the core's policy ``minigo``.
"""
