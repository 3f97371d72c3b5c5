"""Which files of a writer's folder are its own."""

from __future__ import annotations

from pathlib import Path

from tengen.run import find_files

__all__ = ["writer_files"]


def writer_files(directory: Path, suffix: str) -> list[Path]:
    """Returns ``<incarnation>/<number>.<suffix>`` in that order.

    Leaves out what has no number for a name: temporaries of killed writers, also of
    other hosts, and whatever else somebody put there.

    Args:
        directory: ``RUN/experience/<writer>``.
        suffix: ``journal`` or ``npz``.
    """
    found = [
        path
        for path in find_files(directory, f"*/*.{suffix}")
        if path.stem.isdecimal() and path.parent.name.isdecimal()
    ]
    return sorted(found, key=lambda path: (int(path.parent.name), int(path.stem)))
