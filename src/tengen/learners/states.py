"""The state of a learner, and its serialization for followers."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import NamedTuple

import safetensors
import safetensors.torch
from torch import Tensor

from tengen.errors import RunError
from tengen.learners.optimizer import Optimizer
from tengen.learners.update import Update
from tengen.nets import Net
from tengen.nets.modules.centre import without_mean

_COUNTS = "counts"


class LearnerState(NamedTuple):
    """The complete state from which a learner can resume exactly."""

    tensors: dict[str, Tensor]
    """Weights, averaged weights, optimizer moments, the state of torch's random
    generator, and the state of the agent's update, by name."""
    num_steps: int
    """Number of learner steps in the run."""
    num_optimizer_steps: int
    """Number of optimizer steps since the start, or since the network last grew."""
    num_samples: int
    """Number of rows trained on in the run."""


class Trained:
    """Collects and restores the tensors that a learner step changes. Not thread-safe.

    Args:
        net: The network in training.
        optimizer: The network's optimizer, which has the averaged network.
        update: The agent's update, which may have a state.
    """

    def __init__(self, net: Net, optimizer: Optimizer, update: Update) -> None:
        self._net = net
        self._optimizer = optimizer
        self._update = update

    def tensors(self) -> dict[str, Tensor]:
        """Returns all tensors that a learner step changes, by name, without copying."""
        return {
            f"{prefix}.{name}": tensor
            for prefix, part in self._parts().items()
            for name, tensor in part.items()
        }

    def load(self, state: LearnerState) -> None:
        """Restores the tensors in ``state``, but not its counters.

        Raises:
            RunError: A tensor is missing or unknown, or has the wrong shape; no tensor
                was changed.
        """
        given = {}
        for prefix, own in self._parts().items():
            if prefix == "optimizer":
                continue
            # Checkpoints of earlier versions lack the tensors that were added since.
            later = self._update.later_state if prefix == "agent" else ()
            absent = {name: own[name] for name in later} | without_mean(own)
            given[prefix] = absent | _below(f"{prefix}.", state.tensors)
            _check_same_tensors(prefix, own, given[prefix])
        moments = _below("optimizer.", state.tensors)
        self._net.load_state_dict(given["net"])
        self._optimizer.average.load_state_dict(given["average"])
        self._optimizer.load_state(moments, state.num_optimizer_steps)
        self._update.load_state(given["agent"])

    def checksum(self) -> int:
        """Returns the CRC-32 of the weights and the averaged weights."""
        found = 0
        for part in (self._net.state_dict(), self._optimizer.average.state_dict()):
            for tensor in part.values():
                found = zlib.crc32(tensor.contiguous().cpu().numpy(), found)
        return found

    def _parts(self) -> dict[str, dict[str, Tensor]]:
        return {
            "net": self._net.state_dict(),
            "average": self._optimizer.average.state_dict(),
            "optimizer": self._optimizer.state(),
            "agent": self._update.state(),
        }


def packed_state(state: LearnerState) -> bytes:
    """Serializes a learner's state in a format that needs no unpickling."""
    tensors = {name: tensor.contiguous() for name, tensor in state.tensors.items()}
    counts = [state.num_steps, state.num_optimizer_steps, state.num_samples]
    data = safetensors.torch.save(tensors)
    head = json.dumps({_COUNTS: counts}).encode()
    return len(head).to_bytes(8, "little") + head + data


def unpacked_state(data: bytes) -> LearnerState:
    """Deserializes a learner's state from the result of ``packed_state``.

    Raises:
        RunError: ``data`` is damaged.
    """
    length = int.from_bytes(data[:8], "little")
    try:
        counts = json.loads(data[8 : 8 + length])[_COUNTS]
        tensors = safetensors.torch.load(data[8 + length :])
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise RunError(
            "state (of the leading learner) is damaged; restart this learner"
        ) from error
    # Clone the tensors, because they are views of ``data``, which they may outlive.
    return LearnerState({n: t.clone() for n, t in tensors.items()}, *counts)


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns the tensors whose names begin with ``prefix``, without the prefix."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _check_same_tensors(
    what: str, expected: Mapping[str, Tensor], given: Mapping[str, Tensor]
) -> None:
    """Checks that ``given`` has the names and shapes of ``expected``.

    Args:
        what: A prefix of the tensors' names, for error messages.
        expected: The learner's tensors.
        given: The tensors that will replace ``expected``.

    Raises:
        RunError: A tensor is missing or unknown, or has the wrong shape.
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
