"""What a recipe makes of the time and the hardware that it is given."""

import pytest

from tengen import games
from tengen.nets import ResNetConfig
from tengen.recipes import Resources, make_config
from tengen.recipes.run import train_task
from tengen.roles import read_config
from tengen.run import RunDirectory

ON_BOARDS = ("connect4", "gomoku/9", "gomoku/15", "go/9", "go/9x13/simple")


def stages_of(config):
    """Returns the stages as ``{"4x64": 0.4}``."""
    return {
        f"{stage.net.num_blocks}x{stage.net.num_channels}": stage.share
        for stage in config.agent.stages
    }


@pytest.mark.parametrize("task", ON_BOARDS)
@pytest.mark.parametrize(
    ("resources", "stages"),
    [
        (Resources(minutes=10, num_threads=2), {}),
        (Resources(minutes=19.9, num_threads=2), {}),
        (Resources(minutes=20, num_threads=2), {"4x64": 0.4}),
        (Resources(minutes=199.9, num_threads=2), {"4x64": 0.4}),
        (Resources(minutes=10, num_threads=16), {"4x64": 0.4}),
        (Resources(minutes=200, num_threads=2), {"4x64": 0.2, "6x96": 0.5}),
        (Resources(minutes=249.9, num_threads=16), {"4x64": 0.2, "6x96": 0.5}),
        (Resources(minutes=10, num_threads=64), {"4x64": 0.2, "6x96": 0.5}),
        (
            Resources(minutes=120, num_threads=64),
            {"4x64": 0.1, "6x96": 0.3, "10x128": 0.6},
        ),
    ],
)
def test_a_larger_budget_ends_with_a_larger_network(task, resources, stages):
    config = make_config(task, None, None, resources)
    is_go = task.startswith("go/")
    net = ResNetConfig(num_blocks=2, num_channels=32, auxiliary=is_go)
    assert config.net == net
    assert stages_of(config) == stages


@pytest.mark.parametrize("task", ON_BOARDS)
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("minutes", [10, 20, 60])
def test_on_two_threads_time_changes_nothing_but_growth(task, num_threads, minutes):
    resources = Resources(minutes=minutes, num_threads=num_threads)
    config = make_config(task, None, None, resources)
    games = {"connect4": 512, "gomoku": 384, "go": 128}[task.split("/")[0]]
    assert config.agent.actor.games_per_generation == games
    assert (config.agent.actor.num_slots, config.learner.num_shards) == (32, 2)
    assert (config.learner.batch_size, config.store.min_rows) == (256, 8_000)


@pytest.mark.parametrize("task", [*ON_BOARDS, "openspiel/hex(board_size=5)"])
@pytest.mark.parametrize("num_threads", [2, 16, 64])
def test_slots_stay_filled_and_shards_busy(task, num_threads):
    if task.startswith("openspiel"):
        pytest.importorskip("pyspiel")
    resources = Resources(num_threads=num_threads)
    config = make_config(task, None, None, resources)
    learner = config.learner
    at_once = config.agent.actor.num_slots * num_threads
    assert config.agent.actor.games_per_generation >= 2 * at_once
    most = learner.batch_size // 16
    assert learner.num_shards == min(num_threads, most)


def test_an_own_game_plays_more_games_on_more_threads():
    task = "tests.unit.games.own_games:TicTacToe"
    games.allow(task)
    actor = make_config(task, None, None, Resources(num_threads=16)).agent.actor
    assert actor.games_per_generation == 2 * 16 * actor.num_slots == 512


def test_tic_tac_toe_needs_no_more():
    large = Resources(minutes=600, num_threads=64)
    assert make_config("tictactoe", None, None, large) == make_config(
        "tictactoe", None, None
    )


def record(path, monkeypatch, num_gpus=0, **budget):
    """Returns the config that a new run on four cores records."""
    monkeypatch.setattr("tengen.recipes.run._train", lambda *words: {})
    monkeypatch.setattr("tengen.recipes.run.usable_threads", lambda asked: asked or 4)
    monkeypatch.setattr("tengen.inference.devices._num_gpus", lambda: num_gpus)
    train_task("connect4", out=path, **budget)
    return read_config(RunDirectory(path))


@pytest.mark.parametrize(
    ("budget", "stages", "num_shards"),
    [
        ({"games": 1}, {}, 2),
        ({"minutes": 100.0, "games": 7}, {}, 2),
        ({"minutes": 5.0}, {}, 4),
        ({}, {"4x64": 0.4}, 4),
        ({"settings": ["minutes=9"]}, {}, 4),
        ({"minutes": 5.0, "settings": ["minutes=100"]}, {}, 4),
        ({"minutes": 100.0}, {"4x64": 0.2, "6x96": 0.5}, 4),
        ({"minutes": 100.0, "threads": 1}, {"4x64": 0.4}, 2),
    ],
)
def test_what_a_new_run_records(tmp_path, monkeypatch, budget, stages, num_shards):
    config = record(tmp_path / "run", monkeypatch, **budget)
    assert stages_of(config) == stages
    assert config.learner.num_shards == num_shards


@pytest.mark.parametrize(
    "words",
    [
        {"minutes": 10.0},
        {"minutes": 100.0},
        {"games": 5},
        {"minutes": 10.0, "devices": "cuda:0,cuda:1"},
        {"minutes": 10.0, "settings": ["inference.devices=cuda:1"]},
    ],
)
def test_a_run_with_a_gpu_has_the_recipe_of_its_cpu(tmp_path, monkeypatch, words):
    """No rate of a GPU is known from which to make another."""
    with_gpus = record(tmp_path / "with", monkeypatch, num_gpus=2, **words)
    settings = [w for w in words.get("settings", []) if "devices" not in w]
    without = {**words, "devices": "cpu", "settings": settings}
    on_cpu = record(tmp_path / "without", monkeypatch, **without)
    assert stages_of(with_gpus) == stages_of(on_cpu)
    assert (with_gpus.net, with_gpus.agent.actor) == (on_cpu.net, on_cpu.agent.actor)
    assert with_gpus.learner.num_shards == on_cpu.learner.num_shards
    assert with_gpus.store == on_cpu.store


def test_a_run_that_goes_on_stays_what_it_was(tmp_path, monkeypatch):
    first = record(tmp_path / "run", monkeypatch, minutes=100.0)
    again = record(tmp_path / "run", monkeypatch, num_gpus=2, minutes=9000.0)
    assert again == first
