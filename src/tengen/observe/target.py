"""The result of a run's matches with a target: ``RUN/eval/target/result.json``."""

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

T = TypeVar("T")

TARGET_SCHEMA = 1
"""Schema version of files in ``RUN/eval/target``, and the newest that can be read."""
RECORD_FILE = re.compile(r"([0-9]{6,18})\.json")
"""Pattern of a match record's file name, such as ``000017.json`` for model 17."""
MAX_TIME_S = 1e11
"""The maximum Unix time in these files, in seconds; thousands of years from now."""
_MAX_NUMBER = 10**12
_ADVICE = "restore it from a copy"


@dataclass(frozen=True, kw_only=True)
class TargetResult:
    """The result of a run's matches against its target."""

    schema: int = TARGET_SCHEMA
    """Version of the file."""
    target: str = ""
    """The opponent, as in the run's config."""
    win_rate: float
    """The minimum score per game with which a model passes, in [0, 1]."""
    num_games: int = 0
    """Number of games that each model plays against the target."""
    num_models: int = 0
    """Number of models that were evaluated."""
    clock_at: float | None
    """Start of training in Unix seconds; None if it was not recorded."""
    iterations: int
    """Number of models that the run was configured to train."""
    passed: int | None
    """The first model that reached ``win_rate``; None if no model has reached it."""
    passed_after_s: float | None
    """Seconds of training until model ``passed``; None if it is unknown."""
    smoothed_after_s: float | None = None
    """Seconds of training until a curve through the results of all models crosses
    ``win_rate``; None if the curve does not cross it."""
    confirmation: dict[str, Any] | None = None
    """Result of the confirming match of the model that passed: ``num_games``, ``wins``,
    ``draws``, ``losses`` and ``win_rate``."""
    is_closed: bool
    """Whether the run followed the rules of MLPerf's closed division."""
    open_because: tuple[str, ...] = ()
    """The violations of the closed division's rules; empty if there are none."""

    def __post_init__(self) -> None:
        """Checks the ranges of the fields.

        Raises:
            UsageError: A field is out of its range, or contradicts another field.
        """
        check_range("win_rate", self.win_rate, 0, 1)
        check_range("iterations", self.iterations, 0, _MAX_NUMBER)
        # ``passed_after_s`` may be negative, because the clocks of hosts may differ.
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
            "must be set if and only if a model passed and the clock is known",
        )
        rule = "must be empty if and only if the division is closed"
        named = list(self.open_because)
        check(self.is_closed == (not named), "open_because", named, rule)


def read_result(folder: Path) -> TargetResult | None:
    """Returns the result in a folder, or None if the folder has no ``result.json``.

    Raises:
        UsageError: The file has a newer schema.
        RunError: The file is damaged.
    """
    path = folder / "result.json"
    if not path.exists():
        return None
    content = read_object(path, path.name, schema=TARGET_SCHEMA, advice=_ADVICE)
    return read_fields(TargetResult, path, content)


def read_fields(
    cls: type[T], path: Path, content: Mapping[str, Any], advice: str = _ADVICE
) -> T:
    """Returns a dataclass built from a file's content. Ignores unknown keys.

    Args:
        cls: The dataclass.
        path: The file.
        content: The JSON object in the file, or in one of its lines.
        advice: What to do if the file is damaged.

    Raises:
        RunError: A value is missing or does not match the class's declaration.
    """
    known = {name: content[name] for name in field_types(cls) if name in content}
    try:
        return from_dict(cls, known)
    except UsageError as error:
        # Replace the error's own advice, which is for users who type the value.
        what = str(error).rpartition(";")[0] or str(error)
        raise damaged_file(path, what, advice) from None


def damaged_file(path: Path, what: str, advice: str = _ADVICE) -> RunError:
    """Returns the error for a damaged file in ``RUN/eval/target``."""
    return RunError(f"{path.name} ({path}) is damaged, {what}; {advice}")


def read_target(run: RunDirectory) -> dict[str, Any] | None:
    """Returns the progress of a run's target matches as JSON; None without a target.

    Keys: ``opponent``, ``num_models`` (number of models to train), ``num_evaluated``,
    ``has_result``, and with a result ``win_rate``, ``passed`` and ``passed_after_s``.

    Raises:
        UsageError: A file has a newer schema.
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
    """Returns the progress from ``read_target`` as one human-readable line."""
    opponent = found["opponent"]
    if not found["has_result"]:
        return (
            f"{found['num_evaluated']} of {found['num_models']} models have played "
            f"{opponent}"
        )
    if found["passed"] is None:
        return (
            f"no model of {found['num_evaluated']} has reached "
            f"{found['win_rate']:g} against {opponent}"
        )
    after_s = found["passed_after_s"]
    after = "" if after_s is None else f", {after_s:,.1f} s after training started"
    return (
        f"model {found['passed']:06d} is the first to reach {found['win_rate']:g} "
        f"against {opponent}{after}"
    )
