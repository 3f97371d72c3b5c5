"""NGU's update against R2D2's, its network, and its columns from acting to learning."""

import dataclasses

import numpy as np
import pytest
import torch

from tengen.actors import INTRINSIC, LAST_REWARD, EnvironmentActorConfig, Slots
from tengen.agents.agent57 import Agent57
from tengen.agents.ngu import Ngu, NguUpdate
from tengen.agents.r2d2 import R2d2, R2d2Update
from tengen.envs import ActionSpec, EnvSpec
from tengen.errors import UsageError
from tengen.experience import ReplayConfig
from tengen.inference import drive
from tengen.models.export import ModelExporter
from tengen.nets import MlpConfig
from tengen.nets.modules.novelty import CuriousNet, Judged
from tengen.nets.nature import NatureConfig
from tengen.tensors import EMBEDDING, NOVELTY, POLICY, Signature, TensorSpec
from tests.refusals import refused
from tests.unit.agents.agent_fakes import (
    CountingEnv,
    LeakyNet,
    NetRunner,
    items_of,
    port_of,
    table_of,
)
from tests.unit.losses.episodes import random_rows

STORE = ReplayConfig(sampler="prioritized", max_items=10, importance_exponent=0.6)
ACTIONS = ActionSpec(num_choices=(3,))
SHARED = {
    "is_duelling": False,
    "burn_in": 7,
    "unroll_length": 33,
    "num_steps": 3,
    "rescaling_epsilon": 0.01,
}
AGENT = Ngu(
    **SHARED,
    num_policies=4,
    beta=0.5,
    discount=0.9,
    least_discount=0.5,
    relabelled_share=0.0,
)


class JudgingNet(LeakyNet):
    """A ``LeakyNet`` whose embeddings and novelty have no gradient."""

    def judge(self, inputs):
        rows = len(inputs["observation"])
        embedding = torch.zeros(rows, 32)
        return Judged(embedding, torch.zeros(rows), torch.ones(rows))


def nets():
    rng = np.random.default_rng(3)
    size = random_rows(0).v.size
    return [
        JudgingNet(leak, rng.normal(size=size), rng.normal(size=(size, 3)))
        for leak in (0.8, 0.5)
    ]


def batch():
    columns, _ = items_of(random_rows(0))
    rng = np.random.default_rng(4)
    num_items, num_steps = columns["reward"].shape
    numbers = rng.integers(4, size=(num_items, 1)).repeat(num_steps, 1)
    floats = {
        "state/memory": rng.normal(size=num_items),
        "importance_weight": rng.uniform(0.1, 1, num_items),
        INTRINSIC: rng.uniform(0, 5, (num_items, num_steps)),
        "predictor_weight": np.ones(num_items),
        POLICY: np.eye(4)[numbers],
    }
    columns |= {n: torch.from_numpy(a.astype(np.float32)) for n, a in floats.items()}
    return columns, numbers


def test_a_sequence_is_learned_as_r2d2_learns_it_with_the_policy_s_goal():
    columns, numbers = batch()
    net, target = nets()
    update = NguUpdate(AGENT, net, STORE, ACTIONS)
    update.target = target
    found = update.loss(net, columns)
    losses, priorities = [], []
    for i, number in enumerate(numbers[:, 0]):
        agent = R2d2(**SHARED, discount=float(AGENT.discounts()[number]))
        reference = R2d2Update(agent, net, STORE)
        reference.target = target
        own = {name: column[i : i + 1] for name, column in columns.items()}
        # An action's intrinsic reward is the novelty of what it led to.
        own["reward"] = own["reward"] + AGENT.betas()[number] * own[INTRINSIC].roll(
            -1, 1
        )
        own["reward"] = own["reward"].float()
        expected = reference.loss(net, own)
        losses.append(expected.loss.item())
        priorities.append(expected.priorities.item())
    own_loss = found.loss - found.metrics["inverse_loss"]
    assert own_loss.item() == pytest.approx(np.mean(losses), rel=1e-4)
    np.testing.assert_allclose(found.priorities.detach(), priorities, rtol=1e-3)


def test_every_episode_of_a_sequence_has_its_own_policy():
    update = NguUpdate(AGENT, nets()[0], STORE, ACTIONS)
    learned = {
        "reward": torch.tensor([[1.0], [2.0], [3.0], [4.0]]),
        INTRINSIC: torch.tensor([[9.0], [0.5], [0.25], [2.0]]),
        POLICY: torch.eye(4)[[3, 3, 0, 1]][:, None],
    }
    reward, discount = update.goals(learned)
    assert reward.flatten().tolist() == pytest.approx(
        [1 + 0.5 * 0.5, 2 + 0.5 * 0.25, 3]
    )
    assert discount.flatten().tolist() == pytest.approx([0.5, 0.5, 0.9])


def test_the_family_goes_from_exploiting_to_exploring():
    betas, discounts = Ngu(num_policies=32).betas(), Ngu(num_policies=32).discounts()
    assert (betas[0], betas[-1]) == (0.0, 0.3)
    assert (np.diff(betas) >= 0).all()
    assert betas[16] == pytest.approx(0.3 / (1 + np.exp(-10 * (32 - 30) / 30)))
    assert (discounts[0], discounts[-1]) == pytest.approx((0.997, 0.99))
    assert (np.diff(discounts) < 0).all()
    steps = np.diff(np.log(1 - discounts))
    np.testing.assert_allclose(steps, steps[0])
    assert Ngu(num_policies=2).betas().tolist() == [0.0, 0.3]
    assert np.isfinite(Ngu(discount=1.0).discounts()).all()


@pytest.mark.parametrize("kind", [Ngu, Agent57])
@pytest.mark.parametrize("shape", [(4,), (4, 10, 10), (1, 84, 84)])
def test_every_policy_of_a_default_agent_has_its_own_discount(kind, shape):
    spec = EnvSpec(
        name="task",
        observations={"observation": TensorSpec(dtype="uint8", shape=shape)},
        actions=ACTIONS,
        max_episode_steps=None,
        reward_threshold=None,
    )
    agent = kind().for_environment(spec)
    assert len(set(agent.discounts())) == agent.num_policies
    assert agent.discounts()[0] > agent.discounts()[-1]


def test_settings_that_contradict_each_other_are_refused():
    with refused(UsageError, "least_discount (0.99) must be at most discount (0.9)"):
        Ngu(discount=0.9)
    with refused(UsageError, "memory_steps (1000000) must be at most 625000 with 16"):
        Ngu(memory_steps=1_000_000)


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0, 0), (0.5, 0.3, 0.45)])
def test_a_share_of_sequences_is_learned_for_another_policy(share, low, high):
    agent = dataclasses.replace(AGENT, relabelled_share=share)
    update = NguUpdate(agent, nets()[0], STORE, ACTIONS)
    acted = torch.eye(4)[torch.arange(4)].repeat(250, 1)[:, None].repeat(1, 5, 1)
    torch.manual_seed(0)
    [columns] = update.minibatches(nets()[0], {POLICY: acted, "reward": acted[..., 0]})
    weights = columns["predictor_weight"]
    assert set(weights.tolist()) == {0.0, 10.0}
    assert 0.7 < weights.mean() < 1.3
    learned = columns[POLICY]
    assert (learned.sum(-1) == 1).all()
    # A policy other than the one that acted, for all steps of the sequence.
    differs = (learned != acted).any(-1)
    assert (differs == differs[:, :1]).all()
    assert low <= differs[:, 0].float().mean() <= high


def judged_by_hand(net, update, columns):
    """The losses of a real network's predictor and embedding, step by step."""
    errors, inverse = [], []
    burn_in, weights = AGENT.burn_in, columns["predictor_weight"]
    for i, weight in enumerate(weights):
        rows = {"observation": columns["observation"][i, burn_in:]}
        judged = net.judge(rows)
        errors.append(weight * judged.errors)
        for t in range(burn_in, burn_in + AGENT.unroll_length):
            if columns["is_reset"][i, t]:
                inverse.append(torch.tensor(0.0))
                continue
            both = judged.embedding[t - burn_in : t - burn_in + 2].flatten()
            logits = update.inverse(both)
            inverse.append(-logits.log_softmax(0)[columns["action"][i, t]])
    return torch.cat(errors).mean() + torch.stack(inverse).mean()


def test_the_loss_trains_predictor_and_embedding_on_the_chosen_steps():
    torch.manual_seed(0)
    env = CountingEnv(1, LENGTHS)
    agent = dataclasses.replace(AGENT, sees_last_step=False)
    inputs, outputs = agent.inputs_of(env.spec), agent.outputs_of(ACTIONS)
    signature = Signature(inputs=inputs, outputs=outputs)
    net = MlpConfig(num_units=8).build(signature)
    columns, _ = batch()
    net.judge({"observation": columns["observation"].flatten()})
    net.eval()
    num_items = len(columns["reward"])
    columns["predictor_weight"] = torch.arange(num_items) % 3 * 2.0
    update = NguUpdate(agent, net, STORE, ACTIONS)
    parts = [
        *net.novelty.predictor.parameters(),
        *net.embedding.parameters(),
        *update.parameters(),
    ]
    assert any(columns["is_reset"][:, AGENT.burn_in : -1].flatten())
    losses = [update.loss(net, columns).loss, judged_by_hand(net, update, columns)]
    found, expected = (torch.autograd.grad(loss, parts) for loss in losses)
    for one, other in zip(found, expected, strict=True):
        assert other.abs().max() > 0
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def curious_net(observations, num_units=16, **settings):
    agent = Ngu(num_policies=2, **settings)
    outputs = agent.outputs_of(ACTIONS)
    return MlpConfig(num_units=num_units).build(
        Signature(inputs={**observations, LAST_REWARD: TensorSpec()}, outputs=outputs)
    )


def test_judging_sees_the_observation_alone_and_no_gradient_leaks():
    torch.manual_seed(0)
    net = curious_net({"observation": TensorSpec(shape=(4,))})
    assert isinstance(net, CuriousNet)
    rows = torch.randn(50, 4)
    net.judge({"observation": rows})
    net.eval()
    answers = [
        net.answer({"observation": rows, LAST_REWARD: reward}, {})[0]
        for reward in (torch.zeros(50), torch.ones(50))
    ]
    for name in (EMBEDDING, NOVELTY):
        assert torch.equal(*[outputs[name] for outputs in answers])
    assert not torch.equal(*[outputs["advantage"] for outputs in answers])
    judged = net.judge({"observation": rows})
    names = dict(net.named_parameters())
    parts = {"embedding.": judged.embedding.sum(), "novelty.predictor.": judged.errors}
    for part, loss in parts.items():
        trained = {n: p for n, p in names.items() if p.requires_grad}
        found = torch.autograd.grad(
            loss.sum(), list(trained.values()), retain_graph=True, allow_unused=True
        )
        moved = {n for n, g in zip(trained, found, strict=True) if g is not None}
        assert moved
        assert all(name.startswith(part) for name in moved)


def test_of_stacked_frames_only_the_newest_is_judged():
    torch.manual_seed(0)
    agent = Ngu(num_policies=2, is_duelling=False)
    inputs = {"observation": TensorSpec(dtype="uint8", shape=(1, 36, 36))}
    wanted = Signature(inputs=inputs, outputs=agent.outputs_of(ACTIONS))
    net = NatureConfig(num_frames=4).build(wanted).eval()
    rows = {"observation": torch.randint(256, (2, 1, 36, 36), dtype=torch.uint8)}
    answers = [
        net.answer(
            rows,
            {
                name: torch.randint(256, (2, *spec.shape), dtype=torch.uint8)
                for name, spec in net.signature.state.items()
            },
        )[0]
        for _ in range(2)
    ]
    for name in (EMBEDDING, NOVELTY):
        assert torch.equal(*[outputs[name] for outputs in answers])
    assert not torch.equal(*[outputs["q"] for outputs in answers])


def test_novelty_is_in_deviations_of_the_errors_so_far():
    torch.manual_seed(0)
    net = curious_net({"observation": TensorSpec(shape=(4,))})
    for _ in range(20):
        net.judge({"observation": torch.randn(100, 4)})
    net.eval()
    rows = torch.randn(1_000, 4)
    judged = net.judge({"observation": rows})
    assert judged.novelty.mean().item() == pytest.approx(1.0, abs=0.2)
    assert judged.novelty.std().item() == pytest.approx(1.0, abs=0.2)
    assert torch.equal(judged.novelty.argsort(), judged.errors.argsort())


def test_the_embedding_learns_what_actions_do():
    # Action a moves the first number to a; the other numbers are noise.
    torch.manual_seed(0)
    net = curious_net({"observation": TensorSpec(shape=(4,))}, num_units=32)
    agent = dataclasses.replace(AGENT, burn_in=0, unroll_length=1, period=1)
    net.inner = LeakyNet(0.0, np.zeros(1), np.zeros((1, 3)))
    update = NguUpdate(
        agent, LeakyNet(0.0, np.zeros(1), np.zeros((1, 3))), STORE, ACTIONS
    )
    optimizer = torch.optim.Adam(
        [*net.embedding.parameters(), *update.parameters()], 3e-3
    )
    losses = []
    for _ in range(150):
        action = torch.randint(3, (200,))
        before, after = torch.randn(200, 4), torch.randn(200, 4)
        after[:, 0] = action - 1.0
        one, other = (net.judge({"observation": x}).embedding for x in (before, after))
        logits = update.inverse(torch.cat([one, other], -1))
        loss = torch.nn.functional.cross_entropy(logits, action)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 < 1.0 < losses[0]


NUM_ENVS, LENGTHS = 3, (3, 11, 1, 6)


def test_what_is_stored_is_the_novelty_of_the_step_and_the_policy_of_its_episode(
    tmp_path,
):
    agent = Ngu(
        is_duelling=False,
        sees_last_step=False,
        num_policies=4,
        num_neighbours=1,
        burn_in=0,
        unroll_length=6,
        period=6,
        actor=EnvironmentActorConfig(num_envs=NUM_ENVS, turn_steps=48),
    )
    env = CountingEnv(NUM_ENVS, LENGTHS)
    net = MlpConfig(num_units=8).build(
        Signature(
            inputs=agent.inputs_of(env.spec), outputs=agent.outputs_of(env.spec.actions)
        )
    )
    table = table_of(agent, agent.layout({}), tmp_path, NUM_ENVS)
    port = port_of(agent, net.eval(), env, table)
    port.begin(0)
    drive(port, NetRunner(net, port))
    batch = table.sample(port.stats.num_items)
    columns = {name: column.copy() for name, column in batch.columns.items()}
    batch.ack()
    table.close()
    policy = columns[POLICY].argmax(-1)
    is_reset = columns["is_reset"] != 0
    assert (columns[POLICY].sum(-1) == 1).all()
    changes = policy[:, 1:] != policy[:, :-1]
    assert (changes == is_reset[:, :-1]).all()
    assert set(policy.flatten()) == {0, 1, 2, 3}
    # No observation is seen twice in an episode: each is novel, also the final one.
    assert (columns[INTRINSIC] > 0).all()
    first = columns["observation"] == 0
    assert (columns[INTRINSIC][first] >= 1.0).all()


def test_policy_0_acts_where_no_behaviour_chooses():
    from tengen.actors import EnvironmentRows

    agent = Ngu(num_policies=4)
    spec = CountingEnv(1, LENGTHS).spec
    signature = Signature(
        inputs=agent.inputs_of(spec), outputs=agent.outputs_of(spec.actions)
    )
    rows = EnvironmentRows(signature, spec.actions, 2)
    rows.begin({"observation": np.zeros(2, np.int64)})
    assert rows.inputs[POLICY].tolist() == [[1, 0, 0, 0]] * 2
    assert Ngu.acting_settings(signature)["num_policies"] == 4
    assert R2d2().behaviour(Slots(0, 2, 2), 1) is None


def test_a_network_without_memory_is_exported_with_its_novelty():
    pytest.importorskip("openvino")
    import openvino

    torch.manual_seed(0)
    net = curious_net({"observation": TensorSpec(shape=(3, 4))})
    inputs = {"observation": torch.randn(50, 3, 4), LAST_REWARD: torch.randn(50)}
    net.judge(inputs)
    net.eval()
    tensors = {name: tensor.numpy() for name, tensor in net.state_dict().items()}
    graph = ModelExporter().export(net.signature, net.config, tensors)
    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(core.read_model(graph), "CPU", settings)
    found = compiled({name: tensor.numpy() for name, tensor in inputs.items()})
    with torch.no_grad():
        expected, _ = net.answer(inputs, {})
    for name, tensor in expected.items():
        np.testing.assert_allclose(found[name], tensor, rtol=1e-3, atol=1e-3)
