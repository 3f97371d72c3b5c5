"""Vectors in units of their own: against numpy, in copies, and as a run learns."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from tengen.models.trace import trace
from tengen.nets import InferenceHead, MlpConfig
from tengen.nets.modules.standard import Standard, counting, uncounted
from tengen.tensors import Signature, TensorSpec

WANTED = Signature(
    inputs={"observation": TensorSpec(shape=(3,))},
    outputs={"policy": TensorSpec(shape=(2,)), "value": TensorSpec()},
)
# Far from 0, and of one number that never changes.
MIDDLE, SIZE = np.float32([1e4, -3.0, 7.0]), np.float32([2.0, 1e-2, 0.0])


def rows(seed, count=400):
    drawn = np.random.default_rng(seed).normal(size=(count, 3))
    return torch.from_numpy((MIDDLE + SIZE * drawn).astype(np.float32))


def test_rows_are_in_units_of_all_that_were_seen():
    standard = Standard(3).train()
    seen = []
    for seed in range(5):
        batch = rows(seed)
        seen.append(batch.double().numpy())
        answer = standard(batch).numpy()
        everything = np.concatenate(seen)
        deviation = np.where(everything.std(0) > 1e-4, everything.std(0), 1.0)
        wanted = (seen[-1] - everything.mean(0)) / deviation
        np.testing.assert_allclose(answer, wanted.clip(-10, 10), rtol=0, atol=2e-3)
    standard.eval()
    before = {name: tensor.clone() for name, tensor in standard.state_dict().items()}
    far = standard(rows(9) + 1e3)
    assert far[:, :2].tolist() == [[10.0, 10.0]] * len(far)
    assert all(torch.equal(standard.state_dict()[n], t) for n, t in before.items())


def test_without_rows_nothing_changes_but_beyond_the_bound():
    few = torch.tensor([[1.5, -2.0, 30.0]])
    assert Standard(3).eval()(few).tolist() == [[1.5, -2.0, 10.0]]


def test_copies_have_the_statistics_of_all_rows():
    """A learner's parts see a share of a batch each, and their sums are averaged."""
    copies = [Standard(3).train() for _ in range(2)]
    whole = Standard(3).train()
    batches = [rows(1), rows(2)]
    for copy, batch in zip(copies, batches, strict=True):
        copy(batch)
    whole(torch.cat(batches))
    merged = Standard(3)
    for name, buffer in merged.named_buffers():
        parts = [dict(copy.named_buffers())[name] for copy in copies]
        buffer.copy_(sum(parts) / 2)
    one, other = (m.eval()(rows(3)) for m in (merged, whole))
    torch.testing.assert_close(one, other)


def test_a_shift_after_a_million_rows_is_followed():
    standard = Standard(3).train()
    for name, full in (("total", MIDDLE), ("squares", MIDDLE**2 + SIZE**2)):
        standard.get_buffer(name).copy_(torch.from_numpy(full * 1e6))
    standard.num_rows.fill_(1e6)
    shifted = rows(1, 100_000) + torch.tensor([50.0, 1.0, 0.0])
    before = standard.eval()(shifted)[:, :2]
    assert (before.abs() == 10).float().mean() > 0.9
    standard.train()
    for _ in range(30):
        standard(shifted)
    assert standard.num_rows.item() == 1e6 + 100_000
    after = standard.eval()(shifted)[:, :2]
    assert (after.abs() < 10).all()
    # The share of the old rows is (1 / 1.1) to the power of 30.
    assert after.mean().abs() < 0.3


def test_one_outlier_does_not_hide_what_comes_after():
    standard = Standard(3).train()
    standard(rows(1, 10_000))
    before = standard.eval()(rows(3))
    spoiled = rows(2)
    spoiled[7] = torch.tensor([1e30, -1e30, 7.0])
    standard.train()(spoiled)
    after = standard.eval()(rows(3))
    assert (after[:, :2].std(0) > 0.5 * before[:, :2].std(0)).all()


@pytest.mark.parametrize("count", [3, 16, 400])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_outliers_of_the_first_batch_do_not_hide_what_comes_after(count, share):
    standard = Standard(3).train()
    spoiled = rows(2, count)
    spoiled[: max(1, int(share * count))] = torch.tensor([1e30, -3e38, 1e30])
    standard(spoiled)
    for seed in range(3, 6):
        standard(rows(seed))
    after = standard.eval()(rows(6))
    assert (after[:, :2].std(0) > 0.01).all()
    assert after.isfinite().all()


def test_a_number_that_rarely_differs_is_no_outlier_of_the_first_batch():
    standard = Standard(3).train()
    bits = torch.zeros(400, 3)
    bits[::50, 1] = 1.0
    bits[::100, 2] = -20.0
    standard(bits)
    deviation = bits.std(0, correction=0)
    wanted = ((bits - bits.mean(0)) / deviation.clamp(min=1e-4)).clamp(-10, 10)
    torch.testing.assert_close(standard.eval()(bits), wanted)


@pytest.mark.parametrize("outlier", [100.0, 1e6, 1e30, -1e30])
@pytest.mark.parametrize("num_outliers", [1, 100])
def test_outliers_of_the_first_batch_are_soon_no_part_of_the_units(
    outlier, num_outliers
):
    standard = Standard(3).train()
    first = torch.from_numpy(np.random.default_rng(1).normal(size=(1280, 3))).float()
    first[-num_outliers:] = outlier
    standard(first)
    clean = torch.from_numpy(np.random.default_rng(2).normal(size=(1280, 3))).float()
    at_once = standard.eval()(clean).std(0)
    assert (at_once > (0.6 if num_outliers == 1 else 0.15)).all()
    standard.train()
    for _ in range(100):
        standard(clean)
    assert (standard.eval()(clean).std(0) > 0.8).all()


def test_a_first_batch_of_one_row_is_taken():
    standard = Standard(3).train()
    standard(rows(1, 1))
    for seed in range(20):
        standard(rows(seed))
    assert (standard.eval()(rows(99))[:, :2].std(0) > 0.5).all()


def test_a_network_without_rows_again_has_a_first_batch_again():
    standard = Standard(3).train()
    standard(rows(1))
    standard.load_state_dict(Standard(3).state_dict())
    spoiled = rows(2)
    spoiled[7] = 1e30
    standard(spoiled)
    assert (standard.eval()(rows(3))[:, :2].std(0) > 0.5).all()


def test_a_unit_that_changes_is_followed_within_batches():
    standard = Standard(3).train()
    standard(rows(1))
    for seed in range(20):
        standard(1e6 * rows(seed))
    assert (standard.eval()(1e6 * rows(99))[:, :2].abs() < 10).all()


def test_rows_that_are_seen_again_are_not_counted():
    net = MlpConfig(standardizes=True).build(WANTED).train()
    net.answer({"observation": rows(1)}, {})
    with uncounted(net):
        with uncounted(net):
            net.answer({"observation": rows(2)}, {})
        net.answer({"observation": rows(3)}, {})
    counts = [one.num_rows.item() for one in net.modules() if isinstance(one, Standard)]
    assert counts == [400]
    net.answer({"observation": rows(4)}, {})
    counts = [one.num_rows.item() for one in net.modules() if isinstance(one, Standard)]
    assert counts == [800]


def test_only_rows_of_the_mask_are_counted():
    net = MlpConfig(standardizes=True).build(WANTED).train()
    (standard,) = (one for one in net.modules() if isinstance(one, Standard))
    mask = torch.arange(400) % 4 == 0
    with counting(net, mask.reshape(20, 20)):
        net.answer({"observation": rows(1)}, {})
        with uncounted(net):
            net.answer({"observation": rows(2)}, {})
    alone = Standard(3).train()
    alone(rows(1)[mask])
    assert standard.num_rows.item() == 100
    assert torch.equal(standard.total, alone.total)
    with counting(net, torch.zeros(400, dtype=torch.bool)):
        net.answer({"observation": rows(3)}, {})
    assert standard.num_rows.item() == 100
    with counting(net, None):
        net.answer({"observation": rows(3)}, {})
    assert standard.num_rows.item() == 500


@pytest.mark.parametrize("lstm_units", [0, 8])
def test_a_network_answers_by_units(lstm_units):
    torch.manual_seed(1)
    config = MlpConfig(lstm_units=lstm_units, standardizes=True)
    net = config.build(WANTED).train()
    state = {n: torch.from_numpy(s.zeros(400)) for n, s in net.signature.state.items()}
    first = net.answer({"observation": rows(1)}, state)[0]["value"]
    net.eval()
    # The same numbers in other units are the same to it.
    other = config.build(WANTED)
    weights = net.state_dict()
    scale = torch.tensor([10.0, 0.5, 3.0])
    (prefix,) = {name.removesuffix("total") for name in weights if "total" in name}
    weights[f"{prefix}total"] = weights[f"{prefix}total"] * scale
    weights[f"{prefix}squares"] = weights[f"{prefix}squares"] * scale.square()
    other.load_state_dict(weights)
    found = other.eval().answer({"observation": rows(1) * scale}, state)[0]["value"]
    torch.testing.assert_close(found, first.detach(), rtol=0, atol=1e-4)
    assert first.std() > 0


def test_what_is_kept_is_of_the_statistics_as_they_are():
    """Units are worked out once for each statistics: whoever changes these."""
    standard = Standard(3).train()
    standard(rows(1))
    standard.eval()
    before = standard(rows(3))
    other = deepcopy(standard)
    for change in (
        lambda: other.train()(rows(2)),
        lambda: other.total.mul_(1.5),
        lambda: other.load_state_dict(Standard(3).state_dict()),
        lambda: other.register_buffer("total", torch.ones(3, dtype=torch.float64)),
    ):
        change()
        fresh = Standard(3).eval()
        fresh.load_state_dict(other.state_dict())
        assert torch.equal(other.eval()(rows(3)), fresh(rows(3)))
        assert torch.equal(standard(rows(3)), before)


def test_what_inference_saw_has_gradients_afterwards():
    standard = Standard(3).train()
    standard(rows(1))
    standard.eval()
    with torch.inference_mode():
        standard(rows(2))
    few = rows(3).requires_grad_()
    standard(few).sum().backward()
    assert few.grad.abs().sum() > 0


def test_a_graph_works_its_units_out_of_the_statistics():
    """Units that were kept before the export are no constants of the graph."""
    net = MlpConfig(standardizes=True).build(WANTED).train()
    net.answer({"observation": rows(1)}, {})
    net.eval().answer({"observation": rows(2)}, {})
    model = trace(InferenceHead(net).eval(), net.signature)
    names = {tensor.name for tensor in model.graph.initializer}
    statistics = {name for name, _ in net.named_buffers()}
    assert len(statistics) == 3
    assert statistics <= names
