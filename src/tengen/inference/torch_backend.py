"""Inference with torch: the fallback on all machines, and the reference for exports.

Each driver thread uses a single torch thread, because torch's own worker threads would
wait for each other.
"""

from __future__ import annotations

import copy
import functools
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from tengen.config import to_dict
from tengen.errors import UsageError
from tengen.inference.architecture import (
    Architecture,
    answered,
    parse_architecture,
    read_architecture,
)
from tengen.inference.backend import NO_STATE, Arrays, check_arrays
from tengen.inference.config import BatchShape, Precision
from tengen.nets import InferenceHead, Net
from tengen.tensors import Signature

_threads = threading.local()


class LoadedHead(NamedTuple):
    """A model's network with loaded weights, in evaluation mode."""

    head: InferenceHead
    """The torch module that maps inputs and state to outputs and the next state."""
    signature: Signature
    """The signature of ``head``, in the order of its arguments and results."""


def load_head(
    source: Path | Net,
    outputs: Sequence[str] | None = None,
    *,
    precision: Precision = "fp32",
    folds_norms: bool = False,
) -> LoadedHead:
    """Loads a model's network on the CPU, in evaluation mode.

    Args:
        source: A model directory, or a network in evaluation mode. The network itself
            is returned if it can be; otherwise a copy.
        outputs: As for ``tengen.inference.open_backend``.
        precision: Precision of the trunk; the heads compute in float32.
        folds_norms: Whether to fold normalization layers into convolutions, which is
            faster on GPUs and changes the outputs only by rounding.

    Raises:
        UsageError: A file is missing or damaged, or the weights are of a different
            network.
    """
    if isinstance(source, Path):
        architecture = read_architecture(source)
    else:
        architecture = Architecture(net=source.config, signature=source.signature)
        is_on_cpu = all(tensor.is_cpu for tensor in source.parameters())
        is_as_is = source.compute_dtype == torch.float32 and not source.training
        if is_as_is and is_on_cpu and precision == "fp32" and not folds_norms:
            return _loaded(source, architecture, outputs)
    try:
        net = copy.deepcopy(_built(json.dumps(to_dict(architecture))))
        if isinstance(source, Path):
            net.load_state_dict(load_file(source / "weights.safetensors"))
        else:
            net.load_state_dict(source.state_dict())
    except UsageError:
        raise
    except (
        OSError,
        LookupError,
        RuntimeError,
        SafetensorError,
        TypeError,
        ValueError,
    ) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"model ({_named(source)}) cannot be built: {reason}; restore it, or "
            "export it again"
        ) from error
    if folds_norms:
        net.fold_norms()
    if precision == "bf16":
        net.fix_dtype(torch.bfloat16)
    return _loaded(net.eval(), architecture, outputs)


def _loaded(
    net: Net, architecture: Architecture, outputs: Sequence[str] | None
) -> LoadedHead:
    signature = answered(architecture.signature, outputs)
    head = InferenceHead(net, outputs=tuple(signature.outputs))
    head.training = False  # as ``net``; ``eval`` would visit all its modules
    return LoadedHead(head, signature)


def _named(source: Path | Net) -> str:
    return str(source) if isinstance(source, Path) else "of this process"


@functools.lru_cache(maxsize=4)
def _built(architecture: str) -> Net:
    """Returns a network whose weights are arbitrary; the caller must load weights.

    Networks are cached, because initialising random weights takes longer than loading
    a model, and a run loads a model in every turn.

    Args:
        architecture: The architecture as JSON, with the inputs in the network's order.

    Raises:
        UsageError: The network cannot have the inputs or outputs of its signature.
    """
    found = parse_architecture(json.loads(architecture), "meta.json")
    with torch.random.fork_rng(devices=[]):
        net: Net = found.net.build(found.signature)
        return net


class TorchBackend:
    """A ``Backend`` that evaluates a model on the CPU with torch.

    Attributes:
        name: ``torch``.
        version: torch's version.
        precision: Precision of the trunk; the heads compute in float32.
        batch_shape: ``dynamic``.
        signature: The network's inputs, requested outputs and state.
    """

    name = "torch"
    batch_shape: BatchShape = "dynamic"

    def __init__(
        self,
        source: Path | Net,
        *,
        precision: Precision,
        outputs: Sequence[str] | None = None,
    ) -> None:
        """Builds the network and loads its weights.

        Args:
            source: As for ``load_head``.
            precision: Precision of the trunk.
            outputs: As for ``tengen.inference.open_backend``.

        Raises:
            UsageError: As for ``load_head``.
        """
        self.version = torch.__version__
        self.precision = precision
        self._loaded = load_head(source, outputs, precision=precision)
        self.signature = self._loaded.signature

    def bind(
        self, inputs: Arrays, outputs: Arrays, state: Arrays = NO_STATE
    ) -> TorchRunner:
        """Returns a runner over the given arrays; see ``Backend.bind``."""
        return TorchRunner(self._loaded, inputs, outputs, state)


class TorchRunner:
    """A ``Runner`` for torch, which uses one torch thread per calling thread.

    The network may be on any device; the arrays are in host memory.
    """

    def __init__(
        self, loaded: LoadedHead, inputs: Arrays, outputs: Arrays, state: Arrays
    ) -> None:
        """Binds a loaded network to arrays; see ``Backend.bind``."""
        head, signature = loaded
        check_arrays(signature, inputs, outputs, state)
        self._head = head
        self._device = next(head.parameters()).device
        self._num_rows = len(next(iter(inputs.values())))
        self._inputs = [
            torch.from_numpy(arrays[name])
            for specs, arrays in ((signature.inputs, inputs), (signature.state, state))
            for name in specs
        ]
        # The arrays of the outputs; None for an output that was not requested.
        self._answers = [
            torch.from_numpy(arrays[name]) if name in arrays else None
            for specs, arrays in (
                (signature.outputs, outputs),
                (signature.state, state),
            )
            for name in specs
        ]

    def run(self, num_rows: int) -> None:
        """Evaluates the first ``num_rows`` rows; see ``Runner.run``."""
        if not getattr(_threads, "is_single", False):
            torch.set_num_threads(1)
            _threads.is_single = True
        rows, answers = self._inputs, self._answers
        # Slices take longer than a layer of a small network.
        if num_rows < self._num_rows:
            rows = [tensor[:num_rows] for tensor in rows]
            answers = [None if to is None else to[:num_rows] for to in answers]
        if self._device.type != "cpu":
            rows = [tensor.to(self._device) for tensor in rows]
        # Not inference mode, in which ``Standard`` cannot cache.
        with torch.no_grad():
            for to, answer in zip(answers, self._head(*rows), strict=True):
                if to is not None:
                    to.copy_(answer)
