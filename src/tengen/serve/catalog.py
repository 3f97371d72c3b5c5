"""Which runs are served: those that were named, or all below a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tengen.errors import UsageError
from tengen.run import RunDirectory

__all__ = ["Catalog", "in_folder"]

_MAX_DEPTH = 4
_MAX_RUNS = 500


class Catalog:
    """Runs by the ids that pages use. No other path is ever opened.

    Args:
        paths: Run directories. Empty: every run below ``folder``, also those that are
            made while the server runs.
        folder: Where to look if ``paths`` is empty; it need not exist.

    Raises:
        UsageError: A path is not a run directory, or has a newer schema.
        RunError: A ``run.json`` is damaged.
    """

    def __init__(self, paths: Sequence[str | Path], folder: Path) -> None:
        self._folder = folder
        self._named = [RunDirectory.open(path) for path in paths]

    def runs(self) -> dict[str, RunDirectory]:
        """Returns the runs by id, in order of their names. Reads folders, no files.

        An id is made of letters, digits and ``._~-`` alone.
        """
        found = self._named or [RunDirectory(path) for path in self._below()]
        ids: dict[str, RunDirectory] = {}
        for run in found:
            base = re.sub(r"[^A-Za-z0-9._-]+", "~", self.name(run)).strip("~.") or "run"
            free, count = base, 2
            while free in ids:
                free, count = f"{base}~{count}", count + 1
            ids[free] = run
        return ids

    def name(self, run: RunDirectory) -> str:
        """Returns a run's name for people: its path, without the common folder."""
        text = str(run.path)
        root = f"{self._folder}{os.sep}"
        return text.removeprefix(root)

    def find(self, run_id: str) -> RunDirectory:
        """Returns the run of an id.

        Raises:
            UsageError: There is none.
        """
        found = self.runs().get(run_id)
        if found is None:
            shown = run_id[:40]
            raise UsageError(
                f"run ({shown!r}) is not served here; open / for those that are"
            )
        return found

    def _below(self) -> list[Path]:
        """Returns the folders with a ``run.json``; a run has no other one in it."""
        found: list[Path] = []
        level = [self._folder]
        for _ in range(_MAX_DEPTH):
            deeper: list[Path] = []
            for folder in level:
                for path in _folders(folder):
                    is_run = (path / "run.json").exists()
                    (found if is_run else deeper).append(path)
            level = deeper
        return sorted(found)[:_MAX_RUNS]


def in_folder(paths: Iterable[Path], folder: Path) -> list[Path]:
    """Returns those of some paths that lie in a folder once all links are followed.

    A link in a run may point to a file that its readers must not see.

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


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            # A link could lead out of the folder.
            return [
                Path(entry.path)
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and entry.name[0] != "."
            ]
    except OSError:
        return []
