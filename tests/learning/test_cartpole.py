"""The recipe of the environment family balances a pole, role by role as a run does."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import RunDirectory

pytestmark = pytest.mark.learning

# CartPole-v0's bar; a random policy returns 22, standing still 9, the most is 500.
SOLVED = 195.0

# Twenty-four seeds needed 28,000 to 126,000 frames, half of them 34,000 or fewer; the
# slow tail halves every 20,000 or so.
MAX_FRAMES = 400_000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_vtrace_reaches_a_mean_return_of_195(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    config = dataclasses.replace(make_config("CartPole-v1", "vtrace", None), seed=seed)
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, config)
    context = RoleContext()
    names = ("learn", "export", "gate", "actor")
    roles = {name: make_role(name, config, run, context) for name in names}

    num_frames, mean_return = 0, None
    while (mean_return or 0.0) < SOLVED and num_frames < MAX_FRAMES:
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
