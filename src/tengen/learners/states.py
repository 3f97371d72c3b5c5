"""A learner's state: by name, and as bytes to make another learner equal to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import safetensors
import safetensors.torch
from torch import Tensor

from tengen.errors import RunError

__all__ = [
    "LearnerState",
    "below",
    "check_same_tensors",
    "packed_state",
    "unpacked_state",
]

_COUNTS = "counts"


class LearnerState(NamedTuple):
    """All that a learner needs to continue exactly."""

    tensors: dict[str, Tensor]
    """Weights, averaged weights, moments, torch's generator, and what the agent's
    update keeps, by name."""
    num_steps: int
    """Steps made."""
    num_optimizer_steps: int
    """Those since the optimizer began, anew after a network has grown."""
    num_samples: int
    """Rows learnt from."""


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


def below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the tensors whose names begin with a prefix, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def check_same_tensors(
    what: str, expected: Mapping[str, Tensor], given: Mapping[str, Tensor]
) -> None:
    """Makes sure that tensors have the names and shapes of those in their place.

    Args:
        what: What they are, for messages.
        expected: Those of the learner.
        given: Those that are to be.

    Raises:
        RunError: One is missing, unknown or of another shape.
    """
    for name in sorted(expected.keys() | given.keys()):
        if name not in given or name not in expected:
            where = "this network" if name in given else "the state"
            raise RunError(
                f"{what}.{name} (absent from {where}) must be on both sides; "
                "resume with the network that the run was started with"
            )
        if given[name].shape != expected[name].shape:
            raise RunError(
                f"{what}.{name} ({list(given[name].shape)}) must have shape "
                f"{list(expected[name].shape)}; "
                "resume with the network that the run was started with"
            )
