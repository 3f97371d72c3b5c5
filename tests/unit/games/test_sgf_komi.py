"""Komi in SGF: as servers write it, and what is not believed."""

import pytest

from tengen import _core, games
from tengen.games.sgf import GoRecord, read_sgf, write_sgf


@pytest.mark.parametrize(
    ("komi", "points"),
    [
        ("375", 7.5),
        ("350", 7),
        ("325", 6.5),
        ("275", 5.5),
        ("-375", -7.5),
        ("81", 81),
        ("81.0", 81),
        ("3.75", 7.5),
        ("3,75", 7.5),
        ("2.75", 5.5),
        ("-3.75", -7.5),
        ("650", 6.5),
        ("750.0", 7.5),
        ("100.0", 2),
        ("100", 2),
        ("6,5", 6.5),
        (".5", 0.5),
        ("-,5", -0.5),
        ("3.5", 3.5),
    ],
)
def test_komi_as_servers_write_it(komi, points):
    record = read_sgf(f"(;SZ[9]KM[{komi}])")
    assert _core.parse_go_name(record.game).komi == points
    assert read_sgf(write_sgf(record)) == record
    assert record.notes == ()


@pytest.mark.parametrize(
    ("komi", "points"),
    [("0", 0), ("50", 0.5), ("275", 5.5), ("325", 6.5), ("350", 7), ("375", 7.5)],
)
@pytest.mark.parametrize("size", [9, 19])
def test_komi_as_fox_writes_it(komi, points, size):
    record = read_sgf(f"(;AP[foxwq]SZ[{size}]KM[{komi}])")
    assert _core.parse_go_name(record.game).komi == points


@pytest.mark.parametrize(
    ("komi", "points"),
    [("50", 50), ("274", 274), ("275", 5.5), ("275.0", 275), ("361", 361)],
)
def test_komi_of_a_large_board(komi, points):
    record = read_sgf(f"(;KM[{komi}])")
    assert _core.parse_go_name(record.game).komi == points
    assert read_sgf(write_sgf(record)) == record


@pytest.mark.parametrize(
    "komi",
    [
        *("6.25", "4.25", "82", "82.0", "81.5", "300.5", "-300,5"),
        *("361", "361.0", "362.0", "37500", "3,7,5", "nan", "none"),
    ],
)
def test_komi_beyond_the_area_is_not_believed(komi):
    record = read_sgf(f"(;SZ[9]KM[{komi}];B[ee])")
    assert record.game == "go/9"
    assert record.notes == (f"KM ({komi}) is no komi; 7.5 is taken",)


@pytest.mark.parametrize("komi", [82, -100, 300, 300.5, 361])
def test_komi_of_a_game_of_tengen_is_read_again(komi):
    record = GoRecord(game=games.make(f"go/9/komi={komi}").name)
    text = write_sgf(record)
    assert read_sgf(text) == record
    assert _core.parse_go_name(record.game).komi == komi
    other = read_sgf(text.replace("AP[tengen]", "AP[other]"))
    assert abs(_core.parse_go_name(other.game).komi) < 10
