"""Names, order and numbers of first weights and answers, as they were recorded.

The numbers are compared and not their bits, which depend on the machine.
"""

import hashlib

import pytest
import torch

from tengen.nets import InferenceHead, MlpConfig, ResNetConfig
from tengen.tensors import BoardSpec, Signature, TensorSpec

# The hash of names and shapes in order, and sums of weights and of each answer.
BOARDS = {
    False: ("01a13545ec2df11d", -16.615363, [0.05341, -0.17983]),
    True: ("c164928e3e02918e", -16.103236, [5.89638, -0.01116, -4.4404]),
}
AUXILIARY = [5.02727, -0.48968, 0.79508, -0.30273, -1.7932, -0.5651]
VECTOR = ("20b3235ed60b7030", 1.406931, [0.00753, -0.0017])


def weighted_sum(tensor):
    """A sum that no two orders of the numbers share."""
    numbers = tensor.detach().double().flatten()
    return float(numbers @ torch.arange(len(numbers)).double().cos())


def sums_of(net):
    state = net.state_dict()
    names = repr([(name, tuple(tensor.shape)) for name, tensor in state.items()])
    return (
        hashlib.sha256(names.encode()).hexdigest()[:16],
        sum(map(weighted_sum, state.values())),
    )


@pytest.mark.parametrize("auxiliary", [False, True])
def test_a_resnet_is_as_recorded(auxiliary):
    board = BoardSpec(
        num_planes=3,
        height=6,
        width=6,
        num_actions=37,
        policy_layout="cells_and_pass",
        max_score=20 * auxiliary,
    )
    config = ResNetConfig(
        num_blocks=3,
        num_channels=16,
        head_channels=8,
        auxiliary=auxiliary,
        lead=auxiliary,
    )
    torch.manual_seed(7)
    net = config.build(board.signature).eval()
    names, weights, answers = BOARDS[auxiliary]
    assert sums_of(net) == (names, pytest.approx(weights, abs=1e-5))
    planes = torch.randn(5, 3, 6, 6)
    planes[:, 0] = 1.0
    found = [weighted_sum(answer) for answer in InferenceHead(net)(planes)]
    assert found == pytest.approx(answers, abs=1e-4)
    extra = [weighted_sum(answer) for answer in net.learn(planes)[2] or ()]
    assert extra == pytest.approx(AUXILIARY if auxiliary else [], abs=1e-4)


def test_an_mlp_is_as_recorded():
    wanted = Signature(
        inputs={"observation": TensorSpec(shape=(4,))},
        outputs={"policy": TensorSpec(shape=(3,)), "value": TensorSpec()},
    )
    torch.manual_seed(7)
    net = MlpConfig(num_layers=2, num_units=32).build(wanted)
    names, weights, answers = VECTOR
    assert sums_of(net) == (names, pytest.approx(weights, abs=1e-5))
    found = [weighted_sum(answer) for answer in InferenceHead(net)(torch.randn(5, 4))]
    assert found == pytest.approx(answers, abs=1e-4)
