"""Loading real models by run, by number and by directory."""

import json

import pytest

import tengen
from tengen import cli
from tengen.errors import UsageError
from tengen.evaluation import open_player
from tengen.inference.openvino_backend import supported_precisions
from tengen.play.loading import load_player
from tengen.search import PlayConfig, SearchConfig
from tests.refusals import refused

pytestmark = pytest.mark.precision


@pytest.fixture(scope="module")
def run(tmp_path_factory, publish_run):
    """Returns a run of tic-tac-toe with untrained models 3 and 17."""
    return publish_run(tmp_path_factory.mktemp("runs") / "ttt", "tictactoe", (3, 17))


def test_the_three_ways_to_name_a_model(run):
    words = (str(run.path), f"{run.path}@17", run.models.entry(17))
    answers = []
    for word in words:
        with tengen.load(word) as player:
            assert player.game.name == "tictactoe"
            answers.append(player.analyse([4, 0], simulations=50))
    assert answers[0] == answers[1] == answers[2]
    with tengen.load(f"{run.path}@3") as player:
        assert player.analyse([4, 0], simulations=50) != answers[0]


def test_more_threads_compile_the_same_model_again(run, give_cores):
    give_cores(3)
    with tengen.load(f"{run.path}@3") as player:
        before = player.analyse([4, 0], simulations=50)
        many = player.analyse([4, 0], simulations=50, threads=3)
        assert many.num_simulations == 50
        assert [a.prior for a in sorted(many.actions, key=lambda a: a.action)] == [
            a.prior for a in sorted(before.actions, key=lambda a: a.action)
        ]
        assert player.analyse([4, 0], simulations=50) == before


def test_a_missing_number_is_named(run):
    with refused(UsageError, "@5)"):
        tengen.load(f"{run.path}@5")


def test_two_models_of_a_run_meet(run, capsys):
    words = [f"{run.path}@3", f"{run.path}@17", "--games", "6", "--simulations", "16"]
    reports = []
    for threads in ("1", "3"):
        assert cli.main(["match", *words, "--json", "--threads", threads]) == 0
        reports.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    assert reports[0] == reports[1]
    assert reports[0]["games"] == 6
    code = cli.main(["match", *words, "--game", "connect4"])
    assert code == 2
    assert "must be tictactoe" in capsys.readouterr().err


CHANGED = ("search.cpuct=1000", "search.lcb_stdevs=1000")


def test_the_settings_of_a_search_reach_the_side_that_they_name(
    tmp_path, publish_run, capsys
):
    run = publish_run(tmp_path / "run", "connect4", (17,), exports=False)

    def score_of_a(*settings):
        words = [str(run.path), f"{run.path}@17", "--games", "20", "--json"]
        words += [word for setting in settings for word in ("--set", setting)]
        assert cli.main(["match", *words]) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])["score_a"]

    changed = score_of_a(*(f"a.{setting}" for setting in CHANGED))
    assert score_of_a() == 0.5
    assert changed != 0.5
    assert score_of_a(*(f"b.{setting}" for setting in CHANGED)) == 1 - changed
    both = [f"{side}.{setting}" for side in "ab" for setting in CHANGED]
    assert score_of_a(*both) == 0.5


def test_a_model_plays_as_its_run_says(tmp_path, publish_run, capsys):
    play = PlayConfig(search=SearchConfig(cpuct=1000.0, lcb_stdevs=1000.0))
    said = publish_run(tmp_path / "said", "connect4", (17,), play=play, exports=False)
    silent = publish_run(tmp_path / "silent", "connect4", (17,), exports=False)
    with tengen.load(said.path) as player, tengen.load(silent.path, play) as told:
        assert player.analyse([4], 50) == told.analyse([4], 50)
    with tengen.load(said.path, PlayConfig()) as told, tengen.load(silent.path) as old:
        assert told.analyse([4], 50) == old.analyse([4], 50) != player_of(said)

    def score_of_a(*words):
        match = ["match", str(said.path), str(silent.path), "--games", "20", "--json"]
        assert cli.main([*match, *words]) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])["score_a"]

    # Each side uses its own run's settings, except those set on the command line.
    assert score_of_a() != 0.5
    as_silent = ("--set", "a.search.cpuct=1.1", "--set", "a.search.lcb_stdevs=0")
    assert score_of_a(*as_silent) == 0.5


def player_of(run):
    with tengen.load(run.path) as player:
        return player.analyse([4], 50)


def test_a_tree_is_kept_by_commands_and_not_by_a_library(tmp_path, publish_run):
    """This holds whatever the run's match settings are."""
    run = publish_run(tmp_path / "r", "gomoku/5", play=PlayConfig(), exports=False)
    with tengen.load(run.path) as player:
        fresh = player.analyse([12, 7], 40)
        player.analyse([12], 400)
        assert player.analyse([12, 7], 40) == fresh
    with load_player(str(run.path), []) as player:
        player.analyse([12], 400)
        assert player.analyse([12, 7], 40) != fresh
    with load_player(str(run.path), [], is_fresh=True) as player:
        player.analyse([12], 400)
        assert player.analyse([12, 7], 40) == fresh


@pytest.mark.parametrize("precision", ["run", "fp32", "bf16", "int8"])
def test_a_precision_of_the_trunk(run, precision):
    play = PlayConfig(precision=precision)
    found = open_player(f"{run.path}@17", play=play).backend.precision
    # The model has no int8 graph, so it plays in the precision of its float parts.
    is_wide = precision in ("run", "fp32") or "bf16" not in supported_precisions()
    assert found == ("fp32" if is_wide else "bf16")


def test_a_player_searches_as_it_was_told(run, type_in, capsys):
    def answer(*words):
        type_in("a1\nquit\n")
        words = ("--threads", "1", *words, "--json")
        assert cli.main(["play", f"{run.path}@17", *words]) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])["moves"]

    words = [word for setting in CHANGED for word in ("--set", setting)]
    search = SearchConfig(cpuct=1000.0, lcb_stdevs=1000.0)
    config_changed = PlayConfig(search=search)
    moves = []
    for config, given in ((None, ()), (config_changed, words)):
        with tengen.load(f"{run.path}@17", config) as player:
            first = answer("--simulations", "30", *given)
            assert first[1] == player.choose(first[:1], simulations=30)
            moves.append(first)
    assert moves[0] != moves[1]


@pytest.mark.parametrize(
    ("command", "setting", "message"),
    [
        ("play", "search.lcb=5", "search.lcb (5) is not a known key"),
        ("play", "search.lcb_stdevs=-1", "search.lcb_stdevs (-1.0) must not be"),
        ("play", "search.lcb_stdevs", "must be path.to.field=value"),
        ("play", "search.noise_weight=0.5", "search.noise_weight (0.5) is for self-"),
        ("match", "a.search.cpuct=1e9", "a.search.cpuct (1000000000.0) must be at"),
        ("match", "search.lcb_stdevs=5", "search (5) is not a known key; known: a, b"),
        ("match", "a.search.forced_playouts=2", "a.search.forced_playouts (2.0) is"),
        ("match", "b.search.lcb_stdevs=5", "b (random) is not a model, and has no"),
    ],
)
def test_a_setting_that_is_refused_is_one_line(run, capsys, command, setting, message):
    words = [str(run.path)] if command == "play" else [str(run.path), "random"]
    assert cli.main([command, *words, "--set", setting]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.fixture
def gpus(give_gpus):
    """Returns the names of the GPUs that are opened, of two."""
    return give_gpus(2)


def test_a_model_plays_on_the_device_that_is_asked_for(run, gpus, give_cores):
    give_cores(3)
    with tengen.load(run.path, devices="cpu") as player:
        expected = player.analyse([4, 0], simulations=50)
    assert gpus == []
    with tengen.load(run.path, devices="cuda:1") as player:
        found = player.analyse([4, 0], simulations=50)
        player.analyse([4, 0], simulations=50, threads=3)
    assert set(gpus) == {"cuda:1"}
    assert found.best_action == expected.best_action
    assert found.value_to_play == pytest.approx(expected.value_to_play, abs=1e-4)


def test_the_commands_that_play_take_devices(run, gpus, type_in, capsys):
    words = ["match", str(run.path), "random", "--games", "2", "--simulations", "4"]
    assert cli.main([*words, "--devices", "cuda:0", "--threads", "1"]) == 0
    assert set(gpus) == {"cuda:0"}
    gpus.clear()
    type_in("quit\n")
    assert cli.main(["play", str(run.path), "--devices", "cuda:1"]) == 0
    assert set(gpus) == {"cuda:1"}
    capsys.readouterr()
    for devices, why in (
        ("cuda:0,cuda:1", "must be cpu or one GPU; for example cuda:0"),
        ("auto", "must be cpu or one GPU; for example cuda:0"),
        ("gpu", "must be cpu or GPUs"),
        ("cuda:2", "does not exist, torch sees cuda:0 to cuda:1"),
    ):
        for command in ("match", "play", "gtp"):
            rest = ["random"] if command == "match" else []
            code = cli.main([command, str(run.path), *rest, "--devices", devices])
            assert code == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert f"devices ({devices})" in line
            assert why in line


def test_a_search_for_self_play_and_matches_is_refused(tmp_path, publish_run, capsys):
    play = PlayConfig(search=SearchConfig(policy="minigo"))
    run = publish_run(tmp_path / "run", "go/4", play=play)
    line = "search.policy (minigo) must be puct or gumbel to search"
    with refused(UsageError, line):
        tengen.load(str(run.path))
    for command in ("play", "gtp"):
        assert cli.main([command, str(run.path)]) == 2
        assert line in capsys.readouterr().err
    with load_player(str(run.path), ["search.policy=puct"]) as player:
        assert player.choose([5], simulations=8) != 5


def test_play_of_an_environment_names_the_command_for_it(capsys):
    assert cli.main(["play", "minigrid/Empty-5x5"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "tengen demos play minigrid/Empty-5x5" in error
