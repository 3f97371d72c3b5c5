"""Workloads that are named after runs ask what these runs ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from tengen.agents import EnvironmentAgent
from tengen.bench.store_workloads import VARIANTS
from tengen.experience import ReplayConfig
from tengen.recipes import make_config
from tengen.run import RunDirectory

RUNS = {
    "dqn_run": ("atari/Pong", "dqn"),
    "ppo_run": ("atari/Qbert", "ppo"),
    "r2d2_run": ("atari/Pong", "r2d2"),
    "impala_run": ("atari/Qbert", "vtrace"),
    "sac_run": ("mujoco/Hopper", "sac"),
}


@pytest.mark.parametrize("name", RUNS)
def test_it_has_the_defaults_of_its_run(name: str, tmp_path: Path) -> None:
    pytest.importorskip("ale_py" if name != "sac_run" else "mujoco")
    workload = VARIANTS[name]
    config = make_config(*RUNS[name], None)
    agent = EnvironmentAgent.of(config.agent, "learn")
    assert isinstance(config.store, ReplayConfig)
    table = config.family.plan_table(RunDirectory(tmp_path / "run")).table
    layout = agent.layout(config.signature.state)
    assert workload.step_bytes == table.step_bytes
    assert workload.num_steps == table.num_steps
    # Items that are closed share no step with the next ones.
    period = table.num_steps if layout.is_closed else layout.period
    assert workload.period == period
    assert workload.entries == config.store.max_items
    assert workload.is_prioritized == (config.store.sampler == "prioritized")
    assert workload.max_times_sampled == int(config.store.is_queue)
    assert workload.batch_size == config.learner.batch_size
    inserted, sampled = workload.adds_per_s, workload.samples_per_s
    assert sampled == inserted * config.store.samples_per_item
