"""The residual network: shapes, masking, what each head can see."""

import copy

import pytest
import torch

from tengen.nets import InferenceHead, ResNetConfig
from tengen.nets.modules.norm import BoardNorm
from tengen.tensors import BoardSpec

LAYOUTS = {
    "cells": (9, 9, 81),
    "cells_and_pass": (9, 9, 82),
    "columns": (6, 7, 7),
    "flat": (4, 5, 11),
}


def make_features(layout):
    height, width, num_actions = LAYOUTS[layout]
    return BoardSpec(
        num_planes=3,
        height=height,
        width=width,
        num_actions=num_actions,
        policy_layout=layout,
    )


def make_net(layout, **fields):
    torch.manual_seed(0)
    config = ResNetConfig(num_blocks=2, num_channels=16, head_channels=8, **fields)
    return config.build(make_features(layout).signature)


def make_planes(rows, height, width):
    generator = torch.Generator().manual_seed(1)
    planes = torch.randint(0, 2, (rows, 3, height, width), generator=generator).float()
    planes[:, 0] = 1.0
    return planes


@pytest.mark.parametrize("layout", LAYOUTS)
def test_shapes_and_dtypes_of_every_layout(layout):
    height, width, num_actions = LAYOUTS[layout]
    net = make_net(layout)
    policy, value_logits = net(make_planes(5, height, width))
    assert policy.shape == (5, num_actions)
    assert value_logits.shape == (5, 3)
    assert policy.dtype == value_logits.dtype == torch.float32


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_path_without_masks_computes_what_the_masked_one_does(layout):
    height, width, _ = LAYOUTS[layout]
    planes = make_planes(5, height, width)
    plain, masked = make_net(layout), make_net(layout, mixed_sizes=True)
    for a, b in zip(plain(planes), masked(planes), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    # Training has just moved the running statistics of both by the same batch.
    for a, b in zip(plain.buffers(), masked.buffers(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    masked.load_state_dict(plain.state_dict())
    plain.eval(), masked.eval()
    for a, b in zip(plain(planes), masked(planes), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("training", [True, False])
def test_a_small_board_inside_large_planes_is_the_small_board(training):
    small = make_planes(4, 6, 7)
    large = torch.zeros(4, 3, 9, 9)
    large[:, :, :6, :7] = small
    # Whatever lies beyond the board in the other planes is the game's to define.
    net = make_net("cells", mixed_sizes=True).train(training)
    twin = copy.deepcopy(net)
    policy, value = net(small)
    policy_large, value_large = twin(large)
    cut = policy_large.view(4, 9, 9)[:, :6, :7].flatten(1)
    torch.testing.assert_close(policy, cut, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(value, value_large, rtol=1e-4, atol=1e-5)
    for a, b in zip(net.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_one_network_takes_every_board_size():
    net = make_net("cells_and_pass").eval()
    for side in (5, 9, 13):
        policy, value = net(make_planes(2, side, side))
        assert policy.shape == (2, side * side + 1)
        assert value.shape == (2, 3)


def test_every_cell_of_the_board_reaches_every_logit_through_pooling():
    side = 19  # far wider than the convolutions see
    net = make_net("cells_and_pass").eval()
    planes = make_planes(1, side, side).requires_grad_()
    policy, value = net(planes)
    (gradient,) = torch.autograd.grad(policy[0, 0], planes, retain_graph=True)
    assert (gradient[0, 1:, -1, -1] != 0).all()
    (gradient,) = torch.autograd.grad(value[0, 0], planes)
    assert (gradient[0, 1:, -1, -1] != 0).all()


def test_a_column_logit_sees_each_cell_of_its_column():
    net = make_net("columns").eval()
    planes = make_planes(1, 6, 7)
    policy, _ = net(planes)
    for row in range(6):
        changed = planes.clone()
        changed[0, 1, row, 3] = 1.0 - changed[0, 1, row, 3]
        assert net(changed)[0][0, 3] != policy[0, 3]


def test_bfloat16_is_near_float32_and_heads_stay_float32():
    net = make_net("cells").eval()
    planes = make_planes(8, 9, 9)
    policy, value = net(planes)
    net.compute_dtype = torch.bfloat16
    policy_low, value_low = net(planes)
    assert policy_low.dtype == value_low.dtype == torch.float32
    assert not torch.equal(policy, policy_low)
    torch.testing.assert_close(policy, policy_low, rtol=0.1, atol=0.1)
    torch.testing.assert_close(value, value_low, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("mixed_sizes", [False, True])
@pytest.mark.parametrize("auxiliary", [False, True])
def test_norms_between_convolutions_are_folded(mixed_sizes, auxiliary):
    net = make_net("cells", mixed_sizes=mixed_sizes, auxiliary=auxiliary).eval()
    generator = torch.Generator().manual_seed(2)
    for module in net.modules():
        if isinstance(module, BoardNorm):
            for tensor in (*module.parameters(), *module.buffers()):
                drawn = torch.rand(tensor.shape, generator=generator)
                tensor.detach().copy_(drawn + 0.5)
    planes = make_planes(8, 9, 9)
    if mixed_sizes:
        planes[:4, 0, :, 7:] = 0.0
        planes *= planes[:, :1]
    with torch.inference_mode():
        wanted = net(planes)
        net.fold_norms()
        pooling, plain = net.blocks
        assert pooling.folded is None or plain.folded is None
        folded = [b.folded for b in net.blocks if b.folded is not None]
        assert len(folded) == 1
        found = net(planes)
        net.fix_dtype(torch.bfloat16)
        near = net(planes)
    assert folded[0].weight.dtype == torch.bfloat16
    for answer, exact in zip(found, wanted, strict=True):
        torch.testing.assert_close(answer, exact, rtol=1e-4, atol=1e-4)
    for answer, exact in zip(near, wanted, strict=True):
        torch.testing.assert_close(answer, exact, rtol=0.1, atol=0.2)


def test_value_to_play_is_win_minus_loss():
    net = make_net("cells").eval()
    planes = make_planes(8, 9, 9)
    policy, value = InferenceHead(net)(planes)
    logits, outcome_logits = net(planes)
    win, _, loss = outcome_logits.softmax(1).unbind(1)
    assert torch.equal(policy, logits)
    torch.testing.assert_close(value, win - loss)
    assert value.shape == (8,)
    assert (value.abs() <= 1).all()


def test_inference_head_shares_parameters():
    net = make_net("cells")
    head = InferenceHead(net)
    assert {id(p) for p in head.parameters()} == {id(p) for p in net.parameters()}


def test_boards_of_two_sizes_in_one_batch_keep_apart():
    net = make_net("cells", mixed_sizes=True).eval()
    planes = make_planes(2, 9, 9)
    planes[0, :, 6:] = 0
    planes[0, :, :, 6:] = 0
    both = net(planes)[1]
    alone = torch.cat([net(planes[:1])[1], net(planes[1:])[1]])
    torch.testing.assert_close(both, alone, rtol=1e-5, atol=1e-6)
