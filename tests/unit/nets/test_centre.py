"""Pictures are seen without their mean, in training and by inference alike."""

import numpy as np
import pytest
import torch

from tengen.nets.impala import ImpalaConfig
from tengen.nets.modules import centre as module
from tengen.nets.modules.centre import Centre
from tengen.nets.modules.standard import WINDOW_ROWS
from tengen.nets.nature import NatureConfig
from tengen.tensors import Signature, TensorSpec

WANTED = Signature(
    inputs={"observation": TensorSpec(dtype="uint8", shape=(2, 12, 12))},
    outputs={"q": TensorSpec(shape=(3,))},
)
NETS = (
    NatureConfig(channels=(4,), kernels=(3,), strides=(1,), num_units=8),
    ImpalaConfig(channels=(4,), num_units=8),
)


def pictures(num_rows, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (num_rows, 2, 12, 12)
    return torch.randint(0, 100, shape, dtype=torch.uint8, generator=generator)


def answer(net, seen):
    return net.answer({"observation": seen}, {})[0]["q"]


def test_the_mean_is_of_all_rows_and_is_rounded():
    centre = Centre(2, 12, 12)
    parts = [pictures(n, seed=n) for n in (5, 1, 30)]
    for part in parts:
        found = centre(part, torch.float32)
    whole = torch.cat(parts).numpy().astype(np.float64)
    mean = whole.mean(axis=0)
    np.testing.assert_allclose(centre.mean[0], mean, rtol=1e-5)
    np.testing.assert_array_equal(found, parts[-1].numpy() - np.rint(mean))
    # In evaluation it stays; differences of bytes are exact in bfloat16.
    centre.eval()
    seen = pictures(4, seed=9)
    exact = centre(seen, torch.float32)
    assert torch.equal(centre(seen, torch.bfloat16).float(), exact)
    np.testing.assert_allclose(centre.mean[0], mean, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("lies", ["first", "last", "strided"])
def test_the_core_sees_what_torch_sees(dtype, lies, monkeypatch):
    seen = pictures(7) + 100
    if lies == "last":
        seen = seen.contiguous(memory_format=torch.channels_last)
    elif lies == "strided":
        seen = pictures(14)[::2] + 100
    core, plain = Centre(2, 12, 12), Centre(2, 12, 12)
    mine = [core(seen, dtype), core.eval()(pictures(3, seed=1), dtype)]
    monkeypatch.setattr(module, "_is_for_the_core", lambda *_: False)
    theirs = [plain(seen, dtype), plain.eval()(pictures(3, seed=1), dtype)]
    for one, other in zip(mine, theirs, strict=True):
        assert one.dtype == other.dtype == dtype
        assert one.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(one, other)
    assert torch.equal(core.total, plain.total)
    assert core.num_rows == plain.num_rows == 7


def test_the_mean_over_copies_is_one_over_all_their_rows():
    # As a learner does it: copies begin alike, and their buffers are averaged.
    copies = [Centre(2, 12, 12) for _ in range(3)]
    parts = [pictures(3, seed=1), pictures(9, seed=2)]
    for copy, part in zip(copies, parts, strict=False):  # the third had no rows
        copy(part, torch.float32)
    merged = Centre(2, 12, 12)
    for name, buffer in merged.named_buffers():
        buffer.copy_(sum(copy.get_buffer(name) for copy in copies) / len(copies))
    whole = torch.cat(parts).float().mean(0)
    torch.testing.assert_close(merged.mean[0], whole)


def test_another_background_after_a_million_rows_is_followed():
    centre = Centre(2, 12, 12)
    centre.num_rows.fill_(WINDOW_ROWS)
    rows = pictures(50_000) + 50
    for _ in range(8):
        centre(rows, torch.float32)
    assert centre.num_rows == WINDOW_ROWS + 50_000
    # The share of the old mean, 0, is (1 / 1.05) to the power of 8.
    wanted = rows.float().mean(0) * (1 - 1.05**-8)
    torch.testing.assert_close(centre.mean[0], wanted, rtol=1e-3, atol=0)


@pytest.mark.parametrize("config", NETS, ids=lambda config: config.kind)
def test_a_background_changes_no_answer(config):
    background = pictures(1, seed=5)
    answers = []
    for behind in (torch.zeros_like(background), background):
        torch.manual_seed(3)
        net = config.build(WANTED)
        for seed in range(3):
            answer(net, pictures(16, seed) + behind)
        net.eval()
        answers.append(answer(net, pictures(4, seed=7) + behind))
        # Inference has its weights in another form.
        net.fix_dtype(torch.float32)
        fixed = answer(net, pictures(4, seed=7) + behind)
        torch.testing.assert_close(fixed, answers[-1], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(*answers)


def test_weights_of_before_answer_as_they_did():
    net = NETS[0].build(WANTED)
    seen = pictures(4)
    old = {n: t for n, t in net.state_dict().items() if "centres" not in n}
    expected = answer(net.eval(), seen)
    net.train()
    answer(net, seen)
    net.load_state_dict(old)
    answer(net, seen)
    assert torch.equal(answer(net.eval(), seen), expected)
    assert "torso.centres.0.total" not in old
