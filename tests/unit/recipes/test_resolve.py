"""The config of a call is the same whether a run is made of it or not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tengen.errors import UsageError
from tengen.recipes.resolve import check_typed_cluster
from tengen.recipes.run import train_task
from tengen.roles import read_config
from tengen.run import RunDirectory
from tests.configs import new_config


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("go/5", {"games": 0, "minutes": 600.0, "seed": 3}),
        ("tictactoe", {"games": 0, "settings": ["net.num_blocks=2"]}),
        ("CartPole-v1", {"frames": 0, "agent": "ppo", "actors": 3}),
    ],
)
def test_it_is_the_run_s(tmp_path: Path, task: str, words: dict[str, object]) -> None:
    train_task(task, out=tmp_path / "run", threads=2, devices="cpu", **words)  # type: ignore[arg-type]
    made = read_config(RunDirectory(tmp_path / "run"))
    config = new_config(task, **words)  # type: ignore[arg-type]
    # Devices are the machine's, which the run alone looks at.
    learner = dataclasses.replace(made.learner, device=config.learner.device)
    here = dataclasses.replace(made, inference=config.inference, learner=learner)
    assert here == config


@pytest.mark.parametrize(
    ("task", "words", "said"),
    [
        ("go/99", {}, r"task \(go/99\) must be"),
        ("go/9", {"settings": ["agent.nope=3"]}, r"agent.nope \(3\) is not a known"),
        ("go/9", {"settings": ["task=go/5"]}, "must not be set"),
        ("go/9", {"frames": 5}, "must be left out where games"),
        ("go/9", {"minutes": -1.0}, r"minutes \(-1.0\)"),
        ("CartPole-v1", {"agent": "pppo"}, r"agent \(pppo\) is not known"),
        ("CartPole-v1", {"agent": "A3C"}, 'part of "a2c"; use --agent a2c'),
        ("CartPole-v1", {"agent": "apex"}, 'part of "dqn"; use --agent dqn'),
        ("CartPole-v1", {"agent": "appo"}, 'part of "ppo"; use --agent ppo'),
        ("CartPole-v1", {"agent": "impala"}, 'part of "vtrace"; use --agent vtrace'),
        ("CartPole-v1", {"launch": "inline", "actors": 2}, "where roles take turns"),
    ],
)
def test_it_refuses_what_a_run_refuses(
    task: str, words: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        new_config(task, **words)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["address", "runtime_env"])
def test_a_cluster_that_only_a_file_names_is_not_used(name: str) -> None:
    plain = new_config("tictactoe", games=1)
    check_typed_cluster(plain, [], "somewhere")
    setting = f"launch.{name}=10.0.0.1:6379"
    known = new_config("tictactoe", games=1, settings=[setting])
    line = rf"^launch\.{name} \(10.* of somewhere .*; add --set {setting}, or --set"
    for settings in ([], ["launch.grows=true"]):
        with pytest.raises(UsageError, match=line):
            check_typed_cluster(known, settings, "somewhere")
    check_typed_cluster(known, [setting], "somewhere")
    check_typed_cluster(known, [f"launch.{name}="], "somewhere")
