"""Finds game files in the folders of the writers."""

from __future__ import annotations

from pathlib import Path

from tengen.run import find_files

SET_ASIDE = "damaged"
"""Suffix of a file with which the user excludes the segment of the same name.

The file replaces the segment or lies next to it, and its content is never read. The
segment's games no longer count, and its number is never reused.
"""


def writer_files(directory: Path, suffix: str) -> list[Path]:
    """Returns a writer's files ``<incarnation>/<number>.<suffix>``, sorted numerically.

    Args:
        directory: ``RUN/experience/<writer>``.
        suffix: ``journal``, ``npz``, ``unfinished`` or ``SET_ASIDE``.
    """
    return _numbered(directory, "*/*", suffix)


def experience_files(experience: Path, suffix: str) -> list[Path]:
    """Returns all writers' files ``<writer>/<incarnation>/<number>.<suffix>``.

    Skips files whose name is not a number, such as temporary files of killed writers on
    any host, and segments that the user excluded (``SET_ASIDE``).

    Args:
        experience: ``RUN/experience``.
        suffix: ``journal``, ``npz`` or ``SET_ASIDE``.

    Returns:
        The paths, sorted by writer name, incarnation and number.
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
