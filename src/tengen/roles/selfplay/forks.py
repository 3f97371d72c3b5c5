"""The earlier games that a generation's games may begin from, as forks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tengen.experience import SegmentReader
from tengen.experience.games.files import experience_files

__all__ = ["fork_sources"]


def fork_sources(experience: Path, generation: int) -> list[tuple[str, list[int]]]:
    """Returns variant and moves of each game of the newest earlier generation.

    With one writer this is the generation before. With several writers it is the newest
    sealed one, so a generation that another process takes over after a kill may fork
    off other games than it began with. Empty for the first generation. Used by
    core/selfplay/openings/fork.h.

    Args:
        experience: ``RUN/experience``.
        generation: The generation that is to be played.

    Raises:
        RunError: A segment is damaged.
    """
    found = [
        (int(path.stem), path)
        for path in experience_files(experience, "npz")
        if int(path.stem) < generation
    ]
    newest = max((number for number, _ in found), default=0)
    sources: dict[int, tuple[str, list[int]]] = {}
    for number, path in found:
        if number == newest:
            sources |= _games(path)
    return [sources[index] for index in sorted(sources)]


def _games(path: Path) -> dict[int, tuple[str, list[int]]]:
    with SegmentReader(path) as reader:
        columns = reader.game_columns()

    def parts(count: str, name: str) -> list[np.ndarray]:
        return np.split(columns[name], np.cumsum(columns[count], dtype=np.int64)[:-1])

    variants = parts("num_variant_bytes", "variant")
    openings = parts("num_opening_plies", "opening")
    played = parts("num_plies", "action")
    return {
        int(index): (
            variants[i].tobytes().decode(),
            [*map(int, openings[i]), *map(int, played[i])],
        )
        for i, index in enumerate(columns["game_index"])
    }
