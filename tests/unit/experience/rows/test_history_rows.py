"""Planes of earlier boards, in rows that are derived by replay."""

import sys
from pathlib import Path

import numpy as np
from store_games import num_rows, random_game, segment_columns

import tengen.games
from tengen.experience.rows.derived_rows import DerivedRows

sys.path.insert(0, str(Path(__file__).parents[3] / "oracle"))
from slow_minigo_planes import minigo_planes

NAME = "go/5/nosuicide/planes=minigo"


def test_rows_have_the_boards_of_the_plies_before():
    game = tengen.games.make(NAME)
    records = [random_game(NAME, index) for index in range(4)]
    rows = DerivedRows(NAME, auxiliary=True)
    assert rows.shape == (14, 5, 5)
    size = rows.add(segment_columns(records))
    assert size == sum(map(num_rows, records))
    wanted = [
        minigo_planes(NAME, [*record.opening, *(p.action for p in record.plies[:ply])])
        for record in records
        for ply, one in enumerate(record.plies)
        if one.policy_weight > 0 or one.value_weight > 0
    ]
    # Moves of an opening make no rows, but the first row after them shows their boards.
    assert max(len(record.opening) for record in records) > 1
    keys = np.random.default_rng(1).permutation(size)
    for symmetry in range(8):
        symmetries = np.full(size, symmetry, np.uint8)
        planes = rows.derive(keys, symmetries)["planes"].reshape(size, 14, 25)
        images = [game.transform_action(cell, symmetry) for cell in range(25)]
        expected = np.stack([wanted[key] for key in keys]).reshape(size, 14, 25)
        np.testing.assert_array_equal(planes[:, :, images], expected)


def test_the_same_games_make_rows_of_either_planes():
    records = [random_game(NAME, 1)]
    own = DerivedRows("go/5/nosuicide", auxiliary=False)
    shown = DerivedRows(NAME, auxiliary=False)
    size = own.add(segment_columns(records))
    assert shown.add(segment_columns(records)) == size
    keys, symmetries = np.arange(size), np.zeros(size, np.uint8)
    a, b = own.derive(keys, symmetries), shown.derive(keys, symmetries)
    for name in a:
        if name != "planes":
            np.testing.assert_array_equal(a[name], b[name], name)
    np.testing.assert_array_equal(a["planes"][:, :3], b["planes"][:, :3])
