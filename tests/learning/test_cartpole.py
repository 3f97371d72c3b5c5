"""The agents of environments balance a pole, role by role as a run does."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import RunDirectory

pytestmark = [pytest.mark.learning, pytest.mark.slow]

# CartPole-v0's bar; a random policy returns 22, standing still 9, the most is 500.
SOLVED = 195.0

MAX_FRAMES = {"dqn": 150_000, "ppo": 300_000, "vtrace": 400_000}
"""Several times what the seeds that were measured needed, by agent
(benchmarks/results/environments.md)."""


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("agent", MAX_FRAMES)
def test_an_agent_reaches_a_mean_return_of_195(
    agent: str, seed: int, tmp_path: Path
) -> None:
    pytest.importorskip("gymnasium")
    config = dataclasses.replace(make_config("CartPole-v1", agent, None), seed=seed)
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, config)
    context = RoleContext()
    names = ("learn", "export", "gate", "actor")
    roles: dict[str, Any] = {n: make_role(n, config, run, context) for n in names}

    num_frames, mean_return = 0, None
    while (mean_return or 0.0) < SOLVED and num_frames < MAX_FRAMES[agent]:
        for name in names:
            report = roles[name].turn()
        assert report is not None
        num_frames += report["num_rows"]
        mean_return = report["mean_return"]
    for role in roles.values():
        role.close()

    # The mean of 100 episodes, played while it learned and with exploration.
    assert mean_return is not None
    assert mean_return >= SOLVED, f"{mean_return} after {num_frames} frames"
