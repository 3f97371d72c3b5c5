"""Which files of the writers' folders hold games."""

from __future__ import annotations

from pathlib import Path

from tengen.run import find_files

__all__ = ["SET_ASIDE", "experience_files", "writer_files"]

SET_ASIDE = "damaged"
"""Suffix of the mark that somebody gave up the segment of that name.

The mark stands in the segment's place or beside it; what is in the file is never read.
The segment's games are as if they had never been, and its number is not used again.
"""


def writer_files(directory: Path, suffix: str) -> list[Path]:
    """Returns ``<incarnation>/<number>.<suffix>`` of one writer, in that order.

    Args:
        directory: ``RUN/experience/<writer>``.
        suffix: As `experience_files` takes it.
    """
    return _numbered(directory, "*/*", suffix)


def experience_files(experience: Path, suffix: str) -> list[Path]:
    """Returns ``<writer>/<incarnation>/<number>.<suffix>`` of all writers.

    Leaves out what has no number for a name: temporaries of killed writers, also of
    other hosts, and whatever else somebody put there. Segments that somebody gave up
    are left out too.

    Args:
        experience: ``RUN/experience``.
        suffix: ``journal``, ``npz`` or ``SET_ASIDE``.

    Returns:
        By the writers' names, incarnation and number.
    """
    return _numbered(experience, "*/*/*", suffix)


def _numbered(folder: Path, pattern: str, suffix: str) -> list[Path]:
    def find(suffix: str) -> set[Path]:
        found = find_files(folder, f"{pattern}.{suffix}")
        return {p for p in found if p.stem.isdecimal() and p.parent.name.isdecimal()}

    files = find(suffix)
    if files and suffix == "npz":
        files -= {path.with_suffix(".npz") for path in find(SET_ASIDE)}
    return sorted(files, key=_place)


def _place(path: Path) -> tuple[str, int, int]:
    incarnation = path.parent
    return incarnation.parent.name, int(incarnation.name), int(path.stem)
