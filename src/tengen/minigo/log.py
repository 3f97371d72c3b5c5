"""Writes the log of a benchmark run with MLPerf's package ``mlperf_logging``."""

from __future__ import annotations

import argparse
import importlib
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from tengen.config import check
from tengen.distribution import pip_install_extra
from tengen.minigo.benchmark import BenchmarkRun, read_benchmark
from tengen.observe.progress_line import ProgressLine
from tengen.run import RunDirectory, check_new_file, publish_file

_PACKAGE = "mlperf_logging"
# The folder that contains tengen, to which source paths in log lines are relative.
_ROOT = Path(__file__).parents[2]


def check_package() -> None:
    """Raises UsageError if ``mlperf_logging`` is not installed. Does not import it."""
    is_there = bool(sys.modules.get(_PACKAGE) or find_spec(_PACKAGE))
    line = pip_install_extra("mlperf")
    rule = f"is not installed, but is needed for the log; {line}"
    check(is_there, "package", _PACKAGE, rule)


def write_mllog(run: RunDirectory, path: Path | None = None) -> Path:
    """Publishes the complete log of a run. Blocks until the log is durable.

    The log's bytes depend only on the files of the run.

    Args:
        run: The run, which may still be in progress.
        path: The file to write; None for ``RUN/eval/result_0.txt``.

    Returns:
        The path of the log.

    Raises:
        UsageError: The package mlperf_logging is not installed, the run is not a
            benchmark run, or the folder of ``path`` does not exist.
        RunError: A file of the run is damaged, or the log cannot be written.
    """
    check_package()
    path = run.eval / "result_0.txt" if path is None else path
    check_new_file("out", path)
    lines = _render(make_events(read_benchmark(run)))
    publish_file(path, "".join(f"{line}\n" for line in lines).encode())
    return path


def _render(events: Sequence[Event]) -> list[str]:
    """Returns one log line per event."""
    package = importlib.import_module(f"{_PACKAGE}.mllog.mllog")
    lines = _Lines()
    # This logger has no parent, so only ``lines`` receives its messages.
    logger = logging.Logger("tengen.mllog", logging.INFO)
    logger.addHandler(lines)
    teller = package.MLLogger(logger, root_dir=re.escape(str(_ROOT)))
    for event in events:
        tell = getattr(teller, event.kind)
        metadata = dict(event.metadata)
        tell(event.key, event.value, metadata=metadata, time_ms=event.time_ms)
    return lines.told


class _Lines(logging.Handler):
    """A logging handler that stores the messages it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


ORGANISATION = "tengen"
"""Placeholder for the submitting organisation, to be replaced in a submission."""
STATUS = "research"
"""The submission status: in MLPerf's terms, a system that is not for sale."""

_UNFINISHED = "the run has not ended"


@dataclass(frozen=True, kw_only=True)
class Event:
    """One line of the log."""

    time_ms: int
    """Time of the event in UNIX milliseconds."""
    kind: Literal["event", "start", "end"]
    """Whether the event is a point in time, or the start or the end of an interval."""
    key: str
    """MLPerf's name of the event."""
    value: Any = None
    """The event's value, a JSON value."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Additional JSON values of the log line, by name."""


def make_events(run: BenchmarkRun) -> list[Event]:
    """Returns the events of a run so far, in order of time.

    The metadata ``epoch_num`` is the model's number, in training and in evaluation. An
    unfinished run has no event ``run_stop``. If no model passed, the status of
    ``run_stop`` is ``aborted``.

    Args:
        run: The content of the run's files.
    """
    told = [
        *_submission(run),
        *_settings(run),
        *_clock(run),
        *_training(run),
        *_evaluation(run),
        *_stop(run),
    ]
    # The sort is stable, so events of the same millisecond keep the order above.
    return sorted(told, key=lambda event: event.time_ms)


def open_because(run: BenchmarkRun) -> tuple[str, ...]:
    """Returns the reasons why a run is not in MLPerf's closed division."""
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
        # MLPerf's checker requires this event. tengen does not clear caches.
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
        # Each learner step is one batch, even if several learners share the batch.
        "gradient_accumulation_steps": 1,
        "seed": settings.seed,
        "min_selfplay_games_per_generation": settings.min_games,
        # The benchmark's samples are games, per generation and per evaluation.
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen mllog``."""
    parser.add_argument("run", metavar="RUN", help="a run directory of the benchmark")
    parser.add_argument(
        "--out", metavar="FILE", help="the file to write (RUN/eval/result_0.txt)"
    )


def mllog(args: argparse.Namespace) -> dict[str, Any]:
    """Writes the log of a run and prints a summary.

    Returns:
        ``run``, ``log``, ``division``, ``open_because``, ``status`` (``success``,
        ``aborted``, or ``unfinished`` before the evaluation has ended), ``passed`` (the
        model's number) and ``passed_after_s``. Both are None if no model passed.

    Raises:
        UsageError: The package mlperf_logging is not installed, the run is not a
            benchmark run, or the folder of ``args.out`` does not exist.
        RunError: A file of the run is damaged, or the log cannot be written.
    """
    check_package()
    run = RunDirectory.open(args.run)
    with ProgressLine("reading the run"):
        path = write_mllog(run, None if args.out is None else Path(args.out))
    found = read_benchmark(run)
    reasons, passed = open_because(found), found.passed
    after_s = None if found.result is None else found.result.passed_after_s
    division = "open" if reasons else "closed"
    status, words = "unfinished", "not all models have been evaluated"
    if passed is not None:
        status = "success"
        words = f"model {passed.model} passed after {after_s:,.1f} s"
    elif found.result is not None:
        status, words = "aborted", "no model passed"
    if not args.json:
        print(f"{path}: {division} division, {words}")
    return {
        "run": str(run.path),
        "log": str(path),
        "division": division,
        "open_because": list(reasons),
        "status": status,
        "passed": None if passed is None else passed.model,
        "passed_after_s": after_s,
    }
