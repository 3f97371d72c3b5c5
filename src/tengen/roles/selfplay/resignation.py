"""When games may be resigned: while games that were played on show that it is safe.

A share of the games is never resigned, and before the first proof none is. The sealed
games tell how often somebody who would have resigned did not lose. Whether the next
generation may resign is a function of them alone, so that a run that is killed and
resumed plays the same games.

Source: Silver et al. 2017, "Mastering the game of Go without human knowledge"
(AlphaGo Zero), Methods.

Differs from the paper: the threshold stays, and resignation is refused where it is not
safe; the paper moves the threshold.
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
    """What decided games that were played on came to."""

    num_checked: int
    """Games played to their end in which somebody would have resigned."""
    num_false: int
    """Those of them that this player did not lose."""

    def allows(self, max_false_share: float) -> bool:
        """Returns whether that is enough to resign, and seldom enough wrong."""
        is_enough = self.num_checked >= _ENOUGH_GAMES
        return is_enough and self.num_false <= max_false_share * self.num_checked


def check_resignation(
    run: RunDirectory, game: Game, config: SelfplayConfig, generation: int
) -> ResignationCheck:
    """Counts over the newest sealed generations before ``generation``.

    Goes back as far as it takes to see enough games, at most 16 generations.

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
