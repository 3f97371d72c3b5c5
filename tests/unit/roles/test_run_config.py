import dataclasses

import pytest

from tengen.config import override
from tengen.errors import UsageError
from tengen.evaluation import MatchGate, SprtGate
from tengen.games import make
from tengen.nets import parse_net
from tengen.recipes import Resources, make_config
from tengen.roles import NetStage, change_config


@pytest.fixture
def config():
    return make_config("gomoku/9", None, None, Resources(minutes=60.0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ["net.num_blocks=3"],
            "net.num_blocks (3) is fixed since the run began, as 2; leave it out or "
            "choose another --out",
        ),
        (
            ["net.num_blocks=3", "net.num_channels=48", "seed=3"],
            "seed (3), net.num_blocks (3), net.num_channels (48) are fixed since the "
            "run began, as 0, 2, 32; leave it out or choose another --out",
        ),
        (
            ["stages=[]"],
            "number of stages (0) is fixed since the run began, as 1; leave it out or "
            "choose another --out",
        ),
        (
            ["learner.optimizer.kind=adamw"],
            "learner.optimizer.kind (adamw) is fixed since the run began, as sgd; "
            "leave it out or choose another --out",
        ),
    ],
)
def test_only_what_differs_is_named(config, settings, message):
    with pytest.raises(UsageError) as error:
        change_config(config, settings)
    assert str(error.value) == message


def test_a_batch_that_the_limiter_never_allows_is_refused(config):
    with pytest.raises(UsageError, match=r"^learner.batch_size \(20\) must be at most"):
        change_config(config, ["learner.batch_size=20", "store.limiter.max_samples=9"])


def test_a_batch_that_no_pass_over_the_window_has_is_refused(config):
    passes = ["store.with_replacement=false", "store.min_rows=300"]
    change_config(config, [*passes, "learner.batch_size=300"])
    with pytest.raises(
        UsageError, match=r"^learner.batch_size \(301\) must be at most"
    ):
        change_config(config, [*passes, "learner.batch_size=301"])
    change_config(config, ["store.min_rows=300", "learner.batch_size=301"])


def test_a_field_of_a_stage_is_named(config):
    (stage,) = config.stages
    changed = f'[{{"share": 0.7, "net": {{"num_blocks": {stage.net.num_blocks}'
    changed += f', "num_channels": {stage.net.num_channels}}}}}]'
    with pytest.raises(UsageError, match=r"^stages\[0\]\.share \(0\.7\) is fixed"):
        change_config(config, [f"stages={changed}"])


def test_a_stage_keeps_what_the_first_network_is_asked_for(config):
    (stage,) = config.stages
    settings = ("auxiliary", "lead", "mixed_sizes")
    changed = override(config, [f"net.{name}=true" for name in settings])
    first, grown = changed.nets
    assert all(getattr(net, name) for net in (first, grown) for name in settings)
    sizes = ("num_blocks", "num_channels")
    assert [getattr(grown, s) for s in sizes] == [getattr(stage.net, s) for s in sizes]


def test_a_stage_has_the_heads_of_the_first_network_and_does_not_shrink(config):
    changed = override(config, ["net.head_channels=48"])
    assert [net.head_channels for net in changed.nets] == [48, 48]
    with pytest.raises(
        UsageError, match=r"^stages\[0\]\.net\.num_channels \(64\) must not shrink "
    ):
        override(config, ["net.num_channels=128"])


@pytest.mark.parametrize("share", [0, 1, -0.5, float("nan")])
def test_a_stage_begins_within_a_budget(share):
    with pytest.raises(
        UsageError, match=r"^share \(.*\) must be above 0 and below 1; "
    ):
        NetStage(share=share, net=parse_net("4x64"))


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.5, 0.4)])
def test_stages_begin_one_after_another(config, shares):
    stages = tuple(NetStage(share=share, net=parse_net("4x64")) for share in shares)
    with pytest.raises(
        UsageError, match=r"^stages \(\[.*\]\) must begin at increasing"
    ):
        dataclasses.replace(config, stages=stages)


def test_the_stages_of_a_share(config):
    nets = [parse_net("4x64"), parse_net("6x96")]
    stages = [NetStage(share=s, net=n) for s, n in zip((0.2, 0.5), nets, strict=True)]
    staged = dataclasses.replace(config, stages=tuple(stages))
    assert staged.nets == (parse_net("2x32"), *nets)
    begun = [staged.num_stages_begun(spent) for spent in (0.0, 0.19, 0.2, 0.5, 1.0)]
    assert begun == [0, 0, 1, 2, 2]


def test_other_fields_may_change(config):
    changed = change_config(config, ["actor.num_slots=7", "rating.final_games=0"])
    assert changed.actor.num_slots == 7
    assert changed.rating.final_games == 0


def test_int8_needs_convolutions():
    config = make_config("CartPole-v1", None, None)
    with pytest.raises(UsageError) as error:
        change_config(
            config, ["inference.precision=int8", "inference.backend=openvino"]
        )
    assert str(error.value) == (
        "inference.precision (int8) needs convolutions, which net.kind mlp has not; "
        "use fp32"
    )


def test_the_gate_may_change_when_a_run_goes_on():
    config = make_config("tictactoe", None, None)
    changed = change_config(config, ["gate.kind=sprt", "gate.elo0=0"])
    assert changed.gate == SprtGate(elo0=0.0)
    assert change_config(changed, ["gate.max_games=50"]).gate.elo0 == 0.0
    assert change_config(changed, ["gate.kind=match"]).gate == MatchGate()


def test_environments_have_no_matches():
    config = make_config("CartPole-v1", None, None)
    with pytest.raises(UsageError, match=r"^gate.kind \(sprt\) must be accept_all"):
        change_config(config, ["gate.kind=sprt"])


def test_a_lead_needs_a_network_that_learns_it_and_komi(config):
    go = make_config("go/9", None, None, Resources(minutes=60.0))
    with pytest.raises(UsageError, match=r"^actor\.lead_share \(0\.05\) needs a netw"):
        override(go, ["actor.lead_share=0.05"])
    with pytest.raises(UsageError, match=r"^net\.lead \(True\) needs auxiliary heads;"):
        override(go, ["net.auxiliary=false", "net.lead=true"])
    lead = ["actor.lead_share=0.05", "net.auxiliary=true", "net.lead=true"]
    override(go, lead).check_game(make("go/9"))
    with pytest.raises(
        UsageError, match=r"^actor\.lead_share .* gomoku/9, which has no"
    ):
        override(config, lead).check_game(make("gomoku/9"))
