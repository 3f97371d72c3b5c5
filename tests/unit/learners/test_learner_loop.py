"""The learner loop: the same bits on any threads, order, and that it learns."""

import threading

import numpy as np
import pytest
import torch

from tengen.agents.alphazero_loss import AlphaZeroLossConfig, AlphaZeroUpdate
from tengen.agents.vtrace import Vtrace, VtraceUpdate
from tengen.envs import ActionSpec
from tengen.errors import RunError, UsageError
from tengen.learners import (
    AdamWConfig,
    Learner,
    LearnerConfig,
    SgdConfig,
)
from tengen.learners.shards import Shards
from tengen.nets import InferenceHead, MlpConfig
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused
from tests.unit.learners.learner_fakes import FakeBatch, FakeTable


def bits(learner):
    return {
        name: tensor.contiguous().view(torch.uint8).numpy().tobytes()
        for name, tensor in learner.state().tensors.items()
        if name != "generator"
    }


@pytest.mark.parametrize(
    ("num_shards", "batch_size", "precision"),
    [(2, 24, "float32"), (2, 24, "bfloat16"), (3, 25, "float32")],
)
def test_threads_do_not_change_a_bit(make_learner, num_shards, batch_size, precision):
    results = []
    for num_threads in (1, 2, 3):
        learner = make_learner(
            num_threads=num_threads,
            num_shards=num_shards,
            batch_size=batch_size,
            precision=precision,
        )
        losses = [metrics["loss"] for metrics in learner.steps(20)]
        results.append((bits(learner), losses))
    assert results[0] == results[1] == results[2]


def test_validation_is_of_the_averaged_network_and_changes_nothing(make_learner):
    learner = make_learner(precision="float32")
    for _ in learner.steps(5):
        pass
    before, columns = bits(learner), FakeTable(99).sample(20).columns
    found = learner.validate(columns)
    assert bits(learner) == before
    average = learner.optimizer.average
    with torch.no_grad():
        policy, value = average(torch.from_numpy(columns["planes"]))
    log_policy = policy.log_softmax(1).numpy()
    log_value = value.log_softmax(1).numpy()
    assert found["policy_loss"] == pytest.approx(
        -(columns["policy"] * log_policy).sum(1).mean(), rel=1e-4
    )
    share = 0.3
    target = (1 - share) * columns["outcome"]
    searched = columns["search_value"]
    # A drawn game is as often drawn as its value allows.
    drawn = columns["outcome"][:, 1] * (1 - np.abs(searched))
    target[:, 0] += share * (1 + searched - drawn) / 2
    target[:, 1] += share * drawn
    target[:, 2] += share * (1 - searched - drawn) / 2
    value_loss = -(target * log_value).sum(1).mean()
    assert found["value_loss"] == pytest.approx(value_loss, rel=1e-4)
    assert found["loss"] == pytest.approx(
        found["policy_loss"] + found["value_loss"], rel=1e-5
    )


def in_parts(net, rows, num_shards):
    """Returns the gradients of a batch in parts; the net gets its norm statistics."""
    columns = {
        name: torch.from_numpy(column[rows])
        for name, column in FakeTable().sample(24).columns.items()
    }
    update = AlphaZeroUpdate(AlphaZeroLossConfig())
    shards = Shards(net, update, num_shards, dtype=torch.float32, num_threads=1)
    shards.add(shards.compute(columns))
    shards.merge_statistics()
    shards.close()
    return shards.gradients


def test_parts_add_up_to_the_whole_batch(make_learner):
    # With norm statistics fixed, nothing but rounding tells one part from four.
    net = make_learner().net.eval()
    gradients = [in_parts(net, slice(None), num_shards) for num_shards in (1, 4)]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_running_statistics_are_the_mean_of_the_parts(make_learner):
    found = []
    for rows, num_shards in (
        (slice(12), 1),
        (slice(12, 24), 1),
        (slice(24), 2),
    ):
        net = make_learner().net
        in_parts(net, rows, num_shards)
        found.append(net.tip.running_mean)
    first, second, both = found
    assert not torch.equal(first, second)
    torch.testing.assert_close(both, (first + second) / 2)


def test_batches_are_drawn_ahead_in_order_and_never_beyond_the_last(make_learner):
    table = FakeTable()
    learner = make_learner(table=table)
    for count, metrics in enumerate(learner.steps(5), start=1):
        assert table.num_acks == count
        assert metrics["sample_wait_s"] >= 0
        assert metrics["train_s"] > 0
    assert (table.num_drawn, table.sizes) == (5, [24] * 5)
    assert (learner.num_steps, learner.num_samples) == (5, 120)


def test_the_next_batch_is_drawn_while_one_trains(make_learner):
    drawn_second = threading.Event()

    class Spy(FakeTable):
        def sample(self, num_rows, /):
            batch = super().sample(num_rows)
            if self.num_drawn == 2:
                drawn_second.set()
            return batch

    class Waiting(AlphaZeroUpdate):
        def loss(self, net, columns):
            assert drawn_second.wait(timeout=900)
            return super().loss(net, columns)

    learner = make_learner(table=Spy(), update=Waiting(AlphaZeroLossConfig()))
    list(learner.steps(2))  # would fail in the first step if sampling came after it


def test_leaving_early_loses_no_batch_and_forbids_saving(make_learner):
    whole, parted = make_learner(), make_learner()
    list(whole.steps(4))
    next(parted.steps(3))
    with refused(RunError, "state (a batch is in flight)"):
        parted.state()
    list(parted.steps(3))
    assert bits(whole) == bits(parted)


def test_a_stop_ends_soon_and_leaves_nothing_in_flight(make_learner):
    whole, parted = make_learner(), make_learner()
    list(whole.steps(4))
    stop = threading.Event()
    stopped = parted.steps(100, stop)
    next(stopped)
    stop.set()
    assert len(list(stopped)) == 1
    assert parted.state().num_steps == 2
    list(parted.steps(2))
    assert bits(whole) == bits(parted)


def test_an_optimizer_that_begins_anew_warms_up_and_steps_go_on(make_learner):
    """As when a network has grown: the run has steps, its optimizer none."""
    learner = make_learner(optimizer=SgdConfig(learning_rate=1.0, num_warmup_steps=4))
    rates = [metrics["learning_rate"] for metrics in learner.steps(6)]
    assert rates == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    grown = make_learner(optimizer=SgdConfig(learning_rate=1.0, num_warmup_steps=4))
    grown.load_state(
        grown.state()._replace(
            num_steps=learner.num_steps, num_samples=learner.num_samples
        )
    )
    rates = [metrics["learning_rate"] for metrics in grown.steps(3)]
    assert rates == [0.25, 0.5, 0.75]
    assert (grown.num_steps, grown.num_samples) == (9, 9 * 24)
    state = grown.state()
    assert (state.num_steps, state.num_optimizer_steps) == (9, 3)


def test_metrics_are_plain_floats(make_learner):
    metrics = make_learner().step()
    assert set(metrics) == {
        "loss",
        "policy_loss",
        "value_loss",
        "policy_accuracy",
        "value_accuracy",
        "grad_norm",
        "learning_rate",
        "sample_wait_s",
        "train_s",
    }
    assert all(type(value) is float for value in metrics.values())
    assert metrics["loss"] == pytest.approx(
        metrics["policy_loss"] + metrics["value_loss"], rel=1e-5
    )


def test_a_loss_that_is_not_finite_stops_the_run_before_the_weights_spoil(make_learner):
    class Broken(FakeTable):
        def sample(self, num_rows, /):
            batch = super().sample(num_rows)
            if self.num_drawn == 2:
                batch.columns["planes"][0, 1, 0, 0] = np.nan
            return batch

    table = Broken()
    learner = make_learner(table=table)
    learner.step()
    before = {name: p.clone() for name, p in learner.net.named_parameters()}
    with refused(RunError, "grad_norm (nan)", "step 1"):
        learner.step()
    assert table.num_acks == 1
    for name, parameter in learner.net.named_parameters():
        assert torch.equal(parameter, before[name])


def test_read_only_columns_are_accepted(make_learner):
    class ReadOnly(FakeTable):
        def sample(self, num_rows, /):
            batch = super().sample(num_rows)
            for column in batch.columns.values():
                column.flags.writeable = False
            return batch

    plain, read_only = make_learner(), make_learner(table=ReadOnly())
    list(plain.steps(2)), list(read_only.steps(2))
    assert bits(plain) == bits(read_only)


@pytest.mark.parametrize(
    "optimizer",
    [
        SgdConfig(num_warmup_steps=5),
        AdamWConfig(num_warmup_steps=5, learning_rate=3e-3),
    ],
)
def test_it_learns_who_has_more_stones(make_learner, optimizer):
    learner = make_learner(
        num_channels=16, batch_size=64, optimizer=optimizer, precision="float32"
    )
    metrics = list(learner.steps(160))
    first, last = metrics[:3], metrics[-10:]
    assert mean("value_loss", first) > 0.8
    assert mean("value_loss", last) < 0.6 * mean("value_loss", first)
    assert mean("policy_loss", last) < 0.3 * mean("policy_loss", first)
    # The averaged weights, which are published, know it too; by chance it is 0.4.
    batch = FakeTable(num_drawn=10_000).sample(512)
    _, logits = learner.optimizer.average(torch.from_numpy(batch.columns["planes"]))
    truth = batch.columns["outcome"].argmax(1)
    assert (logits.argmax(1).numpy() == truth).mean() > 0.7


def mean(name, metrics):
    return float(np.mean([m[name] for m in metrics]))


def test_the_same_loop_learns_from_unrolls_of_another_policy():
    """A bandit with a context: action 1 pays where the observation is positive."""

    class Bandit(FakeTable):
        def sample(self, num_rows, /):
            rng = np.random.default_rng([5, self.num_drawn])
            self.num_drawn += 1
            # Four steps, and one that only bootstraps.
            shape = (num_rows, 5)
            seen = rng.normal(size=(*shape, 1)).astype(np.float32)
            action = rng.integers(0, 2, size=shape)
            pays = action == (seen[..., 0] > 0)
            columns = {
                "observation": seen,
                "action": action,
                "reward": pays.astype(np.float32),
                "terminated": np.ones(shape, dtype=np.uint8),
                "is_reset": np.zeros(shape, dtype=np.uint8),
                "behaviour_log_prob": np.full(shape, np.log(0.5), dtype=np.float32),
            }
            return FakeBatch(columns, self)

    torch.manual_seed(0)
    wanted = Signature(
        inputs={"observation": TensorSpec(shape=(1,))},
        outputs={"policy": TensorSpec(shape=(2,)), "value": TensorSpec()},
    )
    net = MlpConfig().build(wanted)
    config = LearnerConfig(
        batch_size=32, optimizer=AdamWConfig(learning_rate=1e-2, num_warmup_steps=0)
    )
    update = VtraceUpdate(Vtrace(), ActionSpec(num_choices=(2,)))
    with Learner(config, net, update, Bandit()) as learner:
        metrics = list(learner.steps(100))
    probe = torch.tensor([[-1.0], [1.0]])
    policy, value = InferenceHead(learner.optimizer.average)(probe)
    right = policy.softmax(1).diagonal()
    assert (right > 0.9).all()
    assert (value - 1.0).abs().max() < 0.3
    assert metrics[-1]["entropy"] < 0.5 * metrics[0]["entropy"]


@pytest.mark.parametrize("num_shards", [0, 5])
def test_a_batch_has_one_row_or_more_in_each_part(num_shards):
    with refused(UsageError, f"num_shards ({num_shards})"):
        LearnerConfig(batch_size=4, num_shards=num_shards)
