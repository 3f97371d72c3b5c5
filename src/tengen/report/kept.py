"""Games that a run keeps for people: those of its closing match, else of its gate."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tengen.config import from_dict
from tengen.errors import RunError, UsageError, os_reason
from tengen.evaluation import read_record
from tengen.evaluation.played_game import PlayedGame
from tengen.games.sgf import read_sgf
from tengen.run import NumberedFolder, RunDirectory, find_files

__all__ = ["KeptGame", "read_kept_games"]

# Of a file; what is beyond is not looked at.
_MOST_BYTES = 1 << 22
_MOST_GAMES = 400


@dataclass(frozen=True)
class KeptGame:
    """A finished game of two named players."""

    match: str
    """What it was played for, a phrase."""
    game: str
    """The game's name where the file says it; empty for the run's task."""
    first: str
    """Who had the first move."""
    second: str
    """The other."""
    moves: tuple[int, ...]
    """Actions from the first."""
    result: str
    """Who won, or what else came of it."""


def read_kept_games(run: RunDirectory, num_games: int) -> list[KeptGame]:
    """Returns some games of the newest match that was kept, of different results first.

    Args:
        run: The run.
        num_games: How many at most.

    Raises:
        UsageError: A file is of a newer schema.
        RunError: One cannot be read, or is damaged.
    """
    games = _final_games(run) or _gate_games(run)
    firsts: dict[str, KeptGame] = {}
    for game in games:
        firsts.setdefault(game.result, game)
    chosen = list(firsts.values())
    chosen += [game for game in games if game not in chosen]
    return chosen[:num_games]


def _final_games(run: RunDirectory) -> list[KeptGame]:
    numbers: dict[int, Path] = {}
    for path in find_files(run.games, "final-*.jsonl"):
        word = path.stem.removeprefix("final-")
        if word.isdecimal():
            numbers[int(word)] = path
    if not numbers:
        return []
    number = max(numbers)
    a, b = "the model", "its opponent"
    record = run.eval / f"final-{number}.json"
    if record.exists():
        found = read_record(record)
        a, b = found.a, found.b
    return _of_lines(numbers[number], f"closing match {number}", a, b)


def _gate_games(run: RunDirectory) -> list[KeptGame]:
    folder = NumberedFolder(run.games / "gate")
    newest = folder.latest()
    if newest is None:
        return []
    match, path = f"the gate's match of candidate {newest:06d}", folder.entry(newest)
    candidate, model = f"candidate {newest:06d}", "the model before"
    if (path / "games.jsonl").exists():
        return _of_lines(path / "games.jsonl", match, candidate, model)
    files = sorted(find_files(path, "*.sgf"))[:_MOST_GAMES]
    return [_of_sgf(file, match) for file in files]


def _of_lines(path: Path, match: str, a: str, b: str) -> list[KeptGame]:
    """Returns the games of a file of JSON lines, as ``PlayedGame`` writes them."""
    lines = _head(path).splitlines()[:_MOST_GAMES]
    try:
        games = [from_dict(PlayedGame, json.loads(line), "game") for line in lines]
    except (UsageError, ValueError, RecursionError) as error:
        raise RunError(
            f"games ({path}) are damaged, {error}; remove the file to do without them"
        ) from None
    return [_of_match(game, match, a, b) for game in games]


def _of_match(game: PlayedGame, match: str, a: str, b: str) -> KeptGame:
    if game.score_a is None:
        result = "no result"
    else:
        result = "drawn" if game.score_a == 0.5 else f"{(b, a)[game.score_a > 0.5]} won"
    first, second = (a, b) if game.a_moves_first else (b, a)
    return KeptGame(match, "", first, second, game.moves, result)


def _of_sgf(path: Path, match: str) -> KeptGame:
    try:
        record = read_sgf(_head(path))
    except UsageError as error:
        raise RunError(
            f"game ({path}) is damaged, {error}; remove the file to do without it"
        ) from None
    first, second = record.black, record.white
    return KeptGame(match, record.game, first, second, record.moves, record.result)


def _head(path: Path) -> bytes:
    """Returns a file as far as it is looked at, whole lines."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError as error:
        raise RunError(
            f"games ({path}) cannot be read, {os_reason(error)}; check the file"
        ) from error
    if len(data) < _MOST_BYTES:
        return data
    return data[: data.rfind(b"\n") + 1]
