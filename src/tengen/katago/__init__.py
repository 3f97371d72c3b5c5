"""KataGo's networks: its own files, ``.bin.gz`` and ``.txt.gz``, read without it.

Source: KataGo (lightvector/KataGo), versions 8 to 17 of its format. What is in a file
is data: lengths are bounded, numbers are checked, and a file that is not as it should
be is one ``UsageError``.
"""
