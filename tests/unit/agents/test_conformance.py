"""The contract that every kind of agent fulfils."""

import ast
import inspect
import subprocess
import sys
import textwrap
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch

from tengen import envs, games
from tengen.actors import Slots
from tengen.agents import Agent, EnvironmentAgent
from tengen.config import from_dict, to_dict
from tengen.errors import UsageError
from tengen.recipes import make_config
from tengen.roles import RunConfig
from tests.refusals import refused

GAME, ENVIRONMENT = "tictactoe", "CartPole-v1"
TEAM = "tests.team_environments:TwoStep"

KINDS = Agent.kinds()

each_kind = pytest.mark.parametrize("kind", KINDS)


def task_of(kind):
    """Returns the smallest task that an agent can train, or skips if there is none."""
    pytest.importorskip("gymnasium")
    games.allow(TEAM)
    for task in (GAME, ENVIRONMENT, TEAM):
        if not KINDS[kind].refusal(task):
            return task
    return pytest.skip(f"{kind} trains none of these tasks")


def config_of(kind):
    """Returns the config of a run on an agent's smallest task."""
    return make_config(task_of(kind), kind, None)


@each_kind
def test_a_kind_is_a_file_and_a_frozen_dataclass_of_that_name(kind):
    agent = KINDS[kind]
    assert agent.__module__ == f"tengen.agents.{kind}"
    assert is_dataclass(agent)
    assert agent.__dataclass_params__.frozen
    assert all(field.kw_only for field in fields(agent))
    assert agent().kind == kind


def undocumented(agent):
    """Returns the fields that a class declares without a docstring after them."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(agent)))
    body = tree.body[0].body
    missing = []
    for place, node in enumerate(body):
        if not isinstance(node, ast.AnnAssign):
            continue
        if "ClassVar" in ast.unparse(node.annotation):
            continue  # not a setting
        follows = body[place + 1] if place + 1 < len(body) else None
        is_told = isinstance(follows, ast.Expr) and isinstance(
            follows.value, ast.Constant
        )
        told_above = f"{ast.unparse(node.target)}:" in (agent.__doc__ or "")
        if not (is_told or told_above):
            missing.append(ast.unparse(node.target))
    return missing


@each_kind
def test_every_field_has_a_docstring(kind):
    for agent in KINDS[kind].__mro__:
        if agent.__module__.startswith("tengen.agents"):
            assert undocumented(agent) == [], agent
            assert agent.__doc__, agent


@each_kind
def test_an_agent_is_the_same_after_json(kind):
    config = config_of(kind)
    again = from_dict(RunConfig, to_dict(config))
    assert again == config
    assert type(again.agent) is KINDS[kind]


@each_kind
def test_an_agent_says_which_tasks_it_trains(kind):
    pytest.importorskip("gymnasium")
    games.allow(TEAM)
    tasks = (GAME, ENVIRONMENT, TEAM)
    fitting = [task for task in tasks if not KINDS[kind].refusal(task)]
    # Most agents of one environment also train several agents, independently.
    alone = [ENVIRONMENT] if getattr(KINDS[kind], "is_single", False) else None
    assert fitting in ([GAME], alone or [ENVIRONMENT, TEAM], [TEAM])
    try:
        assert KINDS[kind].refusal("no-such-task")
    except UsageError as error:
        assert "no-such-task" in str(error)  # noqa: PT017


@each_kind
def test_the_default_parts_fit_each_other_and_the_task(kind):
    config = config_of(kind)
    assert config.agent.kind == kind
    config.agent.check(config.net, config.store, config.learner)
    if getattr(config.agent, "takes_demos", False):
        with refused(UsageError, "store.demos"):
            config.check_task()
    else:
        config.check_task()
    asked = config.agent.signature(config.task)
    answered = config.net.signature(asked)
    assert answered.inputs == asked.inputs
    assert answered.outputs.keys() >= asked.outputs.keys()
    schedule = config.schedule
    assert schedule.acting
    assert "learn" in schedule.learning
    assert schedule.counts_frames == (not games.is_game(config.task))
    assert config.nets[0] == config.net


def test_importing_agents_imports_no_torch():
    program = (
        "import sys; from tengen.agents import Agent; "
        "made = [agent() for agent in Agent.kinds().values()]; "
        "assert 'torch' not in sys.modules, 'torch was imported'"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@each_kind
def test_what_an_update_keeps_is_taken_back(kind):
    config = config_of(kind)
    asked = config.agent.signature(config.task)
    one, other = (config.net.build(asked) for _ in range(2))
    kept, again = (
        config.agent.make_update(config.task, net, config.store) for net in (one, other)
    )
    state = {name: tensor.clone() for name, tensor in kept.state().items()}
    again.load_state(state)
    assert again.state().keys() == state.keys()
    for name, tensor in again.state().items():
        assert torch.equal(tensor, state[name]), name
    # The update's own tensors must be independent of the network in training.
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.add_(1.0)
    for name, tensor in kept.state().items():
        assert torch.equal(tensor, state[name]), name


ENVIRONMENT_KINDS = [
    kind for kind, agent in KINDS.items() if issubclass(agent, EnvironmentAgent)
]


@pytest.mark.parametrize("kind", ENVIRONMENT_KINDS)
def test_parts_for_games_are_refused(kind):
    config = to_dict(config_of(kind))
    board = to_dict(make_config(GAME, None, None))
    with refused(UsageError, "store.kind"):
        from_dict(RunConfig, {**config, "store": board["store"]})
    whole = from_dict(RunConfig, {**config, "net": board["net"]})
    with refused(UsageError, "net"):
        whole.check_task()


@pytest.mark.parametrize("kind", ENVIRONMENT_KINDS)
def test_a_role_of_games_is_refused(kind):
    config = config_of(kind)
    assert EnvironmentAgent.of(config.agent, "actor") is config.agent
    board = make_config(GAME, None, None)
    with refused(UsageError, "role (actor)"):
        EnvironmentAgent.of(board.agent, "actor")


@pytest.mark.parametrize("kind", ENVIRONMENT_KINDS)
def test_acting_needs_what_is_asked_for_and_stores_what_is_said(kind):
    config = config_of(kind)
    agent = config.agent
    actions = envs.env_spec(ENVIRONMENT).actions
    rng = np.random.default_rng(0)
    outputs = {
        name: rng.normal(size=(5, *spec.shape)).astype(spec.dtype)
        for name, spec in agent.outputs_of(actions).items()
    }
    uniforms = rng.random((5, agent.num_uniforms(actions)))
    slots = Slots(0, 5, 5)
    chosen = agent.act(outputs, actions, uniforms, slots)
    stored, told = agent.own_tensors(actions), agent.priority_tensors(actions)
    assert not stored.keys() & told.keys()
    tensors = {"action": actions.tensor, **stored, **told}
    assert chosen.keys() == tensors.keys()
    for name, spec in tensors.items():
        assert chosen[name].shape == (5, *spec.shape), name
        assert np.can_cast(chosen[name].dtype, spec.dtype), name
    # ``act`` must be a pure function, so a second call returns the same.
    for name, array in agent.act(outputs, actions, uniforms, slots).items():
        assert (array == chosen[name]).all(), name
    best = agent.act_greedily(outputs, actions)["action"]
    assert best.shape == (5,)
    assert best.dtype == np.int64
