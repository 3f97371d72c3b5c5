"""Training rows imported from MLPerf's minigo examples, in one file per generation.

``NNNNNN.rows.npz`` is an uncompressed zip file that ``numpy.load`` can read. It
contains ``meta.json``, and a ``.npy`` array for each column.

=================  ===================================================================
``planes``         ``[R, ceil(13 * N * N / 8)] uint8``, one bit per entry, MSB first
``policy_begin``   ``[R + 1] int64``, index of each row's first policy entry, then E
``policy_action``  ``[E] uint16``, actions of the entries, ascending within a row
``policy_share``   ``[E] uint16``, probabilities of the entries in units of 1 / 65535
``outcome``        ``[R] int8``, 1, 0 or -1 for the side to move
``game``           ``[R] int32``, index of the row's game in the generation, ascending
=================  ===================================================================

Legend: R rows, B rows of a batch, N board size, A actions, E policy entries.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.errors import UsageError
from tengen.games import open_game, transform_planes
from tengen.nets.minigo import NUM_MINIGO_PLANES
from tengen.run import find_files, newer_schema, publish_file, reading_file

NUM_FEATURES = NUM_MINIGO_PLANES - 1
"""Number of planes in a minigo example; tengen adds a plane, the on-board mask."""

MAX_SIDE = 19
"""Maximum board size N of imported rows."""

ROWS_SCHEMA = 1
"""The schema version of written files, and the newest version that can be read."""

_WHAT = "rows"
_DTYPES: dict[str, type[np.generic]] = {
    "planes": np.uint8,
    "policy_begin": np.int64,
    "policy_action": np.uint16,
    "policy_share": np.uint16,
    "outcome": np.int8,
    "game": np.int32,
}
_SCALE = 65535
_MOST_GAMES = 1 << 31
_MOST_ROWS = 1 << 40
# Version of the .npy format whose header length has two bytes.
_NPY = (1, 0)


@dataclass(frozen=True)
class Examples:
    """The minigo examples of one game, in the order of the game's file."""

    planes: NDArray[np.uint8]
    """Minigo's 13 feature planes, ``[R, 13, N, N]``, with values 0 and 1."""
    policy: NDArray[np.float32]
    """Policy targets ``[R, N * N + 1]`` that sum to 1; the last action is pass."""
    outcome: NDArray[np.int8]
    """Results ``[R]``: 1 if the side to move won, 0 for a draw, -1 for a loss."""


@dataclass(frozen=True)
class RowsMeta:
    """The metadata of a file of imported rows."""

    side: int
    """Board size, N."""
    generation: int
    """Generation of the games."""
    num_games: int
    """Number of games in the file; some may have no rows."""
    num_rows: int
    """Number of rows in the file, R."""

    @staticmethod
    def read(path: Path) -> RowsMeta:
        """Returns the metadata of a file of imported rows, without reading its rows.

        Args:
            path: The file, ``NNNNNN.rows.npz``.

        Raises:
            UsageError: The file has a newer schema.
            RunError: The file is missing or damaged.
        """
        with reading_file(_WHAT, path), _opened(path) as archive:
            return _read_meta(path, archive)


def rows_name(generation: int) -> str:
    """Returns the name of the file with a generation's imported rows."""
    return f"{generation:06d}.rows.npz"


def newest_files(
    folder: Path, game: str, num_generations: int, min_games: int
) -> list[Path]:
    """Returns the files of the newest imported generations; reads only their metadata.

    Args:
        folder: The folder of the files; the setting ``store.imported``.
        game: The game to which the rows must belong.
        num_generations: Number of generations to return.
        min_games: Minimum number of games in each of these generations.

    Raises:
        UsageError: The folder has no files of rows, the files are for a different
            board, or the newest generations are too few or have too few games.
        RunError: A file is damaged.
    """
    paths = find_files(folder, "*.rows.npz")
    if not paths:
        raise UsageError(
            f"store.imported ({folder}) must contain imported generations, such as "
            "000017.rows.npz; make them with tengen data import-minigo --examples"
        )
    newest = sorted(paths)[-num_generations:]
    found = {path: RowsMeta.read(path) for path in newest}
    rules = open_game(game)
    for path, meta in found.items():
        wanted = (meta.side, meta.side, NUM_FEATURES + 1)
        if (rules.height, rules.width, rules.num_planes) != wanted:
            raise UsageError(
                f"store.imported ({path}) must be for {game}, not "
                f"go/{meta.side}/nosuicide/planes=minigo; choose another folder, or "
                "leave it out"
            )
    num_whole = sum(meta.num_games >= min_games for meta in found.values())
    if num_whole < num_generations:
        raise UsageError(
            f"store.imported ({folder}) must end with store.num_generations "
            f"({num_generations}) generations of at least store.min_games "
            f"({min_games}) games, and only {num_whole} of them have that many; lower "
            "either setting, or leave it out"
        )
    return newest


def write_rows(
    path: Path, games: Iterable[Examples], side: int, generation: int, source: str
) -> tuple[int, int]:
    """Publishes a file with the rows of a generation. Blocks until it is durable.

    Stored probabilities differ from those in ``games`` by at most 1e-5.

    Args:
        path: The file to write; its folder must exist.
        games: The games in order; the packed rows of all games must fit in memory.
        side: Board size, N.
        generation: Number of the generation.
        source: Human-readable origin of the games.

    Returns:
        The number of games and the number of rows.

    Raises:
        RunError: The file cannot be written, or the games cannot be read.
    """
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in _DTYPES}
    num_games = 0
    for examples in games:
        num_rows = len(examples.outcome)
        entries = examples.planes.reshape(num_rows, NUM_FEATURES * side * side)
        parts["planes"].append(np.packbits(entries, axis=1))
        # Clip probabilities that rounding errors have raised above 1.
        parts_of_one = np.rint(examples.policy * _SCALE).clip(max=_SCALE)
        shares = parts_of_one.astype(np.uint16)
        rows, actions = np.nonzero(shares)
        parts["policy_begin"].append(np.bincount(rows, minlength=num_rows))
        parts["policy_action"].append(actions.astype(np.uint16))
        parts["policy_share"].append(shares[rows, actions])
        parts["outcome"].append(examples.outcome)
        parts["game"].append(np.full(num_rows, num_games, np.int32))
        num_games += 1
    width = -(-NUM_FEATURES * side * side // 8)
    parts["planes"].append(np.zeros((0, width), np.uint8))
    columns = {
        name: np.concatenate([*arrays, *([] if name == "planes" else [np.zeros(0)])])
        for name, arrays in parts.items()
    }
    columns["policy_begin"] = np.cumsum([0, *columns["policy_begin"]])
    num_rows = len(columns["outcome"])
    meta = {
        "schema": ROWS_SCHEMA,
        "side": side,
        "generation": generation,
        "num_games": num_games,
        "num_rows": num_rows,
        "source": source,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("meta.json"), json.dumps(meta) + "\n")
        for name, dtype in _DTYPES.items():
            column = io.BytesIO()
            np.lib.format.write_array(column, columns[name].astype(dtype), _NPY)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), column.getvalue())
    publish_file(path, buffer.getvalue())
    return num_games, num_rows


class ImportedRows:
    """The imported rows of one file, packed in memory. Thread-safe.

    Attributes:
        side: Board size, N.
        generation: Generation of the games.
        num_games: Number of games in the file; some may have no rows.
        num_rows: Number of rows in the file, R.
        games: ``[R] int32``, index of each row's game, ascending.
    """

    def __init__(self, path: Path) -> None:
        """Reads a file of imported rows.

        Args:
            path: The file, ``NNNNNN.rows.npz``.

        Raises:
            UsageError: The file has a newer schema.
            RunError: The file is missing or damaged.
        """
        with reading_file(_WHAT, path):
            meta, columns = _read(path)
            self.side = meta.side
            self.generation = meta.generation
            self.num_games = meta.num_games
            self.num_rows = meta.num_rows
            self.games = columns["game"]
            self._columns = columns
            self._check()

    def columns(
        self, indices: NDArray[np.int64], symmetries: NDArray[np.uint8]
    ) -> dict[str, NDArray[Any]]:
        """Returns the columns of rows, in the format of ``DerivedRows.derive``.

        Args:
            indices: ``[B]``, row indices in [0, R), in any order, possibly repeated.
            symmetries: ``[B]``, the symmetry applied to each board, in [0, 8); numbered
                as in core/games/symmetry.h.

        Returns:
            planes ``[B, 14, N, N]`` float32, with the on-board mask first; legal ``[B,
            A]`` uint8, 1 for all empty points and pass, because examples do not say
            which points ko and suicide forbid; policy ``[B, A]`` float32; outcome ``[B,
            3]`` float32, win, draw and loss of the side to move; search_value ``[B]``
            float32, equal to the game's result, because examples have no search value;
            policy_weight and value_weight ``[B]`` float32, all 1.
        """
        size, num_cells = len(indices), self.side * self.side
        bits = np.unpackbits(
            self._columns["planes"][indices], axis=1, count=NUM_FEATURES * num_cells
        )
        shape = (size, NUM_FEATURES, self.side, self.side)
        planes = np.ones((size, NUM_FEATURES + 1, self.side, self.side), np.float32)
        planes[:, 1:] = _turned(bits.reshape(shape), symmetries)
        policy = self._policies(indices)
        board = policy[:, :-1].reshape(size, 1, self.side, self.side)
        policy[:, :-1] = _turned(board, symmetries).reshape(size, num_cells)
        legal = np.ones((size, num_cells + 1), np.uint8)
        stones = planes[:, 1:3].any(axis=1)
        legal[:, :-1] = ~stones.reshape(size, num_cells)
        outcome = self._columns["outcome"][indices]
        return {
            "planes": planes,
            "legal": legal,
            "policy": policy,
            "policy_weight": np.ones(size, np.float32),
            "outcome": np.stack(
                [outcome == 1, outcome == 0, outcome == -1], axis=1
            ).astype(np.float32),
            "search_value": outcome.astype(np.float32),
            "value_weight": np.ones(size, np.float32),
        }

    def _policies(self, indices: NDArray[np.int64]) -> NDArray[np.float32]:
        begin = self._columns["policy_begin"]
        counts = begin[indices + 1] - begin[indices]
        rows = np.repeat(np.arange(len(indices)), counts)
        # An entry's index in its row: its index in the batch minus that of the row's
        # first entry.
        first = np.repeat(np.cumsum(counts) - counts, counts)
        entries = begin[indices][rows] + np.arange(counts.sum()) - first
        policy = np.zeros((len(indices), self.side * self.side + 1), np.float32)
        shares = self._columns["policy_share"][entries]
        policy[rows, self._columns["policy_action"][entries]] = shares / _SCALE
        return policy

    def _check(self) -> None:
        begin, action = self._columns["policy_begin"], self._columns["policy_action"]
        if begin[0] != 0 or begin[-1] != len(action) or (np.diff(begin) < 0).any():
            raise ValueError("the policy's entries have the wrong positions")
        if len(action) and action.max() > self.side * self.side:
            raise ValueError("an action in it is off the board")
        if self.num_rows and (np.abs(self._columns["outcome"]) > 1).any():
            raise ValueError("an outcome in it is invalid")
        games = self.games
        if self.num_rows and (
            games[0] < 0 or games[-1] >= self.num_games or (np.diff(games) < 0).any()
        ):
            raise ValueError("its games are not in order")


def _turned(boards: NDArray[Any], symmetries: NDArray[np.uint8]) -> NDArray[Any]:
    """Returns the boards ``[B, C, N, N]`` after applying each board's symmetry."""
    turned = np.empty_like(boards)
    for symmetry in range(8):
        rows = np.flatnonzero(symmetries == symmetry)
        turned[rows] = transform_planes(boards[rows], symmetry)
    return turned


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Opens a zip file after checking that its entries are not compressed.

    The check limits memory use, because reading takes no more than the file's size.

    Raises:
        ValueError: The file is damaged; also raised while the caller reads the archive.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            kinds = {entry.compress_type for entry in archive.infolist()}
            num_bytes = sum(entry.file_size for entry in archive.infolist())
            if kinds != {zipfile.ZIP_STORED} or num_bytes > path.stat().st_size:
                raise ValueError("an entry in it is compressed or longer than the file")
            yield archive
    except KeyError as error:
        raise ValueError(f"it has no {error}") from error
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        raise ValueError(str(error)) from error


def _read(path: Path) -> tuple[RowsMeta, dict[str, NDArray[Any]]]:
    with _opened(path) as archive:
        meta = _read_meta(path, archive)
        columns = {
            name: _read_column(archive.read(f"{name}.npy"), name) for name in _DTYPES
        }
    num_rows, side = meta.num_rows, meta.side
    shapes: dict[str, tuple[int, ...]] = {
        "planes": (num_rows, -(-NUM_FEATURES * side * side // 8)),
        "policy_begin": (num_rows + 1,),
        "policy_share": columns["policy_action"].shape[:1],
        "policy_action": columns["policy_action"].shape[:1],
        "outcome": (num_rows,),
        "game": (num_rows,),
    }
    for name, shape in shapes.items():
        if columns[name].shape != shape:
            raise ValueError(f"{name} does not have the shape {shape}")
    return meta, columns


def _read_meta(path: Path, archive: zipfile.ZipFile) -> RowsMeta:
    meta = json.loads(archive.read("meta.json"))
    schema = meta.get("schema") if isinstance(meta, dict) else None
    if type(schema) is not int or schema < 1:
        raise ValueError("its meta.json has no schema number")
    if schema > ROWS_SCHEMA:
        raise newer_schema(path, schema, ROWS_SCHEMA)
    for name, low, high in (
        ("side", 2, MAX_SIDE),
        ("generation", 0, _MOST_GAMES),
        ("num_games", 0, _MOST_GAMES),
        ("num_rows", 0, _MOST_ROWS),
    ):
        value = meta.get(name)
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"its meta.json has no {name} in {low} to {high}")
    return RowsMeta(**{one.name: meta[one.name] for one in fields(RowsMeta)})


def _read_column(data: bytes, name: str) -> NDArray[Any]:
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != _NPY:
        raise ValueError(f"{name} has an unsupported version of .npy")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype != np.dtype(_DTYPES[name]) or is_fortran:
        raise ValueError(f"{name} has the wrong dtype")
    return np.frombuffer(data, dtype, offset=file.tell()).reshape(shape)
