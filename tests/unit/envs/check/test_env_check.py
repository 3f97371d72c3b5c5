"""The checker of environments names each fault that was planted, and no other."""

import pytest

pytest.importorskip("gymnasium")

from tengen import envs
from tengen.envs.check import check_env
from tests.unit.envs.check import planted


def check(make_one, num_steps=100, timeout_s=60.0, seed=0):
    return check_env(
        lambda num_envs, seed: envs.make_own(make_one, "planted", num_envs, seed),
        make_one,
        "planted",
        num_steps=num_steps,
        timeout_s=timeout_s,
        seed=seed,
    )


def test_one_without_a_fault_keeps_the_contract():
    report = check(planted.Walk, num_steps=1000)
    assert report.findings == []
    assert report.is_whole
    seen = report.episodes
    assert seen.num_steps == 1000
    assert 0 < seen.num_truncated < seen.num_ended
    assert (seen.least_reward, seen.greatest_reward) == (-1.0, 1.0)
    assert 2 <= seen.shortest < seen.longest == 30
    assert report.cost.steps_per_second > 0
    assert 0 < (report.cost.reset_share or 0) < 1


def test_one_that_needs_the_main_thread_is_checked():
    assert check(planted.InMainThread).findings == []


@pytest.mark.parametrize(
    "kind", planted.ALIKE_BY_CHANCE, ids=lambda kind: kind.__name__
)
def test_independent_draws_that_are_alike_are_no_fault(kind):
    found = [
        finding for seed in range(4) for finding in check(kind, seed=seed).findings
    ]
    assert found == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("fault", planted.BROKEN, ids=lambda fault: fault.__name__)
def test_a_fault_is_named(fault):
    rule, words = planted.BROKEN[fault]
    timeout_s = 0.5 if fault is planted.HangsInStep else 60.0
    report = check(fault, timeout_s=timeout_s)
    assert [finding.rule for finding in report.findings] == [rule]
    (finding,) = report.findings
    assert finding.is_broken
    assert words in finding.message
    assert "; " in finding.message
    assert "\n" not in finding.message


@pytest.mark.parametrize("fault", planted.DOUBTFUL, ids=lambda fault: fault.__name__)
def test_what_may_be_meant_is_warned_of(fault):
    rule, words = planted.DOUBTFUL[fault]
    report = check(fault, 1000 if fault is planted.NeverEnds else 100)
    assert [finding.rule for finding in report.findings] == [rule]
    (finding,) = report.findings
    assert not finding.is_broken
    assert report.num_broken == 0
    assert words in finding.message
