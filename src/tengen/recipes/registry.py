"""The table of recipes; the first recipe that fits the task and the agent is used."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tengen import envs, games
from tengen.agents import Agent
from tengen.agents.bases.defaults import shows_screens
from tengen.config import from_dict, to_dict
from tengen.distribution import pip_install
from tengen.errors import UsageError, did_you_mean
from tengen.inference import InferenceConfig, has_bfloat16
from tengen.minigo import recipes as minigo
from tengen.recipes import boards
from tengen.roles import RunConfig

USUAL_THREADS = 2
"""The number of cores that recipes are tuned for. With ``--games``, a run uses the
config for this number, so that its config is the same on every machine."""


@dataclass(frozen=True)
class Recipe:
    """A recipe, which builds the config of a new run for one agent and some tasks."""

    name: str
    """The recipe's name, for ``--recipe``."""
    agent: str
    """The agent that the recipe trains."""
    tasks: str
    """A description of the supported tasks."""
    build: Callable[[str, int], RunConfig]
    """Returns the config for a task and a number of CPU threads."""
    serves: Callable[[str], bool]
    """Returns whether the recipe supports a task that its agent can train."""


def _family(name: str) -> Callable[[str], bool]:
    return lambda task: task.split("/")[0] == name and ":" not in task


def environment(agent: str, task: str, num_threads: int) -> RunConfig:
    """Returns the config for any environment; the observations determine the network.

    Args:
        agent: The agent's kind.
        task: The environment.
        num_threads: Ignored; recipes for games depend on the number of CPU threads.
    """
    spec = envs.env_spec(task)
    made = Agent.kinds()[agent]().for_environment(spec)
    learner, store = made.default_learner(spec), made.default_store(spec)
    if store.is_queue:  # a batch has the items of a turn, which are more with agents
        num_each = made.num_slots(spec)
        learner = dataclasses.replace(learner, batch_size=learner.batch_size * num_each)
        store = dataclasses.replace(store, max_items=store.max_items * num_each)
    return RunConfig(
        task=task,
        agent=made,
        recipe=agent,
        minutes=3.0,
        net=made.default_net(spec),
        learner=learner,
        store=store,
        # OpenVINO does not speed up small networks, and does not run recurrent ones.
        inference=InferenceConfig(
            devices="cpu",
            backend="torch",
            precision="bf16" if shows_screens(spec) and has_bfloat16() else "fp32",
            batch_shape="dynamic",
        ),
    )


def _of_environments(agent: str, tasks: str) -> Recipe:
    """Returns the recipe of an agent that acts in environments."""
    return Recipe(agent, agent, tasks, partial(environment, agent), lambda task: True)


_RECIPES = (
    Recipe(
        "tictactoe", "alphazero", "tictactoe", boards.tictactoe, _family("tictactoe")
    ),
    Recipe("connect4", "alphazero", "connect4", boards.connect4, _family("connect4")),
    Recipe(
        "gomoku",
        "alphazero",
        "gomoku/5 to gomoku/19",
        boards.gomoku,
        _family("gomoku"),
    ),
    Recipe(
        "go",
        "alphazero",
        "go/2 to go/19, go/9x13, with rules as in go/9/simple/komi=6.5",
        boards.go,
        _family("go"),
    ),
    Recipe(
        "mlperf_minigo",
        "alphazero",
        "go/19, MLPerf's benchmark minigo, see docs/howto/train/mlperf.md",
        minigo.minigo,
        minigo.serves_minigo,
    ),
    Recipe(
        "mlperf_minigo_small",
        "alphazero",
        "go/5, go/7, go/9, MLPerf's benchmark minigo scaled to two cores",
        minigo.minigo_small,
        minigo.serves_small,
    ),
    Recipe(
        "openspiel",
        "alphazero",
        "openspiel/NAME, any game that tengen recipes --openspiel lists as fits",
        boards.openspiel,
        lambda task: task.startswith(games.OPENSPIEL_PREFIX),
    ),
    Recipe(
        "own-game",
        "alphazero",
        "module:Game",
        boards.own_game,
        lambda task: ":" in task,
    ),
    _of_environments("vtrace", "any environment, module:Env"),
    _of_environments("ppo", "any environment"),
    _of_environments("rnd", "environments whose rewards are rare; PPO with novelty"),
    _of_environments("mappo", "environments of several agents"),
    _of_environments("qmix", "a team of agents with a Discrete action space"),
    _of_environments("vdn", "a team of agents with a Discrete action space"),
    _of_environments(
        "masac", "a team of agents with a Box or Discrete action space; SAC for teams"
    ),
    _of_environments("a2c", "any environment; A3C with several actors"),
    _of_environments(
        "pqn", "environments with a Discrete action space, without replay"
    ),
    _of_environments("dqn", "environments with a Discrete action space"),
    _of_environments(
        "iqn", "environments with a Discrete action space, distributional Q-learning"
    ),
    _of_environments(
        "r2d2", "partially observed environments with a Discrete action space"
    ),
    _of_environments(
        "ngu", "environments with a Discrete action space whose rewards are rare"
    ),
    _of_environments(
        "agent57", "as ngu, with a bandit that chooses how much to explore"
    ),
    _of_environments("r2d3", "as r2d2, with demonstrations (tengen demos)"),
    _of_environments("sac", "environments with a Box or Discrete action space"),
)
"""The table of recipes; the first recipe that supports a task is its default."""


def recipes() -> tuple[Recipe, ...]:
    """Returns the table's recipes, followed by recipes for agents not in the table.

    An unlisted agent whose class derives from a listed agent inherits that agent's
    recipes. Any other unlisted agent gets one recipe for environments.
    """
    kinds = Agent.kinds()
    listed = {row.agent for row in _RECIPES}
    others: list[Recipe] = []
    for kind in kinds.keys() - listed:
        made_of = {name for name in listed if issubclass(kinds[kind], kinds[name])}
        others += [_inherited(row, kind) for row in _RECIPES if row.agent in made_of]
        if not made_of:
            others.append(_of_environments(kind, "environments"))
    return (*_RECIPES, *others)


def _inherited(row: Recipe, kind: str) -> Recipe:
    """Returns ``row`` for the agent ``kind``, which derives from the row's agent."""

    def build(task: str, num_threads: int) -> RunConfig:
        config = row.build(task, num_threads)
        agent = from_dict(Agent.kinds()[kind], {**to_dict(config.agent), "kind": kind})
        return dataclasses.replace(config, agent=agent)

    return dataclasses.replace(row, agent=kind, build=build)


def make_config(
    task: str,
    agent: str | None,
    recipe: str | None,
    num_threads: int = USUAL_THREADS,
) -> RunConfig:
    """Returns the config that the recipe for a task builds.

    Args:
        task: A game or an environment.
        agent: The agent; None for the recipe's agent.
        recipe: The recipe; None for the first that supports the task and, if given, the
            agent.
        num_threads: The number of CPU threads, at least 1. The config does not depend
            on GPUs, because recipes were not measured on them.

    Raises:
        UsageError: The task, agent or recipe is unknown, or they do not fit together.
    """
    _check_known(task)
    known = recipes()
    rows = [row for row in known if recipe is None or row.name == recipe]
    if not rows:
        names = [row.name for row in known]
        raise UsageError(
            f"recipe ({recipe}) is not known; {did_you_mean(str(recipe), names)}"
        )
    if agent is not None:
        _check_fits(task, agent)
        rows = [row for row in rows if row.agent == agent]
    for row in rows:
        if not Agent.kinds()[row.agent].refusal(task) and row.serves(task):
            return row.build(task, num_threads)
    if recipe is not None:
        raise UsageError(
            f"recipe ({recipe}) does not support {task}; see tengen recipes, or leave "
            "--recipe out"
        )
    raise UsageError(f"task ({task}) has no recipe; tengen recipes lists the tasks")


def recipe_of(config: RunConfig, task: str) -> str | None:
    """Returns the recipe of a run if the recipe maps ``task`` to the run's task.

    To resume such a run, the user need not repeat ``--recipe``.

    Args:
        config: The run's config.
        task: The task as the user typed it.

    Returns:
        The name; None if the run's task is ``task``, or the recipe maps to another.
    """
    if config.task == task:
        return None
    for row in recipes():
        if row.name == config.recipe and row.serves(task):
            made = row.build(task, USUAL_THREADS)
            return row.name if made.task == config.task else None
    return None


def _check_fits(task: str, agent: str) -> None:
    """Raises UsageError if an agent cannot train a task, and lists agents that can."""
    kinds = Agent.kinds()
    if agent not in kinds:
        advice = did_you_mean(agent, kinds)
        for name, kind in kinds.items():
            if agent.lower() in kind.also_called:
                advice = f'it is called "{name}" here; use --agent {name}'
        raise UsageError(f"agent ({agent}) is not known; {advice}")
    reason = kinds[agent].refusal(task)
    if reason:
        fitting = [name for name, kind in kinds.items() if not kind.refusal(task)]
        raise UsageError(
            f"agent ({agent}) cannot train {task}, because {reason}; use "
            f"{' or '.join(fitting)}"
        )


def _check_known(task: str) -> None:
    """Raises UsageError if a task is unknown, or its package is missing."""
    if games.is_game(task):
        games.open_game(
            task
        )  # rejects an invalid board size, and a game that tengen does not support
        return
    if games.is_program(task) or envs.is_known(task):
        envs.env_spec(task)
        return
    # List environments only for an error message, because this imports every suite.
    environments = envs.names()
    lister = "tengen recipes lists what can be trained"
    # Only Gymnasium's names have no slash. Without such names, Gymnasium is missing.
    if not any("/" not in name for name in environments):
        lister = (
            "environments need gymnasium, which is missing or too old; "
            f"{pip_install('--upgrade', 'gymnasium>=1.1')}"
        )
    if "/" in task:
        lister = did_you_mean(f"{task.split('/')[0]}/", envs.prefixes(), lister)
    tasks = [*games.names(), *environments]
    raise UsageError(f"task ({task}) is not known; {did_you_mean(task, tasks, lister)}")
