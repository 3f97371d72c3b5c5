"""From a config to a network, and from a network to what actors ask for."""

from __future__ import annotations

from torch import Tensor, nn

from tengen.nets.mlp import Mlp
from tengen.nets.resnet import ResNet
from tengen.nets.spec import FeatureSpec, MlpConfig, NetConfig

__all__ = ["InferenceHead", "build_net"]


def build_net(features: FeatureSpec, config: NetConfig) -> ResNet | Mlp:
    """Returns a new network with random weights from torch's generator.

    Args:
        features: Shapes of observation and policy.
        config: Which network, and its size.
    """
    if isinstance(config, MlpConfig):
        return Mlp(features, config)
    return ResNet(features, config)


class InferenceHead(nn.Module):
    """A network as inference runs it: one policy and one value a row.

    Shares the network's parameters. Put it in evaluation mode before exporting.
    """

    def __init__(self, net: ResNet | Mlp) -> None:
        """Wraps ``net`` without copying it."""
        super().__init__()
        self.net = net
        self.has_outcome = isinstance(net, ResNet)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Returns policy logits and the value to play.

        Args:
            planes: ``[B, C, H, W]`` float32, or ``[B, C]`` for a vector network.

        Returns:
            ``[B, A]`` float32 logits, and ``[B]`` float32: p(win) - p(loss) in
            [-1, 1] for the side to move, or the unbounded baseline of a vector
            network.
        """
        policy, value = self.net(planes)
        if self.has_outcome:
            outcome = value.softmax(1)
            value = outcome[:, 0] - outcome[:, 2]
        return policy, value
