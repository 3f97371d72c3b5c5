"""The matches that a run's models play against its target, in order, and the result."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tengen.evaluation import TargetConfig
from tengen.minigo.target_files import TargetFiles, TargetRecord
from tengen.observe.target import TargetResult

__all__ = [
    "TargetMatch",
    "evaluated",
    "open_matches",
    "smoothed_crossing",
    "target_result",
]

_MAX_STEPS = 100
_SMALL = 1e-10
"""A step of the weights of the curve that is too small to matter."""
_BEYOND = 0.25
"""Part of the time of the models evaluated that a crossing may lie behind the last."""


@dataclass(frozen=True)
class TargetMatch:
    """Games of one model against the target."""

    model: int
    """Its number."""
    num_games: int
    """Games of the match, even."""
    confirms: bool = False
    """Whether the model has passed, and plays on."""

    @property
    def name(self) -> str:
        """Of its files."""
        return f"{self.model:06d}" + ("-confirm" if self.confirms else "")

    @property
    def words(self) -> str:
        """What the games are, for people."""
        return "in its confirming match" if self.confirms else "against the target"

    def chunks(self, chunk_games: int) -> list[int]:
        """Returns how many games each part has, in order.

        Args:
            chunk_games: Of each but the last.
        """
        whole, rest = divmod(self.num_games, chunk_games)
        return [chunk_games] * whole + ([rest] if rest else [])

    def seed(self, seed: int, chunk: int) -> int:
        """Returns the seed of a part's games.

        Args:
            seed: Of the run.
            chunk: The part, from 0.
        """
        text = f"{seed}/{self.name}/{chunk}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 1


def open_matches(
    models: Sequence[int], files: TargetFiles, config: TargetConfig
) -> list[TargetMatch]:
    """Returns the matches that have no record yet and may be needed, in order.

    Args:
        models: The run's, in increasing order; the first is not played, as nothing was
            learned for it.
        files: Has the records.
        config: Who passes.

    Returns:
        Those before the first model that has passed, and its further games; empty where
        all is known.
    """
    found = []
    for number in models[1:]:
        match = TargetMatch(number, config.num_games)
        record = files.record(match.name)
        if record is None:
            found.append(match)
        elif record.win_rate >= config.win_rate:
            further = TargetMatch(number, config.confirming_games, confirms=True)
            is_needed = config.confirming_games > 0 and not found
            if is_needed and files.record(further.name) is None:
                found.append(further)
            break
    return found


def evaluated(
    models: Sequence[int], files: TargetFiles, config: TargetConfig
) -> list[TargetRecord]:
    """Returns the records in order, up to the first model that passed.

    Args:
        models: The run's, in increasing order.
        files: Has the records.
        config: Who passes.
    """
    records = []
    for number in models[1:]:
        record = files.record(TargetMatch(number, config.num_games).name)
        if record is None:
            break
        records.append(record)
        if record.win_rate >= config.win_rate:
            break
    return records


def target_result(
    models: Sequence[int],
    files: TargetFiles,
    config: TargetConfig,
    *,
    iterations: int,
    clock_at: float | None,
    open_because: Sequence[str],
) -> TargetResult:
    """Returns the result of the run.

    Args:
        models: The run's, in increasing order.
        files: Has the records of all models that had to be played.
        config: Who passes.
        iterations: Number of models that the run was to have.
        clock_at: When training began, UNIX seconds; None if that is not known.
        open_because: The reasons why the run is in the open division.
    """
    records = evaluated(models, files, config)
    passed = (
        records[-1] if records and records[-1].win_rate >= config.win_rate else None
    )
    confirmation = None
    if passed is not None and config.confirming_games:
        further = TargetMatch(passed.model, config.confirming_games, confirms=True)
        if (found := files.record(further.name)) is not None:
            names = ("num_games", "wins", "draws", "losses", "win_rate")
            confirmation = {name: getattr(found, name) for name in names}

    def since(time: float | None) -> float | None:
        if time is None or clock_at is None:
            return None
        return round(time - clock_at, 3)

    return TargetResult(
        target=config.opponent,
        win_rate=config.win_rate,
        num_games=config.num_games,
        num_models=len(records),
        clock_at=clock_at,
        iterations=iterations,
        passed=None if passed is None else passed.model,
        passed_after_s=None if passed is None else since(passed.made_at),
        smoothed_after_s=since(smoothed_crossing(records, config.win_rate)),
        confirmation=confirmation,
        is_closed=not open_because,
        open_because=tuple(open_because),
    )


def smoothed_crossing(records: Sequence[TargetRecord], win_rate: float) -> float | None:
    """Returns when a curve through all models' results crosses a share of points.

    The curve is a logistic regression of the points on the time at which each model was
    made, by maximum likelihood (McCullagh and Nelder 1989, "Generalized Linear Models",
    chapter 4): a single match of 256 games has a standard deviation of 3 %, and the
    first of many that passes is often lucky. The curve is less so, but not free of it:
    no model behind the first that passed is played.

    Args:
        records: In order.
        win_rate: The share, in (0, 1).

    Returns:
        UNIX seconds, perhaps a little after the last model; None where too little is
        known, or the curve does not rise to the share by then.
    """
    counted = [one for one in records if one.tally.num_games > 0]
    if len(counted) < 2 or not 0 < win_rate < 1:
        return None
    made = np.array([one.made_at for one in counted])
    span = made[-1] - made[0]
    if span <= 0:
        return None
    time = (made - made[0]) / span
    num_games = np.array([one.tally.num_games for one in counted], float)
    # Half a point to each side, so that none who lost all games is infinitely weak.
    share = np.array([one.tally.points + 0.5 for one in counted]) / (num_games + 1)
    columns = np.stack([np.ones_like(time), time], axis=1)
    weights = np.zeros(2)

    def log_likelihood(weights: NDArray[np.float64]) -> float:
        odds = columns @ weights
        return float((num_games + 1) @ (share * odds - np.logaddexp(0.0, odds)))

    for _ in range(_MAX_STEPS):
        expected = 1 / (1 + np.exp(-columns @ weights))
        slope = columns.T @ ((num_games + 1) * (share - expected))
        variance = (num_games + 1) * expected * (1 - expected)
        curvature = columns.T @ (variance[:, None] * columns)
        try:
            step = np.linalg.solve(curvature, slope)
        except np.linalg.LinAlgError:
            return None
        # A whole step may go too far where the curve is steep. The likelihood is
        # concave, so that some part of the step raises it.
        before = log_likelihood(weights)
        while np.abs(step).max() >= _SMALL and log_likelihood(weights + step) < before:
            step /= 2
        weights += step
        if np.abs(step).max() < _SMALL:
            break
    else:
        return None
    intercept, rise = weights
    if not np.isfinite(weights).all() or rise <= 0:
        return None
    wanted = np.log(win_rate / (1 - win_rate))
    place = (wanted - intercept) / rise
    return float(made[0] + span * place) if place <= 1 + _BEYOND else None
