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
    """A network as inference runs it: one policy, one value, perhaps one score a row.

    Shares the network's parameters. Put it in evaluation mode before exporting.

    Attributes:
        net: The network.
        answers_score: Whether it answers with the score too.
    """

    def __init__(self, net: ResNet | Mlp, *, scores: bool = False) -> None:
        """Wraps ``net`` without copying it.

        Args:
            net: The network.
            scores: Whether to answer with the score where the network estimates it.
        """
        super().__init__()
        self.net = net
        self.has_outcome = isinstance(net, ResNet)
        self.answers_score = scores and isinstance(net, ResNet) and net.has_score

    def forward(self, planes: Tensor) -> tuple[Tensor, ...]:
        """Returns policy logits and the value to play, and perhaps the score.

        Args:
            planes: ``[B, C, H, W]`` float32, or ``[B, C]`` for a vector network.

        Returns:
            ``[B, A]`` float32 logits, and ``[B]`` float32: p(win) - p(loss) in
            [-1, 1] for the side to move, or the unbounded baseline of a vector
            network. With ``answers_score`` ``[B, 2]`` float32 besides: mean and
            standard deviation of the final score in points, for the side to move.
        """
        if self.answers_score:
            assert isinstance(self.net, ResNet)
            policy, value, score = self.net.estimate(planes)
            return policy, _expected(value), score
        policy, value = self.net(planes)
        return policy, _expected(value) if self.has_outcome else value


def _expected(outcome: Tensor) -> Tensor:
    """Returns p(win) - p(loss) ``[B]`` of logits ``[B, 3]``."""
    share = outcome.softmax(1)
    return share[:, 0] - share[:, 2]
