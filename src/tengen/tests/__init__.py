"""Tests of an installation: run ``pytest --pyargs tengen``, which takes half a minute.

They need pytest, but not the source tree, whose own tests are in ``tests``.
"""
