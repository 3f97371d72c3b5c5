"""The config of a call is the same whether a run is made of it or not."""

import dataclasses
import json
import subprocess
import sys

import pytest

from tengen import cli
from tengen.errors import UsageError
from tengen.minigo.history import run_open_because
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.recipes.call import check_typed_cluster
from tengen.recipes.run import train_task
from tengen.roles import read_config
from tengen.roles.config.run_file import config_changes
from tengen.run import RunDirectory
from tests.configs import new_config
from tests.refusals import refused


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("go/5", {"games": 0, "minutes": 600.0, "seed": 3}),
        ("tictactoe", {"games": 0, "settings": ["net.num_blocks=2"]}),
        ("CartPole-v1", {"frames": 0, "agent": "ppo", "actors": 3}),
    ],
)
def test_it_is_the_run_s(tmp_path, task, words):
    train_task(task, out=tmp_path / "run", threads=2, devices="cpu", **words)
    made = read_config(RunDirectory(tmp_path / "run"))
    config = new_config(task, **words)
    # Devices are the machine's, which the run alone looks at.
    learner = dataclasses.replace(made.learner, device=config.learner.device)
    here = dataclasses.replace(made, inference=config.inference, learner=learner)
    assert here == config


@pytest.mark.parametrize(
    ("task", "words", "said"),
    [
        ("go/99", {}, "task (go/99)"),
        ("go/9", {"settings": ["agent.nope=3"]}, "agent.nope (3)"),
        ("go/9", {"settings": ["task=go/5"]}, "task (go/5)"),
        ("go/9", {"frames": 5}, "frames (5)"),
        ("go/9", {"minutes": -1.0}, "minutes (-1.0)"),
        ("CartPole-v1", {"agent": "pppo"}, "agent (pppo)"),
        ("CartPole-v1", {"agent": "A3C"}, "--agent a2c"),
        ("CartPole-v1", {"agent": "apex"}, "--agent dqn"),
        ("CartPole-v1", {"agent": "appo"}, "--agent ppo"),
        ("CartPole-v1", {"agent": "impala"}, "--agent vtrace"),
        ("CartPole-v1", {"launch": "inline", "actors": 2}, "actors (2)"),
    ],
)
def test_it_refuses_what_a_run_refuses(task, words, said):
    with refused(UsageError, said):
        new_config(task, **words)


@pytest.mark.parametrize("name", ["address", "runtime_env"])
def test_a_cluster_that_only_a_file_names_is_not_used(name):
    plain = new_config("tictactoe", games=1)
    check_typed_cluster(plain, [], "somewhere")
    setting = f"launch.{name}=10.0.0.1:6379"
    known = new_config("tictactoe", games=1, settings=[setting])
    for settings in ([], ["launch.grows=true"]):
        with refused(UsageError, f"launch.{name} (10", f"--set {setting}"):
            check_typed_cluster(known, settings, "somewhere")
    check_typed_cluster(known, [setting], "somewhere")
    check_typed_cluster(known, [f"launch.{name}="], "somewhere")


def call(out, *settings):
    return train_task("tictactoe", out=out, games=0, devices="cpu", settings=settings)


def test_it_says_what_it_changed(tmp_path, capsys):
    out = tmp_path / "run"
    assert call(out, "store.min_rows=8000")["reason"] == "made"
    names = "tengen selfplay, tengen learn, tengen export, tengen gate"
    assert capsys.readouterr().out == f"{out} is created; start {names} on it\n"

    report = call(out, "store.min_rows=1000", "agent.gate.kind=match")
    changes = ["agent.gate.kind accept_all -> match", "store.min_rows 8000 -> 1000"]
    assert report["reason"] == "changed"
    assert report["changes"] == changes
    what = "agent.gate.kind accept_all -> match, store.min_rows 8000 -> 1000"
    assert capsys.readouterr().out == (
        f"{out} is changed: {what}; roles apply this from their next turn\n"
    )
    assert read_config(RunDirectory(out)).store.min_rows == 1000

    assert call(out, "store.min_rows=1000")["reason"] == "unchanged"
    assert capsys.readouterr().out == (f"{out} is unchanged; resume it with {names}\n")


def test_a_run_is_open_by_what_a_call_only_wrote(tmp_path):
    def written(*settings):
        out = tmp_path / "run"
        needs_none = "agent.target.needs_opponent=false"
        train_task(
            "go/5",
            recipe="mlperf_minigo_small",
            out=out,
            games=0,
            devices="cpu",
            settings=(needs_none, *settings),
        )
        told = run_open_because(RunDirectory(out))
        return [reason for reason in told if "num_generations" in reason]

    assert written() == []
    other = "store.num_generations (4) must be 5 in the closed division"
    # Also where the call hides that it is a run of the benchmark.
    assert written("agent.iterations=0", "agent.target.opponent=") == []
    assert written("store.num_generations=4") == [other]
    assert written("store.num_generations=5", "agent.iterations=8") == [other]


def test_each_field_is_named_by_its_path():
    config = make_config("tictactoe", None, None)
    assert config_changes(config, config) == []
    settings = (
        "learner.initial_model=runs/x",
        'agent.rating.anchors=["random"]',
        "seed=4",
    )
    changed = override(config, settings)
    num_anchors = len(config.agent.rating.anchors)
    assert config_changes(config, changed) == [
        f"number of agent.rating.anchors {num_anchors} -> 1",
        'learner.initial_model "" -> runs/x',
        "seed 0 -> 4",
    ]


def test_a_run_for_roles_by_themselves_has_the_network_that_it_would_grow_to(tmp_path):
    recipe = make_config("go/9", None, None)
    stages = recipe.agent.stages
    made = {}
    for name, settings in (("all", []), ("own", ["net.num_blocks=3"])):
        train_task(
            "go/9",
            out=tmp_path / name,
            games=0,
            minutes=600.0,
            threads=2,
            devices="cpu",
            settings=settings,
        )
        made[name] = read_config(RunDirectory(tmp_path / name))
    # A call of train may go on with it, and then it grows further.
    assert made["all"].agent.stages == stages[2:]
    largest = stages[1].net
    net = made["all"].net
    assert (net.num_blocks, net.num_channels) == (
        largest.num_blocks,
        largest.num_channels,
    )
    # Whoever chooses the network begins with that one.
    assert made["own"].net == dataclasses.replace(recipe.net, num_blocks=3)
    assert made["own"].agent.stages == stages


# In a process of its own, as a class of an agent is known from its making on.
_OWN = """
from dataclasses import dataclass
from typing import Literal
from tengen.agents.alphazero import AlphaZero
from tengen.recipes import make_config

usual = {task: make_config(task, None, None) for task in ("tictactoe", "go/9")}

@dataclass(frozen=True, kw_only=True)
class Variant(AlphaZero):
    kind: Literal["variant"] = "variant"
    extra: float = 0.5

for task, config in usual.items():
    own = make_config(task, "variant", None)
    assert type(own.agent) is Variant and own.agent.extra == 0.5
    assert own.agent.actor == config.agent.actor != AlphaZero().actor
    assert (own.net, own.store) == (config.net, config.store)
    # Nobody gets it who has not asked for it.
    assert make_config(task, None, None) == config
"""


def test_an_agent_made_of_another_has_its_recipes():
    done = subprocess.run(
        [sys.executable, "-c", _OWN], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_table_as_json(capsys):
    assert cli.main(["recipes", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])["recipes"]
    assert {"name": "go", "agent": "alphazero"}.items() <= rows[3].items()
    assert all(set(row) == {"name", "agent", "tasks"} for row in rows)
