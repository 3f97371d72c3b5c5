"""Which recipe serves a task, by agent and name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from tengen.errors import UsageError, did_you_mean
from tengen.recipes.resources import Resources
from tengen.roles import RunConfig

__all__ = ["RECIPES", "Recipe", "default_agent", "make_config"]


@dataclass(frozen=True)
class Recipe:
    """One row of the table."""

    name: str
    """As ``--recipe`` takes it."""
    agent: str
    """The agent that it trains."""
    tasks: str
    """What it is for, in words."""
    target: str
    """``module:function``, called with the task and the resources."""

    def make(self, task: str, resources: Resources) -> RunConfig:
        """Returns the config for a task.

        Raises:
            UsageError: The recipe does not serve the task.
        """
        module, _, function = self.target.partition(":")
        build: Callable[[str, Resources], RunConfig] = getattr(
            importlib.import_module(module), function
        )
        return build(task, resources)


RECIPES = (
    Recipe("tictactoe", "alphazero", "tictactoe", "tengen.recipes.boards:tictactoe"),
    Recipe("connect4", "alphazero", "connect4", "tengen.recipes.boards:connect4"),
    Recipe(
        "gomoku", "alphazero", "gomoku/5 to gomoku/19", "tengen.recipes.boards:gomoku"
    ),
    Recipe(
        "go",
        "alphazero",
        "go/2 to go/19, go/9x13, with rules as in go/9/simple/komi=6.5",
        "tengen.recipes.boards:go",
    ),
    Recipe("own-game", "alphazero", "module:Game", "tengen.recipes.boards:own_game"),
    Recipe(
        "openspiel",
        "alphazero",
        "openspiel/NAME, any game of tengen recipes --openspiel that fits",
        "tengen.recipes.boards:openspiel",
    ),
    Recipe(
        "classic-control",
        "vtrace",
        "CartPole-v1 and other Gymnasium tasks with a vector observation",
        "tengen.recipes.environments:classic_control",
    ),
)
"""Every recipe; the first that serves a task is its default."""


def default_agent(task: str) -> str:
    """Returns the agent that trains a task where none is named.

    Raises:
        UsageError: The task is neither a game nor an environment.
    """
    return _default_recipe(task).agent


def make_config(
    task: str,
    agent: str | None,
    recipe: str | None,
    resources: Resources | None = None,
) -> RunConfig:
    """Returns the config of a task.

    Args:
        task: A game or an environment.
        agent: None for the recipe's.
        recipe: None for the task's default.
        resources: What the run is given; None for the default.

    Raises:
        UsageError: The task, agent or recipe is unknown, or they do not fit.
    """
    default = _default_recipe(task)  # refuses an unknown task
    chosen = default if recipe is None else _named(recipe)
    agents = sorted({row.agent for row in RECIPES})
    if agent is not None and agent not in agents:
        raise UsageError(f"agent ({agent}) is not known; {did_you_mean(agent, agents)}")
    if chosen.agent != default.agent:
        raise UsageError(
            f"recipe ({chosen.name}) does not serve {task}; leave --recipe out"
        )
    if agent is not None and agent != chosen.agent:
        raise UsageError(f"agent ({agent}) does not train {task}; use {chosen.agent}")
    return chosen.make(task, resources or Resources())


def _named(name: str) -> Recipe:
    known = {row.name: row for row in RECIPES}
    if name not in known:
        raise UsageError(f"recipe ({name}) is not known; {did_you_mean(name, known)}")
    return known[name]


def _default_recipe(task: str) -> Recipe:
    known = {row.name: row for row in RECIPES}
    from tengen import games

    if ":" in task and not task.startswith(games.OPENSPIEL_PREFIX):
        games.make(task)  # refuses a module or class that there is not
        return known["own-game"]
    if task.split("/")[0] in known or task in games.names():
        games.make(task)  # refuses a size that there is not, or a game that fits not
        return known[task.split("/")[0]]
    from tengen.envs import env_spec, names

    environments = names()
    if task in environments:
        env_spec(task)
        return known["classic-control"]
    tasks = [*games.names(), *environments]
    lister = "tengen recipes lists what can be trained"
    if not environments:
        lister = (
            "environments need gymnasium, which is missing or too old; "
            "pip install --upgrade gymnasium"
        )
    raise UsageError(f"task ({task}) is not known; {did_you_mean(task, tasks, lister)}")
