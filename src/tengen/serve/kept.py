"""Reads a run's stored games, of self-play and of matches."""

from __future__ import annotations

import collections
import itertools
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from tengen import _core
from tengen.config import from_dict
from tengen.envs.copies import one_line
from tengen.errors import UsageError
from tengen.evaluation import GAMES_FILE, PlayedGame, read_record
from tengen.experience.games.files import experience_files
from tengen.experience.games.journal import core_errors, read_journal
from tengen.experience.games.segment import SegmentReader
from tengen.games import Game
from tengen.games.sgf import read_sgf, replay
from tengen.run import RunDirectory, find_files
from tengen.serve.boards import apply_move, describe_game, position
from tengen.serve.catalog import in_folder

_LEAD_UNITS = 8.0
_OUTCOMES = {1: 1.0, 2: -1.0, 3: 0.0}
_MAX_SGF_FILES = 1000
_MAX_SOURCES = 400
_MAX_GAMES = 2000
_MAX_NAME = 300  # characters of a task or a player
_MAX_BYTES = 64 << 20  # maximum size of a match's file


@dataclass(frozen=True)
class Source:
    """A file or folder with stored games, such as those of a match."""

    id: str
    """ID of the source in URLs."""
    kind: Literal["self-play", "match"]
    """The kind of games. Only self-play games have search results."""
    title: str
    """The display title."""
    path: Path
    """The file, or the folder of a match."""
    players: tuple[str, str] = ("A", "B")
    """Default names of the two sides of a match."""
    record: Path | None = None
    """The match record with the names of the two sides; it need not exist."""


@dataclass(frozen=True)
class KeptPly:
    """The stored results of one search."""

    value_to_play: float
    """The search's value for the side to move, in [-1, 1]."""
    num_simulations: int
    """Number of simulations of the search."""
    policy: tuple[tuple[int, float], ...]
    """The policy target as (action, share); empty for plies without a target."""
    lead_to_play: float | None
    """The estimated lead of the side to move, in points; None if not estimated."""


@dataclass(frozen=True)
class KeptGame:
    """A stored finished game."""

    index: int
    """Index of the game in its generation or match."""
    title: str
    """Display title: the players' names, or the model of self-play."""
    moves: tuple[int, ...]
    """Actions from the first move."""
    num_opening_plies: int
    """Number of opening moves, which were played without a search; 0 if unknown."""
    result: float | None
    """The first player's result, in {-1, 0, 1}; None without a result."""
    plies: tuple[KeptPly | None, ...] = ()
    """Search result of each move, None for opening moves; empty if none is stored."""
    variant: str = ""
    """Name of the game's variant; empty for the run's task itself."""
    players: tuple[str, str] = ("", "")
    """Names of the first and the second player of a match; empty for self-play."""


def sources(run: RunDirectory) -> list[Source]:
    """Returns the sources of a run, newest first within each kind. Opens no file.

    Links to paths outside the run are left out.
    """
    found = []
    matches = sorted(find_files(run.games, "final-*.jsonl"), key=_number, reverse=True)
    for path in matches:
        title, players = f"closing match {_number(path)}", ("the model", "its opponent")
        record = run.eval / f"{path.stem}.json"
        found.append(Source(path.stem, "match", title, path, players, record))
    for folder in sorted(find_files(run.games / "gate", "*"), reverse=True):
        if folder.name.isdecimal():
            title = f"gate, candidate {int(folder.name)}"
            players = ("the candidate", "the model before")
            found.append(Source(f"gate-{folder.name}", "match", title, folder, players))
    games = [
        *experience_files(run.experience, "npz"),
        *experience_files(run.experience, "journal"),
    ]
    # A generation has several files if parts of it were sealed during self-play.
    newest = sorted(
        games, key=lambda p: (int(p.stem), int(p.parent.name), p.suffix), reverse=True
    )
    places = {path.with_suffix("") for path in games}
    num_parts = collections.Counter(int(place.stem) for place in places)
    num_left = num_parts.copy()
    seen = set()
    for path in newest:
        writer, incarnation = path.parts[-3:-1]
        generation = int(path.stem)
        name = f"{writer}.{incarnation}.{path.stem}"
        if name in seen:
            continue  # The journal is being sealed; its segment is already listed.
        seen.add(name)
        title = f"self-play, generation {generation}"
        if num_parts[generation] > 1:
            title += f", part {num_left[generation]}"
        num_left[generation] -= 1
        if path.suffix == ".journal":
            title += ", in progress"
        found.append(Source(name, "self-play", title, path))
    # Matches come first; each kind has its own limit.
    num_matches = sum(source.kind == "match" for source in found)
    first = found[:num_matches][:_MAX_SOURCES] + found[num_matches:][:_MAX_SOURCES]
    inside = set(in_folder((source.path for source in first), run.path))
    return [source for source in first if source.path in inside]


def read_source(source: Source) -> tuple[KeptGame, ...]:
    """Returns the games of a source. Blocks. The last four sources are cached.

    Raises:
        UsageError: A file is missing, too large or invalid, or has a newer schema.
        RunError: A file is damaged.
    """
    try:
        state = source.path.stat()
    except OSError as error:
        raise UsageError(f"games ({source.id}) are gone; choose others") from error
    if source.kind == "match" and state.st_size > _MAX_BYTES:
        raise UsageError(f"games ({source.id}) are too large to show; choose others")
    return _read(source, state.st_mtime_ns, state.st_size)


def replayed(game: Game, kept: KeptGame) -> list[dict[str, Any]]:
    """Returns the initial position and the position after each move, as JSON values.

    The values have the keys of ``position``, except ``legal``.

    Raises:
        UsageError: A move is illegal.
    """
    state = game.new_state()
    shown = [position(game, state)]
    for number, move in enumerate(kept.moves, 1):
        apply_move(state, move, number)
        shown.append(position(game, state))
    for each in shown:
        del each["legal"]
    return shown


def source_row(source: Source) -> dict[str, str]:
    """Returns the entry of a source in the list of sources, as JSON values."""
    return {"id": source.id, "kind": source.kind, "title": source.title}


def source_page(source: Source) -> dict[str, Any]:
    """Returns a source's list of games as JSON values. Raises as ``read_source``."""
    games = read_source(source)
    listed = [
        {
            "index": game.index,
            "title": game.title,
            "num_plies": len(game.moves),
            "result": game.result,
            "variant": game.variant,
        }
        for game in games[:_MAX_GAMES]
    ]
    return {"title": source.title, "num_games": len(games), "games": listed}


def game_page(game: Game, kept: KeptGame) -> dict[str, Any]:
    """Returns a game with all positions as JSON values. Raises as ``replayed``."""
    return {
        "game": describe_game(game),
        "index": kept.index,
        "title": kept.title,
        "result": kept.result,
        "moves": kept.moves,
        "num_opening_plies": kept.num_opening_plies,
        "positions": replayed(game, kept),
        "plies": [None if ply is None else _ply(ply) for ply in kept.plies],
    }


def _ply(ply: KeptPly) -> dict[str, Any]:
    return {
        "value": round(ply.value_to_play, 4),
        "simulations": ply.num_simulations,
        "policy": [[action, round(share, 5)] for action, share in ply.policy],
        "lead": ply.lead_to_play,
    }


@lru_cache(maxsize=4)
def _read(source: Source, time_ns: int, size: int) -> tuple[KeptGame, ...]:
    path = source.path
    if path.is_dir():
        lines = path / GAMES_FILE
        if in_folder([lines], path) and lines.exists():
            return _lines(lines, source.players)
        return _sgf_folder(path)
    if path.suffix == ".jsonl":
        players = source.players
        if source.record is not None and source.record.exists():
            match = read_record(source.record)
            players = match.a, match.b
        return _lines(path, players)
    return _recorded(path)


def _lines(path: Path, players: tuple[str, str]) -> tuple[KeptGame, ...]:
    if path.stat().st_size > _MAX_BYTES:
        raise UsageError(f"games ({path}) are too large to show; choose others")
    games = []
    data = path.read_bytes()
    lines = data.splitlines()
    for number, line in enumerate(lines, 1):
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            if number == len(lines) and not data.endswith(b"\n"):
                break  # A kill truncated the last line.
            raise UsageError(f"games ({path}) are not JSON; remove them") from None
        if not isinstance(content, dict):
            raise UsageError(f"games ({path}) are not JSON objects; remove them")
        task, *names = (
            one_line(content.pop(name, usual), _MAX_NAME)
            for name, usual in zip(("task", "a", "b"), ("", *players), strict=True)
        )
        game = from_dict(PlayedGame, content, where=path.name)
        first = None
        if game.score_a is not None:
            first = 2.0 * game.score_a - 1.0
            first = first if game.a_moves_first else -first
        first_name, other = names if game.a_moves_first else names[::-1]
        games.append(
            KeptGame(
                index=game.index,
                title=f"{first_name} against {other}",
                moves=game.moves,
                num_opening_plies=game.num_opening_plies,
                result=first,
                variant=task,
                players=(first_name, other),
            )
        )
    return tuple(games)


def _sgf_folder(folder: Path) -> tuple[KeptGame, ...]:
    games = []
    for path in in_folder(sorted(folder.glob("*.sgf"))[:_MAX_SGF_FILES], folder):
        if not path.stem.isdecimal():
            continue
        record = read_sgf(path.read_bytes())
        _, moves = replay(record)
        result = {"B": 1.0, "W": -1.0, "0": 0.0}.get(record.result[:1])
        title = f"{record.black} against {record.white}"
        games.append(
            KeptGame(
                index=int(path.stem),
                title=title,
                moves=tuple(moves),
                num_opening_plies=0,
                result=result,
                variant=record.game,
                players=(
                    one_line(record.black, _MAX_NAME),
                    one_line(record.white, _MAX_NAME),
                ),
            )
        )
    return tuple(games)


def _recorded(path: Path) -> tuple[KeptGame, ...]:
    """Returns the games of a sealed segment, or of a journal."""
    if path.suffix == ".npz":
        with SegmentReader(path) as reader:
            arrays = reader.game_columns()
    else:
        frames = read_journal(path).frames
        with core_errors():
            arrays = _core.merge_games(frames, int(path.stem))
    columns = {name: array.tolist() for name, array in arrays.items()}
    names = bytes(columns["variant"])
    targets = list(zip(columns["policy_action"], columns["policy_mass"], strict=True))
    entries = _bounds(columns["num_policy_entries"])
    plies = [
        KeptPly(value, count, _shares(targets[first:end]), _lead(lead))
        for value, count, (first, end), lead in zip(
            columns["root_value"],
            columns["num_simulations"],
            entries,
            columns["lead"],
            strict=True,
        )
    ]
    games = []
    for index, model, outcome, name, opening, searched in zip(
        columns["game_index"],
        columns["model"],
        columns["outcome"],
        _bounds(columns["num_variant_bytes"]),
        _bounds(columns["num_opening_plies"]),
        _bounds(columns["num_plies"]),
        strict=True,
    ):
        opened = columns["opening"][slice(*opening)]
        games.append(
            KeptGame(
                index=index,
                title=f"model {model}",
                moves=(*opened, *columns["action"][slice(*searched)]),
                num_opening_plies=len(opened),
                result=_OUTCOMES.get(outcome),
                plies=(*(None for _ in opened), *plies[slice(*searched)]),
                variant=names[slice(*name)].decode(errors="replace"),
            )
        )
    return tuple(games)


def _bounds(counts: list[int]) -> list[tuple[int, int]]:
    """Returns the (start, end) offsets of concatenated lists of the given lengths."""
    return list(itertools.pairwise(itertools.accumulate(counts, initial=0)))


def _shares(entries: Any) -> tuple[tuple[int, float], ...]:
    total = sum(mass for _, mass in entries)
    return tuple((action, mass / total) for action, mass in entries)


def _lead(lead: int) -> float | None:
    return None if lead == _core.NO_LEAD else lead / _LEAD_UNITS


def _number(path: Path) -> int:
    text = path.stem.rpartition("-")[2]
    return int(text) if text.isdecimal() else 0
