"""Whatever a verdict tells a person to set can be set, in the runs that it is told."""

from __future__ import annotations

import argparse
import re
from typing import Any

import pytest

from tengen.config import to_dict
from tengen.errors import UsageError
from tengen.experience import ReplayConfig
from tengen.observe import lighter_learning
from tengen.observe.verdict import ADVICE, AT_ONCE_ADVICE, LIGHTER
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.recipes.train_command import add_arguments
from tengen.roles import RunConfig
from tengen.roles.config import change_config

RUNS = {
    "selfplay": (("tictactoe", "alphazero"), ("gomoku/9", "alphazero")),
    "actor": tuple(("CartPole-v1", kind) for kind in ("vtrace", "ppo", "dqn", "r2d2")),
}
CASES = [
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
    assert len(CASES) > 40


@pytest.mark.parametrize(("task", "agent", "advice"), CASES)
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
        changed.agent.check(changed)
        assert changed != config
    for setting in settings_of(config, new_run):
        with pytest.raises(UsageError, match="fixed since the run began"):
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
