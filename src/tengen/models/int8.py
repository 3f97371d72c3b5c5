"""Creates int8 models, and compares them with the float models.

Calibration sets the range of each activation to its maximum. Ranges clipped at a
quantile had no smaller errors (docs/explanation/performance_inference.md).
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
from tengen.models.load import INT8_FILE, ONNX_FILE

_INT8 = InferenceConfig(backend="openvino", precision="int8", batch_shape="dynamic")
# Every _HELD_OUT-th position is excluded from calibration and used for the comparison.
_HELD_OUT = 3
_MAX_POLICY_DIVERGENCE = 0.005
_MAX_VALUE_ERROR = 0.05
# The logit of illegal actions: finite, but with a probability of zero.
_ILLEGAL = -1e9


@dataclass(frozen=True)
class Int8Check:
    """The errors of an int8 model relative to its float model, on held-out positions.

    Attributes:
        num_rows: Number of positions whose outputs were compared.
        policy_divergence: Kullback-Leibler divergence of the int8 policy from the float
            policy, over legal actions, in nats, averaged over positions.
        value_error: Root mean square error of values.
        top1_agreement: Fraction of positions with the same most probable legal action.
        score_error: Root mean square error of the mean and standard deviation of the
            score, in points; 0 if the model does not estimate scores.
    """

    num_rows: int
    policy_divergence: float
    value_error: float
    top1_agreement: float
    score_error: float = 0.0

    def record(self) -> dict[str, float]:
        """Returns the statistics as JSON values."""
        return dataclasses.asdict(self)

    def refusal(self, point_utility: float = 0.0) -> str | None:
        """Returns a message if an error is too large for play in int8; otherwise None.

        Args:
            point_utility: The maximum utility of one point of the score in searches,
                relative to values in [-1, 1]; 0 if searches ignore scores.
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
            # "not <=" instead of ">", so that NaN counts as too large.
            if not found <= limit:
                return f"{name} ({found:.3g}) is above {limit:.3g}"
        return None


def can_quantise() -> bool:
    """Returns whether this machine can create and evaluate int8 models."""
    return is_installed() and "int8" in supported_precisions()


def quantise(
    directory: Path,
    planes: NDArray[np.float32],
    legal: NDArray[np.bool_] | None = None,
) -> Int8Check:
    """Writes ``model_int8.onnx`` and compares it with ``model.onnx``. Blocks.

    Args:
        directory: A model directory that is not published yet.
        planes: ``[M, C, H, W]`` float32, at least 3 different positions. Every third
            position is used for the comparison, the others for calibration.
        legal: ``[M, A]`` bool, the legal actions, whose probabilities are compared;
            None to compare all actions.

    Raises:
        UsageError: OpenVINO is not installed, or the CPU does not support int8.
        RunError: The network has no layer to compute in int8.
    """
    # Imported only here, because ``int8_graph`` imports onnx.
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
    """Returns log-probabilities ``[M, A]``, normalized over the legal actions."""
    wide = logits.astype(np.float64)
    if legal is not None:
        wide = np.where(legal, wide, _ILLEGAL)
    wide -= wide.max(axis=1, keepdims=True)
    return np.asarray(wide - np.log(np.exp(wide).sum(axis=1, keepdims=True)))
