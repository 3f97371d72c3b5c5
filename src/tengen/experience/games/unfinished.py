"""Games in flight, kept so that a restart goes on with them.

Each generation has one file, ``<incarnation>/<generation>.unfinished``, an archive that
is published as a whole and replaced by the next one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.experience.games.archive import ArchiveReader, pack
from tengen.experience.games.files import writer_files
from tengen.run import publish_file

__all__ = [
    "keep_unfinished",
    "remove_sealed_unfinished",
    "remove_unfinished",
    "unfinished_games",
]

_SUFFIX = "unfinished"


def keep_unfinished(folder: Path, generation: int, games: Sequence[bytes]) -> None:
    """Publishes the games in flight of an incarnation, in place of those kept before.

    Args:
        folder: ``RUN/experience/<writer>/<incarnation>``.
        generation: The games' generation.
        games: Each as ``_core.GameQueue.unfinished`` gives it.

    Raises:
        RunError: The disk refuses; the games kept before stay.
    """
    columns: dict[str, NDArray[Any]] = {
        "num_bytes": np.array([len(game) for game in games], np.uint32),
        "bytes": np.frombuffer(b"".join(games), np.uint8),
    }
    path = folder / f"{generation:06d}.{_SUFFIX}"
    publish_file(path, pack({"generation": generation}, columns))


def unfinished_games(writer_directory: Path, generation: int) -> list[bytes]:
    """Returns the games in flight that a writer's last incarnation kept.

    Args:
        writer_directory: ``RUN/experience/<writer>``.
        generation: The games' generation.

    Raises:
        UsageError: The file is of another schema.
        RunError: The file is damaged.
    """
    paths = _files(writer_directory, generation)
    if not paths:
        return []
    try:
        with ArchiveReader(paths[-1]) as reader:
            sizes = reader.read("num_bytes")
            data = reader.read("bytes").tobytes()
        if sizes.dtype.kind != "u" or sizes.ndim != 1 or sizes.sum() != len(data):
            raise RunError(f"unfinished games ({paths[-1]}) are damaged")
    except RunError as error:
        raise RunError(
            f"{error}; without it the games in flight begin again: delete it"
        ) from error
    bounds = [0, *np.cumsum(sizes).tolist()]
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


def remove_unfinished(writer_directory: Path, generation: int) -> None:
    """Removes the files of a generation that is sealed."""
    for path in _files(writer_directory, generation):
        path.unlink(missing_ok=True)


def remove_sealed_unfinished(writer_directory: Path) -> None:
    """Removes the files of all sealed generations.

    A kill after the seal and before ``remove_unfinished`` leaves such a file.

    Args:
        writer_directory: ``RUN/experience/<writer>``, held by this process.
    """
    open_generations = {p.stem for p in writer_files(writer_directory, "journal")}
    sealed = {p.stem for p in writer_files(writer_directory, "npz")} - open_generations
    for path in writer_files(writer_directory, _SUFFIX):
        if path.stem in sealed:
            path.unlink(missing_ok=True)


def _files(writer_directory: Path, generation: int) -> list[Path]:
    files = writer_files(writer_directory, _SUFFIX)
    return [path for path in files if int(path.stem) == generation]
