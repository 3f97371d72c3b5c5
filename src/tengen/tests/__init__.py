"""What an installation can be tried by: ``pytest --pyargs tengen``, half a minute.

It needs pytest and nothing of the source, whose own tests are in its ``tests``.
"""
