"""Inference by torch: the fallback everywhere and the reference of export checks.

Each driver thread computes alone; torch's own threads would wait for each other.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from tengen.config import from_dict
from tengen.errors import UsageError
from tengen.inference.backend import Backend, FloatArray, check_buffers
from tengen.inference.config import BatchShape, Precision
from tengen.nets import FeatureSpec, InferenceHead, NetConfig, ResNet, build_net

__all__ = ["TorchBackend", "TorchRunner", "load_head", "load_inference_head"]

_threads = threading.local()


@dataclass(frozen=True, kw_only=True)
class _Architecture:
    """The part of ``meta.json`` that a network is built from."""

    net: NetConfig
    features: FeatureSpec


def load_head(directory: Path, *, scores: bool = False) -> InferenceHead:
    """Returns a model's network on the CPU, float32, in evaluation mode.

    Args:
        directory: A model directory.
        scores: Whether to answer with scores where the network estimates them.

    Raises:
        UsageError: A file is missing or damaged, or the weights are another
            network's.
    """
    try:
        meta: Any = json.loads((directory / "meta.json").read_bytes())
        parts = {name: meta[name] for name in ("net", "features")}
        architecture = from_dict(_Architecture, parts, where="meta.json")
        tensors = load_file(directory / "weights.safetensors")
        net = build_net(architecture.features, architecture.net)
        net.load_state_dict(tensors)
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
            f"model ({directory}) cannot be built: {reason}; "
            f"restore it or export it again"
        ) from error
    return InferenceHead(net, scores=scores).eval()


def load_inference_head(
    directory: Path, precision: Precision, *, scores: bool = False
) -> InferenceHead:
    """Returns a model's network on the CPU, ready to compute in a precision.

    Raises:
        UsageError: As ``load_head``.
    """
    head = load_head(directory, scores=scores)
    if precision == "bf16" and isinstance(head.net, ResNet):
        head.net.fix_dtype(torch.bfloat16)
    return head


class TorchBackend:
    """A ``Backend`` over ``weights.safetensors`` of a model directory, on the CPU.

    Attributes:
        name: ``torch``.
        version: torch's version.
        precision: Arithmetic of the trunk; the heads are float32.
        batch_shape: ``dynamic``.
        has_score: Whether it answers with scores.
    """

    name = "torch"
    batch_shape: BatchShape = "dynamic"

    def __init__(
        self, directory: Path, *, precision: Precision, scores: bool = False
    ) -> None:
        """Builds the network and loads its weights.

        Args:
            directory: A model directory.
            precision: Arithmetic of the trunk.
            scores: Whether to answer with scores where the network estimates them.

        Raises:
            UsageError: As ``load_head``.
        """
        self.version = torch.__version__
        self.precision = precision
        self._head = load_inference_head(directory, precision, scores=scores)
        self.has_score = self._head.answers_score

    def bind(
        self,
        planes: FloatArray,
        policy: FloatArray,
        value: FloatArray,
        score: FloatArray | None = None,
    ) -> TorchRunner:
        """Returns a runner over these buffers; see ``Backend.bind``."""
        return TorchRunner(self, self._head, planes, policy, value, score)


class TorchRunner:
    """A ``Runner`` that leaves its thread with one torch thread.

    The network may be on any device; the buffers are the host's.
    """

    def __init__(
        self,
        backend: Backend,
        head: InferenceHead,
        planes: FloatArray,
        policy: FloatArray,
        value: FloatArray,
        score: FloatArray | None,
    ) -> None:
        """Binds a network in evaluation mode; see ``Backend.bind``."""
        check_buffers(backend, planes, policy, value, score)
        self._head = head
        self._device = next(head.parameters()).device
        self._planes = torch.from_numpy(planes)
        answers = [policy, value] if score is None else [policy, value, score]
        self._answers = [torch.from_numpy(answer) for answer in answers]

    def run(self, num_rows: int) -> None:
        """Evaluates ``planes[:num_rows]``; see ``Runner.run``."""
        if not getattr(_threads, "is_single", False):
            torch.set_num_threads(1)
            _threads.is_single = True
        with torch.inference_mode():
            found = self._head(self._planes[:num_rows].to(self._device))
            # Scores that nobody asked for are left out.
            for answer, rows in zip(self._answers, found, strict=False):
                answer[:num_rows] = rows
