"""What a network for environments remembers: the config of its LSTM; no torch here."""

from __future__ import annotations

from dataclasses import dataclass

from tengen.bounds import bounded
from tengen.nets.config import NetConfig
from tengen.nets.inputs import MAX_UNITS
from tengen.tensors import TensorSpec

__all__ = ["MemoryConfig"]


@dataclass(frozen=True, kw_only=True)
class MemoryConfig(NetConfig):
    """A network whose torso an LSTM may stand behind; the part that they share."""

    lstm_units: int = bounded(0, 0, MAX_UNITS, "use 64, or 256 for images")
    """Units of an LSTM behind the torso; 0: none."""
    lstm_forget_bias: float = bounded(1.0, 0, 10, "use 1, or 0")
    """Added to the first bias of the LSTM's forget gate, which torch draws around 0. At
    0 the cell loses half of what it holds, and of its gradient, at every step; at 1 it
    keeps three quarters, so that what was seen twenty steps ago can be learned."""

    def state(self) -> dict[str, TensorSpec]:
        """Returns the LSTM's state; none without one."""
        if self.lstm_units == 0:
            return {}
        spec = TensorSpec(shape=(self.lstm_units,))
        return {"lstm/hidden": spec, "lstm/cell": spec}
