"""When games may be resigned: only while games played on show that it is safe.

A share of the games is played on without resigning, and at first all games are. The
sealed games of this kind show how often a player who would have resigned did not lose.
They alone decide whether the next generation may resign, so that a run that is killed
and resumed plays the same games.

Source: Silver et al. 2017, "Mastering the game of Go without human knowledge"
(AlphaGo Zero), Methods.

Differs from the paper: the threshold is fixed, and resignation is not allowed where it
is not safe; the paper adjusts the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tengen import _core
from tengen.actors import SelfplayConfig
from tengen.experience import SegmentReader
from tengen.experience.games.files import experience_files
from tengen.games import Game, core_game
from tengen.run import RunDirectory

__all__ = ["ResignationCheck", "check_resignation"]

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


@dataclass(frozen=True, kw_only=True)
class ResignationCheck:
    """The results of decided games that were played on."""

    num_checked: int
    """Games played to their end in which a player would have resigned."""
    num_false: int
    """Games among ``num_checked`` that this player did not lose."""

    def allows(self, max_false_share: float) -> bool:
        """Returns whether there are enough games, and few enough wrong resignations."""
        is_enough = self.num_checked >= _ENOUGH_GAMES
        return is_enough and self.num_false <= max_false_share * self.num_checked


def check_resignation(
    run: RunDirectory, game: Game, config: SelfplayConfig, generation: int
) -> ResignationCheck:
    """Counts over the newest sealed generations before ``generation``.

    Goes back until there are enough games, at most 16 generations.

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
