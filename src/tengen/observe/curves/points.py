"""Turns a run's events into points of its curves, named as CleanRL names them.

The names are those of CleanRL's TensorBoard files, so that the same dashboards read
both. Source: Huang et al. 2022, "CleanRL: High-quality Single-file Implementations of
Deep Reinforcement Learning Algorithms", and its documentation.

Differs from CleanRL: a return is the mean of the last hundred episodes, not of each
one; losses are means over a turn of learning; ``charts/SPS`` counts from the first turn
of learning of a call. ``charts/evaluations_per_s`` is by the clock too: the evaluations
since the point before, over the seconds since then, whatever the run did in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from tengen.observe.roles import needed_roles

__all__ = [
    "ActorMeans",
    "Point",
    "PointMaker",
    "has_actors",
    "is_number",
    "tag_of_metric",
]

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
"""Metrics of a loss or an optimizer that have another name in CleanRL."""

_COUNTS = {
    "num_games": "charts/games",
    "num_episodes": "charts/episodes",
    "window_rows": "charts/window_rows",
}
"""Totals of the learner's table."""

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
"""Figures of a turn of learning that say how far and how fast it went."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """Some curves' values at one step."""

    step: int
    """In environments agent steps, CleanRL's ``global_step``; in games learner steps.
    At least 0."""
    time_s: float
    """The time of the point, unix seconds."""
    values: Mapping[str, float]
    """The values by tag, such as ``charts/episodic_return``."""


def has_actors(content: Mapping[str, Any]) -> bool:
    """Returns whether a run steps environments; else it plays games.

    Args:
        content: What ``run.json`` holds.
    """
    return "actor" in needed_roles(dict(content))


def tag_of_metric(name: str, report: Mapping[str, Any]) -> str:
    """Returns the tag of a metric of learning.

    Args:
        name: The metric's name in the loss or optimizer; a user's own agent may use any
            name.
        report: All metrics, of which a loss of errors of values is known.
    """
    if name == "loss" and "td_error" in report:
        return "losses/td_loss"
    return _METRICS.get(name, f"losses/{name}")


class ActorMeans:
    """The latest means over the episodes of all actors, from their turns."""

    def __init__(self) -> None:
        self._of_each: dict[Any, dict[str, float]] = {}

    def take(self, event: Mapping[str, Any]) -> dict[str, float]:
        """Returns ``mean_return`` and ``mean_length``, where they are known.

        Args:
            event: An actor's turn. An actor that runs by itself reports its ``index``
                and only its own episodes; otherwise the means are already over all
                actors.
        """
        names = ("mean_return", "mean_length")
        told = {n: float(event[n]) for n in names if is_number(event.get(n))}
        if "index" not in event:
            return told
        self._of_each.setdefault(event["index"], {}).update(told)
        means = {}
        for name in names:
            found = [one[name] for one in self._of_each.values() if name in one]
            if found:
                means[name] = sum(found) / len(found)
        return means


class PointMaker:
    """Makes points of the events of one call, in order. Used by one thread at a time.

    Only the learner knows the step. So values of actors wait for the learner's next
    turn, and values of a model, such as its rating, get the step of the last turn.

    Args:
        in_environments: Whether the run steps environments.
    """

    def __init__(self, *, in_environments: bool) -> None:
        self._in_environments = in_environments
        self._step: int | None = None
        self._waiting: dict[str, float] = {}
        self._begun: tuple[float, int] | None = None
        # Evaluations since the last point that had their rate, and when that was.
        self._evaluations = 0
        self._told_s: float | None = None
        self._means = ActorMeans()

    def take(self, event: Mapping[str, Any]) -> Point | None:
        """Takes an event; returns the point that is complete with it, if any.

        Args:
            event: As in a file of ``events/``. Kinds and roles without numbers are
                ignored, and so are values that are not numbers.
        """
        role = event.get("role")
        if event.get("kind") != "turn":
            return None
        if self._told_s is None:
            turn_s = event.get("turn_s")
            turn_s = float(turn_s) if is_number(turn_s) else 0.0
            self._told_s = float(event["time_s"]) - turn_s
        if role == "learn":
            return self._after_learning(event)
        if role in ("actor", "selfplay"):
            means = self._means.take(event) if role == "actor" else {}
            self._waiting.update(_played({**event, **means}))
            if is_number(event.get("num_evaluations")):
                self._evaluations += int(event["num_evaluations"])
            return None
        if role == "inference":
            self._waiting.update(_served(event))
            return None
        if role in ("rate", "gate"):
            self._waiting.update(_judged(event))
            return self.rest(float(event["time_s"]))
        return None

    def rest(self, time_s: float) -> Point | None:
        """Returns a point of the waiting values; None without values or a known step.

        Args:
            time_s: The point's time, unix seconds.
        """
        if self._step is None or not self._waiting:
            return None
        if self._evaluations and self._told_s is not None and time_s > self._told_s:
            rate = self._evaluations / (time_s - self._told_s)
            self._waiting["charts/evaluations_per_s"] = rate
            self._evaluations, self._told_s = 0, time_s
        waiting, self._waiting = self._waiting, {}
        return Point(step=self._step, time_s=time_s, values=waiting)

    def _after_learning(self, event: Mapping[str, Any]) -> Point | None:
        table = event.get("table")
        counts = table if isinstance(table, dict) else {}
        name = "num_rows" if self._in_environments else "total_steps"
        step = (counts if self._in_environments else event).get(name)
        values = {
            tag: float(counts[count])
            for count, tag in _COUNTS.items()
            if is_number(counts.get(count))
        }
        if event.get("num_steps"):
            values.update(_learned(event))
            if self._in_environments:
                values["charts/learner_steps"] = float(event.get("total_steps", 0))
        if not self._in_environments and is_number(counts.get("num_rows")):
            values["charts/rows"] = float(counts["num_rows"])
        speed = self._speed(float(event["time_s"]), counts.get("num_rows"))
        if speed is not None:
            values["charts/SPS"] = speed
        self._waiting.update(values)
        if is_number(step):
            self._step = int(step)
            return self.rest(float(event["time_s"]))
        return None

    def _speed(self, time_s: float, num_rows: Any) -> float | None:
        """Returns agent steps a second since the first turn that reported any."""
        if not is_number(num_rows):
            return None
        if self._begun is None:
            self._begun = time_s, int(num_rows)
            return None
        begun_s, begun_rows = self._begun
        return (num_rows - begun_rows) / max(1e-9, time_s - begun_s)


def _learned(event: Mapping[str, Any]) -> dict[str, float]:
    values = {
        tag_of_metric(name, event): float(value)
        for name, value in event.items()
        if is_number(value) and name not in _NO_METRICS
    }
    validation = event.get("validation")
    if isinstance(validation, dict):
        for name, value in validation.items():
            if is_number(value):
                tag = tag_of_metric(name, validation)
                values[f"validation/{tag.rpartition('/')[2]}"] = float(value)
    return values


def _played(event: Mapping[str, Any]) -> dict[str, float]:
    told = {
        "charts/episodic_return": event.get("mean_return"),
        "charts/episodic_length": event.get("mean_length"),
        "charts/cache_hit_share": event.get("cache_hit_share"),
        "charts/simulation_share": event.get("simulation_busy"),
        "charts/answer_wait_share": event.get("answer_wait"),
        "charts/room_wait_share": event.get("room_wait"),
    }
    if event.get("num_games") and is_number(event.get("num_plies")):
        told["charts/game_length"] = event["num_plies"] / event["num_games"]
    return {tag: float(value) for tag, value in told.items() if is_number(value)}


def _served(event: Mapping[str, Any]) -> dict[str, float]:
    told = {"charts/inference_wait_share": event.get("wait_share")}
    if event.get("batch_capacity") and is_number(event.get("batch_rows")):
        told["charts/batch_fill"] = event["batch_rows"] / event["batch_capacity"]
    return {tag: float(value) for tag, value in told.items() if is_number(value)}


def _judged(event: Mapping[str, Any]) -> dict[str, float]:
    told = {
        "charts/rating": event.get("rating"),
        "charts/rating_error": event.get("rating_error"),
        # A gate that accepts everything plays no match and has no Elo difference.
        "charts/gate_elo": event.get("elo"),
    }
    return {tag: float(value) for tag, value in told.items() if is_number(value)}


def is_number(value: Any) -> TypeGuard[float]:
    """Returns whether a JSON value is a number, which true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
