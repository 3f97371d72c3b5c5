"""A griffe extension, so that mkdocstrings renders docstrings as Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe


class AsMarkdown(griffe.Extension):
    """An extension that changes "::" before an indented block to ":"."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Changes an object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"::\n\n", ":\n\n", obj.docstring.value)
