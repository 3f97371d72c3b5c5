"""How a process evaluates positions: the settings that a run records."""

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
    """Settings of inference; ``tengen.inference.choose`` replaces every ``auto``."""

    devices: str = "auto"
    """Where it computes: cpu, or GPUs such as cuda:0 or cuda:0,cuda:1; auto takes the
    first GPU where torch sees one, else cpu."""
    backend: Literal["auto", "openvino", "torch"] = "auto"
    """Who computes; auto takes torch on a GPU, OpenVINO where it is installed, else
    torch."""
    precision: Literal["auto", "fp32", "bf16", "int8"] = "auto"
    """Arithmetic of the trunk; auto takes what a trial run shows worth its rounding.
    With int8, by OpenVINO alone, a model that loses too much plays in bf16."""
    batch_shape: Literal["auto", "dynamic", "fixed"] = "auto"
    """Whether a batch has about as many rows as the caller asks for, or is cut and
    padded to batch_rows; auto probes whether dynamic keeps the bits."""
    batch_rows: int = bounded(8, 1, 4096, "8 to 32 suits a CPU")
    """Rows of a fixed batch, and of the batches of trial and probe; 1 to 4096."""
    device_rows: int = bounded(0, 0, 65536, "use 0, a trial then chooses")
    """Rows of the largest batch on a GPU, 0 to 65536; 0 takes the fewest that reach
    the best rate in a trial run."""

    min_rows: int = bounded(1, 1, 4096, "use 1")
    """Of role inference: rows that a batch waits for, 1 to 4096; 1 takes what is there
    whenever the device is idle."""
    max_wait_ms: float = bounded(2.0, 0, 10_000, "use 2")
    """Of role inference: the longest that a request waits for them, in milliseconds, 0
    to 10,000."""

    def __post_init__(self) -> None:
        """Checks the words, the range, and the precision against the backend.

        Raises:
            UsageError: A field is unknown or out of its range, or torch shall compute
                int8.
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
        """Whether the devices are GPUs; not known where they are ``auto``."""
        return self.devices.startswith("cuda")
