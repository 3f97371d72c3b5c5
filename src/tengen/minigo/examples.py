"""From a folder of the benchmark's self-play to files of rows, one a generation."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tengen.errors import UsageError
from tengen.minigo.records import Layout, read_examples, side_of
from tengen.minigo.rows import rows_name, write_rows

__all__ = ["ImportedGeneration", "import_examples"]

_GENERATION = re.compile("[0-9]{6}")
_PATTERN = "*.tfrecord.zz"

ImportedGeneration = tuple[int, int, int]
"""Number of a generation, and its games and rows."""


def import_examples(
    source: Path,
    out: Path,
    layout: Layout,
    watch: Callable[[ImportedGeneration], None],
) -> list[ImportedGeneration]:
    """Writes the rows of every generation. Blocks; a generation is in memory, packed.

    Games are numbered in the order of their paths, folder by folder. What was written
    before is written again.

    Args:
        source: A folder of folders ``NNNNNN``, each with ``.tfrecord.zz`` files at any
            depth, one a game.
        out: Where the files go; made if it is not there.
        layout: Of the planes in an example.
        watch: Called with each generation that was written.

    Raises:
        UsageError: There are no such files.
        RunError: One is damaged, or the disk refuses. Generations that were written
            before are whole.
    """
    found = {
        int(folder.name): sorted(folder.rglob(_PATTERN))
        for folder in sorted(_folders(source))
    }
    generations = {number: paths for number, paths in found.items() if paths}
    if not generations:
        raise UsageError(
            f"examples ({source}) must be a folder of folders of six digits with "
            f"{_PATTERN} files; check the path"
        )
    side = next(
        (
            side
            for paths in generations.values()
            for path in paths
            if (side := side_of(path))
        ),
        0,
    )
    if side == 0:
        raise UsageError(f"examples ({source}) have not one row; check the path")
    out.mkdir(parents=True, exist_ok=True)
    done = []
    for number, paths in generations.items():
        games = (read_examples(path, side, layout) for path in paths)
        told = str(source / f"{number:06d}")
        counts = write_rows(out / rows_name(number), games, side, number, told)
        done.append((number, *counts))
        watch(done[-1])
    return done


def _folders(source: Path) -> list[Path]:
    if not source.is_dir():
        return []
    return [
        path
        for path in source.iterdir()
        if path.is_dir() and _GENERATION.fullmatch(path.name)
    ]
