"""Reads KataGo's network files, ``.bin.gz`` and ``.txt.gz``, without KataGo.

Source: KataGo (lightvector/KataGo), versions 8 to 17 of the file format. Files are
untrusted: lengths are bounded, numbers are checked, and a malformed file raises
``UsageError``.
"""
