"""What a benchmark run writes into ``RUN/eval/target``: each file, read and checked.

Times are UNIX seconds. Keys that are not declared here are passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tengen.config import check, check_range, field_types, from_dict
from tengen.errors import RunError, UsageError, os_reason
from tengen.observe.roles import of_agent
from tengen.run import RunDirectory, find_files, read_object

__all__ = [
    "Clock",
    "Evaluated",
    "TargetResult",
    "TrainedGeneration",
    "read_clock",
    "read_evaluated",
    "read_generations",
    "read_result",
    "read_target",
    "target_line",
]

T = TypeVar("T")

_SCHEMA = 1
# Of some thousand years from now, and of a game's number.
_MOST_S = 1e11
_MOST = 10**12
# Of a hundred thousand generations.
_MOST_BYTES = 64 << 20
_TARGET = re.compile(r"([0-9]{6,18})\.json")
_ADVICE = "restore it from a copy"


@dataclass(frozen=True, kw_only=True)
class Clock:
    """``clock.json``: when the parts of a run began."""

    init_at: float
    """When the call began that made the first model."""
    init_ended_at: float | None = None
    """When the initialisation ended; None while it has not."""
    clock_at: float | None = None
    """When the clock began to run; None while it has not."""
    restarts_at: tuple[float, ...] = ()
    """When later calls began."""

    def __post_init__(self) -> None:
        last = 0.0
        for name in ("init_at", "init_ended_at", "clock_at"):
            value = getattr(self, name)
            if value is not None:
                check_range(name, value, last, _MOST_S)
                last = value
            elif name == "init_ended_at":
                check(self.clock_at is None, name, None, "must come before clock_at")
        for at in self.restarts_at:
            check_range("restarts_at", at, self.init_at, _MOST_S)


@dataclass(frozen=True, kw_only=True)
class TrainedGeneration:
    """A line of ``generations.jsonl``: a generation that was learned from."""

    generation: int
    """Its number; below 0 of games that were imported."""
    model: int
    """The model that was made."""
    num_games: int
    """Games of the generation."""
    began_at: float
    """When learning began."""
    ended_at: float
    """When it ended."""

    def __post_init__(self) -> None:
        check_range("generation", self.generation, -_MOST, _MOST)
        for name in ("model", "num_games"):
            check_range(name, getattr(self, name), 0, _MOST)
        check_range("began_at", self.began_at, 0, _MOST_S)
        check_range("ended_at", self.ended_at, self.began_at, _MOST_S)


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """``NNNNNN.json``: a model's games against the target."""

    model: int
    """Its number."""
    win_rate: float
    """Share of the games that it won, in [0, 1]."""
    made_at: float
    """When the model was made."""
    began_at: float
    """When the games began."""
    ended_at: float
    """When they ended."""

    def __post_init__(self) -> None:
        check_range("model", self.model, 0, _MOST)
        check_range("win_rate", self.win_rate, 0, 1)
        check_range("made_at", self.made_at, 0, _MOST_S)
        check_range("began_at", self.began_at, self.made_at, _MOST_S)
        check_range("ended_at", self.ended_at, self.began_at, _MOST_S)


@dataclass(frozen=True, kw_only=True)
class TargetResult:
    """``result.json``: the result of the run."""

    win_rate: float
    """What a model must reach, in [0, 1]."""
    clock_at: float | None
    """When the clock began; None where nobody noted it."""
    iterations: int
    """Models that the run was to have."""
    passed: int | None
    """The first model that reached it; None where none has."""
    passed_after_s: float | None
    """Seconds of the clock until that model was made; None where none passed."""
    is_closed: bool
    """Whether the run was made by the rules of the closed division."""
    open_because: tuple[str, ...] = ()
    """What was not as those rules want it; empty in the closed division."""

    def __post_init__(self) -> None:
        check_range("win_rate", self.win_rate, 0, 1)
        check_range("iterations", self.iterations, 0, _MOST)
        if self.clock_at is not None:
            check_range("clock_at", self.clock_at, 0, _MOST_S)
        if self.passed is not None:
            check_range("passed", self.passed, 0, _MOST)
        if self.passed_after_s is not None:
            check_range("passed_after_s", self.passed_after_s, 0, _MOST_S)
        has_time = self.passed_after_s is not None
        rule = "must be there where a model passed by the clock, and only there"
        check(
            has_time == (self.passed is not None and self.clock_at is not None),
            "passed_after_s",
            self.passed_after_s,
            rule,
        )
        rule = "must be empty in the closed division, and only there"
        named = list(self.open_because)
        check(self.is_closed == (not named), "open_because", named, rule)


def read_clock(folder: Path) -> Clock | None:
    """Returns ``clock.json`` of a folder; None where there is none.

    Raises:
        UsageError: It is of a newer schema.
        RunError: It is damaged.
    """
    path = folder / "clock.json"
    return _take(Clock, path, _object(path)) if path.exists() else None


def read_result(folder: Path) -> TargetResult | None:
    """Returns ``result.json`` of a folder; None where there is none.

    Raises:
        UsageError: It is of a newer schema.
        RunError: It is damaged.
    """
    path = folder / "result.json"
    return _take(TargetResult, path, _object(path)) if path.exists() else None


def read_evaluated(folder: Path) -> list[Evaluated]:
    """Returns the models that met the target, in order of their numbers.

    Raises:
        UsageError: A file is of a newer schema.
        RunError: One is damaged, or is named after another model.
    """
    found = []
    for path in find_files(folder, "*.json"):
        named = _TARGET.fullmatch(path.name)
        if named is None:
            continue
        each = _take(Evaluated, path, _object(path))
        if each.model != int(named[1]):
            raise _damaged(path, f"model ({each.model}) is not that of its name")
        found.append(each)
    return sorted(found, key=lambda each: each.model)


def read_generations(folder: Path) -> list[TrainedGeneration]:
    """Returns the generations that were learned from, in order.

    Of a generation that a kill had learned from twice the last line counts.

    Raises:
        RunError: ``generations.jsonl`` is damaged, or cannot be read.
    """
    path = folder / "generations.jsonl"
    if not path.exists():
        return []
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise RunError(
            f"{path.name} ({path}) cannot be read, {os_reason(error)}; {_ADVICE}"
        ) from error
    if len(data) > _MOST_BYTES:
        raise _damaged(path, f"it has more than {_MOST_BYTES} bytes")
    found: dict[int, TrainedGeneration] = {}
    for number, line in enumerate(data.splitlines(), 1):
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise _damaged(path, f"line {number} is no JSON object")
        each = _take(TrainedGeneration, path, content)
        found[each.generation] = each
    return [found[number] for number in sorted(found)]


def _object(path: Path) -> dict[str, Any]:
    return read_object(path, path.name, schema=_SCHEMA, advice=_ADVICE)


def _take(cls: type[T], path: Path, content: Mapping[str, Any]) -> T:
    """Returns the declared keys of a file; raises RunError where they are not right."""
    known = {name: content[name] for name in field_types(cls) if name in content}
    try:
        return from_dict(cls, known)
    except UsageError as error:
        # The advice is for who types a value.
        raise _damaged(path, str(error).rpartition(";")[0] or str(error)) from None


def _damaged(path: Path, what: str) -> RunError:
    return RunError(f"{path.name} ({path}) is damaged, {what}; {_ADVICE}")


def read_target(run: RunDirectory) -> dict[str, Any] | None:
    """Returns the progress as JSON values; None without a target.

    Keys: ``opponent``, ``num_models`` (those that are to be trained),
    ``num_evaluated``, ``has_result``, and of a result ``win_rate``, ``passed`` and
    ``passed_after_s``.

    Raises:
        UsageError: A file is of a newer schema.
        RunError: One is damaged.
    """
    config = run.read_run()["config"]
    target = of_agent(config, "target") or {}
    if not target.get("opponent"):
        return None
    folder = run.eval / "target"
    num_models = of_agent(config, "iterations") or 0
    result = read_result(folder)
    is_current = result is not None and result.iterations == num_models
    found = {
        "opponent": target["opponent"],
        "num_models": num_models,
        "num_evaluated": len(read_evaluated(folder)) if folder.is_dir() else 0,
        "has_result": is_current,
    }
    if result is not None and is_current:
        for name in ("win_rate", "passed", "passed_after_s"):
            found[name] = getattr(result, name)
    return found


def target_line(found: Mapping[str, Any]) -> str:
    """Returns what ``read_target`` found as a line for people."""
    opponent = found["opponent"]
    if not found["has_result"]:
        return (
            f"{found['num_evaluated']} of {found['num_models']} models have met "
            f"{opponent}"
        )
    if found["passed"] is None:
        return (
            f"no model of {found['num_evaluated']} has reached "
            f"{found['win_rate']:g} against {opponent}"
        )
    after_s = found["passed_after_s"]
    after = "" if after_s is None else f", {after_s:,.1f} s after training began"
    return (
        f"model {found['passed']:06d} is the first to reach {found['win_rate']:g} "
        f"against {opponent}{after}"
    )
