"""The MLPerf benchmark minigo: its rules, recipes, target, log and file formats.

Source: MLPerf training v2.1, minigo. The file formats are TensorFlow's: checkpoints of
version 2, frozen graphs, and record files of self-play examples. They are read without
TensorFlow. File content is not trusted: lengths are bounded, checksums are verified,
and a damaged file raises one ``RunError``.

The package uses the same registries as all others: ``tengen.recipes.registry`` for its
recipes, ``tengen.roles.role`` for its role ``eval``, ``tengen.cli`` for its commands.
Its network is ``tengen.nets.minigo``, and its search is the core's policy ``minigo``.
"""
