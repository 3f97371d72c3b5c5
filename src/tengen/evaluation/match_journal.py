"""Finished games of one match, durable while it is played."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tengen.config import from_dict
from tengen.errors import RunError
from tengen.evaluation.played_game import PlayedGame
from tengen.experience import JournalGap, OpenSegment
from tengen.experience.games.journal import read_journal
from tengen.run import storage_error
from tengen.run.publish import reach

__all__ = ["MatchJournal"]

_ADVICE = "remove it, its games are played again"


class MatchJournal:
    """Keeps a match so that whoever plays it next goes on where a kill ended it.

    A folder with a journal for each process that played, ``1.journal`` the first. Games
    are JSON, as in ``games.jsonl``. One process at a time may have it.

    Attributes:
        played: Games that earlier processes finished, by index.
        gaps: Damage between them; the games of it are played again.

    Args:
        folder: Made when absent.
        key: JSON values, all that the games depend on. Journals of another key are of
            another match and are removed.

    Raises:
        UsageError: A journal is of a newer schema.
        RunError: A journal is damaged, or the disk refuses.
    """

    def __init__(self, folder: Path, key: Mapping[str, Any]) -> None:
        self._folder = folder
        found = [int(path.stem) for path in folder.glob("*.journal")]
        games: dict[int, PlayedGame] = {}
        self.gaps: list[JournalGap] = []
        for number in sorted(found):
            path = folder / f"{number}.journal"
            try:
                contents = read_journal(path)
            except RunError as error:
                raise RunError(f"{error}; {_ADVICE}") from error
            if contents.meta != key:
                path.unlink()
                continue
            # A tail is what a kill cut short: its game is played again.
            self.gaps += [gap for gap in contents.gaps if not gap.is_tail]
            for frame in contents.frames:
                game = from_dict(PlayedGame, _parse(frame, path), where=str(path))
                games[game.index] = game
        self.played = tuple(games[index] for index in sorted(games))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(folder, error) from error
        self._path = folder / f"{max(found, default=0) + 1}.journal"
        self._segment = OpenSegment(self._path, key)

    def keep(self, games: Sequence[PlayedGame]) -> None:
        """Appends games. Blocks until they are durable.

        Raises:
            RunError: The disk refuses.
        """
        for game in games:
            self._segment.append(json.dumps(game.to_json()).encode())
        self._segment.flush()
        reach("match.kept", self._path)

    def close(self) -> None:
        """Leaves the games for the next process.

        Raises:
            RunError: The disk refuses.
        """
        self._segment.close()

    @staticmethod
    def remove(folder: Path) -> None:
        """Removes the games of a match that is over; nothing where there are none."""
        shutil.rmtree(folder, ignore_errors=True)


def _parse(frame: bytes, path: Path) -> Any:
    try:
        return json.loads(frame)
    except (ValueError, RecursionError):
        raise RunError(
            f"journal ({path}) has a game that is no JSON; {_ADVICE}"
        ) from None
