"""MLPerf's minigo: its rules, checkpoints, frozen graphs and examples of self-play.

Source: MLPerf training v2.1, minigo. The formats are TensorFlow's: its checkpoints of
version 2, its protocol buffers and its record files. They are read here without it.

What is in a file is data: lengths are bounded, checksums are checked, and a file that
is not as it should be is one ``RunError``.
"""
