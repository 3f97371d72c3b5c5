"""Validation games, which are kept from learning to measure the loss on unseen games.

A hash of a game's generation and number decides whether it is a validation game. So
the split is the same for every process that reads the run, in whatever order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["is_validation", "select_games"]

_OF_GAMES = (
    "game_index",
    "outcome",
    "model",
    "num_variant_bytes",
    "num_opening_plies",
    "num_plies",
    "num_switches",
)
# Columns that count a game's entries in other columns, with these other columns.
_BY_COUNT = {
    "num_variant_bytes": ("variant",),
    "num_opening_plies": ("opening",),
    "num_switches": ("switch_ply", "switch_model"),
    "num_plies": (
        "action",
        "root_value",
        "policy_weight",
        "value_weight",
        "num_simulations",
        "lead",
        "num_policy_entries",
    ),
}
_OF_ENTRIES = ("policy_action", "policy_mass")


def is_validation(
    generation: int, game_index: NDArray[np.uint32], share: float
) -> NDArray[np.bool_]:
    """Returns ``[games]`` bool, which games are validation games.

    The hash is the finaliser of SplitMix64 (Steele, Lea and Flood 2014).

    Args:
        generation: The games' generation.
        game_index: ``[games]``, the games' numbers in the generation.
        share: Share of all games, in [0, 1).
    """
    bits = game_index.astype(np.uint64) + (np.uint64(generation) << np.uint64(32))
    with np.errstate(over="ignore"):
        bits += np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    chosen: NDArray[np.bool_] = (bits >> np.uint64(11)) < np.uint64(share * 2.0**53)
    return chosen


def select_games(
    columns: Mapping[str, NDArray[Any]], chosen: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """Returns the columns of only the chosen games.

    Args:
        columns: As ``SegmentReader.game_columns`` returns them.
        chosen: ``[games]`` bool.
    """
    selected = {name: columns[name][chosen] for name in _OF_GAMES}
    for count, names in _BY_COUNT.items():
        parts = np.repeat(chosen, columns[count])
        selected |= {name: columns[name][parts] for name in names}
    plies = np.repeat(chosen, columns["num_plies"])
    entries = np.repeat(plies, columns["num_policy_entries"])
    selected |= {name: columns[name][entries] for name in _OF_ENTRIES}
    return selected
