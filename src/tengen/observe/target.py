"""The result of a run whose models meet a target: ``RUN/eval/target/result.json``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tengen.config import check, check_range, field_types, from_dict
from tengen.errors import RunError, UsageError
from tengen.observe.roles import of_agent
from tengen.run import RunDirectory, find_files, read_object

__all__ = [
    "MAX_TIME_S",
    "RECORD_FILE",
    "TARGET_SCHEMA",
    "TargetResult",
    "damaged_file",
    "read_fields",
    "read_result",
    "read_target",
    "target_line",
]

T = TypeVar("T")

TARGET_SCHEMA = 1
"""The version of the files in ``RUN/eval/target``, and the newest that is read."""
RECORD_FILE = re.compile(r"([0-9]{6,18})\.json")
"""The name of the record of a model's match against the target."""
MAX_TIME_S = 1e11
"""The largest UNIX time in these files, some thousand years from now."""
_MAX_NUMBER = 10**12
_ADVICE = "restore it from a copy"


@dataclass(frozen=True, kw_only=True)
class TargetResult:
    """The result of the run."""

    schema: int = TARGET_SCHEMA
    """Version of the file."""
    target: str = ""
    """The opponent, as the run's config names it."""
    win_rate: float
    """The share of points that a model must reach, in [0, 1]."""
    num_games: int = 0
    """Games of each model."""
    num_models: int = 0
    """Number of models that were evaluated."""
    clock_at: float | None
    """When training began, UNIX seconds; None if that was not recorded."""
    iterations: int = 0
    """Number of models that the run was to have."""
    passed: int | None
    """The first model that reached ``win_rate``; None if none has."""
    passed_after_s: float | None
    """Seconds of training until that model was made; None if none passed."""
    smoothed_after_s: float | None = None
    """When a curve through the results of all models crosses ``win_rate``, in seconds
    of training; None if it does not."""
    confirmation: dict[str, Any] | None = None
    """The confirming match of the model that passed: ``num_games``, ``wins``,
    ``draws``, ``losses`` and ``win_rate``."""
    is_closed: bool
    """Whether the run followed the rules of MLPerf's closed division."""
    open_because: tuple[str, ...] = ()
    """What broke those rules; empty in the closed division."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range, or contradicts another.
        """
        check_range("win_rate", self.win_rate, 0, 1)
        check_range("iterations", self.iterations, 0, _MAX_NUMBER)
        # Below 0 where the clocks of two hosts differ by more.
        for name, least, most in (
            ("clock_at", 0, MAX_TIME_S),
            ("passed", 0, _MAX_NUMBER),
            ("passed_after_s", -MAX_TIME_S, MAX_TIME_S),
        ):
            if (value := getattr(self, name)) is not None:
                check_range(name, value, least, most)
        has_time = self.passed_after_s is not None
        check(
            has_time == (self.passed is not None and self.clock_at is not None),
            "passed_after_s",
            self.passed_after_s,
            "must be there if a model passed and the clock is known, and only then",
        )
        rule = "must be empty in the closed division, and only there"
        named = list(self.open_because)
        check(self.is_closed == (not named), "open_because", named, rule)


def read_result(folder: Path) -> TargetResult | None:
    """Returns ``result.json`` of a folder, or None if there is none.

    Raises:
        UsageError: It is of a newer schema.
        RunError: It is damaged.
    """
    path = folder / "result.json"
    if not path.exists():
        return None
    content = read_object(path, path.name, schema=TARGET_SCHEMA, advice=_ADVICE)
    return read_fields(TargetResult, path, content)


def read_fields(
    cls: type[T], path: Path, content: Mapping[str, Any], advice: str = _ADVICE
) -> T:
    """Returns a dataclass made of a file's content. Keys it does not declare are lost.

    Args:
        cls: The dataclass.
        path: The file.
        content: The JSON object in the file, or in one of its lines.
        advice: What to do if the file is damaged.

    Raises:
        RunError: A value is missing, or is not as the class declares it.
    """
    known = {name: content[name] for name in field_types(cls) if name in content}
    try:
        return from_dict(cls, known)
    except UsageError as error:
        # The error's own advice is for a person who types the value.
        what = str(error).rpartition(";")[0] or str(error)
        raise damaged_file(path, what, advice) from None


def damaged_file(path: Path, what: str, advice: str = _ADVICE) -> RunError:
    """Returns the error for a damaged file of the target."""
    return RunError(f"{path.name} ({path}) is damaged, {what}; {advice}")


def read_target(run: RunDirectory) -> dict[str, Any] | None:
    """Returns the progress of the matches as JSON values; None without a target.

    Keys: ``opponent``, ``num_models`` (those that are to be trained),
    ``num_evaluated``, ``has_result``, and with a result ``win_rate``, ``passed`` and
    ``passed_after_s``.

    Raises:
        UsageError: A file is of a newer schema.
        RunError: The result is damaged.
    """
    config = run.read_run()["config"]
    target = of_agent(config, "target") or {}
    if not target.get("opponent"):
        return None
    folder = run.eval / "target"
    num_models = of_agent(config, "iterations") or 0
    result = read_result(folder)
    is_current = result is not None and result.iterations == num_models
    names = (path.name for path in find_files(folder, "*.json"))
    found = {
        "opponent": target["opponent"],
        "num_models": num_models,
        "num_evaluated": sum(bool(RECORD_FILE.fullmatch(name)) for name in names),
        "has_result": is_current,
    }
    if is_current:
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
