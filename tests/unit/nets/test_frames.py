"""Stacks of past images against a loop that keeps a list of them."""

import numpy as np
import pytest
import torch

from tengen.nets.modules.torso_net import FrameStack
from tengen.nets.nature import NatureConfig
from tengen.tensors import FRAMES, Signature, TensorSpec

NUM_ENVS = 3
# Channels first and last.
SHAPES = [(2, 5, 4), (1, 5, 4), (5, 4, 2)]


def signature_of(shape):
    image = TensorSpec(dtype="uint8", shape=shape)
    return Signature(
        inputs={"observation": image, "last_reward": TensorSpec()},
        outputs={"value": TensorSpec()},
    )


def by_lists(images, is_first, num_frames, axis):
    """``[T, B, ...]`` stacks, one image after the other."""
    black = torch.zeros_like(images[0, 0])
    stacks = []
    lists = [[black] * num_frames for _ in range(images.shape[1])]
    for step, begun in enumerate(is_first):
        for copy, kept in enumerate(lists):
            if begun[copy]:
                kept[:] = [black] * num_frames
            kept[:] = [*kept[1:], images[step, copy]]
        stacks.append(torch.stack([torch.cat(kept, dim=axis) for kept in lists]))
    return torch.stack(stacks)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("num_frames", [2, 4])
@pytest.mark.parametrize("num_steps", [1, 2, 3, 12])
def test_stacks_are_those_of_a_list(shape, num_frames, num_steps):
    torch.manual_seed(num_steps)
    wanted = signature_of(shape)
    stack = FrameStack(wanted, num_frames)
    total = num_frames + num_steps
    images = torch.randint(1, 255, (total, NUM_ENVS, *shape), dtype=torch.uint8)
    is_first = torch.rand(total, NUM_ENVS) < 0.25
    axis = 0 if shape[0] < shape[2] else 2
    expected = by_lists(images, is_first, num_frames, axis)
    inputs = {"observation": images, "last_reward": torch.zeros(total, NUM_ENVS)}
    name = FRAMES + "observation"
    state = {name: torch.zeros(NUM_ENVS, num_frames - 1, *shape, dtype=torch.uint8)}
    # The first part one step after the other, as an actor sees it.
    for step in range(num_frames):
        rows = {key: column[step] for key, column in inputs.items()}
        state[name][is_first[step]] = 0
        seen, state = stack.push(rows, state)
        assert torch.equal(seen["observation"], expected[step])
    # The rest at once, as a learner does.
    rest = {key: column[num_frames:] for key, column in inputs.items()}
    seen, kept = stack.unroll(rest, state, is_first[num_frames:])
    assert torch.equal(seen["observation"], expected[num_frames:])
    assert seen["observation"].shape[2:] == stack.seen(wanted)["observation"].shape
    before = stack.before(rest, state, is_first[num_frames:])[name]
    for step in range(num_steps):
        rows = {key: column[step] for key, column in rest.items()}
        again, last = stack.push(rows, {name: before[step]})
        assert torch.equal(again["observation"], expected[num_frames + step])
    assert torch.equal(kept[name], last[name])


def test_a_network_answers_alike_by_steps_and_by_unrolls():
    torch.manual_seed(0)
    wanted = Signature(
        inputs={"observation": TensorSpec(dtype="uint8", shape=(1, 36, 36))},
        outputs={"value": TensorSpec(), "policy": TensorSpec(shape=(3,))},
    )
    for lstm_units in (0, 8):
        config = NatureConfig(num_frames=4, lstm_units=lstm_units)
        net = config.build(wanted).eval()
        assert set(net.signature.state) >= {FRAMES + "observation"}
        images = torch.randint(0, 255, (9, 2, 1, 36, 36), dtype=torch.uint8)
        is_first = torch.tensor([[0, 1], [0, 0], [1, 0]] * 3, dtype=torch.bool)
        state = {
            name: torch.from_numpy(np.asarray(spec.zeros(2)))
            for name, spec in net.signature.state.items()
        }
        with torch.no_grad():
            at_once, after = net.unroll({"observation": images}, state, is_first)
            for step in range(len(images)):
                for tensor in state.values():
                    tensor[is_first[step]] = 0
                answer, state = net.answer({"observation": images[step]}, state)
                for name, tensor in answer.items():
                    torch.testing.assert_close(at_once[name][step], tensor)
        for name, tensor in state.items():
            torch.testing.assert_close(after[name], tensor)
        # What is before the newest matters.
        blind = dict(state)
        blind[FRAMES + "observation"] = torch.zeros_like(state[FRAMES + "observation"])
        with torch.no_grad():
            seen, _ = net.answer({"observation": images[-1]}, state)
            unseen, _ = net.answer({"observation": images[-1]}, blind)
        assert not torch.equal(seen["value"], unseen["value"])
