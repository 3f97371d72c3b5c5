"""A run in int8, role by role: which models are quantised, and what is kept."""

import dataclasses
import json
import re
import time

import pytest

from tengen.agents import NetStage
from tengen.inference import open_backend
from tengen.models import INT8_FILE, can_quantise, load_model, quantise
from tengen.models.load import read_meta
from tengen.nets import parse_net
from tengen.recipes import make_config
from tengen.roles import (
    RoleContext,
    change_config,
    make_role,
    read_config,
    write_config,
)
from tengen.run import RunDirectory
from tengen.search import PlayConfig

pytest.importorskip("openvino")
pytestmark = [
    pytest.mark.precision,
    pytest.mark.skipif(not can_quantise(), reason="this CPU has no int8"),
]

NAMES = ("learn", "export", "gate", "selfplay")


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path / "run")


def small(**inference):
    config = make_config("tictactoe", None, None)
    actor = dataclasses.replace(
        config.agent.actor, games_per_generation=16, full_simulations=4
    )
    return dataclasses.replace(
        config,
        agent=dataclasses.replace(config.agent, actor=actor),
        store=dataclasses.replace(config.store, min_rows=20),
        learner=dataclasses.replace(config.learner, batch_size=16),
        inference=dataclasses.replace(config.inference, **inference),
    )


def rounds(run, number):
    """Takes turns as the runner does, by roles made anew; returns export's reports."""
    context = RoleContext()
    made = {}
    reports = []
    try:
        for _ in range(number):
            for name in NAMES:
                if name not in made:
                    made[name] = make_role(name, read_config(run), run, context)
                report = made[name].turn()
                if name == "export":
                    reports.append(report)
    finally:
        for role in made.values():
            role.close()
    return reports


def quantised(run):
    """The numbers of the models that have an int8 graph."""
    return [
        number
        for number in run.models.numbers()
        if (run.models.entry(number) / INT8_FILE).exists()
    ]


def test_the_turns_of_other_processes_do_not_make_int8_dear(run, monkeypatch):
    """It is weighed by CPU-seconds: on a busy machine wall time is the others'."""
    wait_s = 5.0

    def interrupted(*arguments):
        time.sleep(wait_s)
        return quantise(*arguments)

    monkeypatch.setattr("tengen.roles.learning.export.quantise", interrupted)
    write_config(run, small(backend="openvino"))
    rounds(run, 1)
    kept = json.loads((run.path / "run.json").read_text())
    assert 0 < kept["measured"]["inference"]["int8_s"] < wait_s


def test_models_with_games_are_quantised(run):
    config = small(precision="int8")
    agent = dataclasses.replace(config.agent, play=PlayConfig(precision="run"))
    write_config(run, dataclasses.replace(config, agent=agent))
    reports = rounds(run, 3)
    assert run.models.numbers() == [0, 1, 2]
    assert quantised(run) == [1, 2]
    assert "int8" not in reports[0]
    for number in (1, 2):
        assert reports[number]["int8"]["num_rows"] > 16
        assert "warning" not in reports[number]
        model = load_model(run.models.entry(number))
        assert INT8_FILE in model.meta.sha256
        assert model.meta.play == PlayConfig(precision="int8")
        backend = open_backend(model.path, read_config(run).inference, 1)
        assert backend.precision == "int8"


def test_a_model_that_loses_too_much_plays_in_floats_and_it_is_said_once(
    run, monkeypatch
):
    write_config(run, small(precision="int8"))
    with monkeypatch.context() as patch:
        patch.setattr("tengen.models.int8._MAX_POLICY_DIVERGENCE", 0.0)
        reports = rounds(run, 3)
    assert quantised(run) == []
    warnings = [r["warning"] for r in reports if "warning" in r]
    assert len(warnings) == 1
    assert re.fullmatch(
        "int8 is not used for generation 1, policy_divergence \\(\\S+\\) is above 0; "
        "such models use (bf16|fp32)",
        warnings[0],
    )
    model = load_model(run.models.entry(2))
    assert INT8_FILE not in model.meta.sha256
    assert open_backend(model.path, read_config(run).inference, 1).precision != "int8"
    # The next model is asked again.
    rounds(run, 1)
    assert quantised(run) == [3]


def test_too_few_positions_are_said_once(run):
    config = small(precision="int8")
    actor = dataclasses.replace(config.agent.actor, games_per_generation=2)
    agent = dataclasses.replace(config.agent, actor=actor)
    store = dataclasses.replace(config.store, min_rows=4)
    write_config(run, dataclasses.replace(config, agent=agent, store=store))
    reports = rounds(run, 3)
    assert quantised(run) == []
    assert all("int8" not in report for report in reports)
    warnings = [r["warning"] for r in reports if "warning" in r]
    assert len(warnings) == 1
    assert re.search(
        r"num_rows \(\d+\) must be at least 48 different positions", warnings[0]
    )


@pytest.fixture
def measure(monkeypatch):
    """Has the rates of a model's precisions be those that a function of it returns."""
    return lambda trial: monkeypatch.setattr(
        "tengen.inference.choice._trial", lambda directory, *_: trial(directory)
    )


def test_what_was_chosen_is_recorded_and_a_resume_keeps_it(run, measure):
    rates = {"fp32": 1.0, "bf16": 2.0, "int8": 3.0}
    measure(lambda _: rates)
    write_config(run, small())
    (report,) = rounds(run, 1)
    assert "int8 3 (3.00x)" in report["told"]
    kept = json.loads((run.path / "run.json").read_text())
    assert kept["config"]["inference"]["precision"] == "int8"
    assert kept["measured"]["inference"]["precision"] == "int8"
    assert kept["measured"]["inference"]["rows_per_s"] == rates
    # The first model was quantised to be timed; it has no games to be checked on.
    assert quantised(run) == []
    rates["int8"] = 0.0
    (report,) = rounds(run, 1)
    assert "told" not in report
    assert json.loads((run.path / "run.json").read_text()) == kept
    assert quantised(run) == [1]


def grows(config, games):
    """A run whose network is wider after so many games."""
    stage = NetStage(games=games, net=parse_net("2x24"))
    return dataclasses.replace(
        config, agent=dataclasses.replace(config.agent, stages=(stage,))
    )


def test_precision_is_measured_again_for_a_larger_network(run, measure):
    measured = []

    def trial(directory):
        width = read_meta(directory).net.num_channels
        measured.append(width)
        return {"fp32": 1.0, "int8": 3.0 if width == 16 else 1.0}

    measure(trial)
    write_config(run, grows(small(), 20))
    rounds(run, 1)
    rounds(run, 2)
    # After 16 games it is what it was, after 32 it has grown.
    assert measured == [16, 24]
    assert quantised(run) == [1]
    assert read_config(run).inference.precision == "fp32"
    # Once for each network, whoever goes on.
    rounds(run, 1)
    assert measured == [16, 24]


def test_self_play_goes_on_in_what_was_chosen_for_the_larger_network(
    run, measure, monkeypatch
):
    def trial(directory):
        width = read_meta(directory).net.num_channels
        return {"fp32": 1.0 if width == 16 else 9.0, "int8": 2.0}

    measure(trial)
    opened = []

    def opening(directory, config, *words, **more):
        opened.append((read_meta(directory).net.num_channels, config.precision))
        return open_backend(directory, config, *words, **more)

    where = "tengen.roles.selfplay.playing.open_backend"
    monkeypatch.setattr(where, opening)
    write_config(run, grows(small(), 20))
    rounds(run, 3)
    assert opened == [(16, "int8"), (16, "int8"), (24, "fp32")]


def test_the_measured_precision_stays_where_somebody_sets_the_same(run, measure):
    rates = {"fp32": 1.0, "int8": 2.0}
    measure(lambda _: rates)
    write_config(run, grows(small(), 20))
    rounds(run, 1)
    assert read_config(run).inference.precision == "int8"
    write_config(run, read_config(run), keeps_asked=False)
    rates.update(fp32=3.0)
    rounds(run, 2)
    assert read_config(run).inference.precision == "int8"


@pytest.mark.parametrize("setting", [[], ["inference.precision=fp32"]])
def test_a_precision_that_somebody_set_stays(run, measure, setting):
    measure(lambda _: {"fp32": 1.0, "int8": 2.0})
    # Said from the beginning, or when the run goes on.
    config = grows(small(**({} if setting else {"precision": "fp32"})), 20)
    write_config(run, config)
    rounds(run, 1)
    write_config(run, change_config(read_config(run), setting))
    rounds(run, 2)
    assert read_config(run).inference.precision == "fp32"


def test_a_choice_against_int8_costs_nothing_later(run, measure):
    measure(lambda _: {"fp32": 2.0, "int8": 2.1})
    write_config(run, small())
    reports = rounds(run, 2)
    assert read_config(run).inference.precision == "fp32"
    assert quantised(run) == []
    assert all("int8" not in report for report in reports)
