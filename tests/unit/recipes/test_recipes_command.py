"""``tengen recipes TASK``: the settings that people change, and all of them."""

import dataclasses
import re

import pytest

from tengen.cli import main
from tengen.recipes import make_config
from tengen.recipes.command import _EVERYDAY


def shown(capsys, *words):
    assert main(["recipes", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    return {
        line.partition(" = ")[0]: line for line in lines if re.match("[a-z].* = ", line)
    }


def paths(config, where=""):
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        path = f"{where}{item.name}"
        yield from (
            paths(value, f"{path}.") if dataclasses.is_dataclass(value) else [path]
        )


@pytest.mark.parametrize(
    ("task", "recipe", "wanted"),
    [
        ("go/9", "go", ["agent.actor.full_simulations", "net.num_blocks"]),
        ("CartPole-v1", "ppo", ["agent.clip_ratio", "agent.discount"]),
        ("CartPole-v1", "sac", ["agent.target_entropy", "store.max_items"]),
    ],
)
def test_few_settings_are_shown_unless_all_are_asked_for(capsys, task, recipe, wanted):
    few = shown(capsys, task, "--recipe", recipe)
    assert {*wanted, "learner.batch_size", "learner.optimizer.learning_rate"} <= {*few}
    assert 15 <= len(few) <= 40
    every = shown(capsys, task, "--recipe", recipe, "--all")
    assert set(every) == set(paths(make_config(task, None, recipe)))
    assert all(every[name] == line for name, line in few.items())


def test_every_everyday_setting_exists():
    known = set()
    for task in ("go/9", "connect4", "gomoku/9", "CartPole-v1"):
        known |= set(paths(make_config(task, None, None)))
    for name in ("ppo", "sac", "r2d2"):
        known |= set(paths(make_config("CartPole-v1", None, name)))
    assert set(_EVERYDAY) <= known
