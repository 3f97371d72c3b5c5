"""Decides the order of a run's matches against its target, and the run's result."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tengen.evaluation import TargetConfig
from tengen.minigo.target_files import TargetFiles, TargetRecord
from tengen.observe.target import TargetResult

_MAX_STEPS = 100
_SMALL = 1e-10
"""The curve fit ends when a Newton step changes no weight by this much."""
_BEYOND = 0.25
"""Maximum extrapolation beyond the last model, as a share of the models' time span."""


@dataclass(frozen=True)
class TargetMatch:
    """A match of one model against the target."""

    model: int
    """The model's number."""
    num_games: int
    """Number of games, an even number."""
    confirms: bool = False
    """Whether this is the second, confirming match of a model that passed."""

    @property
    def name(self) -> str:
        """The base name of the match's files."""
        return f"{self.model:06d}" + ("-confirm" if self.confirms else "")

    @property
    def words(self) -> str:
        """The kind of match, for messages to users."""
        return "in its confirming match" if self.confirms else "against the target"

    def chunks(self, chunk_games: int) -> list[int]:
        """Returns the numbers of games in the parts of the match, in order.

        Args:
            chunk_games: Number of games of each part except the last.
        """
        whole, rest = divmod(self.num_games, chunk_games)
        return [chunk_games] * whole + ([rest] if rest else [])

    def seed(self, seed: int, chunk: int) -> int:
        """Returns the seed of the games in part ``chunk`` of the match.

        Args:
            seed: Seed of the run.
            chunk: Index of the part, from 0.
        """
        text = f"{seed}/{self.name}/{chunk}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 1


def open_matches(
    models: Sequence[int], files: TargetFiles, config: TargetConfig
) -> list[TargetMatch]:
    """Returns the matches that have no record and may be needed, in order.

    Args:
        models: The run's model numbers, in increasing order. The first model precedes
            all learning and is not played.
        files: The target's files, with the records.
        config: The target's config, with the win rate required to pass.

    Returns:
        The matches of models before the first passing model, and the confirming match
        of the passing model; empty if all have records.
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
    """Returns the matches' records in order, up to a missing one or a passing model.

    Args:
        models: The run's model numbers, in increasing order.
        files: The target's files, with the records.
        config: The target's config, with the win rate required to pass.
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
    """Returns the run's result, computed from the records of its matches.

    Args:
        models: The run's model numbers, in increasing order.
        files: The target's files, with the records of all matches that were needed.
        config: The target's config, with the win rate required to pass.
        iterations: Number of models that the run had to train.
        clock_at: When training began, in UNIX seconds; None if unknown.
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
    """Returns the time at which a curve fitted to all results reaches a win rate.

    The curve is a logistic regression of the points on the creation time of each model,
    fitted by maximum likelihood (McCullagh and Nelder 1989, "Generalized Linear
    Models", chapter 4). The win rate in one match of 256 games has a standard deviation
    of 3 %, so the first model that passes is often a lucky one. The curve is less
    biased than this model's time, but not unbiased, because models after the first
    passing one are not played.

    Args:
        records: Records of the models in order.
        win_rate: The win rate to cross, in (0, 1).

    Returns:
        UNIX seconds; None if there are too few results, or if the curve does not reach
        ``win_rate`` within the models' time span plus 25 %.
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
    # Half a point is added for each side, so that a score of 0 or 1 has finite odds.
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
        # A full Newton step may overshoot the maximum, so halve it until the
        # log-likelihood does not decrease. Because it is concave, a small enough step
        # increases it.
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
