"""What is kept of a run's models against its target, in ``RUN/eval/target``.

``000017.json`` is how a model did, ``000017-confirm.json`` how the one did that passed,
in its further games; ``000017/0003.jsonl`` are games that one process played, gone once
their record is there, or the result; ``result.json`` is what came of all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen.config import from_dict, to_dict
from tengen.errors import RunError, UsageError
from tengen.evaluation.elo import Tally
from tengen.evaluation.played_game import PlayedGame
from tengen.run import (
    NumberedFolder,
    RunDirectory,
    publish_file,
    publish_json,
    read_object,
    storage_error,
)
from tengen.run.publish import remove_directory

__all__ = ["RESULT_FILE", "TargetFiles", "TargetRecord"]

TARGET_SCHEMA = 1
"""The version of these files written here, and the newest that is read."""

RESULT_FILE = "result.json"
_ADVICE = "remove it, its games are played again"
_MAX_BYTES = 1 << 28


@dataclass(frozen=True, kw_only=True)
class TargetRecord:
    """How a model did against the target."""

    schema: int = TARGET_SCHEMA
    """Version of the record."""
    model: int
    """Its number."""
    generation: int
    """Of the self-play that its newest training data comes from."""
    target: str
    """The opponent, as the run's config names it."""
    target_digest: str
    """Of the opponent's file: SHA-256, or its command."""
    num_games: int
    """Games played."""
    disputed: int
    """Games whose result an engine disputes, which are in none of the next three."""
    illegal: int = 0
    """Games that an engine lost by a move that is not legal, which count."""
    wins: int
    """Games that the model won."""
    draws: int
    """Games drawn."""
    losses: int
    """Games that it lost."""
    win_rate: float
    """Share of the points, in [0, 1]; a draw is a half."""
    num_simulations: int
    """Simulations a move."""
    seed: int
    """Of the run."""
    made_at: float
    """When the model was made, UNIX seconds."""
    began_at: float
    """When its first game began, UNIX seconds."""
    ended_at: float
    """When its last game had ended, UNIX seconds."""

    @property
    def tally(self) -> Tally:
        """The results as the model sees them."""
        return Tally(self.wins, self.draws, self.losses)


class TargetFiles:
    """The files by name. Holds no state: any number of processes may.

    Args:
        run: The run.
    """

    def __init__(self, run: RunDirectory) -> None:
        self.folder = run.eval / "target"
        self._games = run.games

    def make(self) -> None:
        """Makes the folder.

        Raises:
            RunError: The disk refuses.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(self.folder, error) from error

    def record(self, name: str) -> TargetRecord | None:
        """Returns the record of a match, None where it has none yet.

        Raises:
            UsageError: It is of a newer schema.
            RunError: It is damaged.
        """
        path = self.folder / f"{name}.json"
        if not path.exists():
            return None
        content = read_object(
            path, "target record", schema=TARGET_SCHEMA, advice=_ADVICE
        )
        return from_dict(TargetRecord, content, where=str(path))

    def publish_record(self, name: str, record: TargetRecord) -> None:
        """Publishes the record of a match and removes the games behind it.

        Raises:
            RunError: The disk refuses.
        """
        publish_json(self.folder / f"{name}.json", to_dict(record))
        self.clear_games(name)

    def clear_games(self, name: str) -> None:
        """Removes games whose record is there."""
        if (self.folder / name).exists():
            remove_directory(self.folder / name)

    def clear_all_games(self) -> None:
        """Removes all games, once the result is there: of matches played ahead too."""
        for path in self.folder.iterdir():
            if path.is_dir():
                remove_directory(path)

    def told_games(self, *, confirms: bool) -> NumberedFolder:
        """Returns the folder of games that people read, by the model's number.

        Args:
            confirms: Whether of the confirming matches, or of the others.
        """
        return NumberedFolder(
            self._games / ("target-confirm" if confirms else "target")
        )

    def clear_told_games(self) -> None:
        """Removes the games that people read, of all matches."""
        for confirms in (False, True):
            folder = self.told_games(confirms=confirms)
            for number in folder.numbers():
                remove_directory(folder.entry(number))

    def has_games(self, name: str, chunk: int) -> bool:
        """Returns whether the games of a part are there."""
        return self._chunk(name, chunk).exists()

    def publish_games(
        self, name: str, chunk: int, games: Sequence[PlayedGame], began_at: float
    ) -> None:
        """Publishes the games of a part.

        Args:
            name: Of the match.
            chunk: The part, from 0.
            games: All of it.
            began_at: When the first began, UNIX seconds.

        Raises:
            RunError: The disk refuses.
        """
        path = self._chunk(name, chunk)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(path, error) from error
        lines = [{"began_at": began_at}, *(game.to_json() for game in games)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        publish_file(path, text.encode())

    def games(self, name: str, chunk: int) -> tuple[list[PlayedGame], float]:
        """Returns the games of a part, and when the first began.

        Raises:
            RunError: The file is damaged.
        """
        path = self._chunk(name, chunk)
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise ValueError("it is too large")
            first, *lines = path.read_bytes().splitlines()
            games = [
                from_dict(PlayedGame, json.loads(line), where=str(path))
                for line in lines
            ]
            return games, float(json.loads(first)["began_at"])
        except OSError as error:
            raise storage_error(path, error) from error
        except (
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
            UsageError,
        ) as error:
            raise RunError(f"games ({path}) are damaged, {error}; {_ADVICE}") from error

    def result(self) -> dict[str, Any] | None:
        """Returns what came of all, None before the end.

        Raises:
            UsageError: It is of a newer schema.
            RunError: It is damaged.
        """
        path = self.folder / RESULT_FILE
        if not path.exists():
            return None
        return read_object(path, "result", schema=TARGET_SCHEMA, advice=_ADVICE)

    def publish_result(self, result: dict[str, Any]) -> None:
        """Publishes what came of all.

        Raises:
            RunError: The disk refuses.
        """
        content = {"schema": TARGET_SCHEMA, **result}
        publish_json(self.folder / RESULT_FILE, content)

    def _chunk(self, name: str, chunk: int) -> Path:
        return self.folder / name / f"{chunk:04d}.jsonl"
