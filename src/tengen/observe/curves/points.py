"""Converts a run's events into points of its curves.

Curves have the names of CleanRL's TensorBoard tags, so dashboards made for CleanRL
work. Source: Huang et al. 2022, "CleanRL: High-quality Single-file Implementations of
Deep Reinforcement Learning Algorithms", and its documentation.

Differs from CleanRL: a return is the mean of the last 100 episodes, not of a single
episode; losses are averages over one turn of the learner; ``charts/SPS`` starts with
the first turn of the learner in a call. ``charts/evaluations_per_s`` is the number of
evaluations since the previous point, divided by the elapsed wall-clock time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tengen.observe.roles import is_number

_METRICS = {
    "baseline_loss": "losses/value_loss",
    "approximate_kl": "losses/approx_kl",
    "clip_fraction": "losses/clipfrac",
    "q": "losses/q_values",
    "learning_rate": "charts/learning_rate",
    "lag_steps": "charts/lag_steps",
    "policy_accuracy": "charts/policy_accuracy",
    "value_accuracy": "charts/value_accuracy",
    "too_old": "charts/too_old",
}
"""CleanRL's tags for tengen's loss and optimizer metrics whose names differ."""

_COUNTS = {
    "num_games": "charts/games",
    "num_episodes": "charts/episodes",
    "window_rows": "charts/window_rows",
}
"""Tags of the counts in the learner's table."""

_TOLD = {
    "played": {
        "mean_return": "charts/episodic_return",
        "mean_length": "charts/episodic_length",
        "cache_hit_share": "charts/cache_hit_share",
        "simulation_busy": "charts/simulation_share",
        "answer_wait": "charts/answer_wait_share",
        "room_wait": "charts/room_wait_share",
    },
    "served": {"wait_share": "charts/inference_wait_share"},
    # A gate that accepts every candidate reports no Elo difference.
    "judged": {
        "rating": "charts/rating",
        "rating_error": "charts/rating_error",
        "elo": "charts/gate_elo",
    },
}
"""Tags of the statistics in a role's report of a turn, by kind of turn and name."""

_DID = {
    "actor": "played",
    "selfplay": "played",
    "inference": "served",
    "rate": "judged",
    "gate": "judged",
}
"""The kind of turn (a key of ``_TOLD``) of each role."""

_RATIOS = {
    "played": ("num_plies", "num_games", "charts/game_length"),
    "served": ("batch_rows", "batch_capacity", "charts/batch_fill"),
}
"""Numerator, denominator and tag of a ratio of statistics, by the kind of turn."""

_MEANS = ("mean_return", "mean_length")

_NO_METRICS = frozenset(
    (
        "time_s",
        "turn_s",
        "num_steps",
        "total_steps",
        "checkpoint",
        "generation",
        "num_new",
        "steps_left",
        "idle_s",
        "seconds",
        "sample_wait_s",
        "train_s",
    )
)
"""Fields of the learner's reports that are progress or timing, and not metrics."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Values of some curves at one step."""

    step: int
    """Agent steps in environments (CleanRL's ``global_step``), learner steps in games;
    at least 0."""
    time_s: float
    """Time of the point, UNIX seconds."""
    values: Mapping[str, float]
    """Values by tag, such as ``charts/episodic_return``."""
    is_learned: bool = False
    """Whether the point is from a turn of the learner, not a rating or gate match."""
    learner_steps: int | None = None
    """Total learner steps, if the point is from a turn of the learner."""
    frames_per_step: float | None = None
    """Emulator frames per agent step, in environments that count frames."""
    restarts: bool = False
    """Whether the learner has just resumed from a checkpoint, which discards earlier
    points at this step or later."""


class PointMaker:
    """Creates points from the events of one call. Used by one thread at a time.

    Only the learner's events contain the step. So actors' values are held until the
    learner's next turn, and values such as a rating get the step of the learner's last
    turn.

    Args:
        in_environments: Whether the run steps environments.
    """

    def __init__(self, *, in_environments: bool) -> None:
        self._in_environments = in_environments
        self._step: int | None = None
        self._restarts = True
        self._waiting: dict[str, float] = {}
        self._begun: tuple[float, int] | None = None
        # Evaluations since the last point with their rate, and that point's time.
        self._evaluations = 0
        self._told_s: float | None = None
        self._frames_per_step: float | None = None
        # The latest mean return and length of each standalone actor, by index.
        self._of_each: dict[Any, dict[str, float]] = {}

    def take(self, event: Mapping[str, Any]) -> Point | None:
        """Processes the next event; returns the point that it completes, if any.

        Args:
            event: An event as stored in ``events/``. Kinds and roles without curves are
                ignored, and so are values that are not numbers.
        """
        role, time_s = event.get("role"), float(event["time_s"])
        if event.get("kind") == "death":
            # After a process's death the learner resumes from its last checkpoint.
            self._restarts = True
        if event.get("kind") != "turn":
            return None
        if self._told_s is None:
            turn_s = event.get("turn_s")
            self._told_s = time_s - (float(turn_s) if is_number(turn_s) else 0.0)
        if role == "learn":
            return self._after_learning(event)
        if (did := _DID.get(str(role))) is None:
            return None
        if role == "actor":
            event = {**event, **self._means(event)}
            if is_number(event.get("frames_per_step")):
                self._frames_per_step = float(event["frames_per_step"])
        if did == "played" and is_number(event.get("num_evaluations")):
            self._evaluations += int(event["num_evaluations"])
        self._waiting.update(_told(event, did))
        return self.rest(time_s) if did == "judged" else None

    def rest(self, time_s: float) -> Point | None:
        """Returns a point with the held values; None if there are no values or no step.

        Args:
            time_s: Time of the point, UNIX seconds.
        """
        values = self._values(time_s)
        if self._step is None or values is None:
            return None
        return Point(step=self._step, time_s=time_s, values=values)

    def _values(self, time_s: float) -> dict[str, float] | None:
        """Returns and clears the held values; None if there are none or no step."""
        if self._step is None or not self._waiting:
            return None
        if self._evaluations and self._told_s is not None and time_s > self._told_s:
            rate = self._evaluations / (time_s - self._told_s)
            self._waiting["charts/evaluations_per_s"] = rate
            self._evaluations, self._told_s = 0, time_s
        values, self._waiting = self._waiting, {}
        return values

    def _means(self, event: Mapping[str, Any]) -> dict[str, float]:
        """Returns the mean return and length of all actors' latest episodes, if known.

        A standalone actor reports its ``index`` and means of its own episodes; other
        events contain means over all actors.
        """
        told = {
            name: float(event[name]) for name in _MEANS if is_number(event.get(name))
        }
        if "index" not in event:
            return told
        self._of_each.setdefault(event["index"], {}).update(told)
        means = {}
        for name in _MEANS:
            found = [one[name] for one in self._of_each.values() if name in one]
            if found:
                means[name] = sum(found) / len(found)
        return means

    def _after_learning(self, event: Mapping[str, Any]) -> Point | None:
        table, time_s = event.get("table"), float(event["time_s"])
        counts = table if isinstance(table, dict) else {}
        num_rows = counts.get("num_rows")
        step = num_rows if self._in_environments else event.get("total_steps")
        values = {
            tag: float(counts[count])
            for count, tag in _COUNTS.items()
            if is_number(counts.get(count))
        }
        if event.get("num_steps"):
            values.update(_learned(event))
            if self._in_environments:
                values["charts/learner_steps"] = float(event.get("total_steps", 0))
        if not self._in_environments and is_number(num_rows):
            values["charts/rows"] = float(num_rows)
        if is_number(num_rows) and self._begun is not None:
            # Agent steps per second since the first turn that reported rows.
            begun_s, begun_rows = self._begun
            speed = (num_rows - begun_rows) / max(1e-9, time_s - begun_s)
            values["charts/SPS"] = speed
        elif is_number(num_rows):
            self._begun = time_s, int(num_rows)
        self._waiting.update(values)
        if not is_number(step):
            return None
        self._step = int(step)
        total = event.get("total_steps")
        restarts, self._restarts = self._restarts, False
        return Point(
            step=self._step,
            time_s=time_s,
            values=self._values(time_s) or {},
            is_learned=True,
            learner_steps=int(total) if is_number(total) else None,
            frames_per_step=self._frames_per_step,
            restarts=restarts,
        )


def _told(event: Mapping[str, Any], did: str) -> dict[str, float]:
    values = {
        tag: float(event[name])
        for name, tag in _TOLD[did].items()
        if is_number(event.get(name))
    }
    over, under, tag = _RATIOS.get(did, ("", "", ""))
    if is_number(event.get(over)) and is_number(event.get(under)) and event[under]:
        values[tag] = event[over] / event[under]
    return values


def _learned(event: Mapping[str, Any]) -> dict[str, float]:
    values = {
        _tag(name, event): float(value)
        for name, value in event.items()
        if is_number(value) and name not in _NO_METRICS
    }
    validation = event.get("validation")
    if isinstance(validation, dict):
        for name, value in validation.items():
            if is_number(value):
                tag = _tag(name, validation)
                values[f"validation/{tag.rpartition('/')[2]}"] = float(value)
    return values


def _tag(name: str, report: Mapping[str, Any]) -> str:
    """Returns the TensorBoard tag of a metric of the learner.

    Args:
        name: The metric's name in the loss or optimizer; custom agents may use any
            name.
        report: All metrics in the same report of the learner.
    """
    if name == "loss" and "td_error" in report:
        return "losses/td_loss"
    return _METRICS.get(name, f"losses/{name}")
