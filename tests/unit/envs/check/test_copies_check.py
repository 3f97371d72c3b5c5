"""Copies of a suite that break the convention of ``Env`` are named."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from tengen import envs
from tengen.envs.check import check_env
from tests.unit.envs.check import planted


class Copies:
    """Copies of a walk by an adapter of tengen, of which a fault changes a method."""

    def __init__(self, num_envs, seed):
        self.env = envs.make_own(planted.Walk, "planted", num_envs, seed)
        self.num_envs, self.spec = num_envs, self.env.spec

    def reset(self):
        return self.env.reset()

    def step(self, actions):
        return self.env.step(actions)

    def close(self):
        self.env.close()


class MarksNoReset(Copies):
    def step(self, actions):
        step = super().step(actions)
        return step._replace(is_reset=np.zeros_like(step.is_reset))


class RewardsAReset(Copies):
    def step(self, actions):
        step = super().step(actions)
        return step._replace(reward=step.reward + step.is_reset.astype(np.float32))


class GivesDoubles(Copies):
    def step(self, actions):
        step = super().step(actions)
        return step._replace(reward=step.reward.astype(np.float64))


class GivesAnotherShape(Copies):
    def reset(self):
        return {"observation": super().reset()["observation"][:, :2]}


class GivesOtherArrays(Copies):
    def reset(self):
        return {**super().reset(), "extra": np.zeros(self.num_envs)}


class GivesNaN(Copies):
    def step(self, actions):
        step = super().step(actions)
        step.observation["observation"][0, 0] = np.nan
        return step


class ResetsOnce(Copies):
    num_resets = 0

    def reset(self):
        self.num_resets += 1
        seen = super().reset()
        seen["observation"] += np.float32(self.num_resets / 10)
        return seen


class DrawsAnew(Copies):
    def __init__(self, num_envs, seed):
        super().__init__(num_envs, int(np.random.SeedSequence().entropy) % 2**31)


class IgnoresItsSeed(Copies):
    def __init__(self, num_envs, seed):
        super().__init__(num_envs, 0)


class Raises(Copies):
    def step(self, actions):
        raise ZeroDivisionError("no")


class ClosesOnce(Copies):
    is_closed = False

    def close(self):
        if self.is_closed:
            raise ValueError("closed already")
        self.is_closed = True


FAULTS: dict[type[Copies], tuple[str, str]] = {
    MarksNoReset: ("copies.reset", "the copies whose episode ended one row earlier"),
    RewardsAReset: ("copies.reset", "must have reward 0 and no end at row"),
    GivesDoubles: ("copies.arrays", "reward of copies (float64 (3,)) must be"),
    GivesAnotherShape: ("copies.arrays", "observation of copies (float32 (3, 2))"),
    GivesOtherArrays: ("copies.arrays", "must have the spec's arrays ['observation']"),
    GivesNaN: ("copies.finite", "observation of copies (nan) must be finite at row 1"),
    ResetsOnce: ("copies.again", "must restart from the seed"),
    DrawsAnew: ("copies.same", "must give the same steps for the same actions"),
    IgnoresItsSeed: ("seed.others", "5 seeds gave the same steps"),
    Raises: ("copies.raises", "step of copies (ZeroDivisionError: no) must not raise"),
    ClosesOnce: ("copies.raises", "a second close() of copies (ValueError: closed"),
}


def test_an_adapter_of_tengen_has_no_fault():
    report = check_env(Copies, None, "planted", num_steps=100)
    assert report.findings == []
    assert report.is_whole
    assert report.cost.num_copies == 8


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_named(fault):
    rule, words = FAULTS[fault]
    report = check_env(fault, None, "planted", num_steps=100)
    assert [finding.rule for finding in report.findings] == [rule]
    assert words in report.findings[0].message
    assert report.num_broken == (rule != "seed.others")


def test_independent_draws_that_are_alike_are_no_fault():
    def make(num_envs, seed):
        return envs.make_own(planted.IsOneOfTwoTasks, "planted", num_envs, seed)

    found = [
        finding
        for seed in range(8)
        for finding in check_env(
            make, None, "planted", num_steps=50, seed=seed
        ).findings
    ]
    assert found == []
