"""Games of a match in files for people: SGF where the game is Go, else JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tengen import _core
from tengen.errors import UsageError, os_reason
from tengen.evaluation.played_game import PlayedGame
from tengen.games import go_result
from tengen.games.sgf import GoRecord, write_sgf
from tengen.run import publish_file

__all__ = ["SgfFolder", "games_jsonl", "write_games"]


class SgfFolder:
    """A folder for the games of one match, ``000000.sgf`` the first of them.

    Args:
        path: New, or empty.
        game: The name of a game of Go.
        a: A's name.
        b: B's name.
    """

    def __init__(self, path: Path, game: str, a: str, b: str) -> None:
        """Makes the folder.

        Raises:
            UsageError: The folder cannot be used, or the game is not Go.
        """
        self._path = path
        if not _is_go(game):
            raise UsageError(f"sgf ({path}) is for games of Go; leave --sgf out")
        self._game = game
        self._names = (a, b)
        try:
            path.mkdir(parents=True, exist_ok=True)
            is_empty = not any(path.iterdir())
        except OSError as error:
            rule = f"cannot be a folder, {os_reason(error)}; name another"
            raise UsageError(f"sgf ({path}) {rule}") from error
        if not is_empty:
            raise UsageError(f"sgf ({path}) must be new or empty; name another folder")

    def keep(self, games: Sequence[PlayedGame]) -> None:
        """Writes the games. Blocks until they are durable.

        Raises:
            RunError: The disk refuses.
        """
        for played in games:
            sgf = _sgf(self._game, *self._names, played)
            publish_file(self._path / _file_name(played), sgf)


def games_jsonl(games: Sequence[PlayedGame]) -> bytes:
    """Returns one game a line, a JSON object with the fields of ``PlayedGame``."""
    return "".join(json.dumps(game.to_json()) + "\n" for game in games).encode()


def write_games(
    folder: Path, game: str, a: str, b: str, games: Sequence[PlayedGame]
) -> None:
    """Writes games into a folder that is being published.

    Those of Go are files as ``SgfFolder`` has them, others ``games.jsonl``.

    Args:
        folder: Empty.
        game: The game's name.
        a: A's name.
        b: B's name.
        games: What to write.
    """
    if not _is_go(game):
        (folder / "games.jsonl").write_bytes(games_jsonl(games))
        return
    for played in games:
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
    # Whoever has "the first move" is Black, even where White begins.
    black, white = (a, b) if played.a_moves_first else (b, a)
    disputed = played.disputed
    record = GoRecord(
        game=game,
        moves=played.moves,
        first_player=int(_core.parse_go_name(game).handicap > 0),
        # SGF's word for a game without a result.
        result="Void" if disputed else go_result(game, played.moves),
        black=black,
        white=white,
        comment=disputed.text(a if disputed.side == "a" else b) if disputed else "",
    )
    return write_sgf(record).encode(errors="replace")
