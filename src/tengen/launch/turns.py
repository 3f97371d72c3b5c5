"""The part of the schedule in which roles take turns.

::

    while budget is left:
        learn, export, gate           # nothing to do unless a generation is new; an
                                      # epoch a turn, until it is learned from;
                                      # shuffle before them where it draws the batches
        selfplay (or actor)           # one generation on the newest model
        rate, now and then

Every turn continues from what is published, so the same loop resumes whatever killed
the last call. In environments actor and learner are in one process, and the actor uses
the learner's network in memory; a checkpoint and a model are written every few seconds,
and at the end. On a CPU each turn uses all cores: self-play and learning never compete
for caches, and a seed gives the same run.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tengen.errors import RunError
from tengen.experience.games.files import experience_files
from tengen.launch.taking import TurnTaker
from tengen.roles import with_games

__all__ = ["Turns"]

_POLL_S = 0.5
_PLAYING_SHARE = 0.5


class Turns(TurnTaker):
    """The schedule of turns. Used by one thread."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts, at_once=False)
        self._learning_s = 0.0
        self._playing_s = 0.0
        self._has_begun = False
        self._games_seen: set[Path] = set()

    def run(self) -> None:
        """Takes turns until the budget is spent or the run is stopped."""
        if self._run.checkpoints.latest() is None:
            # Makes the first model; imported games may be learned from before any game.
            self._learn()
        while not self._stop.event.is_set():
            self._learn()
            self._journal.end_generation()
            self._rate()
            if self._is_over():
                if self._schedule.is_shared:
                    # What the last turns learned but did not save becomes a model.
                    self._learn(saves=True)
                return
            if not self._schedule.acting:
                self._wait_for_games()
            else:
                self._play()
            self._has_begun = True

    def _learn(self, *, saves: bool = False) -> None:
        if self._spending.is_trained():
            return
        start_s = time.monotonic()
        for role in self._schedule.learning:
            report = self._take(role, saves=saves)
            if role == "learn":
                self._count_frames(report)
                self._learn_rest(report)
        # The first turns of a call start processes, so their times are not typical.
        if self._has_begun:
            self._learning_s = time.monotonic() - start_s

    def _count_frames(self, report: dict[str, Any] | None) -> None:
        """Sets the frames from the table: a killed process may have lost some."""
        table = {} if report is None else report.get("table", {})
        if self._schedule.counts_frames and "num_rows" in table:
            self._spending.count_frames(table["num_rows"])

    def _learn_rest(self, report: dict[str, Any] | None) -> None:
        """Takes turns until the whole generation is learned from, as in one turn.

        If other processes play meanwhile that might never happen, so the first turn
        that takes in new games is the last before a model is made.
        """
        while report is not None and report.get("steps_left"):
            report = self._take("learn")
            if report is not None and report.get("num_new"):
                return

    def _is_over(self) -> bool:
        # A generation is played only if it can be learned from before the end.
        return self._spending.is_over(self._playing_s + self._learning_s)

    def _play(self) -> None:
        start_s = time.monotonic()
        acting = self._schedule.acting
        self._spending.begin_turn(self._crew.of_role(acting).name)
        report = self._take(acting)
        self._playing_s = time.monotonic() - start_s
        if report is None:
            raise RunError(
                f"role ({acting}) found no model to play with; see {self._run.logs}"
            )

    def _wait_for_games(self) -> None:
        """Returns once the other run has sealed games, or this run is to end."""
        experience = with_games(self._config, self._run).experience
        self._spending.begin_work()
        start_s = time.monotonic()
        while not self._stop.event.is_set() and not self._is_over():
            found = set(experience_files(experience, "npz"))
            if found != self._games_seen:
                self._games_seen = found
                break
            self._stop.event.wait(_POLL_S)
        self._journal.waited(time.monotonic() - start_s)

    def _rate(self) -> None:
        """Rates the newest model when its share of the time allows it."""
        share, elapsed_s = self._schedule.rating_share, self._spending.elapsed_s
        if not share or self._stop.event.is_set():
            return
        if self._rated_s <= share * elapsed_s and elapsed_s:
            self._take(self._schedule.rating)

    def _take(self, role: str, *, saves: bool = False) -> dict[str, Any] | None:
        if self._stop.event.is_set():
            return {"stopped": True}
        return self._turn(
            self._crew.of_role(role),
            role,
            saves=saves or not self._schedule.is_shared,
            generation_s=self._generation_s(),
        )

    def _generation_s(self) -> float | None:
        """Returns the seconds that playing a generation may take; None for any time."""
        whole_s = self._spending.generation_s
        total_s = self._playing_s + self._learning_s
        # Before both are known, playing is taken to be half of a generation's time.
        is_known = self._playing_s > 0.0 and self._learning_s > 0.0
        share = self._playing_s / total_s if is_known else _PLAYING_SHARE
        return None if whole_s is None else whole_s * share
