"""The bottleneck of a run in one line, whoever acts and whether roles take turns."""

from __future__ import annotations

import argparse
import re
from typing import Any

import pytest

from tengen.config import to_dict
from tengen.errors import UsageError
from tengen.experience import ReplayConfig
from tengen.observe import (
    at_once_verdict,
    environment_verdict,
    lighter_learning,
    verdict,
)
from tengen.observe.verdict import ADVICE, AT_ONCE_ADVICE, LIGHTER
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.recipes.run import add_arguments
from tengen.roles import RunConfig
from tengen.roles.config.run_file import change_config
from tests.refusals import refused

PLAYED = {"inference_busy": 0.7, "tree_busy": 0.25, "batch_rows": 100}
PLAYED |= {"batch_capacity": 100}
ACTED = {"simulation_busy": 0.3, "answer_wait": 0.4, "room_wait": 0.2}
BUSY = {"selfplay": 0.99, "learn": 0.7, "export": 0.12, "gate": 0.01, "rate": 0.1}


def told(played, shares, changed):
    """Returns the report and the shares with what a case changes of either."""
    shown = {name: changed.pop(name, value) for name, value in played.items()}
    return shown, shares | changed


def in_turn(role, **changed):
    shares = {role: changed.pop("playing", 0.7), "learn": 0.27}
    return verdict(role, *told(PLAYED, shares, changed), "use less")


def at_once(role, **changed):
    if role == "selfplay":
        return at_once_verdict(role, *told(PLAYED, BUSY, changed))
    inference = changed.pop("inference", 0.6)
    busy = {"learn": 0.7, "gate": 0.01, "export": 0.12}
    return environment_verdict(*told(ACTED, busy, changed), inference, "use less")


CASES = [
    (in_turn, "selfplay", "inference", {}),
    (in_turn, "selfplay", "learning", {"learn": 0.6, "playing": 0.4}),
    (in_turn, "selfplay", "publishing", {"playing": 0.4}),
    (in_turn, "selfplay", "gate", {"playing": 0.4, "gate": 0.2}),
    (in_turn, "selfplay", "rating", {"playing": 0.3, "gate": 0.2, "rate": 0.21}),
    (in_turn, "selfplay", "tail", {"inference_busy": 0.5}),
    (in_turn, "selfplay", "batches", {"batch_rows": 40}),
    (in_turn, "selfplay", "tree", {"inference_busy": 0.3, "tree_busy": 0.65}),
    (in_turn, "actor", "inference", {}),
    (in_turn, "actor", "learning", {"learn": 0.6, "playing": 0.2}),
    (in_turn, "actor", "publishing", {"playing": 0.3}),
    (in_turn, "actor", "tree", {"tree_busy": 0.8}),
    (at_once, "selfplay", "even", {}),
    (at_once, "selfplay", "learning", {"learn": 0.95}),
    (at_once, "selfplay", "playing", {"learn": 0.3}),
    (at_once, "selfplay", "gate", {"gate": 0.95}),
    (at_once, "selfplay", "gate", {"gate": 0.95, "learn": 0.95}),
    (at_once, "actor", "even", {}),
    (at_once, "actor", "learning", {"learn": 0.95}),
    (
        at_once,
        "actor",
        "learning",
        {"learn": 0.84, "room_wait": 0.8, "answer_wait": 0.1},
    ),
    (at_once, "actor", "gate", {"learn": 0.95, "gate": 0.95}),
    (at_once, "actor", "learning", {"learn": 0.95, "simulation_busy": 0.9}),
    (at_once, "actor", "playing", {"learn": 0.3}),
    (at_once, "actor", "inference", {"learn": 0.3, "inference": 0.9}),
    (at_once, "actor", "simulation", {"learn": 0.3, "simulation_busy": 0.6}),
    (
        *(at_once, "actor", "inference"),
        {"learn": 0.3, "simulation_busy": 0.6, "inference": 0.9},
    ),
    (at_once, "actor", "playing", {"learn": 0.3, "inference": None}),
]


@pytest.mark.parametrize(("tell", "role", "limit", "changed"), CASES)
def test_the_bottleneck(tell, role, limit, changed):
    advice = (ADVICE if tell is in_turn else AT_ONCE_ADVICE)[role][limit]
    line = tell(role, **changed)
    assert line.partition(": ")[2] == advice.format(lighter="use less")


@pytest.mark.parametrize(
    ("tell", "table"), [(in_turn, ADVICE), (at_once, AT_ONCE_ADVICE)]
)
def test_every_advice_is_for_something_that_limits(tell, table):
    told = {(role, limit) for each, role, limit, _ in CASES if each is tell}
    assert told == {(role, limit) for role, row in table.items() for limit in row}


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        (
            in_turn("selfplay", playing=0.5, batch_rows=93, rate=0.06, gate=0.04),
            "self-play 50% (net 70%, trees 25%, batches 93% full); learning 27%; "
            "rating 6%; publishing 13%: the network takes most of the time; lower "
            "--set ",
        ),
        (
            in_turn("actor"),
            "acting 70% (net 70%, steps 25%, batches 100% full); learning 27%: the net",
        ),
        (
            at_once("selfplay"),
            "at once, self-play 99% (net 70%, trees 25%, batches 100% full); learning "
            "70%; publishing 12%; rating 10%: self-play and learner keep pace",
        ),
        (
            at_once("actor"),
            "learner 70% busy, inference 60% busy, actors simulate 30%, wait 60% "
            "(answers 40%, room 20%), publishing 12%: actors and learner keep pace",
        ),
        (
            at_once("actor", inference=None),
            "learner 70% busy, actors simulate 30%, wait ",
        ),
    ],
)
def test_the_line_tells_all_stages_worth_telling(line, begins):
    assert line.startswith(begins)


RUNS = {
    "selfplay": (("tictactoe", "alphazero"), ("gomoku/9", "alphazero")),
    "actor": tuple(("CartPole-v1", kind) for kind in ("vtrace", "ppo", "dqn", "r2d2")),
}
ADVICE_CASES = [
    (task, agent, advice)
    for table in (ADVICE, AT_ONCE_ADVICE)
    for acting, row in table.items()
    for advice in row.values()
    if "--" in advice
    for task, agent in RUNS[acting]
]


def settings_of(config: RunConfig, text: str) -> list[str]:
    """Returns every ``--set`` of a text, each field changed by a factor of two."""
    settings = []
    for lower, name in re.findall(r"(lower )?--set ([a-z_.]+[a-z])", text):
        is_queue = isinstance(config.store, ReplayConfig) and config.store.is_queue
        if name == "store.max_items" and not is_queue:
            continue  # it is told of queues
        value: Any = to_dict(config)
        for part in name.split("."):
            # Roles of which nothing was set yet have no entry.
            value = value.get(part, {}) if name.startswith("launch.") else value[part]
        settings.append(f"{name}={(value or 1) / 2 if lower else (value or 1) * 2:g}")
    return settings


def test_there_is_advice() -> None:
    assert len(ADVICE_CASES) > 40


@pytest.mark.parametrize(("task", "agent", "advice"), ADVICE_CASES)
def test_every_advice_can_be_followed(task: str, agent: str, advice: str) -> None:
    if task == "CartPole-v1":
        pytest.importorskip("gymnasium")
    config = make_config(task, agent, None)
    advice = advice.replace("{lighter}", lighter_learning(to_dict(config)))
    if "agent.gate" in advice:  # told of gates that play
        config = override(config, ["agent.gate.kind=match"])
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for flag in re.findall(r"--[a-z]+", advice):
        assert flag in parser.format_help()
    now, _, new_run = advice.partition("a new run")
    if settings := settings_of(config, now):
        changed = change_config(config, settings)
        assert changed != config
    for setting in settings_of(config, new_run):
        with refused(UsageError, "fixed"):
            change_config(config, [setting])


@pytest.mark.parametrize(
    ("agent", "setting"),
    [
        ("ppo", "agent.num_epochs"),
        ("vtrace", ""),
        ("dqn", "store.samples_per_item"),
        ("r2d2", "store.samples_per_item"),
    ],
)
def test_what_gives_a_learner_less_to_do(agent: str, setting: str) -> None:
    pytest.importorskip("gymnasium")
    config = make_config("CartPole-v1", agent, None)
    assert lighter_learning(to_dict(config)) == LIGHTER[setting]
