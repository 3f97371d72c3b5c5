"""Models in order against a target: order, records and the smoothed crossing."""

import json
import math
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tengen import cli
from tengen.errors import RunError, UsageError
from tengen.evaluation import PlayedGame, TargetConfig, play_match
from tengen.evaluation.named_players import find_player
from tengen.games import open_game
from tengen.minigo.opponent import (
    checked_opponent,
    is_network,
    open_opponent,
    opponent_digest,
)
from tengen.minigo.order import (
    TargetMatch,
    evaluated,
    open_matches,
    smoothed_crossing,
    target_result,
)
from tengen.minigo.target_files import TargetFiles, TargetRecord
from tengen.models import ModelDir
from tengen.run import RunDirectory
from tengen.search import PlayConfig
from tests.refusals import refused

CONFIG = TargetConfig(opponent="random", num_games=100, confirming_games=200)


def record(model, wins, num_games=100):
    return TargetRecord(
        model=model,
        generation=model,
        target="random",
        target_digest="",
        num_games=num_games,
        disputed=0,
        wins=wins,
        draws=0,
        losses=num_games - wins,
        win_rate=wins / num_games,
        num_simulations=10,
        seed=0,
        made_at=1000.0 + 60 * model,
        began_at=9000.0,
        ended_at=9001.0,
    )


@pytest.fixture
def files(tmp_path):
    files = TargetFiles(RunDirectory.create_or_resume(tmp_path / "run"))
    files.make()
    return files


def publish(files, *wins):
    for model, won in enumerate(wins, 1):
        files.publish_record(f"{model:06d}", record(model, won))


def names(models, files):
    return [match.name for match in open_matches(models, files, CONFIG)]


def result_of(models, files, clock_at):
    return target_result(
        models, files, CONFIG, iterations=4, clock_at=clock_at, open_because=["small"]
    )


def test_models_are_played_in_order_until_one_passes(files):
    models = [0, 1, 2, 3, 4]
    assert names(models, files) == ["000001", "000002", "000003", "000004"]
    publish(files, 10, 49)
    assert names(models, files) == ["000003", "000004"]
    # A win rate equal to the threshold passes.
    publish(files, 10, 49, 50)
    assert names(models, files) == ["000003-confirm"]
    files.publish_record("000003-confirm", record(3, 90, 200))
    assert names(models, files) == []
    result = result_of(models, files, 1030.0)
    assert result.passed == 3
    assert result.passed_after_s == 1180.0 - 1030.0
    assert result.num_models == 3
    assert result.confirmation["win_rate"] == 0.45


def test_a_model_that_was_played_ahead_does_not_pass_before_those_between(files):
    files.publish_record("000003", record(3, 80))
    assert names([0, 1, 2, 3, 4], files) == ["000001", "000002"]
    publish(files, 20, 60)
    assert names([0, 1, 2, 3, 4], files) == ["000002-confirm"]
    assert [one.model for one in evaluated([0, 1, 2, 3], files, CONFIG)] == [1, 2]


def test_a_run_whose_models_all_fail_has_no_time(files):
    publish(files, 1, 2, 3)
    result = result_of([0, 1, 2, 3], files, 1000.0)
    assert result.passed is None
    assert result.passed_after_s is None
    assert result.confirmation is None
    assert result.num_models == 3


def test_a_run_without_a_learned_model_has_nothing_to_play(files):
    assert names([0], files) == []
    assert result_of([0], files, None).num_models == 0


@pytest.mark.parametrize(
    ("num_games", "chunk_games", "wanted"),
    [(256, 16, [16] * 16), (10, 4, [4, 4, 2]), (4, 16, [4])],
)
def test_a_match_is_played_in_parts(num_games, chunk_games, wanted):
    assert TargetMatch(3, num_games).chunks(chunk_games) == wanted


def test_no_two_parts_have_a_seed_in_common():
    matches = [TargetMatch(n, 8) for n in range(40)]
    matches += [TargetMatch(n, 8, confirms=True) for n in range(40)]
    seeds = {m.seed(s, c) for m in matches for s in range(3) for c in range(16)}
    assert len(seeds) == len(matches) * 3 * 16
    assert all(0 <= seed < 1 << 63 for seed in seeds)


def test_the_smoothed_crossing_is_that_of_the_curve_behind_the_games():
    # A curve that crosses 0.5 at model 12.5, and its expected results.
    true = [1 / (1 + math.exp(-0.4 * (model - 12.5))) for model in range(1, 20)]
    exact = [record(m, round(10_000 * p), 10_000) for m, p in enumerate(true, 1)]
    crossing = smoothed_crossing(exact, 0.5)
    assert abs(crossing - (1000 + 60 * 12.5)) < 2.0
    # With noisy matches its error is lower than that of the first model that passes.
    rng = np.random.default_rng(3)
    errors = {"smoothed": [], "first": []}
    for _ in range(200):
        noisy = [record(m, int(rng.binomial(100, p))) for m, p in enumerate(true, 1)]
        first = next(one for one in noisy if one.win_rate >= 0.5)
        seen = noisy[: first.model]
        found = smoothed_crossing(seen, 0.5)
        errors["smoothed"].append(found - 1750)
        errors["first"].append(first.made_at - 1750)
    spread = {name: np.std(values) for name, values in errors.items()}
    assert spread["smoothed"] < spread["first"]
    assert abs(np.mean(errors["smoothed"])) < 10.0


def test_the_smoothed_crossing_of_a_steep_rise_is_the_likeliest():
    """The reference is a grid search; full Newton steps overshoot here."""
    wins = [0] * 23 + [1, 6, 68, 232]
    records = [record(m, won, 256) for m, won in enumerate(wins, 1)]
    made = np.array([one.made_at for one in records])
    points = np.array(wins) + 0.5
    best = max(
        (float(points @ odds - 257 * np.logaddexp(0, odds).sum()), crossing)
        for crossing in np.linspace(made[0], made[-1], 800)
        for rise in np.geomspace(1e-3, 1.0, 200)
        for odds in [rise * (made - crossing)]
    )[1]
    found = smoothed_crossing(records, 0.5)
    assert abs(found - best) < (made[-1] - made[0]) / 400


def test_there_is_no_crossing_of_what_does_not_rise_that_far():
    assert smoothed_crossing([], 0.5) is None
    assert smoothed_crossing([record(1, 50)], 0.5) is None
    assert smoothed_crossing([record(1, 40), record(2, 20)], 0.5) is None
    low = [record(m, m) for m in range(1, 9)]
    assert smoothed_crossing(low, 0.5) is None


def test_games_of_a_part_come_back(files):
    played = [
        PlayedGame(
            index=k,
            a_moves_first=k % 2 == 0,
            moves=(1, 2, 3),
            num_opening_plies=0,
            score_a=0.5,
        )
        for k in range(4)
    ]
    assert not files.has_games("000001", 0)
    files.publish_games("000001", 0, played, 5.0)
    assert files.has_games("000001", 0)
    assert files.games("000001", 0) == (played, 5.0)
    path = files.folder / "000001" / "0000.jsonl"
    whole = path.read_bytes()
    for damaged in (b"", whole[:-3], whole.replace(b"moves", b"movie"), b"[]\n[]\n"):
        path.write_bytes(damaged)
        with refused(RunError, "0000.jsonl"):
            files.games("000001", 0)
    # The games are deleted only after the record exists.
    path.write_bytes(whole)
    files.publish_record("000001", record(1, 3))
    assert not files.has_games("000001", 0)


def test_a_damaged_record_is_named(files):
    publish(files, 10)
    path = files.folder / "000001.json"
    content = json.loads(path.read_text())
    for broken in ("{", json.dumps({**content, "wins": "many"}), "[]"):
        path.write_text(broken)
        with refused(RunError, "000001.json"):
            files.record("000001")


def test_opponents_are_refused_before_anything_starts(tmp_path):
    words = {
        "nothing-there": "must be a run directory",
        "gtp:no-such-program --level 3": "needs the program no-such-program",
        "mcts:0": "playouts",
        'gtp:"unclosed': "must be a valid command line",
    }
    for word, why in words.items():
        with refused(UsageError, why):
            checked_opponent(TargetConfig(opponent=word), "go/7")
    with refused(UsageError, "(gtp:gnugo)", "gomoku/9"):
        checked_opponent(TargetConfig(opponent="gtp:gnugo"), "gomoku/9")
    config = TargetConfig(opponent="mcts:10")
    assert checked_opponent(config, "go/7") == config
    assert opponent_digest(config) != opponent_digest(TargetConfig(opponent="mcts:20"))


def test_a_model_of_other_planes_and_rules_is_a_target():
    task = "go/7/nosuicide/planes=minigo"
    config = checked_opponent(TargetConfig(opponent="bundled:go/7"), task)
    assert Path(config.opponent).is_absolute()
    player = open_opponent(config, task, PlayConfig(), 1)
    other = find_player("random")
    assert not isinstance(other, ModelDir)
    report = play_match(open_game(task), player, other, num_games=4, num_simulations=8)
    assert len(report.games) == 4
    assert report.tally.score > 0.5


def test_a_model_that_cannot_be_opened_is_refused(tmp_path):
    whole = checked_opponent(TargetConfig(opponent="bundled:go/7"), "go/7")
    damaged = tmp_path / "model"
    shutil.copytree(whole.opponent, damaged)
    weights = next(path for path in damaged.iterdir() if path.suffix == ".safetensors")
    weights.write_bytes(weights.read_bytes()[:-4])
    with refused(UsageError, f"agent.target.opponent ({damaged})"):
        checked_opponent(TargetConfig(opponent=str(damaged)), "go/7")


SLOW = Path(__file__).parents[2] / "oracle" / "slow_gtp.py"


def test_a_program_is_started_before_anything_starts():
    engine = f"gtp:{sys.executable} {SLOW}"
    config = TargetConfig(opponent=engine)
    assert checked_opponent(config, "go/7") == config
    for word, why in {
        "gtp:cat": '"protocol_version" with protocol_version, which is not GTP',
        "gtp:false": 'exited on "protocol_version"',
        f"{engine} version": "must speak GTP 2, not 3",
        f"{engine} commands": "must know genmove",
    }.items():
        with pytest.raises(UsageError) as caught:
            checked_opponent(TargetConfig(opponent=word), "go/7")
        line = str(caught.value)
        assert line.startswith(f"agent.target.opponent ({word}) cannot be used: ")
        assert why in line
        assert "\n" not in line


def test_a_run_without_a_program_that_answers_is_not_begun(tmp_path, capsys):
    for program in ("cat", "false"):
        out = tmp_path / program
        words = ["train", "go/5", "--recipe", "mlperf_minigo_small", "--out", str(out)]
        words += ["--games", "1", "--set", f"agent.target.opponent=gtp:{program}"]
        assert cli.main(words) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert not out.exists()


def test_bad_settings_are_refused():
    for name, value in {
        "num_games": 3,
        "chunk_games": 5,
        "confirming_games": 1,
        "num_simulations": 0,
    }.items():
        with refused(UsageError, f"{name} ({value})"):
            TargetConfig(**{name: value})


@pytest.mark.parametrize(
    ("word", "is_model"),
    [("bundled:connect4", True), ("mcts:2", False), ("random", False)],
)
def test_a_network_is_a_model_of_tengen(word, is_model):
    assert is_network(word) is is_model
    # An ONNX model of another program runs on the CPU, whatever its file's name.
    assert not is_network(f"onnx:{word}")
