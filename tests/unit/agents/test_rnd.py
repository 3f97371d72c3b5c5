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
    expected = (raw - raw.mean()) / raw.std(correction=0)
    np.testing.assert_allclose(
        batch["advantage"].flatten(), expected, rtol=1e-3, atol=1e-4
    )


def test_the_predictor_gets_a_gradient_and_the_random_network_none():
    table = net()
    update = update_of(table, predicted_share=1.0)
    batch = batch_of(update, table)
    found = update.loss(table, batch)
    gradients = torch.autograd.grad(found.loss, update.parameters())
    assert all(gradient.abs().max() > 0 for gradient in gradients)
    assert not any(p.requires_grad for p in update.novelty.target.parameters())
    other = update.loss(table, {**batch, "is_predicted": batch["is_predicted"] & False})
    expected = found.metrics["novelty"].item()
    assert (found.loss - other.loss).item() == pytest.approx(expected, rel=1e-4)


def test_the_predictor_learns_from_the_chosen_share_of_rows():
    table = net()
    update = update_of(table, predicted_share=0.25, num_epochs=400)
    batches = update.minibatches(table, item(**COLUMNS))
    chosen = torch.cat([batch["is_predicted"].flatten() for batch in batches])
    assert 0.2 < chosen.float().mean() < 0.3


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
