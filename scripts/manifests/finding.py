"""What is wrong with a manifest, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Finding"]


@dataclass(frozen=True)
class Finding:
    """One error."""

    kind: str
    """Of the object."""
    name: str
    """Of the object."""
    path: str
    """Of the field in it, as ``spec.template.spec.containers[0].image``."""
    value: Any
    """What stands there."""
    rule: str
    """``must ...; what to do``."""

    def line(self, file: str) -> str:
        """Returns the one line that is printed.

        Args:
            file: That has the object, as far as that is known.
        """
        value = " ".join(str(self.value).split())
        shown = value if len(value) <= 80 else value[:77] + "..."
        return f"{file}: {self.kind}/{self.name} {self.path} ({shown}) {self.rule}"
