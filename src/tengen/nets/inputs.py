"""How networks for environments read named inputs. Imports no torch.

An input with three axes is an image. Its channels are taken to be the shorter of the
first and the last axis, or the first where both are equal. All other inputs, such as
vectors and the last action and reward, are flattened.
"""

from __future__ import annotations

from dataclasses import dataclass

from tengen.config import check
from tengen.errors import UsageError
from tengen.nets.config import NetConfig
from tengen.tensors import Signature

__all__ = [
    "MAX_CHANNELS",
    "MAX_UINT8",
    "MAX_UNITS",
    "Image",
    "check_images",
    "check_no_board",
    "images_of",
]

# A network that needs more is a typing error.
MAX_CHANNELS = 2048
MAX_UNITS = 16_384

MAX_UINT8 = 255.0
"""The greatest byte, which networks see as 1."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """The layout of an input with three axes."""

    num_channels: int
    """Number of channels."""
    height: int
    """Number of rows."""
    width: int
    """Number of columns."""
    is_channel_first: bool
    """Whether the axes are ``[C, H, W]``; otherwise they are ``[H, W, C]``."""


def images_of(wanted: Signature) -> dict[str, Image]:
    """Returns the images among the inputs, in their order."""
    return {
        name: _image(*spec.shape)
        for name, spec in wanted.inputs.items()
        if len(spec.shape) == 3
    }


def check_no_board(config: NetConfig, wanted: Signature) -> None:
    """Checks that the task is an environment and not a board game.

    Raises:
        UsageError: The task is a board game.
    """
    check(
        wanted.board is None,
        "net.kind",
        config.kind,
        "knows no outcome of a board game; choose a network for boards, as resnet",
    )


def check_images(config: NetConfig, wanted: Signature) -> dict[str, Image]:
    """Returns the images among the inputs of a network for images.

    Raises:
        UsageError: There is no image, or the task is a board game.
    """
    check_no_board(config, wanted)
    images = images_of(wanted)
    if not images:
        shown = ", ".join(
            f"{name} {spec.shape}" for name, spec in wanted.inputs.items()
        )
        raise UsageError(
            f"net.kind ({config.kind}) reads images, of three axes, and there is only "
            f"{shown}; choose mlp"
        )
    return images


def _image(first: int, middle: int, last: int) -> Image:
    if first <= last:
        return Image(
            num_channels=first, height=middle, width=last, is_channel_first=True
        )
    return Image(num_channels=last, height=first, width=middle, is_channel_first=False)
