"""The events of a benchmark run, as MLPerf's rules of training v2.1 name them.

Source: MLPerf training rules v2.1, and the rules of its compliance checker
(``training_2.1.0``: common, closed_common, closed_minigo, open_minigo).

Each event has the time at which it happened, and they are in the order of time. The
clock stops when the first model that passes is made. What is off the clock therefore
stands behind ``run_stop``: the training of later models, and all evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tengen.observe.mlperf.benchmark import BenchmarkRun

__all__ = ["ORGANISATION", "STATUS", "Event", "make_events", "open_because"]

ORGANISATION = "tengen"
"""Who submits: nobody does, and one who would writes an own name."""
STATUS = "research"
"""The checker's word for a system that is not for sale."""

_UNFINISHED = "the run is not over"


@dataclass(frozen=True, kw_only=True)
class Event:
    """A line of the log."""

    time_ms: int
    """UNIX milliseconds."""
    kind: Literal["event", "start", "end"]
    """A point in time, or an end of an interval."""
    key: str
    """MLPerf's name of it."""
    value: Any = None
    """A JSON value."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What belongs to it, JSON values."""


def make_events(run: BenchmarkRun) -> list[Event]:
    """Returns the events of a run so far, in the order of time.

    A model's number is its ``epoch_num``, in training and in evaluation. A run that is
    not over has no ``run_stop``; one that no model passed in has ``aborted`` as its
    status there.

    Args:
        run: What its files say.
    """
    told = [
        *_submission(run),
        *_settings(run),
        *_clock(run),
        *_training(run),
        *_evaluation(run),
        *_stop(run),
    ]
    # Stable: of one millisecond the events stay in the order above.
    return sorted(told, key=lambda event: event.time_ms)


def open_because(run: BenchmarkRun) -> tuple[str, ...]:
    """Returns what keeps a run out of the closed division; empty where nothing does."""
    return (_UNFINISHED,) if run.result is None else run.result.open_because


def _ms(time_s: float) -> int:
    return round(1000 * time_s)


def _submission(run: BenchmarkRun) -> Iterator[Event]:
    reasons = open_because(run)
    division = ("open", {"open_because": list(reasons)}) if reasons else ("closed", {})
    values: dict[str, tuple[Any, dict[str, Any]]] = {
        "submission_benchmark": ("minigo", {}),
        "submission_org": (ORGANISATION, {}),
        "submission_division": division,
        "submission_status": (STATUS, {}),
        "submission_platform": (run.platform, {}),
        # The checker wants the line. No run of tengen empties the system's caches.
        "cache_clear": (False, {}),
    }
    for key, (value, metadata) in values.items():
        yield Event(
            time_ms=_ms(run.clock.init_at),
            kind="event",
            key=key,
            value=value,
            metadata=metadata,
        )


def _settings(run: BenchmarkRun) -> Iterator[Event]:
    at_ms = _ms(run.clock.init_at)
    yield Event(time_ms=at_ms, kind="start", key="init_start")
    settings = run.settings
    values = {
        "train_batch_size": settings.batch_size,
        "lr_rates": list(settings.rates),
        "lr_boundaries": list(settings.boundaries),
        "opt_name": settings.optimizer,
        "opt_weight_decay": settings.weight_decay,
        # A step is of one batch, whatever parts its learners take.
        "gradient_accumulation_steps": 1,
        "seed": settings.seed,
        "min_selfplay_games_per_generation": settings.min_games,
        # The benchmark's samples are games, of a generation and of an evaluation.
        "train_samples": settings.min_games,
        "eval_samples": settings.target_games,
        "eval_games": settings.target_games,
    }
    for key, value in values.items():
        yield Event(time_ms=at_ms, kind="event", key=key, value=value)


def _clock(run: BenchmarkRun) -> Iterator[Event]:
    clock = run.clock
    if clock.init_ended_at is not None:
        yield Event(time_ms=_ms(clock.init_ended_at), kind="end", key="init_stop")
    if clock.clock_at is not None:
        yield Event(time_ms=_ms(clock.clock_at), kind="start", key="run_start")
    for at in clock.restarts_at:
        yield Event(time_ms=_ms(at), kind="event", key="restart")


def _training(run: BenchmarkRun) -> Iterator[Event]:
    for each in run.generations:
        epoch = {"epoch_num": each.model}
        began_ms = _ms(each.began_at)
        yield Event(time_ms=began_ms, kind="start", key="epoch_start", metadata=epoch)
        yield Event(
            time_ms=began_ms,
            kind="event",
            key="actual_selfplay_games_per_generation",
            value=each.num_games,
            metadata=epoch | {"generation": each.generation},
        )
        yield Event(
            time_ms=_ms(each.ended_at), kind="end", key="epoch_stop", metadata=epoch
        )


def _evaluation(run: BenchmarkRun) -> Iterator[Event]:
    for each in run.evaluated:
        epoch = {"epoch_num": each.model}
        ended_ms = _ms(each.ended_at)
        yield Event(
            time_ms=_ms(each.made_at),
            kind="event",
            key="save_model",
            value={"iteration": each.model},
            metadata=epoch,
        )
        yield Event(
            time_ms=_ms(each.began_at), kind="start", key="eval_start", metadata=epoch
        )
        yield Event(
            time_ms=ended_ms,
            kind="event",
            key="eval_accuracy",
            value=each.win_rate,
            metadata=epoch,
        )
        yield Event(time_ms=ended_ms, kind="end", key="eval_stop", metadata=epoch)


def _stop(run: BenchmarkRun) -> Iterator[Event]:
    if run.result is None:
        return
    first = run.passed
    if first is None:
        ends = [each.ended_at for each in run.generations]
        made = [each.made_at for each in run.evaluated]
        yield Event(
            time_ms=_ms(max([run.clock.clock_at or 0.0, *ends, *made])),
            kind="end",
            key="run_stop",
            metadata={"status": "aborted"},
        )
        return
    epoch = {"epoch_num": first.model}
    yield Event(
        time_ms=_ms(first.ended_at),
        kind="event",
        key="eval_result",
        value=first.win_rate,
        metadata=epoch | {"timestamp": run.result.passed_after_s},
    )
    yield Event(
        time_ms=_ms(first.made_at),
        kind="end",
        key="run_stop",
        metadata=epoch | {"status": "success"},
    )
