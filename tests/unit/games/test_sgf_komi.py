"""Komi in SGF: the forms that servers write, and implausible values."""

import pytest

from tengen import _core, games
from tengen.games.sgf import GoRecord, read_sgf, write_sgf

# By preceding properties: the text written, and the points meant.
KOMI = {
    "SZ[9]": (
        "375=7.5 350=7 325=6.5 275=5.5 -375=-7.5 81=81 81.0=81 3.75=7.5 3,75=7.5 "
        "2.75=5.5 -3.75=-7.5 650=6.5 750.0=7.5 100.0=2 100=2 6,5=6.5 .5=0.5 -,5=-0.5 "
        "3.5=3.5"
    ),
    "AP[foxwq]SZ[9]": "0=0 50=0.5 275=5.5 325=6.5 350=7 375=7.5",
    "AP[foxwq]SZ[19]": "0=0 50=0.5 275=5.5 325=6.5 350=7 375=7.5",
    "": "50=50 274=274 275=5.5 275.0=275 361=361",
}


@pytest.mark.parametrize(
    ("root", "komi", "points"),
    [(root, *one.split("=")) for root, text in KOMI.items() for one in text.split()],
)
def test_komi_as_servers_write_it(root, komi, points):
    record = read_sgf(f"(;{root}KM[{komi}])")
    assert _core.parse_go_name(record.game).komi == float(points)
    assert read_sgf(write_sgf(record)) == record
    assert record.notes == ()


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
    assert record.notes == (f"KM ({komi}) is not a komi; 7.5 is used",)


@pytest.mark.parametrize("komi", [82, -100, 300, 300.5, 361])
def test_komi_of_a_game_of_tengen_is_read_again(komi):
    record = GoRecord(game=games.make(f"go/9/komi={komi}").name)
    text = write_sgf(record)
    assert read_sgf(text) == record
    assert _core.parse_go_name(record.game).komi == komi
    other = read_sgf(text.replace("AP[tengen]", "AP[other]"))
    assert abs(_core.parse_go_name(other.game).komi) < 10
