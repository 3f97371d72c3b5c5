"""int8 models: calibrated on some positions, compared with the float model on others.

Calibration takes the largest value that each activation reaches. Ranges clipped at a
quantile were measured and are no better (docs/explanation/performance_inference.md).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen.inference import InferenceConfig, open_backend, search_outputs
from tengen.inference.openvino_backend import (
    is_installed,
    run_graph,
    supported_precisions,
)
from tengen.models.check import evaluate
from tengen.models.meta import INT8_FILE, ONNX_FILE

__all__ = ["Int8Check", "can_quantise", "quantise"]

_INT8 = InferenceConfig(backend="openvino", precision="int8", batch_shape="dynamic")
# One position in this many is held out from calibration, for the comparison.
_HELD_OUT = 3
_MAX_POLICY_DIVERGENCE = 0.005
_MAX_VALUE_ERROR = 0.05
# The finite logit of an illegal action, whose probability is then zero.
_ILLEGAL = -1e9


@dataclass(frozen=True)
class Int8Check:
    """The errors of an int8 model against its float source, on held-out positions.

    Attributes:
        num_rows: Positions that were compared.
        policy_divergence: Mean over positions of the Kullback-Leibler divergence of
            the int8 policy from the source's, over legal actions, in nats.
        value_error: Root mean square error of values.
        top1_agreement: Share of positions with the same most probable legal action.
        score_error: Root mean square error of the scores' means and standard
            deviations, in points; 0 where the model has none.
    """

    num_rows: int
    policy_divergence: float
    value_error: float
    top1_agreement: float
    score_error: float = 0.0

    def record(self) -> dict[str, float]:
        """Returns the attributes as JSON values."""
        return dataclasses.asdict(self)

    def refusal(self, point_utility: float = 0.0) -> str | None:
        """Returns the error that is too large, with its limit; None if none is.

        Args:
            point_utility: The maximum utility of a point of the score in searches,
                beside a value in [-1, 1]; 0 if they ignore scores.
        """
        most_points = (
            _MAX_VALUE_ERROR / point_utility if point_utility > 0 else math.inf
        )
        limits = (
            ("policy_divergence", _MAX_POLICY_DIVERGENCE),
            ("value_error", _MAX_VALUE_ERROR),
            ("score_error", most_points),
        )
        for name, limit in limits:
            found = getattr(self, name)
            # Written so that a NaN is refused.
            if not found <= limit:
                return f"{name} ({found:.3g}) is above {limit:.3g}"
        return None


def can_quantise() -> bool:
    """Whether int8 models can be made and evaluated here."""
    return is_installed() and "int8" in supported_precisions()


def quantise(
    directory: Path,
    planes: NDArray[np.float32],
    legal: NDArray[np.bool_] | None = None,
) -> Int8Check:
    """Writes ``model_int8.onnx`` beside ``model.onnx`` and compares the two. Blocks.

    Args:
        directory: A model directory that is not published yet.
        planes: ``[M, C, H, W]`` float32, different positions, at least 3. Every third
            position is compared, the others calibrate.
        legal: ``[M, A]``, the actions whose probabilities are compared; None for all.

    Raises:
        UsageError: OpenVINO is not installed, or the CPU has no int8.
        RunError: The network has no layer to compute in int8.
    """
    # It imports onnx, which is needed only here.
    from tengen.models.int8_graph import PEAK_PREFIX, int8_graph, peak_graph

    graph = (directory / ONNX_FILE).read_bytes()
    source = run_graph(peak_graph(graph), planes)
    held_out = np.arange(len(planes)) % _HELD_OUT == 0
    peaks = {
        name.removeprefix(PEAK_PREFIX): float(rows[~held_out].max())
        for name, rows in source.items()
        if name.startswith(PEAK_PREFIX)
    }
    (directory / INT8_FILE).write_bytes(int8_graph(graph, peaks))
    policy, value = source["policy"][held_out], source["value"][held_out]
    outputs = search_outputs(scores=True)
    backend = open_backend(directory, _INT8, num_threads=1, outputs=outputs)
    found = evaluate(backend, {"planes": planes[held_out]})
    mask = None if legal is None else legal[held_out]
    wanted, got = _log_policy(policy, mask), _log_policy(found["policy"], mask)
    divergence = (np.exp(wanted) * (wanted - got)).sum(axis=1)
    score_error = 0.0
    if "score" in found:
        errors = found["score"] - source["score"][held_out]
        score_error = float(np.sqrt(np.mean(np.square(errors))))
    return Int8Check(
        num_rows=len(policy),
        policy_divergence=float(divergence.mean()),
        value_error=float(np.sqrt(np.mean(np.square(found["value"] - value)))),
        top1_agreement=float((wanted.argmax(1) == got.argmax(1)).mean()),
        score_error=score_error,
    )


def _log_policy(
    logits: NDArray[np.float32], legal: NDArray[np.bool_] | None
) -> NDArray[np.float64]:
    """Returns ``[M, A]`` log probabilities over the legal actions."""
    wide = logits.astype(np.float64)
    if legal is not None:
        wide = np.where(legal, wide, _ILLEGAL)
    wide -= wide.max(axis=1, keepdims=True)
    return np.asarray(wide - np.log(np.exp(wide).sum(axis=1, keepdims=True)))
