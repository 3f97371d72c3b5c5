"""RND's update: what its predictor learns from, and its two streams of rewards."""

import numpy as np
import pytest
import torch

from tengen.agents.rnd import Rnd, RndUpdate
from tengen.envs import ActionSpec, EnvSpec
from tengen.losses import gae_targets
from tengen.nets import MlpConfig
from tengen.nets.modules.novelty import Novelty
from tengen.tensors import TensorSpec
from tests.unit.agents.agent_fakes import TableNet, item

DISCOUNT, INTRINSIC = 0.5, 0.75
VALUES = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
OTHERS = [0.3, 0.1, 0.7, 0.2, 0.9, 0.4]
# Row 1 terminates, row 2 is a reset, row 3 is truncated, row 4 is a reset; row 5
# closes the unroll.
COLUMNS = {
    "observation": [0, 1, 2, 3, 4, 5],
    "action": [1, 0, 0, 1, 0, 0],
    "reward": [1.0, 3.0, 77.0, 1.0, 77.0, 0.0],
    "terminated": [0, 1, 0, 0, 0, 0],
    "truncated": [0, 0, 0, 1, 0, 0],
    "is_reset": [0, 0, 1, 0, 1, 0],
    "behaviour_log_prob": [-0.7] * 6,
}
SPEC = EnvSpec(
    name="table",
    observations={"observation": TensorSpec(dtype="int64")},
    actions=ActionSpec(num_choices=(2,)),
    max_episode_steps=None,
    reward_threshold=None,
)


def net():
    table = TableNet(policy=[[0.0, 0.0]] * 6, value=VALUES, intrinsic_value=OTHERS)
    table.config = MlpConfig(num_units=8)
    return table


def update_of(table, **settings):
    given = {
        "discount": DISCOUNT,
        "intrinsic_discount": INTRINSIC,
        "uses_vtrace": False,
        "num_epochs": 1,
        "num_minibatches": 1,
        **settings,
    }
    torch.manual_seed(3)
    return RndUpdate(Rnd(**given), SPEC, table)


def batch_of(update, table, **columns):
    [batch] = update.minibatches(table, item(**{**COLUMNS, **columns}))
    rows = batch["observation"].flatten().argsort()
    return {name: column[rows] for name, column in batch.items()}


def test_an_action_is_rewarded_for_what_it_leads_to():
    table = net()
    update = update_of(table)
    batch = batch_of(update, table)
    assert batch["observation"].flatten().tolist() == [0, 1, 3]
    # The final observations 2 and 4 too, and no first observation of an episode.
    assert batch["reached/observation"].flatten().tolist() == [1, 2, 4]
    with torch.no_grad():
        novelty = update.novelty({"observation": torch.tensor([1, 2, 4])})
    ratio = batch["intrinsic_reward"].flatten() / novelty
    np.testing.assert_allclose(ratio, ratio[0].expand(3), rtol=1e-5)


def test_the_intrinsic_stream_goes_on_where_episodes_end():
    table = net()
    batch = batch_of(update_of(table, trace_lambda=0.0), table)
    rewards = batch["intrinsic_reward"].flatten().tolist()
    after = [OTHERS[1], OTHERS[3], OTHERS[5]]
    expected = [r + INTRINSIC * v for r, v in zip(rewards, after, strict=True)]
    assert batch["intrinsic_returns"].flatten().tolist() == pytest.approx(expected)
    # The environment's own stream ends at row 1, and row 3 bootstraps from row 4.
    scale = 3.0 / batch["returns"].flatten()[1].item()
    returns = [1 / scale + DISCOUNT * 2, 3 / scale, 1 / scale + DISCOUNT * 16]
    assert batch["returns"].flatten().tolist() == pytest.approx(returns)


@pytest.mark.parametrize("weights", [(2.0, 1.0), (1.0, 0.0), (0.0, 3.0)])
def test_advantages_are_added_with_their_weights(weights):
    table = net()
    extrinsic, intrinsic = weights
    update = update_of(table, extrinsic_weight=extrinsic, intrinsic_weight=intrinsic)
    batch = batch_of(update, table)
    flags = {n: torch.tensor(COLUMNS[n])[:, None] for n in ("terminated", "is_reset")}
    flags["terminated"] = flags["terminated"][:-1]
    found = {name: batch[name].flatten() for name in ("reward", "intrinsic_reward")}

    def advantages(values, name, **options):
        reward = torch.zeros(5, 1)
        reward[[0, 1, 3], 0] = found[name]
        return gae_targets(
            v=torch.tensor(values)[:, None],
            reward=reward,
            **flags,
            trace_lambda=0.9,
            **options,
        ).advantages[[0, 1, 3], 0]

    raw = extrinsic * advantages(VALUES, "reward", discount=DISCOUNT)
    raw += intrinsic * advantages(
        OTHERS, "intrinsic_reward", discount=INTRINSIC, crosses_episodes=True
    )
    np.testing.assert_allclose(batch["advantage"].flatten(), raw, rtol=1e-3, atol=1e-4)


def test_the_predictor_gets_a_gradient_and_the_random_network_none():
    table = net()
    update = update_of(table, predicted_share=1.0)
    batch = batch_of(update, table)
    found = update.loss(table, batch)
    gradients = torch.autograd.grad(found.loss, update.parameters())
    assert all(gradient.abs().max() > 0 for gradient in gradients)
    assert not any(p.requires_grad for p in update.novelty.target.parameters())
    other = update.loss(
        table, {**batch, "predictor_weight": 0 * batch["predictor_weight"]}
    )
    expected = found.metrics["novelty"].item()
    assert (found.loss - other.loss).item() == pytest.approx(expected, rel=1e-4)


def test_the_predictor_learns_from_the_chosen_share_of_rows():
    table = net()
    update = update_of(table, predicted_share=0.25, num_epochs=400)
    batches = update.minibatches(table, item(**COLUMNS))
    chosen = torch.cat([batch["predictor_weight"].flatten() for batch in batches])
    assert set(chosen.tolist()) == {0.0, 4.0}
    assert 0.8 < chosen.mean() < 1.2


@pytest.mark.parametrize("uses_vtrace", [False, True])
def test_both_streams_have_the_weights_of_vtrace(uses_vtrace):
    table = net()
    log_probs = [-0.1, -0.2, 0.0, -0.4, 0.0, 0.0]
    update = update_of(table, uses_vtrace=uses_vtrace, trace_lambda=0.9)
    batch = batch_of(update, table, behaviour_log_prob=log_probs)
    flags = {n: torch.tensor(COLUMNS[n])[:, None] for n in ("terminated", "is_reset")}
    flags["terminated"] = flags["terminated"][:-1]
    ratio = (np.log(0.5) - torch.tensor(log_probs)[:-1, None]).exp()
    for values, reward, returns, options in (
        (VALUES, "reward", "returns", {"discount": DISCOUNT}),
        (
            OTHERS,
            "intrinsic_reward",
            "intrinsic_returns",
            {"discount": INTRINSIC, "crosses_episodes": True},
        ),
    ):
        rewards = torch.zeros(5, 1)
        rewards[[0, 1, 3]] = batch[reward]
        targets = gae_targets(
            v=torch.tensor(values)[:, None],
            reward=rewards,
            **flags,
            trace_lambda=0.9,
            ratio=ratio if uses_vtrace else None,
            **options,
        )
        torch.testing.assert_close(targets.returns[[0, 1, 3]], batch[returns])


def test_both_values_are_learned():
    table = net()
    update = update_of(table)
    batch = batch_of(update, table)
    loss = update.loss(table, batch).loss
    for name, returns in (
        ("value", "returns"),
        ("intrinsic_value", "intrinsic_returns"),
    ):
        [found] = torch.autograd.grad(loss, [table.tables[name]], retain_graph=True)
        values = table.tables[name].detach()[[0, 1, 3]]
        expected = 0.5 * (values - batch[returns].flatten()) / 3
        torch.testing.assert_close(found[[0, 1, 3]], expected)


def test_a_batch_is_in_the_statistics_before_its_novelty_is_found():
    rewards = []
    for scale, offset in ((1, 0), (1_000, 70)):
        table = net()
        update = update_of(table)
        columns = item(**COLUMNS)
        columns["observation"] = columns["observation"] * scale + offset
        scaled = update.scaled(columns)
        again = update.scaled(columns)
        rewards.append(scaled["intrinsic_reward"])
        # The same rows again, with the same statistics.
        torch.testing.assert_close(again["intrinsic_reward"], rewards[-1])
    torch.testing.assert_close(*rewards, rtol=1e-2, atol=1e-2)


def test_the_scale_of_intrinsic_rewards_is_restored():
    table = net()
    update, other = update_of(table), update_of(table)
    # Both streams of rewards of the first batch differ from those of the second.
    update.scaled(item(**{**COLUMNS, "observation": [0, 90, 0, 7, 800, 5]}))
    other.load_state(update.state())
    found = [one.scaled(item(**COLUMNS)) for one in (update, other)]
    for name in ("reward", "intrinsic_reward"):
        assert torch.equal(*[columns[name] for columns in found])
    fresh = update_of(table).scaled(item(**COLUMNS))
    assert not torch.equal(found[0]["intrinsic_reward"], fresh["intrinsic_reward"])


def test_computing_a_loss_changes_no_statistics():
    table = net()
    update = update_of(table)
    batch = batch_of(update, table)
    before = {name: tensor.clone() for name, tensor in update.state().items()}
    update.loss(table, batch)
    for name, tensor in update.state().items():
        assert torch.equal(tensor, before[name]), name


def test_novelty_falls_where_it_was_learned_and_stays_elsewhere():
    torch.manual_seed(0)
    novelty = Novelty(MlpConfig(), {"observation": TensorSpec(shape=(20,))})
    seen, other = torch.eye(20)[:10], torch.eye(20)[10:]
    novelty({"observation": seen.repeat(20, 1)})
    novelty.eval()
    optimizer = torch.optim.Adam(novelty.predictor.parameters(), 1e-3)
    before = novelty({"observation": torch.cat([seen, other])}).detach()
    for _ in range(300):
        optimizer.zero_grad()
        novelty({"observation": seen}).mean().backward()
        optimizer.step()
    after = novelty({"observation": torch.cat([seen, other])}).detach()
    assert after[:10].max() < 0.05 * before[:10].min()
    assert after[10:].min() > 5 * after[:10].max()


def test_the_scale_and_offset_of_an_observation_do_not_matter():
    torch.manual_seed(0)
    rows = torch.randn(500, 4)
    found = []
    for scale, offset in ((1.0, 0.0), (1000.0, 5.0)):
        torch.manual_seed(1)
        novelty = Novelty(MlpConfig(), {"observation": TensorSpec(shape=(4,))})
        shown = rows * scale + offset
        novelty({"observation": shown})
        found.append(novelty.eval()({"observation": shown}).detach())
    np.testing.assert_allclose(found[0], found[1], rtol=0.02, atol=0.01)
