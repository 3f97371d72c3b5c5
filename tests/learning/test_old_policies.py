"""PPO learns although models reach the actors late, and skips batches that are too old.

The test fails with a negated V-trace ratio, and without the limit on policy lag.
"""

import dataclasses

import pytest

from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import RunDirectory

pytestmark = pytest.mark.learning

# A batch takes 40 optimizer steps, so of the 20 batches of one model the learner uses
# 11, and the last of the 11 has the maximum lag.
MODEL_TURNS = 20
MAX_LAG = 400
# Three measured seeds needed about 50,000 frames.
MAX_FRAMES = 100_000


@pytest.mark.slow
def test_ppo_learns_from_what_older_policies_did(tmp_path, monkeypatch):
    pytest.importorskip("gymnasium")
    # Makes the actor use only published models, like an actor in another process.
    monkeypatch.setattr("tengen.roles.learning.learn.needs_graph", lambda *_: True)
    config = dataclasses.replace(make_config("CartPole-v1", "ppo", None), seed=1)
    config = override(config, [f"agent.max_lag={MAX_LAG}"])
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, config)
    names = ("learn", "export", "gate", "actor")
    context = RoleContext()
    roles = {n: make_role(n, config, run, context) for n in names}
    num_frames, turn, mean_return = 0, 0, None
    lags, too_old = [], []
    while num_frames < MAX_FRAMES and (mean_return or 0.0) < 195.0:
        learned = roles["learn"].turn()
        if turn > 0:
            too_old.append(learned["too_old"])
            lags.append(learned.get("lag_steps", 0.0))
        if turn % MODEL_TURNS == 0:
            roles["export"].turn()
            roles["gate"].turn()
        turn += 1
        acted = roles["actor"].turn()
        num_frames += acted["num_rows"]
        mean_return = acted["mean_return"]
    for role in roles.values():
        role.close()
    assert max(lags) == MAX_LAG
    assert 0.3 < sum(too_old) / len(too_old) < 0.6
    assert mean_return >= 195.0, f"{mean_return} after {num_frames} frames"
