"""The config of inference: how a process evaluates a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.inference.devices import check_device_words

__all__ = ["BackendName", "BatchShape", "InferenceConfig", "Precision"]

BackendName = Literal["openvino", "torch"]
Precision = Literal["fp32", "bf16", "int8"]
BatchShape = Literal["dynamic", "fixed"]


@dataclass(frozen=True, kw_only=True)
class InferenceConfig:
    """Settings of inference; ``choose`` replaces every ``auto`` at a run's start."""

    devices: str = "auto"
    """Where models are evaluated: cpu, or GPUs such as cuda:0 or cuda:0,cuda:1; auto
    takes the first GPU where torch sees one, else cpu."""
    backend: Literal["auto", "openvino", "torch"] = "auto"
    """The library that evaluates models. auto takes torch on a GPU; on a CPU OpenVINO
    where it is installed, else torch."""
    precision: Literal["auto", "fp32", "bf16", "int8"] = "auto"
    """Arithmetic of the network's trunk. On a CPU auto takes a lower precision only
    where a trial run shows it to be clearly faster; on a GPU it takes bf16 where the
    GPU has it, else fp32. int8 needs OpenVINO; a model that loses too
    much by int8 is evaluated in bf16, or fp32 where the CPU has no bf16."""
    batch_shape: Literal["auto", "dynamic", "fixed"] = "auto"
    """dynamic: a batch has about as many rows as the caller asks for. fixed: every
    batch is cut or padded to ``batch_rows``. On a CPU auto takes dynamic if a probe
    finds that answers then do not depend on the batch, else fixed; on a GPU it takes
    dynamic."""
    batch_rows: int = bounded(8, 1, 4096, "8 to 32 suits a CPU")
    """Rows of a fixed batch, and of the batches of trial run and probe; 1 to 4096."""
    device_rows: int = bounded(0, 0, 65536, "use 0, a trial then chooses")
    """Rows of the largest batch on a GPU, 0 to 65536; 0: a trial run finds the smallest
    batch that is nearly as fast as the fastest."""
    min_rows: int = bounded(1, 1, 4096, "use 1")
    """For the role inference: rows that a batch waits for, 1 to 4096. 1: whenever the
    device is idle, it takes the rows that are waiting. More rows make larger batches
    and longer waits."""
    max_wait_ms: float = bounded(2.0, 0, 10_000, "use 2")
    """For the role inference: milliseconds that a request waits for ``min_rows`` at
    most, 0 to 10,000."""

    def __post_init__(self) -> None:
        """Checks the words, the range, and the precision against the backend.

        Raises:
            UsageError: A field is unknown or out of its range, or the backend is torch
                with int8.
        """
        check_fields(self)
        check_device_words("devices", self.devices)
        is_for_torch = self.backend == "torch" or self.is_on_gpu
        check(
            not (is_for_torch and self.precision == "int8"),
            "precision",
            self.precision,
            "must be fp32 or bf16 with torch; install openvino or set one of them",
        )

    @property
    def has_auto(self) -> bool:
        """Whether something is left to choose."""
        chosen = (self.devices, self.backend, self.precision, self.batch_shape)
        return "auto" in chosen

    @property
    def is_on_gpu(self) -> bool:
        """Whether the devices are GPUs; meaningless while they are ``auto``."""
        return self.devices.startswith("cuda")
