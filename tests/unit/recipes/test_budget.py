"""What a recipe makes of the time and the hardware that it is given."""

import dataclasses

import pytest

from tengen import games
from tengen.agents import History, NetStage
from tengen.agents.bases.stages import num_begun
from tengen.config import to_dict
from tengen.inference import Choice
from tengen.nets import ResNetConfig, parse_net
from tengen.nets.lines import LinesConfig
from tengen.recipes import make_config
from tengen.recipes.boards import GROWTH
from tengen.recipes.run import train_task
from tengen.roles import read_config
from tengen.roles.config.run_file import record_inference
from tengen.run import RunDirectory, publish_json

OWN_GAME = "tests.unit.games.own_games:TicTacToe"
ON_BOARDS = ("connect4", "gomoku/9", "gomoku/15", "go/9", "go/9x13/simple")
WITH_RESNETS = tuple(task for task in ON_BOARDS if not task.startswith("gomoku"))


def net_after(config, core_minutes, in_all):
    """Returns the network at some point of a run."""
    begun = num_begun(config.stages, History(core_minutes, in_all))
    net = config.nets[begun]
    return f"{net.num_blocks}x{net.num_channels}"


@pytest.mark.parametrize("task", [*WITH_RESNETS, OWN_GAME])
@pytest.mark.parametrize(
    ("core_minutes", "net"),
    [
        (20, "2x32"),
        (39.9, "2x32"),
        (40, "4x64"),
        (399.9, "4x64"),
        (400, "6x96"),
        (3_999.0, "6x96"),
        (4_000.0, "10x128"),
    ],
)
def test_a_larger_budget_ends_with_a_larger_network(task, core_minutes, net):
    if task == OWN_GAME:
        games.allow(task)
    config = make_config(task, None, None)
    is_go = task.startswith("go/")
    first = ResNetConfig(num_blocks=2, num_channels=32, auxiliary=is_go)
    assert config.net == first
    assert net_after(config, 0.0, core_minutes) == "2x32"
    assert net_after(config, core_minutes, core_minutes) == net


@pytest.mark.parametrize("task", ["gomoku/9", "gomoku/15"])
@pytest.mark.parametrize(
    ("core_minutes", "num_channels"), [(20, 64), (39.9, 64), (40, 128), (4_000, 128)]
)
def test_gomoku_has_line_patterns(task, core_minutes, num_channels):
    config = make_config(task, None, None)
    assert config.net == LinesConfig()
    begun = num_begun(config.stages, History(core_minutes, core_minutes))
    assert config.nets[begun] == LinesConfig(num_channels=num_channels)


def test_one_call_of_an_hour_and_two_grow_at_the_same_point():
    config = make_config("connect4", None, None)
    # Ten minutes of two cores tonight, fifty tomorrow.
    calls = [(at, 20.0) for at in range(21)] + [(at, 120.0) for at in range(20, 121)]
    nets = [net_after(config, at, in_all) for at, in_all in calls]
    at_once = [net_after(config, at, 120.0) for at in range(121)]
    assert nets[:21] == at_once[:21]
    assert nets[21:] == at_once[20:]
    assert at_once.index("4x64") == 48


@pytest.mark.parametrize("task", ON_BOARDS)
@pytest.mark.parametrize("num_threads", [1, 2])
def test_recipes_are_tuned_on_two_threads(task, num_threads):
    config = make_config(task, None, None, num_threads)
    games, slots = {"connect4": (512, 32), "gomoku": (256, 64), "go": (128, 32)}[
        task.split("/")[0]
    ]
    assert config.agent.actor.games_per_generation == games
    assert (config.agent.actor.num_slots, config.learner.num_shards) == (slots, 2)
    assert (config.learner.batch_size, config.store.min_rows) == (256, 8_000)


@pytest.mark.parametrize("task", [*ON_BOARDS, "openspiel/hex(board_size=5)"])
@pytest.mark.parametrize("num_threads", [2, 16, 64])
def test_slots_stay_filled_and_shards_busy(task, num_threads):
    if task.startswith("openspiel"):
        pytest.importorskip("pyspiel")
    config = make_config(task, None, None, num_threads)
    learner = config.learner
    at_once = config.agent.actor.num_slots * num_threads
    assert config.agent.actor.games_per_generation >= 2 * at_once
    most = learner.batch_size // 16
    assert learner.num_shards == min(num_threads, most)


def test_an_own_game_plays_more_games_on_more_threads():
    games.allow(OWN_GAME)
    actor = make_config(OWN_GAME, None, None, 16).agent.actor
    assert actor.games_per_generation == 2 * 16 * actor.num_slots == 512


def test_tic_tac_toe_needs_no_more():
    config = make_config("tictactoe", None, None, 64)
    assert config == make_config("tictactoe", None, None)
    assert not config.agent.stages


@pytest.fixture
def record(tmp_path, monkeypatch, give_cores, give_gpus):
    """Returns a function that makes a run on four cores and reads its config."""
    monkeypatch.setattr("tengen.recipes.run._train", lambda *words: {})
    give_cores(4)

    def make(name="run", num_gpus=0, **budget):
        give_gpus(num_gpus)
        train_task("connect4", out=tmp_path / name, **budget)
        return read_config(RunDirectory(tmp_path / name))

    return make


@pytest.mark.parametrize(
    ("budget", "num_shards"),
    [
        ({"games": 1}, 2),
        ({"minutes": 100.0, "games": 7}, 2),
        ({"minutes": 5.0}, 4),
        ({"cpu_seconds": 60.0}, 4),
        ({}, 4),
        ({"minutes": 100.0, "threads": 1}, 2),
    ],
)
def test_what_a_new_run_records(record, budget, num_shards):
    config = record(**budget)
    # However long the first call is: others may follow.
    assert config.agent.stages == GROWTH
    assert config.learner.num_shards == num_shards


@pytest.mark.parametrize(
    ("setting", "stages"),
    [
        ("net.num_blocks=3", GROWTH),
        ("net.num_channels=64", GROWTH),
        ("net.num_channels=96", GROWTH[1:]),
        ("net.num_blocks=5", GROWTH[1:]),
        ("net.num_blocks=20", ()),
        ("net.kind=transformer", ()),
        ("agent.stages=[]", ()),
        ('net={"kind": "resnet", "num_blocks": 6, "num_channels": 96}', GROWTH[2:]),
    ],
)
def test_a_run_with_its_own_network_grows_beyond_it(record, setting, stages):
    config = record(settings=[setting])
    assert config.agent.stages == stages


def as_of_before(path, stages):
    """Writes a run's config as the version before wrote it, with such stages."""
    run = RunDirectory(path)
    content = run.read_run()
    del content["schema"], content["stages_schema"]
    content["config"]["agent"]["stages"] = stages
    publish_json(path / "run.json", {"schema": 2, **content})


@pytest.mark.parametrize(
    ("old", "stages"),
    [
        # Ten minutes, an hour, and somebody's own, which stay.
        ([], GROWTH),
        ([{"share": 0.4, "net": to_dict(parse_net("4x64"))}], GROWTH),
        (
            [{"share": 0.3, "net": to_dict(parse_net("3x48"))}],
            (NetStage(share=0.3, net=parse_net("3x48")),),
        ),
    ],
)
def test_a_run_of_an_earlier_version_grows_too(tmp_path, record, capsys, old, stages):
    record()
    as_of_before(tmp_path / "run", old)
    before = read_config(RunDirectory(tmp_path / "run")).agent.stages
    capsys.readouterr()
    config = record(minutes=5.0)
    assert config.agent.stages == stages
    is_told = "now grows" in capsys.readouterr().out
    assert is_told == (before != stages)
    # The version of now writes what it says, and asks nobody again.
    again = record(minutes=5.0)
    assert again.agent.stages == stages
    assert "grows" not in capsys.readouterr().out


def test_an_old_run_may_be_kept_as_it_is(tmp_path, record):
    record()
    as_of_before(tmp_path / "run", [])
    for _ in range(2):
        config = record(settings=["agent.stages=[]"])
        assert config.agent.stages == ()


def test_an_old_run_that_a_role_wrote_grows_all_the_same(tmp_path, record):
    config = record()
    as_of_before(tmp_path / "run", [])
    run = RunDirectory(tmp_path / "run")
    inference = dataclasses.replace(
        config.inference, backend="torch", precision="fp32", batch_shape="dynamic"
    )
    choice = Choice(inference, "1", True, {})
    record_inference(run, choice, config.inference, config.net)
    assert run.read_run()["schema"] == 3
    assert read_config(run).agent.stages == ()
    assert record().agent.stages == GROWTH


@pytest.mark.parametrize(
    ("settings", "stages", "net"),
    [
        ([], GROWTH[2:], GROWTH[1].net),
        (["agent.stages=[]"], (), None),
        (["net.num_channels=16"], GROWTH, None),
    ],
)
def test_roles_by_themselves_begin_as_somebody_said(record, settings, stages, net):
    words = {"games": 0, "minutes": 600.0, "threads": 2, "settings": settings}
    config = record(**words)
    assert config.agent.stages == stages
    own = make_config("connect4", None, None).net
    size = (config.net.num_blocks, config.net.num_channels)
    if net is not None:
        assert size == (net.num_blocks, net.num_channels)
    else:
        assert size == (
            own.num_blocks,
            16 if settings[0][0] == "n" else own.num_channels,
        )


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
def test_a_run_with_a_gpu_has_the_recipe_of_its_cpu(record, words):
    """No rate of a GPU is known from which to make another."""
    with_gpus = record("with", num_gpus=2, **words)
    settings = [w for w in words.get("settings", []) if "devices" not in w]
    without = {**words, "devices": "cpu", "settings": settings}
    on_cpu = record("without", **without)
    assert (with_gpus.net, with_gpus.agent) == (on_cpu.net, on_cpu.agent)
    assert with_gpus.learner.num_shards == on_cpu.learner.num_shards
    assert with_gpus.store == on_cpu.store


def test_a_run_that_goes_on_stays_what_it_was(record):
    first = record(minutes=100.0)
    again = record(num_gpus=2, minutes=9000.0)
    assert again == first
