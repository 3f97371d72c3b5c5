"""What ``tengen bench selfplay`` tells of rows where games end, and where none does."""

import json
import os

import pytest

from tengen import cli
from tengen.cli.bench import selfplay

WORDS = "--net null --cores 1 --rounds 1 --round-s 0.1 --simulations 16"
RATES = ("rows_per_s", "rows_per_cpu_s", "games_per_s")


@pytest.fixture
def bench(capsys):
    cores = os.sched_getaffinity(0)

    def run(words):
        assert cli.main(["bench", "selfplay", *WORDS.split(), *words.split()]) == 0
        return str(capsys.readouterr().out)

    yield run
    os.sched_setaffinity(0, cores)  # a bench pins its process


def test_rows_are_not_known_where_no_game_ends(bench):
    report = json.loads(bench("--game go/19 --simulations 400 --json"))
    assert [report[name] for name in RATES] == [None, None, None]
    assert report["num_games"] == 0
    assert report["note"].startswith("no game ended in 1 of 1 rounds, so games/s")
    assert report["evals_per_s"] > 0


def test_plies_are_counted_where_no_game_ends(bench):
    words = "--game gomoku/15 --simulations 1 --slots 512 --json"
    # A round is so many seconds of wall time, in which a busy machine searches nothing.
    for round_s in (0.1, 1, 10, 100):
        report = json.loads(bench(f"{words} --round-s {round_s}"))
        if report["plies_per_s"] is not None:
            break
    assert report["plies_per_s"] > 0
    assert report["plies_per_cpu_s"] > 0


def test_what_is_not_known_is_said_in_text(bench):
    lines = bench("--game go/19 --simulations 400").splitlines()
    shown = {line.split()[0]: line.partition(" ")[2].strip() for line in lines}
    assert [shown[name] for name in RATES] == ["not known"] * 3
    assert "raise --round-s" in shown["note"]


def test_rows_are_known_where_games_end(bench):
    report = json.loads(bench("--game tictactoe --slots 1 --json"))
    assert all(report[name] > 0 for name in RATES)
    assert "note" not in report


def test_minigo_has_some_leaves_of_each_game_in_a_batch(bench):
    words = "--game gomoku/9 --slots 4 --policy minigo --json --cache-mib 0"
    report = json.loads(bench(words))
    assert report["policy"] == "minigo"
    assert report["batch_capacity"] == 16
    assert 8 < report["batch_rows"] <= 16


@pytest.mark.parametrize(
    ("num_games", "note"),
    [
        ([64, 80], None),
        ([64, 0, 80], "no game ended in 1 of 3 rounds"),
        ([64, 63], "a round ended only 63 games, with 64 in progress"),
    ],
)
def test_too_few_games_are_told(num_games, note):
    told = selfplay._note(num_games, 64)
    assert told is None if note is None else told.startswith(note)


def test_rounds_without_a_game_are_not_left_out():
    assert selfplay._median([1.0, None, 3.0]) is None
    assert selfplay._median([1.0, 2.0, 9.0]) == 2.0


def test_the_network_of_minigo_is_measured_on_its_planes(bench, capsys):
    words = "--game go/5/nosuicide/planes=minigo --net minigo:1x8 --policy minigo"
    report = json.loads(bench(f"{words} --precision fp32 --slots 2 --json"))
    assert (report["net"], report["precision"]) == ("minigo:1x8", "fp32")
    assert report["share_of_backend"] > 0
    for net, why in (("minigo:2x8", "go/N/planes=minigo"), ("kata:2x8", "6x96")):
        assert cli.main(["bench", "selfplay", "--game", "go/5", "--net", net]) == 2
        assert why in capsys.readouterr().err
