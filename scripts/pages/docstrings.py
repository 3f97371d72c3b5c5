"""Docstrings as Markdown, for griffe, which mkdocstrings reads them by."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["AsMarkdown"]


class AsMarkdown(griffe.Extension):
    """Two colons before a block are one in Markdown, where indenting makes a block."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Changes the docstring of what was read."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"::\n\n", ":\n\n", obj.docstring.value)
