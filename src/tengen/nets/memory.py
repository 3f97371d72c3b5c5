"""Base classes for the configs of networks for environments.

An input with three axes is an image. Its channel axis is the shorter of the first and
the last axis, or the first if both are equal. All other inputs, such as vectors and the
last action and reward, are flattened. Does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass

from tengen.bounds import bounded
from tengen.config import check
from tengen.errors import UsageError
from tengen.nets.config import NetConfig
from tengen.tensors import AGENT_ID, FRAMES, Signature, TensorSpec

# Upper bounds of settings; larger values are assumed to be typing errors.
MAX_CHANNELS = 2048
MAX_UNITS = 16_384

MAX_UINT8 = 255.0
"""Maximum of uint8, the divisor of uint8 pixels."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """The size and axis order of an image input."""

    num_channels: int
    """Number of channels of the image, C."""
    height: int
    """Number of rows of the image, H."""
    width: int
    """Number of columns of the image, W."""
    is_channel_first: bool
    """Whether the axes are ``[C, H, W]``; otherwise they are ``[H, W, C]``."""


def images_of(wanted: Signature) -> dict[str, Image]:
    """Returns the image inputs of a signature by name, in the order of the inputs."""
    return {
        name: _image(*spec.shape)
        for name, spec in wanted.inputs.items()
        if len(spec.shape) == 3
    }


def check_environment(config: NetConfig, wanted: Signature) -> None:
    """Checks that a network for environments can have the signature ``wanted``.

    Raises:
        UsageError: The task is a board game, or has a single agent although the config
            asks for one network per agent.
    """
    check(
        wanted.board is None,
        "net.kind",
        config.kind,
        "has no outputs for board games; choose a network for boards, such as resnet",
    )
    check(
        config.shares_parameters or AGENT_ID in wanted.inputs,
        "net.shares_parameters",
        config.shares_parameters,
        "must be true unless the environment has several agents; leave it out",
    )


def check_images(config: NetConfig, wanted: Signature) -> dict[str, Image]:
    """Returns the image inputs of ``wanted``, after checking that it has some.

    Raises:
        UsageError: No input is an image, or the task is a board game.
    """
    check_environment(config, wanted)
    images = images_of(wanted)
    if not images:
        shown = ", ".join(
            f"{name} {spec.shape}" for name, spec in wanted.inputs.items()
        )
        raise UsageError(
            f"net.kind ({config.kind}) needs images with three axes, and there is only "
            f"{shown}; choose mlp"
        )
    return images


def _image(first: int, middle: int, last: int) -> Image:
    if first <= last:
        return Image(
            num_channels=first, height=middle, width=last, is_channel_first=True
        )
    return Image(num_channels=last, height=first, width=middle, is_channel_first=False)


@dataclass(frozen=True, kw_only=True)
class MemoryConfig(NetConfig):
    """Base class of configs of networks that can stack past images and have an LSTM."""

    num_frames: int = bounded(1, 1, 64, "use 4 for Atari")
    """Number S of stacked images that the network reads, 1 to 64: the newest image and
    those of the S - 1 previous steps. Images before the start of the episode are black.
    Actors send and store only the newest image of each step."""
    lstm_units: int = bounded(0, 0, MAX_UNITS, "use 64, or 256 for images")
    """Number of units of an LSTM after the torso, 0 to 16384; 0: no LSTM."""
    lstm_forget_bias: float = bounded(1.0, 0, 10, "use 1, or 0")
    """Number added to the initial bias of the LSTM's forget gate, which torch samples
    around 0; 0 to 10. With 0 the cell loses about half of its content and of its
    gradient at every step. With 1 the cell retains about three quarters, so the LSTM
    can learn dependencies over twenty steps."""

    standardizes: bool = False
    """Whether to standardize inputs that are not images: to subtract their running mean
    and divide by their running standard deviation, computed from training data."""
    shares_parameters: bool = True
    """Whether all agents of an environment share one network. If not, each agent has a
    network of its own, with its own statistics of inputs, and its own critic with
    ``mappo`` and ``masac``. All agents share the mixer of ``qmix`` and the novelty
    networks of ``rnd``."""

    def state(self, wanted: Signature) -> dict[str, TensorSpec]:
        """Returns the specs of the network's state: past images and LSTM state."""
        state = {}
        if self.num_frames > 1:
            for name in images_of(wanted):
                image = wanted.inputs[name]
                shape = (self.num_frames - 1, *image.shape)
                state[FRAMES + name] = TensorSpec(dtype=image.dtype, shape=shape)
        if self.lstm_units:
            spec = TensorSpec(shape=(self.lstm_units,))
            state |= {"lstm/hidden": spec, "lstm/cell": spec}
        return state


@dataclass(frozen=True, kw_only=True)
class ImageConfig(MemoryConfig):
    """Base class of configs of networks with image inputs."""

    pixel_scale: float | tuple[float, ...] = bounded(
        1.0, 0, above=True, rule="must be positive; use 255"
    )
    """Divisor of the pixels of images that are not uint8, above 0: one number for all
    images, or one number per image. Pixels in uint8 are divided by 255."""

    def pixel_scales(self, wanted: Signature) -> dict[str, float]:
        """Returns the divisor of each image's pixels, by the image's name.

        Raises:
            UsageError: The number of scales differs from the number of images.
        """
        images, scales = images_of(wanted), self.pixel_scale
        if not isinstance(scales, tuple):
            scales = (scales,) * len(images)
        check(
            len(scales) == len(images),
            "net.pixel_scale",
            self.pixel_scale,
            f"must be one number, or {len(images)}, one per image; use 255",
        )
        return {
            name: MAX_UINT8 if wanted.inputs[name].dtype == "uint8" else scale
            for name, scale in zip(images, scales, strict=True)
        }
