"""From the roles' reports to one Progress: for the view, ``status`` and the events."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

from tengen.observe import EventWriter, Progress, Shares, View, verdict

__all__ = ["RunJournal"]


class RunJournal:
    """Takes every report of a call, in order. Used by one thread.

    Args:
        view: Shows progress.
        events: Keeps every report and, after each generation, the progress.
        batch_capacity: Rows that an inference batch can hold.
        seconds_left: Returns the seconds left of the budget, None without one.
        last: The progress of the call before, to go on counting from.
    """

    def __init__(
        self,
        view: View,
        events: EventWriter,
        *,
        batch_capacity: int,
        seconds_left: Callable[[], float | None],
        last: Progress | None,
    ) -> None:
        self._view = view
        self._events = events
        self._capacity = batch_capacity
        self._seconds_left = seconds_left
        self._start_s = time.monotonic()
        self._state = dataclasses.replace(
            last or Progress(generation=0, elapsed_s=0.0), stage="starting", verdict=""
        )
        self._spans: dict[str, float] = {}
        self._busy: dict[str, float] = {}
        self._turn_games = 0
        self._rows = self._state.num_rows or 0
        self._games = self._state.num_games or 0
        self._episodes = self._state.num_episodes or 0

    @property
    def progress_now(self) -> Progress:
        """The newest state."""
        return self._stamped(self._state)

    def progress(self, report: Mapping[str, Any]) -> None:
        """Takes counts from within a turn and shows them; cheap."""
        changes: dict[str, Any] = {"stage": report.get("stage", self._state.stage)}
        if "num_games" in report:
            changes["num_games"] = self._games + report["num_games"]
        if "loss" in report:
            changes["loss"] = report["loss"]
        self._view.update(self._stamped(dataclasses.replace(self._state, **changes)))

    def report(self, role: str, report: Mapping[str, Any], seconds: float) -> None:
        """Takes a turn's report and writes it as an event."""
        self._events.write("turn", role=role, turn_s=round(seconds, 3), **report)
        for gap in report.get("journal_gaps", ()):
            self._view.message(gap)
        self._spans[role] = self._spans.get(role, 0.0) + seconds
        changes: dict[str, Any] = {}
        if role == "selfplay" and not report.get("stopped"):
            changes = self._after_selfplay(report, seconds)
        elif role == "actor" and not report.get("stopped"):
            changes = self._after_acting(report, seconds)
        elif role == "learn":
            if report.get("num_steps"):
                changes["loss"] = report.get("loss")
                changes["num_steps"] = report.get("total_steps")
        elif role == "rate" and "rating" in report:
            changes = {
                "rating": report["rating"],
                "rating_error": report["rating_error"],
            }
        self._state = dataclasses.replace(self._state, **changes)
        self._view.update(self.progress_now)

    def end_generation(self) -> None:
        """Shows and keeps the generation that was played and learned from."""
        if "selfplay" not in self._spans and "actor" not in self._spans:
            return
        self._state = dataclasses.replace(
            self._state, stage="", verdict=self._verdict()
        )
        now = self.progress_now
        self._events.write("progress", **now.to_dict())
        self._view.generation(now)
        self._spans = {}

    def _after_selfplay(
        self, report: Mapping[str, Any], seconds: float
    ) -> dict[str, Any]:
        self._games += report["num_games"]
        self._rows += report["num_rows"]
        self._busy = {
            "inference": report["inference_busy"],
            "tree": report["tree_busy"],
            "fill": report["batch_rows"] / self._capacity,
        }
        return {
            "generation": report["generation"],
            "num_games": self._games,
            "num_rows": self._rows,
            "rows_per_s": report["num_rows"] / max(seconds, 1e-9),
            "evaluations_per_s": report["num_evaluations"] / max(seconds, 1e-9),
            "batch_fill": self._busy["fill"],
        }

    def _after_acting(
        self, report: Mapping[str, Any], seconds: float
    ) -> dict[str, Any]:
        self._rows += report["num_rows"]
        self._episodes += report["num_episodes"]
        self._busy = {
            "inference": report["inference_busy"],
            "tree": report["actor_busy"],
            "fill": report["batch_rows"] / self._capacity,
        }
        return {
            "generation": self._state.generation + 1,
            "num_episodes": self._episodes,
            "num_rows": self._rows,
            "rows_per_s": report["num_rows"] / max(seconds, 1e-9),
            "evaluations_per_s": report["num_evaluations"] / max(seconds, 1e-9),
            "mean_return": report["mean_return"],
        }

    def _verdict(self) -> str:
        playing_s = self._spans.get("selfplay", 0.0) + self._spans.get("actor", 0.0)
        total_s = max(1e-9, sum(self._spans.values()))
        playing, learning = playing_s / total_s, self._spans.get("learn", 0.0) / total_s
        # Roles in turn: an actor's own thread evaluates, so that nobody waits for it,
        # and the learner's threads are busy while it has its turn.
        working = self._busy["inference"] + self._busy["tree"]
        return verdict(
            Shares(
                inference_busy=playing * self._busy["inference"],
                actors_wait=0.0,
                learner_idle=1.0 - learning,
                cores_busy=playing * working + learning,
                batch_fill=self._busy["fill"],
            )
        )

    def _stamped(self, state: Progress) -> Progress:
        return dataclasses.replace(
            state,
            elapsed_s=round(time.monotonic() - self._start_s, 2),
            eta_s=self._seconds_left(),
        )
