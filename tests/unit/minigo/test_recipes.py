"""The benchmark's recipes: the closed division's rules, and the small variants."""

import dataclasses

import pytest

from tengen import cli
from tengen.config import from_dict, to_dict
from tengen.errors import UsageError
from tengen.minigo.closed_division import FIXED, open_because
from tengen.nets.minigo import MinigoConfig
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.recipes.registry import recipe_of
from tengen.roles import RunConfig
from tengen.search import SearchConfig
from tests.configs import new_config
from tests.refusals import refused

CLOSED = (
    "learner.initial_model=/data/checkpoint",
    "store.imported=/data/examples",
    "agent.target.opponent=/data/target",
)


def config_of(task, recipe="mlperf_minigo", *settings):
    return override(make_config(task, None, recipe), settings)


def test_the_recipe_is_the_closed_division():
    config = config_of("go/19", "mlperf_minigo", *CLOSED)
    assert open_because(to_dict(config)) == []
    assert from_dict(RunConfig, to_dict(config)) == config
    # Settings that the rules leave open do not open the run.
    free = (
        "learner.batch_size=8192",
        "learner.optimizer.rates=[0.02, 0.3]",
        "learner.optimizer.boundaries=[64]",
        "launch.roles.learn.count=4",
        "agent.actor.num_slots=64",
        "agent.iterations=100",
    )
    assert open_because(to_dict(override(config, free))) == []


# From the reference's flags (ml_perf/flags/19) and the rules of v2.1, independently of
# the table in the code.
RULES = {
    "task": "go/19/nosuicide/planes=minigo",
    "net.num_blocks": 6,
    "net.num_channels": 64,
    "net.fc_width": 64,
    "agent.actor.full_simulations": 800,
    "agent.actor.cheap_simulations": 80,
    "agent.actor.full_probability": 1 - 0.75,
    "agent.actor.soft_pick_plies": 361 // 12 // 2 * 2,
    "agent.actor.soft_pick_exponent": 0.98,
    "agent.actor.resign_from": 0.9,
    "agent.actor.restrict_pass_alive_after": 4,
    "agent.actor.switch_models": True,
    "agent.actor.search.policy": "minigo",
    "agent.actor.search.minigo_virtual_losses": 4,
    "agent.actor.search.minigo_value_penalty": 0.2,
    "agent.actor.search.minigo_noise_alpha": 0.03,
    "agent.actor.search.minigo_c_base": 19652.0,
    "agent.actor.search.minigo_c_init": 1.25,
    "agent.actor.search.noise_weight": 0.3,
    "agent.loss.value_cost": 0.5,
    "agent.gate.kind": "accept_all",
    "agent.target.num_games": 256,
    "agent.target.num_simulations": 100,
    "agent.target.win_rate": 0.5,
    "store.num_generations": 5,
    "store.share": 0.3,
    "store.min_games": 8192,
    "learner.optimizer.momentum": 0.9,
    "learner.optimizer.weight_decay": 1e-4,
    "learner.epoch_samples": 1_000_000_000,
    "learner.num_shards": 1,
}


def test_the_table_has_what_the_rules_say():
    assert {path: FIXED.get(path) for path in RULES} == RULES
    config = config_of("go/19")
    assert config.learner.batch_size == 4096
    assert config.learner.optimizer.rates == (0.016, 0.16, 0.016, 0.0016)
    assert config.learner.optimizer.boundaries == (128, 10_000, 20_000)


@pytest.mark.parametrize("path", sorted(FIXED))
def test_each_number_of_the_rules_is_looked_at(path):
    content = to_dict(config_of("go/19", "mlperf_minigo", *CLOSED))
    *folders, name = path.split(".")
    place = content
    for folder in folders:
        place = place[folder]
    assert place[name] == FIXED[path]
    place[name] = "another"
    (reason,) = open_because(content)
    assert reason == f"{path} (another) must be {FIXED[path]} in the closed division"


def test_a_run_that_begins_with_itself_is_open():
    reasons = open_because(to_dict(config_of("go/19")))
    assert len(reasons) == 3
    assert (
        "learner.initial_model (empty) must be the benchmark's checkpoint" in reasons[0]
    )
    for opponent in ("random", "mcts:100", "gtp:gnugo --mode gtp", "katago:net.bin.gz"):
        made = [*CLOSED[:2], f"agent.target.opponent={opponent}"]
        (reason,) = open_because(to_dict(config_of("go/19", "mlperf_minigo", *made)))
        assert reason.startswith(f"agent.target.opponent ({opponent})")


def test_a_folder_is_not_taken_for_an_opponent_by_its_name():
    named = (
        "learner.initial_model=random-model",
        "store.imported=mcts:rows",
        "agent.target.opponent=random-target",
    )
    assert open_because(to_dict(config_of("go/19", "mlperf_minigo", *named))) == []
    for opponent in ("mcts", "onnx:random"):
        given = (*CLOSED[:2], f"agent.target.opponent={opponent}")
        assert open_because(to_dict(config_of("go/19", "mlperf_minigo", *given))) == []


def test_a_run_without_rates_is_open():
    free = ("learner.optimizer.rates=[]", "learner.optimizer.boundaries=[]")
    (reason,) = open_because(
        to_dict(config_of("go/19", "mlperf_minigo", *CLOSED, *free))
    )
    assert reason.startswith("learner.optimizer.rates (empty) must be set in ")


def test_int8_is_open_and_floats_are_not():
    floats = ("inference.precision=bf16", "learner.precision=bfloat16")
    config = config_of("go/19", "mlperf_minigo", *CLOSED, *floats)
    assert open_because(to_dict(config)) == []
    # No config of this network allows int8, but an edited file could contain it.
    content = to_dict(config)
    content["inference"]["precision"] = "int8"
    (reason,) = open_because(content)
    assert reason.startswith("inference.precision (int8) must be fp32 or bf16 in ")
    # ``agent.play`` also sets the precision of the target's player.
    config = config_of("go/19", "mlperf_minigo", *CLOSED, "agent.play.precision=int8")
    (reason,) = open_because(to_dict(config))
    assert reason.startswith("agent.play.precision (int8)")


@pytest.mark.parametrize(("task", "soft"), [("go/5", 2), ("go/7", 4), ("go/9", 6)])
def test_the_small_ones_have_the_same_rules(task, soft):
    small = config_of(task, "mlperf_minigo_small")
    whole = config_of("go/19")
    assert small.task == f"{task}/nosuicide/planes=minigo"
    actor = small.agent.actor
    assert actor.soft_pick_plies == soft
    # The total concentration of the noise over all moves is the same.
    points = int(task[3:]) ** 2
    noise = actor.search.minigo_noise_alpha
    assert noise * points == pytest.approx(0.03 * 361)
    same = dataclasses.replace(
        actor.search, minigo_noise_alpha=whole.agent.actor.search.minigo_noise_alpha
    )
    assert same == whole.agent.actor.search
    for name in ("full_probability", "soft_pick_exponent", "restrict_pass_alive_after"):
        assert getattr(actor, name) == getattr(whole.agent.actor, name)
    assert small.agent.loss == whole.agent.loss
    assert small.agent.gate == whole.agent.gate
    assert small.store.num_generations == 5
    small.check_task()


# The settings measured in benchmarks/results/mlperf.md; go/5 was not measured.
MEASURED = {
    "go/5": (256, 12, 96, 16, 0.3, (0.005, 0.05, 0.01), (64, 600)),
    "go/7": (256, 14, 96, 16, 0.3, (0.005, 0.05, 0.01), (64, 1600)),
    "go/9": (512, 48, 128, 16, 1.0, (0.005, 0.05, 0.02, 0.005), (100, 20_000, 40_000)),
}
NETS = {
    "go/5": MinigoConfig(num_blocks=2, num_channels=32, fc_width=32),
    "go/7": MinigoConfig(num_blocks=3, num_channels=32, fc_width=32),
    "go/9": MinigoConfig(
        num_blocks=2, num_channels=32, policy_channels=32, value_channels=8
    ),
}


@pytest.mark.parametrize("task", MEASURED)
def test_the_small_ones_have_the_numbers_that_were_measured(task):
    config = config_of(task, "mlperf_minigo_small")
    agent, optimizer = config.agent, config.learner.optimizer
    assert config.net == NETS[task]
    assert config.store.min_games == agent.actor.games_per_generation
    assert config.learner.batch_size == 32
    assert MEASURED[task] == (
        agent.actor.games_per_generation,
        agent.iterations,
        agent.actor.full_simulations,
        agent.actor.cheap_simulations,
        config.store.share,
        optimizer.rates,
        optimizer.boundaries,
    )


def test_the_benchmark_is_not_run_without_a_target(tmp_path, capsys):
    out = tmp_path / "run"
    words = ["train", "go/19", "--recipe", "mlperf_minigo", "--out", str(out)]
    assert cli.main([*words, "--games", "1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "agent.target.opponent (empty) must be set" in line
    assert not out.exists()
    small = "agent.target.opponent="
    words = ["train", "go/5", "--recipe", "mlperf_minigo_small", "--set", small]
    words += ["--set", "agent.target.needs_opponent=true", "--out", str(out)]
    assert cli.main(words) == 2
    assert not out.exists()


def test_models_play_the_target_without_noise():
    agent = config_of("go/19").agent
    play = agent.play_against_target()
    assert play.search == SearchConfig(policy="minigo")
    assert make_config("go/9", None, None).agent.play_against_target() == (
        make_config("go/9", None, None).agent.play
    )


def test_the_first_games_are_the_bootstraps():
    agent = config_of("go/19").agent
    played = agent.bootstrap.played(agent.actor)
    assert (played.full_simulations, played.full_probability) == (80, 1.0)
    assert (played.may_pass, played.resign_from) == (False, 0.99)
    assert (agent.actor.prunes_target, played.prunes_target) == (True, False)
    assert not played.switch_models
    assert played.search == agent.actor.search


def test_other_tasks_are_refused():
    for task, recipe, why in (
        ("go/9", "mlperf_minigo", "recipe (mlperf_minigo)"),
        ("go/13", "mlperf_minigo_small", "recipe (mlperf_minigo_small)"),
        ("gomoku/9", "mlperf_minigo", "gomoku/9"),
    ):
        with refused(UsageError, why):
            make_config(task, None, recipe)
    with refused(UsageError, "agent.bootstrap (given)", "agent.actor.search"):
        new_config("go/9", settings=["agent.bootstrap.simulations=10"])


def test_who_goes_on_need_not_name_the_recipe():
    config = config_of("go/7", "mlperf_minigo_small")
    assert recipe_of(config, "go/7") == "mlperf_minigo_small"
    assert recipe_of(config, "go/9") is None
    assert recipe_of(config, config.task) is None
    assert recipe_of(make_config("go/7", None, None), "go/9") is None
