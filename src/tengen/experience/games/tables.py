"""Reads a run's games as columns of equal length, for pandas, Arrow or DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tengen.config import check
from tengen.errors import RunError, UsageError, did_you_mean
from tengen.experience.games.segment import SegmentReader
from tengen.run import RunDirectory, find_files

Columns: TypeAlias = dict[str, NDArray[Any]]
Table: TypeAlias = Literal["games", "plies", "policies"]

_GAMES = ("outcome", "model", "num_opening_plies", "num_plies")
_PLIES = (
    "action",
    "root_value",
    "policy_weight",
    "value_weight",
    "num_simulations",
    "lead",
)


def read_table(run: str | Path, table: Table) -> Columns:
    """Returns a table of all sealed games of a run, as columns ``[num_rows]``.

    For example, ``pandas.DataFrame(read_table(run, "plies"))`` is a data frame. The
    first two columns of every table, ``generation`` and ``game_index``, identify a
    game.

    Args:
        run: The run directory; the run may be training.
        table: ``games`` has a row per game: ``outcome`` (1: the first player won, 2:
            the second, 3: a draw), ``model``, ``num_opening_plies``, ``num_plies``.
            ``plies`` has a row per searched ply: ``ply`` from the start of the game,
            ``action``, ``root_value`` in [-1, 1] for the side to move,
            ``policy_weight`` and ``value_weight`` of the training row,
            ``num_simulations`` and ``lead``. ``policies`` has a row per action of a
            policy target: ``ply``, ``action``, ``mass`` (divide by the ply's sum).

    Raises:
        UsageError: The run or the table does not exist, or the run has no sealed games.
        RunError: A segment is damaged.
    """
    if table not in _TABLES:
        rule = f"is not known; {did_you_mean(table, _TABLES)}"
        raise UsageError(f"table ({table}) {rule}")
    found = find_files(RunDirectory.open(run).experience, "*/*/[0-9]*.npz")
    rule = "has no sealed games yet; train longer, or name its agent.learn_from"
    check(bool(found), "run", run, rule)
    parts = []
    for path in sorted(found, key=lambda path: (int(path.stem), path)):
        with SegmentReader(path) as reader:
            columns = reader.game_columns()
            _check_lengths(path, columns)
            parts.append(_TABLES[table](columns, reader.generation))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _check_lengths(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Raises RunError if the lengths of a segment's columns are inconsistent."""
    num_plies, num_visits = len(columns["action"]), len(columns["policy_action"])
    wanted = dict.fromkeys(("game_index", *_GAMES), len(columns["game_index"]))
    wanted |= dict.fromkeys((*_PLIES, "num_policy_entries"), num_plies)
    wanted |= {"policy_mass": num_visits}
    fits = all(len(columns[name]) == length for name, length in wanted.items())
    fits &= int(columns["num_plies"].sum(dtype=np.int64)) == num_plies
    fits &= int(columns["num_policy_entries"].sum(dtype=np.int64)) == num_visits
    if not fits:
        raise RunError(
            f"segment ({path}) is damaged, its columns have inconsistent lengths; "
            f"{SegmentReader.advice(path)}"
        )


def _games(columns: Mapping[str, NDArray[Any]], generation: int) -> Columns:
    return {
        "generation": np.full(len(columns["game_index"]), generation, np.uint32),
        "game_index": columns["game_index"],
        **{name: columns[name] for name in _GAMES},
    }


def _plies(columns: Mapping[str, NDArray[Any]], generation: int) -> Columns:
    lengths = columns["num_plies"].astype(np.int64)
    games = np.repeat(columns["game_index"], lengths)
    # A ply's index in its game is its index in the column minus its game's first index.
    begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
    opening = np.repeat(columns["num_opening_plies"], lengths)
    return {
        "generation": np.full(len(games), generation, np.uint32),
        "game_index": games,
        "ply": (np.arange(len(games)) - begins + opening).astype(np.uint16),
        **{name: columns[name] for name in _PLIES},
    }


def _policies(columns: Mapping[str, NDArray[Any]], generation: int) -> Columns:
    plies = _plies(columns, generation)
    repeats = columns["num_policy_entries"].astype(np.int64)
    names = ("generation", "game_index", "ply")
    return {
        **{name: np.repeat(plies[name], repeats) for name in names},
        "action": columns["policy_action"],
        "mass": columns["policy_mass"],
    }


_TABLES = {"games": _games, "plies": _plies, "policies": _policies}
