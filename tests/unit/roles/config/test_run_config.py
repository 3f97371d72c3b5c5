import dataclasses
import json

import pytest

from tengen import games
from tengen.actors import SelfplayConfig
from tengen.agents import History, NetStage
from tengen.agents.bases.stages import num_begun
from tengen.config import to_dict
from tengen.errors import UsageError
from tengen.evaluation import MatchGate, SprtGate
from tengen.nets import parse_net
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import change_config
from tengen.search import PlayConfig, SearchConfig
from tests.refusals import refused


@pytest.fixture
def config():
    return make_config("connect4", None, None)


def stages_of(config, change):
    """Returns the setting of the config's stages with the first one changed."""
    first, *rest = [to_dict(stage) for stage in config.agent.stages]
    return f"agent.stages={json.dumps([change(first), *rest])}"


def without_kind(stage):
    net = {name: stage["net"][name] for name in ("num_blocks", "num_channels")}
    return {"share": 0.7, "net": net}


PASSES = ["store.with_replacement=false", "store.min_rows=300"]
INT8 = ["inference.precision=int8", "inference.backend=openvino"]


@pytest.mark.parametrize(
    ("task", "settings", "named"),
    [
        # Only what differs is named.
        ("connect4", ["net.num_blocks=3"], ["net.num_blocks (3) is", "at 2"]),
        (
            "connect4",
            ["net.num_blocks=3", "net.num_channels=48", "seed=3"],
            ["seed (3), net.num_blocks (3), net.num_channels (48) are", "at 0, 2, 32"],
        ),
        ("connect4", ["agent.stages=[]"], ["number of agent.stages (0)", "at 3"]),
        (
            "connect4",
            ["learner.optimizer.kind=adamw"],
            ["learner.optimizer.kind (adamw)", "at sgd"],
        ),
        (
            "connect4",
            [lambda stage: stage | {"share": 0.7}],
            ["agent.stages[0].share (0.7)"],
        ),
        ("connect4", [without_kind], ["agent.stages[0].net.kind (missing)"]),
        # A batch that the limiter never allows, or no pass over the window has.
        (
            "connect4",
            ["learner.batch_size=20", "store.limiter.max_samples=9"],
            ["learner.batch_size (20)"],
        ),
        ("connect4", [*PASSES, "learner.batch_size=300"], []),
        (
            "connect4",
            [*PASSES, "learner.batch_size=301"],
            ["learner.batch_size (301)"],
        ),
        ("connect4", ["store.min_rows=300", "learner.batch_size=301"], []),
        ("CartPole-v1", INT8, ["inference.precision (int8)", "mlp"]),
        # Environments have no matches.
        ("CartPole-v1", ["agent.gate.kind=sprt"], ["agent.gate"]),
        ("CartPole-v1", ["agent.rating.num_games=4"], ["agent.rating"]),
        # Where a setting has gone is told.
        ("connect4", ["actor.num_slots=1"], ['"agent.actor"']),
        ("connect4", ["gate.kind=1"], ['"agent.gate"']),
        ("connect4", ["stages=1"], ['"agent.stages"']),
        ("connect4", ["loss=1"], ['"agent.loss"']),
    ],
)
def test_what_a_run_does_not_change_is_named(task, settings, named):
    config = make_config(task, None, None)
    words = [
        one if isinstance(one, str) else stages_of(config, one) for one in settings
    ]
    if not named:
        change_config(config, words)
        return
    with refused(UsageError, *named):
        change_config(config, words)


def test_a_stage_keeps_what_the_first_network_is_asked_for(config):
    stage = config.agent.stages[0]
    settings = ("auxiliary", "lead", "mixed_sizes")
    changed = override(config, [f"net.{name}=true" for name in settings])
    first, grown, *_ = changed.nets
    assert all(getattr(net, name) for net in (first, grown) for name in settings)
    sizes = ("num_blocks", "num_channels")
    assert [getattr(grown, s) for s in sizes] == [getattr(stage.net, s) for s in sizes]


def test_a_stage_has_the_heads_of_the_first_network_and_does_not_shrink(config):
    changed = override(config, ["net.head_channels=48"])
    assert {net.head_channels for net in changed.nets} == {48}
    with refused(UsageError, "agent.stages[0].net.num_channels (64)"):
        override(config, ["net.num_channels=128"])


@pytest.mark.parametrize("share", [0, 1, -0.5, float("nan")])
def test_a_stage_begins_within_a_budget(share):
    with refused(UsageError, "share ("):
        NetStage(share=share, net=parse_net("4x64"))


def staged(config, stages):
    agent = dataclasses.replace(config.agent, stages=tuple(stages))
    return dataclasses.replace(config, agent=agent)


def test_stages_begin_one_after_another(config):
    nets = [parse_net("4x64"), parse_net("6x96")]
    stages = [NetStage(share=s, net=n) for s, n in zip((0.5, 0.2), nets, strict=True)]
    changed = staged(config, stages)
    assert changed.nets == (parse_net("2x32"), *nets)
    begun = [num_begun(changed.stages, History(spent, 10.0)) for spent in (2.0, 4.9, 5)]
    # The second is due first, and waits.
    assert begun == [0, 0, 2]


@pytest.mark.parametrize(
    ("stage", "history", "is_due"),
    [
        ({"share": 0.4}, History(3.9, 10.0), False),
        ({"share": 0.4}, History(4.0, 10.0), True),
        # Without a budget in minutes none begins.
        ({"share": 0.4}, History(4.0, None, 9999), False),
        # Not worth it, of whatever share.
        ({"share": 0.4, "least": 11.0}, History(10.0, 10.0), False),
        ({"share": 0.4, "least": 10.0}, History(4.0, 10.0), True),
        # In a long run it begins after so many.
        ({"share": 0.4, "latest": 80.0}, History(79.0, 1000.0), False),
        ({"share": 0.4, "latest": 80.0}, History(80.0, 1000.0), True),
        ({"share": 0.4, "latest": 80.0}, History(24.0, 60.0), True),
        # In games, which no clock knows.
        ({"games": 40}, History(999.0, 1000.0, 39), False),
        ({"games": 40}, History(0.0, None, 40), True),
    ],
)
def test_when_a_stage_begins(stage, history, is_due):
    assert NetStage(net=parse_net("4x64"), **stage).is_due(history) == is_due


def test_other_fields_may_change(config):
    changed = change_config(
        config, ["agent.actor.num_slots=7", "agent.rating.final_games=0"]
    )
    assert changed.agent.actor.num_slots == 7
    assert changed.agent.rating.final_games == 0


def test_the_gate_may_change_when_a_run_goes_on():
    config = make_config("tictactoe", None, None)
    changed = change_config(config, ["agent.gate.kind=sprt", "agent.gate.elo0=0"])
    assert changed.agent.gate == SprtGate(elo0=0.0)
    assert change_config(changed, ["agent.gate.max_games=50"]).agent.gate.elo0 == 0.0
    again = change_config(changed, ["agent.gate.kind=match"])
    assert again.agent.gate == MatchGate()


def test_a_lead_needs_a_network_that_learns_it_and_komi(config):
    go = make_config("go/9", None, None)
    alone = override(go, ["agent.actor.lead_share=0.05"])
    with refused(UsageError, "agent.actor.lead_share (0.05)"):
        alone.check_task()
    with refused(UsageError, "net.lead (True)"):
        override(go, ["net.auxiliary=false", "net.lead=true"])
    lead = ["agent.actor.lead_share=0.05", "net.auxiliary=true", "net.lead=true"]
    both = override(go, lead)
    both.check_task()
    connect4 = override(config, lead)
    with refused(UsageError, "agent.actor.lead_share", "connect4"):
        connect4.check_task()


def test_minigo_searches_games_of_the_core_alone():
    minigo = SearchConfig(policy="minigo")
    config = make_config("connect4", None, None)
    task = "tests.unit.games.own_games:TicTacToe"
    games.allow(task)
    own = make_config(task, None, None)
    for change in (
        {"actor": SelfplayConfig(search=minigo)},
        {"play": PlayConfig(search=minigo)},
    ):
        agent = dataclasses.replace(config.agent, **change)
        dataclasses.replace(config, agent=agent).check_task()
        with refused(UsageError, "search.policy (minigo)"):
            dataclasses.replace(own, agent=agent).check_task()
