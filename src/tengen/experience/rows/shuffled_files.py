"""The files of ``RUN/shuffled``, with batches sampled in advance for a single use.

A turn of the role shuffle publishes a folder ``shuffled/NNNNNN``. The folder contains
shards, which are archives of packed columns named ``shard-0000.npz`` and so on,
``turn.json``, and ``validation.npz`` if there are validation games. Packing is
lossless.

Legend: N rows, C planes, H W board, A actions.

=================  ===============================================================
``plane_rows``     ``[N, bytes] uint8``, planes as in core/inference/packed_rows.h
``X_bits``         X, an array of zeros and ones, packed to bits
``X_count``        ``[N] uint16``: number of nonzero entries per row of X ``[N, A]``
``X_action``       ``uint16``, indices of the nonzero entries in their rows
``X_entry``        ``float32``, values of the nonzero entries
``X_owner``        X ``[N, H, W]``, integers stored as ``int8``
X                  any other column X, unpacked
=================  ===============================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.config import from_dict, to_dict
from tengen.errors import RunError
from tengen.experience.games.archive import ArchiveReader, pack
from tengen.games import is_external, open_game
from tengen.run import NumberedFolder, read_object

SCHEMA = 1
"""The schema version of written ``turn.json`` files, and the newest readable one."""

VALIDATION = "validation.npz"
"""Name of the file with validation rows in a turn's folder."""

# Columns that every shard must have; targets of auxiliary heads are optional.
_NEEDED = {
    "planes",
    "legal",
    "policy",
    "policy_weight",
    "outcome",
    "search_value",
    "value_weight",
}
_SPARSE = ("policy", "reply")
_ADVICE = "remove its folder, and the learner skips its rows"


@dataclass(frozen=True, kw_only=True)
class ShuffledTurn:
    """A summary of one turn of the role shuffle; the content of ``turn.json``."""

    game: str
    """Name of the game that the rows belong to."""
    generation: int
    """The newest generation that the shuffler had read."""
    num_games: int
    """Number of games in the run at the time of the turn."""
    num_rows: int
    """Number of training rows in the run's games, without validation rows."""
    num_new: int
    """Number of training rows that the run gained since the previous turn."""
    window_rows: int
    """Number of rows in the window from which the turn's rows were sampled."""
    window_bytes: int
    """Memory that the window's games used, in bytes."""
    shard_rows: tuple[int, ...]
    """Number of rows in each shard of the turn."""
    has_validation: bool
    """Whether the turn's folder has a ``validation.npz``."""


@dataclass(frozen=True)
class ShardRows:
    """Rows of one shard, in the order in which the shuffler sampled them."""

    keys: NDArray[np.int64]
    """Row indices ``[N]``."""
    columns: dict[str, NDArray[Any]]
    """Columns in the format of ``GameWindow.sample``."""


def write_shard(
    path: Path,
    keys: NDArray[np.int64],
    columns: Mapping[str, NDArray[Any]],
    game: str,
    is_native: bool,
) -> None:
    """Writes a shard or ``validation.npz``; the caller publishes the folder.

    Args:
        path: The file to write.
        keys: Row indices ``[N]``.
        columns: Columns in the format of ``GameWindow.sample``.
        game: Name of the game that the rows belong to.
        is_native: Whether the core implements the game.
    """
    meta = {
        "game": game,
        "shape": list(columns["planes"].shape[1:]),
        "num_actions": columns["legal"].shape[1],
    }
    packed = {"keys": keys, **pack_columns(columns, is_native)}
    path.write_bytes(pack(meta, packed))


def read_shard(path: Path, game: str) -> ShardRows:
    """Returns the unpacked rows of a shard or of ``validation.npz``.

    Raises:
        RunError: The file is missing, is damaged, or its rows are of a different game.
    """
    try:
        with ArchiveReader(path) as reader:
            packed = {name: reader.read(name) for name in reader.names()}
            meta = reader.meta
    except RunError as error:
        reason = str(error).partition("; ")[0]
        raise RunError(f"shard: {reason}; {_ADVICE}") from error
    if meta.get("game") != game:
        raise RunError(f"shard ({path}) must be for {game}; {_ADVICE}")
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
            raise ValueError("its columns have different lengths")
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise RunError(f"shard ({path}) is damaged, {error}; {_ADVICE}") from error
    return ShardRows(keys, columns)


def shard_name(index: int) -> str:
    """Returns the file name of shard ``index``, counted from 0."""
    return f"shard-{index:04d}.npz"


def write_turn(folder: Path, turn: ShuffledTurn, window: Mapping[str, Any]) -> None:
    """Writes ``turn.json``; the caller publishes the folder.

    Args:
        folder: The turn's folder.
        turn: The summary of the turn.
        window: The state of the ``GameWindow`` after the turn, for the next turn.
    """
    content = {"schema": SCHEMA, "turn": to_dict(turn), "window": dict(window)}
    (folder / "turn.json").write_text(json.dumps(content) + "\n")


def read_turn(folder: NumberedFolder, number: int) -> ShuffledTurn:
    """Returns the summary of turn ``number``.

    Raises:
        UsageError: The turn is of a newer schema.
        RunError: The turn is missing or damaged.
    """
    path = folder.entry(number) / "turn.json"
    return from_dict(ShuffledTurn, _read(path, "turn"), str(path))


def read_window_state(folder: NumberedFolder, number: int) -> dict[str, Any]:
    """Returns the window's state after turn ``number``; errors as in ``read_turn``."""
    return _read(folder.entry(number) / "turn.json", "window")


def _read(path: Path, part: str) -> dict[str, Any]:
    content = read_object(path, "shuffled turn", schema=SCHEMA, advice=_ADVICE)
    value = content.get(part)
    if not isinstance(value, dict):
        raise RunError(f"shuffled turn ({path}) has no {part}; {_ADVICE}")
    return value


def pack_columns(
    columns: Mapping[str, NDArray[Any]], is_native: bool
) -> dict[str, NDArray[Any]]:
    """Returns packed arrays, which ``unpack_columns`` converts back to the columns.

    Args:
        columns: Columns ``[N, ...]`` as ``GameWindow.sample`` returns them.
        is_native: Whether the core implements the game. If so, a plane contains zeros
            and at most one other number.
    """
    packed: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        if name == "planes":
            layout = _core.RowLayout(column.shape[1:], is_native)
            rows = np.empty((len(column), layout.num_bytes), np.uint8)
            _core.write_rows(layout, column, rows)
            packed["plane_rows"] = rows
        elif name == "legal":
            packed["legal_bits"] = np.packbits(column.reshape(-1))
        elif name in _SPARSE:
            flat = np.flatnonzero(column)
            row, action = np.divmod(flat, column.shape[1])
            counts = np.bincount(row, minlength=len(column))
            packed[f"{name}_count"] = counts.astype(np.uint16)
            packed[f"{name}_action"] = action.astype(np.uint16)
            packed[f"{name}_entry"] = column.reshape(-1)[flat]
        elif name == "ownership" and _is_whole(column):
            packed["ownership_owner"] = column.astype(np.int8)
        else:
            packed[name] = column
    return packed


def unpack_columns(
    packed: Mapping[str, NDArray[Any]],
    shape: tuple[int, int, int],
    num_actions: int,
    is_native: bool,
) -> dict[str, NDArray[Any]]:
    """Returns the columns that ``pack_columns`` has packed.

    Args:
        packed: The result of ``pack_columns``.
        shape: The numbers C, H and W of planes, rows and columns.
        num_actions: Number A of actions.
        is_native: Whether the core implements the game; see ``pack_columns``.

    Returns:
        The columns; the arrays are writable.

    Raises:
        KeyError: An array is missing.
        ValueError: The shapes or dtypes of the arrays are inconsistent.
    """
    rows = packed["plane_rows"]
    num_rows = len(rows)
    layout = _core.RowLayout(shape, is_native)
    if rows.dtype != np.uint8 or rows.shape != (num_rows, layout.num_bytes):
        raise ValueError("plane_rows has the wrong shape")
    columns: dict[str, NDArray[Any]] = {
        "planes": np.empty((num_rows, *shape), np.float32)
    }
    _core.read_rows(layout, rows, columns["planes"])
    for name, array in packed.items():
        stem, _, kind = name.rpartition("_")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} has non-numeric values")
        if kind == "bits":
            if array.dtype != np.uint8 or array.size != -(-num_rows * num_actions // 8):
                raise ValueError(f"{name} does not have one bit per action")
            bits = np.unpackbits(array, count=num_rows * num_actions)
            columns[stem] = bits.reshape(num_rows, num_actions)
        elif kind == "owner":
            columns[stem] = array.astype(np.float32)
        elif kind == "count":
            num_entries = len(packed[f"{stem}_entry"])
            if array.shape != (num_rows,) or array.sum(dtype=np.int64) != num_entries:
                raise ValueError(f"{name} differs from the number of entries")
            action = packed[f"{stem}_action"]
            if action.dtype.kind != "u":
                raise ValueError(f"{stem}_action has the wrong dtype")
            dense = np.zeros((num_rows, num_actions), np.float32)
            row = np.repeat(np.arange(num_rows), array)
            dense[row, action] = packed[f"{stem}_entry"]
            columns[stem] = dense
        elif kind not in ("action", "entry", "rows"):
            if array.dtype != np.float32 or len(array) != num_rows:
                raise ValueError(f"{name} has the wrong dtype or length")
            columns[name] = array.copy()
    return columns


def _is_whole(column: NDArray[np.float32]) -> bool:
    return bool((column == np.rint(column)).all() and (np.abs(column) <= 127).all())
