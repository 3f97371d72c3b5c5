"""Links in a run, which may point to files that its readers must not see."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["in_folder"]


def in_folder(paths: Iterable[Path], folder: Path) -> list[Path]:
    """Returns those of some paths that lie in a folder once all links are followed.

    Args:
        paths: Of files or folders, whether they are there or not.
        folder: May itself be reached by links.
    """
    root = folder.resolve()
    found = []
    for path in paths:
        try:
            if path.resolve().is_relative_to(root):
                found.append(path)
        except (OSError, RuntimeError):
            continue  # links that lead to each other
    return found
