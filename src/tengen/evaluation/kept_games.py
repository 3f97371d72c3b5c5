"""Games of Go that a match keeps as SGF, a file each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tengen import _core
from tengen.errors import UsageError, os_reason
from tengen.evaluation.match import PlayedGame
from tengen.games import go_result
from tengen.games.sgf import GoRecord, write_sgf
from tengen.run import publish_file

__all__ = ["SgfFolder"]


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
        self._names = (a, b)
        try:
            self._first_player = int(_core.parse_go_name(game).handicap > 0)
            self._game = game
        except _core.CoreError as error:
            rule = "is for games of Go; leave --sgf out"
            raise UsageError(f"sgf ({path}) {rule}") from error
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
            # Whoever has "the first move" is Black, even where White begins.
            names = self._names if played.a_moves_first else self._names[::-1]
            record = GoRecord(
                game=self._game,
                moves=played.moves,
                first_player=self._first_player,
                result=go_result(self._game, played.moves),
                black=names[0],
                white=names[1],
            )
            path = self._path / f"{played.index:06d}.sgf"
            publish_file(path, write_sgf(record).encode(errors="replace"))
