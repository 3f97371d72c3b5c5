"""Compares an exported model with its torch source, before it is published.

The reference is torch in float32, with the files that are about to be published, on
positions of real games.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.inference import (
    Arrays,
    Backend,
    InferenceConfig,
    allocate,
    open_backend,
)

__all__ = ["ExportCheck", "check_export", "evaluate"]

_Floats = NDArray[np.float32]

_REFERENCE = InferenceConfig(backend="torch", precision="fp32", batch_shape="dynamic")


@dataclass(frozen=True)
class _Tolerance:
    """Allowed root mean square error: ``relative`` of the spread plus ``absolute``.

    It is relative to the spread over positions and actions, because the logits of an
    untrained net are nearly equal: an absolute bound would accept any other such net.
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
    """The errors of an exported model against its torch source.

    Policy, value and score are those of a board game's network. Logits are compared
    without their mean over actions, which no policy depends on.

    Attributes:
        num_rows: Rows that were compared.
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
        other_errors: Root mean square error of each other output, by name.
        other_spreads: Standard deviations of these in the source.
    """

    num_rows: int
    logit_error: float = 0.0
    logit_spread: float = 0.0
    max_logit_error: float = 0.0
    max_probability_error: float = 0.0
    value_error: float = 0.0
    value_spread: float = 0.0
    max_value_error: float = 0.0
    top1_agreement: float = 1.0
    score_error: float = 0.0
    score_spread: float = 0.0
    other_errors: dict[str, float] = field(default_factory=dict)
    other_spreads: dict[str, float] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Returns the attributes as JSON values."""
        return dataclasses.asdict(self)


def check_export(directory: Path, backend: Backend, inputs: Arrays) -> ExportCheck:
    """Compares a model in its backend with its torch source.

    Args:
        directory: The model directory that ``backend`` was opened on.
        backend: The backend that will evaluate it.
        inputs: ``[M, ...]`` by name, some hundred different rows of real games or
            episodes.

    Raises:
        RunError: The source's answers are not finite, or the errors are larger than the
            backend's precision explains.
    """
    outputs = tuple(backend.signature.outputs)
    source = open_backend(directory, _REFERENCE, num_threads=1, outputs=outputs)
    expected = evaluate(source, inputs)
    if not all(np.isfinite(answer).all() for answer in expected.values()):
        raise RunError(
            f"network ({directory}) must answer finite numbers, whatever evaluates it; "
            f"it is not published, lower the learning rate or check the game's planes"
        )
    is_board = backend.signature.board is not None
    result = _compare(expected, evaluate(backend, inputs), is_board)
    allowed = _TOLERANCES[backend.precision]
    compared = [
        ("logit_error", result.logit_error, result.logit_spread),
        ("value_error", result.value_error, result.value_spread),
        ("score_error", result.score_error, result.score_spread),
        *(
            (f"{name}_error", error, result.other_spreads[name])
            for name, error in result.other_errors.items()
        ),
    ]
    limits = [
        (name, error, allowed.relative * spread + allowed.absolute)
        for name, error, spread in compared
    ]
    probability = result.max_probability_error
    limits.append(("max_probability_error", probability, allowed.max_probability))
    for name, found, limit in limits:
        # Written so that a NaN is refused.
        if not found <= limit:
            raise RunError(
                f"{name} ({found:.3g}) of the exported model {directory} is above "
                f"{limit:.3g} for {backend.name} {backend.precision}; it is not "
                f"published, set inference.precision=fp32 or inference.backend=torch"
            )
    return result


def evaluate(backend: Backend, inputs: Arrays) -> dict[str, NDArray[Any]]:
    """Returns the answers to many rows, ``[M, ...]`` by name. Blocks.

    Args:
        backend: The backend. A network with memory sees each row as the first of an
            episode.
        inputs: ``[M, ...]`` by name.
    """
    rows = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
    num_rows = len(next(iter(rows.values())))
    answers = allocate(backend.signature.outputs, num_rows)
    state = allocate(backend.signature.state, num_rows)
    backend.bind(rows, answers, state).run(num_rows)
    return answers


def _compare(source: Arrays, exported: Arrays, is_board: bool) -> ExportCheck:
    found: dict[str, Any] = {}
    others = list(source)
    if is_board:
        found |= _compare_policies(source["policy"], exported["policy"])
        found |= _compare_values(source["value"], exported["value"])
        others = [name for name in source if name not in ("policy", "value", "score")]
        if "score" in source:
            found["score_error"] = _rms(exported["score"] - source["score"])
            found["score_spread"] = _spread(source["score"])
    return ExportCheck(
        num_rows=len(next(iter(source.values()))),
        other_errors={name: _rms(exported[name] - source[name]) for name in others},
        other_spreads={name: _spread(source[name]) for name in others},
        **found,
    )


def _compare_policies(source: _Floats, exported: _Floats) -> dict[str, float]:
    logits = [
        policy - policy.mean(axis=1, keepdims=True) for policy in (source, exported)
    ]
    errors = logits[1] - logits[0]
    agreement = logits[0].argmax(axis=1) == logits[1].argmax(axis=1)
    return {
        "logit_error": _rms(errors),
        "logit_spread": _rms(logits[0]),
        "max_logit_error": float(np.abs(errors).max()),
        "max_probability_error": float(
            np.abs(_softmax(logits[1]) - _softmax(logits[0])).max()
        ),
        "top1_agreement": float(agreement.mean()),
    }


def _compare_values(source: _Floats, exported: _Floats) -> dict[str, float]:
    errors = exported - source
    return {
        "value_error": _rms(errors),
        "value_spread": float(source.std()),
        "max_value_error": float(np.abs(errors).max()),
    }


def _spread(answers: _Floats) -> float:
    return _rms(answers - answers.mean(axis=0))


def _rms(errors: _Floats) -> float:
    return float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))


def _softmax(logits: _Floats) -> _Floats:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)
