"""What a network for environments keeps: past images, an LSTM; no torch here."""

from __future__ import annotations

from dataclasses import dataclass

from tengen.bounds import bounded
from tengen.nets.config import NetConfig
from tengen.nets.inputs import MAX_UNITS, images_of
from tengen.tensors import FRAMES, Signature, TensorSpec

__all__ = ["MemoryConfig"]


@dataclass(frozen=True, kw_only=True)
class MemoryConfig(NetConfig):
    """A network that may see past images and have an LSTM; the part that they share."""

    num_frames: int = bounded(1, 1, 64, "use 4 for Atari")
    """Images S that the network sees at once, the newest and those of the steps before;
    black ones before an episode's first. A step is sent and stored with one of them."""
    lstm_units: int = bounded(0, 0, MAX_UNITS, "use 64, or 256 for images")
    """Units of an LSTM behind the torso; 0: none."""
    lstm_forget_bias: float = bounded(1.0, 0, 10, "use 1, or 0")
    """Added to the first bias of the LSTM's forget gate, which torch draws around 0. At
    0 the cell loses half of what it holds, and of its gradient, at every step; at 1 it
    keeps three quarters, so that what was seen twenty steps ago can be learned."""

    def state(self, wanted: Signature) -> dict[str, TensorSpec]:
        """Returns the images before, and the LSTM's state; none without either."""
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
