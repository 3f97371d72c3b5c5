"""The files of ``RUN/shuffled``: batches drawn ahead, in order, each to be used once.

A turn of the role shuffle publishes a folder ``shuffled/NNNNNN``. It has shards, which
are archives of packed columns named ``shard-0000.npz`` and so on, ``validation.npz``
where there are validation games, and ``turn.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import from_dict, to_dict
from tengen.errors import RunError
from tengen.experience.games.archive import ArchiveReader, pack
from tengen.experience.rows.packed_columns import pack_columns, unpack_columns
from tengen.games import is_external, open_game
from tengen.run import NumberedFolder, read_object

__all__ = [
    "SCHEMA",
    "VALIDATION",
    "ShardRows",
    "ShuffledTurn",
    "read_shard",
    "read_turn",
    "read_window_state",
    "shard_name",
    "write_shard",
    "write_turn",
]

SCHEMA = 1
"""The version of ``turn.json`` that this code writes and reads."""

VALIDATION = "validation.npz"
"""The file of validation rows."""

# Columns that every learner of games reads; targets of auxiliary heads may be added.
_NEEDED = {
    "planes",
    "legal",
    "policy",
    "policy_weight",
    "outcome",
    "search_value",
    "value_weight",
}
_ADVICE = "remove its folder, the learner leaves its rows out"


@dataclass(frozen=True, kw_only=True)
class ShuffledTurn:
    """What one turn of the role shuffle drew; the content of ``turn.json``."""

    game: str
    """The game of the rows."""
    generation: int
    """The newest generation that was drawn from."""
    num_games: int
    """Games that had been played by then."""
    num_rows: int
    """Rows to learn from in these games."""
    num_new: int
    """Rows that were new in this turn."""
    window_rows: int
    """Number of the newest rows, from which the turn drew."""
    window_bytes: int
    """Bytes of memory that the window's games took."""
    shard_rows: tuple[int, ...]
    """Rows of each shard."""
    has_validation: bool
    """Whether there is a ``validation.npz``."""


@dataclass(frozen=True)
class ShardRows:
    """Rows of one shard, in the order in which they were drawn."""

    keys: NDArray[np.int64]
    """``[N]``, the rows' numbers."""
    columns: dict[str, NDArray[Any]]
    """As ``GameWindow.sample`` gives them."""


def write_shard(
    path: Path,
    keys: NDArray[np.int64],
    columns: Mapping[str, NDArray[Any]],
    game: str,
    is_native: bool,
) -> None:
    """Writes one file; the caller publishes the folder.

    Args:
        path: The file.
        keys: ``[N]``, numbers of the rows.
        columns: As ``GameWindow.sample`` gives them.
        game: The name of the rows' game.
        is_native: Whether the game is one of the core's.
    """
    meta = {
        "game": game,
        "shape": list(columns["planes"].shape[1:]),
        "num_actions": columns["legal"].shape[1],
    }
    packed = {"keys": keys, **pack_columns(columns, is_native)}
    path.write_bytes(pack(meta, packed))


def read_shard(path: Path, game: str) -> ShardRows:
    """Returns the rows of one file.

    Raises:
        RunError: It is missing, damaged or of another game.
    """
    try:
        with ArchiveReader(path) as reader:
            packed = {name: reader.read(name) for name in reader.names()}
            meta = reader.meta
    except RunError as error:
        reason = str(error).partition("; ")[0]
        raise RunError(f"shard: {reason}; {_ADVICE}") from error
    if meta.get("game") != game:
        raise RunError(f"shard ({path}) must be of {game}; {_ADVICE}")
    rules = open_game(game)
    shape = (rules.num_planes, rules.height, rules.width)
    try:
        if meta["shape"] != list(shape) or meta["num_actions"] != rules.num_actions:
            raise ValueError(f"its rows are not those of {game}")
        keys = packed.pop("keys").astype(np.int64, casting="safe", copy=False)
        columns = unpack_columns(
            packed, shape, rules.num_actions, not is_external(rules)
        )
        if missing := sorted(_NEEDED - columns.keys()):
            raise ValueError(f"it has no {missing[0]}")
        if any(len(column) != len(keys) for column in columns.values()):
            raise ValueError("its columns are not of one length")
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise RunError(f"shard ({path}) is damaged, {error}; {_ADVICE}") from error
    return ShardRows(keys, columns)


def shard_name(index: int) -> str:
    """Returns the name of the file of a shard, from 0."""
    return f"shard-{index:04d}.npz"


def write_turn(folder: Path, turn: ShuffledTurn, window: Mapping[str, Any]) -> None:
    """Writes ``turn.json``; the caller publishes the folder.

    Args:
        folder: The turn's folder.
        turn: What the turn drew.
        window: The window's state after the turn, for the next turn.
    """
    content = {"schema": SCHEMA, "turn": to_dict(turn), "window": dict(window)}
    (folder / "turn.json").write_text(json.dumps(content) + "\n")


def read_turn(folder: NumberedFolder, number: int) -> ShuffledTurn:
    """Returns what turn ``number`` drew.

    Raises:
        UsageError: It is of a newer schema.
        RunError: It is missing or damaged.
    """
    path = folder.entry(number) / "turn.json"
    return from_dict(ShuffledTurn, _read(path, "turn"), str(path))


def read_window_state(folder: NumberedFolder, number: int) -> dict[str, Any]:
    """Returns the window's state after turn ``number``; errors as ``read_turn``."""
    return _read(folder.entry(number) / "turn.json", "window")


def _read(path: Path, part: str) -> dict[str, Any]:
    content = read_object(path, "shuffled turn", schema=SCHEMA, advice=_ADVICE)
    value = content.get(part)
    if not isinstance(value, dict):
        raise RunError(f"shuffled turn ({path}) is damaged, no {part}; {_ADVICE}")
    return value
