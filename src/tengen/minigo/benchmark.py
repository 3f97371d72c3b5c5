"""Reads the files of a benchmark run and checks that they are consistent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tengen.config import check, from_dict
from tengen.errors import RunError, UsageError
from tengen.minigo.target_files import (
    Clock,
    TargetFiles,
    TargetRecord,
    TrainedGeneration,
)
from tengen.observe.target import TargetResult
from tengen.run import RunDirectory

# Tolerance for comparing times, which the files round to milliseconds.
_SAME_S = 1e-3

_KEYS = {
    "batch_size": "learner.batch_size",
    "optimizer": "learner.optimizer.kind",
    "rates": "learner.optimizer.rates",
    "boundaries": "learner.optimizer.boundaries",
    "weight_decay": "learner.optimizer.weight_decay",
    "min_games": "store.min_games",
    "iterations": "agent.iterations",
    "target_games": "agent.target.num_games",
    "seed": "seed",
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a run that its MLPerf log reports."""

    batch_size: int
    """Rows per batch of a learner step."""
    optimizer: str
    """Kind of the optimizer, such as ``sgd``."""
    rates: tuple[float, ...]
    """Learning rates, in the order of use."""
    boundaries: tuple[int, ...]
    """Learner steps after which the next rate applies; one fewer than ``rates``."""
    weight_decay: float
    """Weight decay coefficient of the optimizer."""
    min_games: int
    """Minimum number of games in a generation."""
    iterations: int
    """Number of models that the run trains."""
    target_games: int
    """Number of games that each model plays against the target."""
    seed: int
    """Seed of the run."""

    def __post_init__(self) -> None:
        check(
            len(self.rates) == len(self.boundaries) + 1,
            _KEYS["rates"],
            list(self.rates),
            "must have one entry more than learner.optimizer.boundaries; add one",
        )


@dataclass(frozen=True, kw_only=True)
class BenchmarkRun:
    """The content of a benchmark run's files, checked for consistency."""

    settings: Settings
    """Settings from ``run.json``."""
    platform: str
    """The machine on which the run began, from ``code.txt``."""
    clock: Clock
    """The times at which the run's phases began."""
    generations: tuple[TrainedGeneration, ...]
    """The generations on which the learner has trained, in order."""
    evaluated: tuple[TargetRecord, ...]
    """Records of the models that played the target, in order of model number."""
    result: TargetResult | None
    """Result of the run; None until all needed matches are played."""

    @property
    def passed(self) -> TargetRecord | None:
        """The record of the first model that reached the win rate, or None."""
        if self.result is None:
            return None
        at_least = self.result.win_rate
        reached = (each for each in self.evaluated if each.win_rate >= at_least)
        return next(reached, None)


def read_benchmark(run: RunDirectory) -> BenchmarkRun:
    """Returns the content of a benchmark run's files. Blocks while reading them.

    Args:
        run: The run, which may still be in progress.

    Raises:
        UsageError: The run is not a benchmark run, or a file has a newer schema.
        RunError: A file is damaged or contradicts another file.
    """
    settings = _settings(run, run.read_run().get("config", {}))
    files = TargetFiles(run)
    clock = files.clock()
    if clock is None:
        what = (
            "has no eval/target/clock.json, which is written when models play the "
            "target (agent.target.opponent) after training,"
        )
        raise _no_benchmark(run, what)
    found = BenchmarkRun(
        settings=settings,
        platform=_platform(run),
        clock=clock,
        generations=tuple(files.generations()),
        evaluated=tuple(files.records()),
        result=files.result(settings.iterations),
    )
    _check_result(run, found)
    return found


def _settings(run: RunDirectory, config: Mapping[str, Any]) -> Settings:
    values: dict[str, Any] = {}
    for name, key in _KEYS.items():
        value: Any = config
        for word in key.split("."):
            if not isinstance(value, Mapping) or word not in value:
                raise _no_benchmark(run, f"has no {key} in run.json")
            value = value[word]
        values[name] = value
    try:
        return from_dict(Settings, values)
    except UsageError as error:
        what = str(error).rpartition(";")[0]
        raise _no_benchmark(run, f"has other settings, {what}") from None


def _no_benchmark(run: RunDirectory, what: str) -> UsageError:
    return UsageError(
        f"run ({run.path}) {what} and is not a benchmark run; make one with tengen "
        "train go/19 --recipe mlperf_minigo"
    )


def _platform(run: RunDirectory) -> str:
    """Returns the first machine named in ``code.txt``, or ``unknown``."""
    path = run.path / "code.txt"
    text = path.read_text(errors="replace") if path.exists() else ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "machine" and value.strip():
            return value.strip()
    return "unknown"


def _check_result(run: RunDirectory, found: BenchmarkRun) -> None:
    """Raises RunError if ``result.json`` contradicts the other files."""
    result = found.result
    if result is None:
        return
    path = run.eval / "target" / "result.json"
    first = found.passed
    told = None if first is None else first.model
    if result.passed != told:
        raise _disagrees(
            f"result.json ({path}) names model {result.passed} as the first to pass, "
            f"and the evaluated models name {told}"
        )
    if result.clock_at is None:
        what = "started training before agent.iterations was set, has no clock"
        raise _no_benchmark(run, what)
    clock_at = found.clock.clock_at
    if clock_at is None or abs(clock_at - result.clock_at) > _SAME_S:
        raise _disagrees(
            f"result.json ({path}) has clock_at {result.clock_at}, and clock.json "
            f"{clock_at}"
        )
    if first is None or result.passed_after_s is None:
        return
    after_s = first.made_at - clock_at
    if abs(after_s - result.passed_after_s) > _SAME_S:
        raise _disagrees(
            f"result.json ({path}) has passed_after_s {result.passed_after_s}, and "
            f"model {first.model} was made {after_s:.3f} s after the clock began"
        )


def _disagrees(what: str) -> RunError:
    return RunError(f"{what}; restore matching files")
