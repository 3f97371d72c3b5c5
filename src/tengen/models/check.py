"""Does the exported model answer as its torch source does? Asked before publishing.

The reference is torch in float32 over the very files that are about to be published,
on positions of real games.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.inference import Backend, InferenceConfig, open_backend

__all__ = ["ExportCheck", "check_export", "evaluate"]

_REFERENCE = InferenceConfig(backend="torch", precision="fp32", batch_shape="dynamic")


@dataclass(frozen=True)
class _Tolerance:
    """Allowed root mean square error: ``relative`` of the spread plus ``absolute``.

    Relative to the spread over positions and actions, because the logits of a young
    net are nearly equal and an absolute bound would let any other young net pass.
    """

    relative: float
    absolute: float
    max_probability: float


_TOLERANCES = {
    "fp32": _Tolerance(relative=1e-3, absolute=1e-4, max_probability=0.01),
    "bf16": _Tolerance(relative=0.1, absolute=2e-3, max_probability=0.25),
}


@dataclass(frozen=True)
class ExportCheck:
    """How far an exported model is from its torch source.

    Logits are compared without their mean over actions, which no policy depends on.

    Attributes:
        num_rows: Positions that were compared.
        logit_error: Root mean square error of policy logits.
        logit_spread: Their standard deviation in the source.
        max_logit_error: Largest absolute error of a logit.
        max_probability_error: Largest absolute error of an action's probability.
        value_error: Root mean square error of values.
        value_spread: Their standard deviation in the source.
        max_value_error: Largest absolute error of a value.
        top1_agreement: Share of positions with the same most probable action.
        score_error: Root mean square error of the scores' means and standard
            deviations, in points; 0 where the model has none.
        score_spread: The scores' own standard deviation in the source, in points.
    """

    num_rows: int
    logit_error: float
    logit_spread: float
    max_logit_error: float
    max_probability_error: float
    value_error: float
    value_spread: float
    max_value_error: float
    top1_agreement: float
    score_error: float = 0.0
    score_spread: float = 0.0

    def record(self) -> dict[str, float]:
        """Returns the attributes as JSON values."""
        return dataclasses.asdict(self)


def check_export(
    directory: Path, backend: Backend, planes: NDArray[np.float32], num_actions: int
) -> ExportCheck:
    """Compares a model in its backend with its torch source.

    Args:
        directory: The model directory that ``backend`` was opened on.
        backend: What will evaluate it.
        planes: ``[M, C, H, W]`` float32, different positions of real games, some
            hundred of them.
        num_actions: A.

    Raises:
        RunError: The source answers no finite numbers, or they differ by more than the
            backend's precision explains.
    """
    source = open_backend(
        directory, _REFERENCE, num_threads=1, scores=backend.has_score
    )
    expected = evaluate(source, planes, num_actions)
    if not all(np.isfinite(answer).all() for answer in expected):
        raise RunError(
            f"network ({directory}) must answer finite numbers, whatever evaluates it; "
            f"it is not published, lower the learning rate or check the game's planes"
        )
    result = _compare(expected, evaluate(backend, planes, num_actions))
    allowed = _TOLERANCES[backend.precision]
    limits = (
        ("logit_error", allowed.relative * result.logit_spread + allowed.absolute),
        ("value_error", allowed.relative * result.value_spread + allowed.absolute),
        ("score_error", allowed.relative * result.score_spread + allowed.absolute),
        ("max_probability_error", allowed.max_probability),
    )
    for name, limit in limits:
        found = getattr(result, name)
        # Written so that a NaN is refused.
        if not found <= limit:
            raise RunError(
                f"{name} ({found:.3g}) of the exported model {directory} is above "
                f"{limit:.3g} for {backend.name} {backend.precision}; it is not "
                f"published, set inference.precision=fp32 or inference.backend=torch"
            )
    return result


def evaluate(
    backend: Backend, planes: NDArray[np.float32], num_actions: int
) -> tuple[NDArray[np.float32], ...]:
    """Returns policy logits ``[M, A]`` and values ``[M]`` of many rows. Blocks.

    And scores ``[M, 2]`` where the backend answers with them.

    Args:
        backend: What evaluates.
        planes: ``[M, C, H, W]`` float32.
        num_actions: A.
    """
    num_rows = len(planes)
    shapes = [(num_rows, num_actions), (num_rows,)]
    if backend.has_score:
        shapes.append((num_rows, 2))
    answers = tuple(np.empty(shape, np.float32) for shape in shapes)
    rows = np.ascontiguousarray(planes, np.float32)
    backend.bind(rows, *answers).run(num_rows)
    return answers


def _compare(
    source: tuple[NDArray[np.float32], ...],
    exported: tuple[NDArray[np.float32], ...],
) -> ExportCheck:
    logits = [
        policy - policy.mean(axis=1, keepdims=True)
        for policy in (source[0], exported[0])
    ]
    logit_errors = logits[1] - logits[0]
    value_errors = exported[1] - source[1]
    agreement = logits[0].argmax(axis=1) == logits[1].argmax(axis=1)
    return ExportCheck(
        num_rows=len(agreement),
        logit_error=_rms(logit_errors),
        logit_spread=_rms(logits[0]),
        max_logit_error=float(np.abs(logit_errors).max()),
        max_probability_error=float(
            np.abs(_softmax(logits[1]) - _softmax(logits[0])).max()
        ),
        value_error=_rms(value_errors),
        value_spread=float(source[1].std()),
        max_value_error=float(np.abs(value_errors).max()),
        top1_agreement=float(agreement.mean()),
        score_error=_rms(exported[2] - source[2]) if len(source) == 3 else 0.0,
        score_spread=_rms(source[2] - source[2].mean(axis=0))
        if len(source) == 3
        else 0.0,
    )


def _rms(errors: NDArray[np.float32]) -> float:
    return float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)
