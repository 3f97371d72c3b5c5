"""How a process evaluates positions: the settings that a run records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tengen.config import check, check_literals, check_range

__all__ = ["BackendName", "BatchShape", "InferenceConfig", "Precision"]

BackendName = Literal["openvino", "torch"]
Precision = Literal["fp32", "bf16", "int8"]
BatchShape = Literal["dynamic", "fixed"]


@dataclass(frozen=True, kw_only=True)
class InferenceConfig:
    """Settings of inference; ``tengen.inference.choose`` replaces every ``auto``."""

    backend: Literal["auto", "openvino", "torch"] = "auto"
    """Who computes; auto takes OpenVINO where it is installed, else torch."""
    precision: Literal["auto", "fp32", "bf16", "int8"] = "auto"
    """Arithmetic of the trunk; auto takes what a trial run shows worth its rounding.
    With int8, by OpenVINO alone, a model that loses too much plays in bf16."""
    batch_shape: Literal["auto", "dynamic", "fixed"] = "auto"
    """Whether a batch has about as many rows as the caller asks for, or is cut and
    padded to batch_rows; auto probes whether dynamic keeps the bits."""
    batch_rows: int = 8
    """Rows of a fixed batch, and of the batches of trial and probe; 1 to 4096."""

    def __post_init__(self) -> None:
        """Checks the words, the range, and the precision against the backend.

        Raises:
            UsageError: A field is unknown or out of its range, or torch shall compute
                int8.
        """
        check_literals(self)
        check_range("batch_rows", self.batch_rows, 1, 4096, "8 to 32 suits a CPU")
        check(
            not (self.backend == "torch" and self.precision == "int8"),
            "precision",
            self.precision,
            "must be fp32 or bf16 with torch; install openvino or set one of them",
        )

    @property
    def has_auto(self) -> bool:
        """Whether something is left to choose."""
        return "auto" in (self.backend, self.precision, self.batch_shape)
