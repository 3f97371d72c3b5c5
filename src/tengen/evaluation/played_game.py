"""Finished games of a match: results, output files, and the journal for resuming."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tengen import _core
from tengen.config import from_dict, to_dict
from tengen.errors import RunError, UsageError, os_reason
from tengen.experience import JournalGap, OpenSegment
from tengen.experience.games.journal import read_journal
from tengen.games import go_result
from tengen.games.sgf import GoRecord, write_sgf
from tengen.run import make_directory, publish_file, storage_error, sync_directory
from tengen.run.publish import reach

GAMES_FILE = "games.jsonl"
"""The file with the games of a match, in the match's folder."""
_ADVICE = "remove it, and its games are played again"


@dataclass(frozen=True)
class Dispute:
    """A legal move that an external engine rejected. Its game has no result."""

    side: Literal["a", "b"]
    """The side whose engine rejected the move."""
    move: int
    """The move's number in the game, from 1; the opening's moves count."""
    vertex: str
    """The rejected move as it was sent to the engine, such as ``D4`` or ``pass``."""
    words: str
    """The engine's error message, as one line."""

    def text(self, name: str) -> str:
        """Returns one line that describes the dispute; ``name`` names the side."""
        return f"{name} refused move {self.move}, {self.vertex}: {self.words}"


@dataclass(frozen=True)
class PlayedGame:
    """One finished game of a match."""

    index: int
    """The index of the game in the match, from 0."""
    a_moves_first: bool
    """Whether A is player 0: Black in Go, otherwise the side that moves first."""
    moves: tuple[int, ...]
    """All actions of the game, including the opening."""
    num_opening_plies: int
    """The number of plies of the opening."""
    score_a: float | None
    """A's score: 1 for a win, 0.5 for a draw, 0 for a loss; None if disputed."""
    disputed: Dispute | None = None
    """The dispute that left the game without a result; None if it has a result."""
    illegal: str = ""
    """A description of the illegal move with which an engine lost; empty if none."""

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON values; ``from_dict`` is the inverse.

        ``disputed`` and ``illegal`` are omitted if they are empty.
        """
        fields = to_dict(self)
        if not self.illegal:
            del fields["illegal"]
        if self.disputed is None:
            del fields["disputed"]
        return fields


class GameFolder:
    """A folder with the games of a match: ``games.jsonl``, and SGF files if it is Go.

    Args:
        path: The folder; it must be new or empty.
        game: The name of the game, such as ``go/9``.
        a: The name of player A.
        b: The name of player B.
    """

    def __init__(self, path: Path, game: str, a: str, b: str) -> None:
        """Creates the folder if it does not exist.

        Raises:
            UsageError: The folder cannot be used.
        """
        self._path = path
        self._match = (game, a, b)
        try:
            path.mkdir(parents=True, exist_ok=True)
            is_empty = not any(path.iterdir())
        except OSError as error:
            rule = f"cannot be a folder, {os_reason(error)}; choose another"
            raise UsageError(f"keep ({path}) {rule}") from error
        if not is_empty:
            raise UsageError(f"keep ({path}) must be new or empty; choose another")

    def keep(self, games: Sequence[PlayedGame]) -> None:
        """Adds finished games. Blocks until they are durable.

        A line of ``games.jsonl`` has the fields of ``PlayedGame``, and ``task``, ``a``
        and ``b``.

        Raises:
            RunError: The write fails.
        """
        game, a, b = self._match
        match = {"task": game, "a": a, "b": b}
        lines = [json.dumps({**match, **each.to_json()}) + "\n" for each in games]
        for played in games if _is_go(game) else ():
            sgf = _sgf(game, a, b, played)
            publish_file(self._path / _file_name(played), sgf)
        path = self._path / GAMES_FILE
        try:
            with path.open("ab") as file:
                file.write("".join(lines).encode())
                file.flush()
                os.fsync(file.fileno())
            sync_directory(self._path)
        except OSError as error:
            raise storage_error(path, error) from error


def games_jsonl(games: Sequence[PlayedGame]) -> bytes:
    """Returns games as JSON Lines; each object has the fields of ``PlayedGame``."""
    return "".join(json.dumps(game.to_json()) + "\n" for game in games).encode()


def write_games(
    folder: Path, game: str, a: str, b: str, games: Sequence[PlayedGame]
) -> None:
    """Writes the games of a match into a folder that is not published yet.

    Writes ``games.jsonl`` and, for Go, one SGF file per game, from ``000000.sgf``.

    Args:
        folder: The folder, which must be empty.
        game: The game's name.
        a: The name of player A.
        b: The name of player B.
        games: The games to write.
    """
    (folder / GAMES_FILE).write_bytes(games_jsonl(games))
    for played in games if _is_go(game) else ():
        (folder / _file_name(played)).write_bytes(_sgf(game, a, b, played))


def _is_go(game: str) -> bool:
    try:
        _core.parse_go_name(game)
    except _core.CoreError:
        return False
    return True


def _file_name(played: PlayedGame) -> str:
    return f"{played.index:06d}.sgf"


def _sgf(game: str, a: str, b: str, played: PlayedGame) -> bytes:
    # Player 0 of the core is Black, even if a handicap makes White move first.
    black, white = (a, b) if played.a_moves_first else (b, a)
    disputed = played.disputed
    record = GoRecord(
        game=game,
        moves=played.moves,
        first_player=int(_core.parse_go_name(game).handicap > 0),
        # "Void" is the SGF value for a game without a result.
        result="Void" if disputed else go_result(game, played.moves),
        black=black,
        white=white,
        comment=disputed.text(a if disputed.side == "a" else b) if disputed else "",
    )
    return write_sgf(record).encode(errors="replace")


class MatchJournal:
    """A folder of journals with a match's finished games, so that a match can resume.

    Each process that plays the match adds a journal: ``1.journal``, ``2.journal`` and
    so on. A frame is a game, as in ``games.jsonl``. One process at a time may use a
    folder.

    Attributes:
        played: Games that earlier processes finished, ordered by index.
        gaps: Damaged parts of the journals. Their games are played again.

    Args:
        folder: The folder, created if missing.
        key: All settings that the games depend on, as JSON values. A journal with
            another key belongs to another match and is removed.

    Raises:
        UsageError: A journal has a newer schema.
        RunError: A journal is damaged, or a file operation fails.
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
            # A tail is a frame that a kill truncated. It is normal and not reported.
            self.gaps += [gap for gap in contents.gaps if not gap.is_tail]
            for frame in contents.frames:
                game = from_dict(PlayedGame, _parse(frame, path), where=str(path))
                games[game.index] = game
        self.played = tuple(games[index] for index in sorted(games))
        make_directory(folder)
        self._path = folder / f"{max(found, default=0) + 1}.journal"
        self._segment = OpenSegment(self._path, key)

    def keep(self, games: Sequence[PlayedGame]) -> None:
        """Appends finished games to the journal. Blocks until they are durable.

        Raises:
            RunError: The write fails.
        """
        for game in games:
            self._segment.append(json.dumps(game.to_json()).encode())
        self._segment.flush()
        reach("match.kept", self._path)

    def close(self) -> None:
        """Closes this process's journal.

        Raises:
            RunError: The write fails.
        """
        self._segment.close()

    @staticmethod
    def remove(folder: Path) -> None:
        """Removes the folder with the journals of a completed match, if it exists."""
        shutil.rmtree(folder, ignore_errors=True)


def _parse(frame: bytes, path: Path) -> Any:
    try:
        return json.loads(frame)
    except (ValueError, RecursionError):
        raise RunError(
            f"journal ({path}) has a game that is not JSON; {_ADVICE}"
        ) from None
