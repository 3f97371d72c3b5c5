import dataclasses

import pytest

from tengen.config import to_dict
from tengen.observe import Shares, verdict
from tengen.observe.verdict import ADVICE

TASKS = {"selfplay": "gomoku/9", "actor": "CartPole-v1"}
EVEN = Shares(playing=0.7, learning=0.27, inference_busy=0.7, tree_busy=0.25)


def test_the_whole_line():
    shares = dataclasses.replace(
        EVEN, playing=0.5, batch_fill=0.93, rating=0.06, gate=0.04
    )
    assert verdict("selfplay", shares) == (
        "self-play 50% (net 70%, trees 25%, batches 93% full); learning 27%; "
        "rating 6%; publishing 13%: the net takes most; lower --set "
        "agent.actor.full_simulations, or give more cores by --threads"
    )
    line = verdict("actor", EVEN)
    assert line.startswith("acting 70% (net 70%, steps 25%, batches 100% full); learn")
    assert "publishing" not in line


@pytest.mark.parametrize(
    ("role", "changed", "limit"),
    [
        ("selfplay", {}, "inference"),
        ("selfplay", {"learning": 0.6, "playing": 0.4}, "learning"),
        ("selfplay", {"playing": 0.4}, "publishing"),
        ("selfplay", {"playing": 0.4, "gate": 0.2}, "gate"),
        ("selfplay", {"playing": 0.3, "gate": 0.2, "rating": 0.21}, "rating"),
        ("selfplay", {"inference_busy": 0.5}, "tail"),
        ("selfplay", {"batch_fill": 0.4}, "batches"),
        ("selfplay", {"inference_busy": 0.3, "tree_busy": 0.65}, "tree"),
        ("actor", {}, "inference"),
        ("actor", {"learning": 0.6, "playing": 0.2}, "learning"),
        ("actor", {"playing": 0.3}, "publishing"),
        ("actor", {"tree_busy": 0.8}, "tree"),
    ],
)
def test_what_limits(role, changed, limit):
    line = verdict(role, dataclasses.replace(EVEN, **changed), "use less")
    assert line.partition(": ")[2] == ADVICE[role][limit].format(lighter="use less")


def test_every_advice_is_for_something_that_limits():
    cases = test_what_limits.pytestmark[0].args[1]
    assert {(role, limit) for role, _, limit in cases} == {
        (role, limit) for role, advices in ADVICE.items() for limit in advices
    }


def twice(config, key):
    """Returns double the value of a field, an error where there is none."""
    value = to_dict(config)
    for name in key.split("."):
        value = value[name]
    return 2 * value
