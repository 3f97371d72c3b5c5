"""Finds games of earlier generations to fork, and checks whether resigning is safe.

In each generation a share of the games, and at first all of them, is played to the end
without resignation. These games show how often a player who would have resigned did not
lose. Only sealed games decide whether the next generation may resign, so a run that is
killed and resumed plays the same games.

Source: Silver et al. 2017, "Mastering the game of Go without human knowledge"
(AlphaGo Zero), Methods.

Differs from the paper: the threshold is fixed, and resignation is disabled if it is not
safe; the paper adjusts the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tengen import _core
from tengen.actors import SelfplayConfig
from tengen.experience import SegmentReader
from tengen.experience.games.files import experience_files
from tengen.games import Game, core_game
from tengen.run import RunDirectory

_ENOUGH_GAMES = 100
_MAX_GENERATIONS = 16
_COLUMNS = (
    "outcome",
    "num_variant_bytes",
    "variant",
    "num_opening_plies",
    "num_plies",
    "opening",
    "action",
    "root_value",
)


def fork_sources(experience: Path, generation: int) -> list[tuple[str, list[int]]]:
    """Returns the variant and actions of each game of the last sealed generation.

    With one writer this is the previous generation. With several writers it may change
    before another process resumes a killed generation, which then forks other games.
    Empty for the first generation. Used by core/selfplay/openings/fork.h.

    Args:
        experience: ``RUN/experience``.
        generation: Number of the generation to be played.

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


@dataclass(frozen=True, kw_only=True)
class ResignationCheck:
    """Counts of false resignations in games that were played without resignation."""

    num_checked: int
    """Number of games that continued after a player would have resigned."""
    num_false: int
    """Number of checked games that the player who would have resigned did not lose."""

    def allows(self, max_false_share: float) -> bool:
        """Returns whether the check has enough games and few false resignations."""
        is_enough = self.num_checked >= _ENOUGH_GAMES
        return is_enough and self.num_false <= max_false_share * self.num_checked


def check_resignation(
    run: RunDirectory, game: Game, config: SelfplayConfig, generation: int
) -> ResignationCheck:
    """Counts false resignations in the newest sealed generations before ``generation``.

    Reads older generations until there are enough games, but at most 16 generations.

    Raises:
        RunError: A segment is damaged.
    """
    num_checked = num_false = 0
    rules, settings = core_game(game), config.to_native()
    oldest = max(1, generation - _MAX_GENERATIONS)
    segments: dict[int, list[Path]] = {}
    for path in experience_files(run.experience, "npz"):
        segments.setdefault(int(path.stem), []).append(path)
    for earlier in range(generation - 1, oldest - 1, -1):
        for path in segments.get(earlier, []):
            with SegmentReader(path) as segment:
                columns = {name: segment.column(name) for name in _COLUMNS}
            checked, wrong = _core.check_resignation(rules, settings, **columns)
            num_checked += checked
            num_false += wrong
        if num_checked >= _ENOUGH_GAMES:
            break
    return ResignationCheck(num_checked=num_checked, num_false=num_false)
