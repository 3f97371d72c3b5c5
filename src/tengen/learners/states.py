"""A learner's state as bytes, to make another learner equal to it."""

from __future__ import annotations

import json

import safetensors
import safetensors.torch

from tengen.errors import RunError
from tengen.learners.loop import LearnerState

__all__ = ["packed_state", "unpacked_state"]

_COUNTS = "counts"


def packed_state(state: LearnerState) -> bytes:
    """Returns a state as bytes; nothing in them is ever unpickled."""
    tensors = {name: tensor.contiguous() for name, tensor in state.tensors.items()}
    counts = [state.num_steps, state.num_optimizer_steps, state.num_samples]
    data = safetensors.torch.save(tensors)
    head = json.dumps({_COUNTS: counts}).encode()
    return len(head).to_bytes(8, "little") + head + data


def unpacked_state(data: bytes) -> LearnerState:
    """Returns the state that ``packed_state`` was given.

    Raises:
        RunError: The bytes are none.
    """
    length = int.from_bytes(data[:8], "little")
    try:
        counts = json.loads(data[8 : 8 + length])[_COUNTS]
        tensors = safetensors.torch.load(data[8 + length :])
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise RunError(
            "state (of the leading learner) is damaged; start this learner again"
        ) from error
    # The learner keeps some of them.
    return LearnerState({n: t.clone() for n, t in tensors.items()}, *counts)
