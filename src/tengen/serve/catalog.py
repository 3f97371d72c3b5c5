"""The runs that the server shows: those on the command line, or all below a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tengen.errors import UsageError
from tengen.run import RunDirectory

_MAX_DEPTH = 4
_MAX_RUNS = 500


class Catalog:
    """Maps IDs in URLs to runs. Requests cannot reach any other run.

    Args:
        paths: Run directories. If empty, all runs below ``folder``, including runs that
            are created while the server runs.
        folder: The folder to search if ``paths`` is empty. It need not exist.

    Raises:
        UsageError: A path is not a run directory, or a run has a newer schema.
        RunError: A ``run.json`` is damaged.
    """

    def __init__(self, paths: Sequence[str | Path], folder: Path) -> None:
        self._folder = folder
        self._named = [RunDirectory.open(path) for path in paths]

    def runs(self) -> dict[str, RunDirectory]:
        """Returns the runs by ID. Lists folders, but reads no files.

        An ID contains only letters, digits and ``._~-``.
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
        """Returns a run's display name: its path relative to ``folder``."""
        text = str(run.path)
        root = f"{self._folder}{os.sep}"
        return text.removeprefix(root)

    def find(self, run_id: str) -> RunDirectory:
        """Returns the run with the ID ``run_id``.

        Raises:
            UsageError: No run has the ID.
        """
        found = self.runs().get(run_id)
        if found is None:
            shown = run_id[:40]
            raise UsageError(
                f"run ({shown!r}) is not served here; open / for the list of runs"
            )
        return found

    def _below(self) -> list[Path]:
        """Returns the folders that contain ``run.json``. Skips folders inside runs."""
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
    """Returns the paths that lie inside a folder, after resolving links.

    A link in a run may point to a file that the server's users must not read.

    Args:
        paths: Paths of files or folders, which need not exist.
        folder: The folder, which may be a link.
    """
    root = folder.resolve()
    found = []
    for path in paths:
        try:
            if path.resolve().is_relative_to(root):
                found.append(path)
        except (OSError, RuntimeError):
            continue  # The links form a cycle.
    return found


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            # Ignore links, which could lead out of the folder.
            return [
                Path(entry.path)
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and entry.name[0] != "."
            ]
    except OSError:
        return []
