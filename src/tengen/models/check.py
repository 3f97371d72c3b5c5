"""Compares an exported model with torch before the model is published.

The reference is the same model, evaluated by torch in float32 on real positions.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
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

_Floats = NDArray[np.float32]

_REFERENCE = InferenceConfig(backend="torch", precision="fp32", batch_shape="dynamic")


@dataclass(frozen=True)
class _Tolerance:
    """Limits of an output's RMS error: ``relative`` times its spread plus ``absolute``.

    The spread is the standard deviation over positions and actions. An absolute limit
    would be too loose for an untrained network, whose logits are nearly equal.
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
    """The errors of an exported model relative to torch.

    For a board game's policy, logits are compared after subtracting their mean over
    actions, which does not affect the policy.

    Attributes:
        num_rows: Number of rows whose outputs were compared.
        errors: Root mean square error of each output, by name.
        spreads: Standard deviation of each of torch's outputs, by name.
        max_probability_error: Maximum absolute error of an action's probability; 0 if
            the task is not a board game.
    """

    num_rows: int
    errors: dict[str, float]
    spreads: dict[str, float]
    max_probability_error: float = 0.0

    def record(self) -> dict[str, Any]:
        """Returns the statistics as JSON values."""
        return dataclasses.asdict(self)


def check_export(directory: Path, backend: Backend, inputs: Arrays) -> ExportCheck:
    """Compares a model's outputs in a backend with those of torch.

    Args:
        directory: The model directory from which ``backend`` was opened.
        backend: The backend that will evaluate the model.
        inputs: Inputs ``[M, ...]`` by name, a few hundred different rows of real games
            or episodes.

    Raises:
        RunError: torch's outputs are not finite, or the errors exceed the limits for
            the backend's precision.
    """
    outputs = tuple(backend.signature.outputs)
    source = open_backend(directory, _REFERENCE, num_threads=1, outputs=outputs)
    expected = evaluate(source, inputs)
    if not all(np.isfinite(answer).all() for answer in expected.values()):
        raise RunError(
            f"network ({directory}) must have finite outputs on every backend, so it "
            "is not published; lower the learning rate, or check the game's planes"
        )
    is_board = backend.signature.board is not None
    result = _compare(expected, evaluate(backend, inputs), is_board)
    allowed = _TOLERANCES[backend.precision]
    limits = [
        (
            f"{name}_error",
            error,
            allowed.relative * result.spreads[name] + allowed.absolute,
        )
        for name, error in result.errors.items()
    ]
    probability = result.max_probability_error
    limits.append(("max_probability_error", probability, allowed.max_probability))
    for name, found, limit in limits:
        # "not <=" instead of ">", so that NaN raises too.
        if not found <= limit:
            raise RunError(
                f"{name} ({found:.3g}) of the exported model {directory} is above "
                f"{limit:.3g} for {backend.name} {backend.precision}, so it is not "
                "published; set inference.precision=fp32 or inference.backend=torch"
            )
    return result


def evaluate(backend: Backend, inputs: Arrays) -> dict[str, NDArray[Any]]:
    """Evaluates many rows; returns the outputs, ``[M, ...]`` by name. Blocks.

    Args:
        backend: The backend; the recurrent state, if any, is zero in every row.
        inputs: The network's inputs, ``[M, ...]`` by name.
    """
    rows = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
    num_rows = len(next(iter(rows.values())))
    answers = allocate(backend.signature.outputs, num_rows)
    state = allocate(backend.signature.state, num_rows)
    backend.bind(rows, answers, state).run(num_rows)
    return answers


def _compare(source: Arrays, exported: Arrays, is_board: bool) -> ExportCheck:
    spreads = {name: _rms(_centred(answers)) for name, answers in source.items()}
    most = 0.0
    if is_board:
        source, exported = (
            {**answers, "policy": _centred(answers["policy"], axis=1)}
            for answers in (source, exported)
        )
        shares = [_softmax(answers["policy"]) for answers in (source, exported)]
        most = float(np.abs(shares[1] - shares[0]).max())
        # Include differences between actions, because an untrained network's policy may
        # hardly depend on the position.
        spreads["policy"] = _rms(source["policy"])
    return ExportCheck(
        num_rows=len(next(iter(source.values()))),
        errors={name: _rms(exported[name] - source[name]) for name in source},
        spreads=spreads,
        max_probability_error=most,
    )


def _centred(answers: _Floats, axis: int = 0) -> _Floats:
    return np.asarray(answers - answers.mean(axis=axis, keepdims=True), np.float32)


def _rms(errors: _Floats) -> float:
    return float(np.sqrt(np.mean(np.square(errors, dtype=np.float64))))


def _softmax(logits: _Floats) -> _Floats:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)
