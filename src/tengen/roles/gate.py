"""Role ``gate``: one turn decides on the oldest candidate."""

from __future__ import annotations

from typing import Any

from tengen import games
from tengen.evaluation import (
    AcceptAllGate,
    GateVerdict,
    MatchStopped,
    ModelPlayer,
    judge,
)
from tengen.evaluation.match import MAX_SEED
from tengen.inference import open_backend
from tengen.models import accept, load_model, reject
from tengen.roles.config import RunConfig
from tengen.roles.features import task_features
from tengen.roles.role import Report, RoleContext
from tengen.run import NumberedFolder, RunDirectory

__all__ = ["GateRole"]

_NUM_KEPT = 20
"""Models that stay where no experience names them: those that made unrolls, which are
removed once they were learned from, and those that were rejected and made none. Games
stay, and so do the models that played them."""


class GateRole:
    """Accepts or rejects candidates by rename; see ``Role``.

    Args:
        config: The run's config.
        run: The run.
        context: Threads and stop.

    Raises:
        UsageError: Another process is the gate of this run.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        self._config = config
        self._run = run
        self._context = context
        self._lock = run.lock("gate")
        self._features = task_features(config)

    def turn(self) -> Report | None:
        """Decides on the oldest candidate; None where there is none."""
        numbers = self._run.candidates.numbers()
        if not numbers:
            return None
        candidate = numbers[0]
        report: dict[str, Any] = {"candidate": candidate}
        champion = self._run.models.latest()
        if champion is not None and not isinstance(self._config.gate, AcceptAllGate):
            try:
                verdict = self._judge(candidate, champion)
            except MatchStopped:
                # The candidate waits; its match is played again from the first game.
                return {**report, "stopped": True}
            tally = verdict.tally
            report["match"] = [tally.wins, tally.draws, tally.losses]
            if not verdict.is_accepted:
                reject(self._run, candidate)
                self._run.rejected.retire(_NUM_KEPT)
                return {**report, "accepted": False}
        accept(self._run, candidate)
        if self._config.actor.kind == "environment":
            self._run.models.retire(_NUM_KEPT)
        return {**report, "accepted": True}

    def close(self) -> None:
        """Lets another process be the gate."""
        self._lock.release()

    def _judge(self, candidate: int, champion: int) -> GateVerdict:
        return judge(
            self._config.gate,
            games.make(self._config.task),
            self._player(self._run.candidates, candidate),
            self._player(self._run.models, champion),
            seed=(self._config.seed + candidate) % (MAX_SEED + 1),
            num_threads=self._context.num_threads,
            stop=self._context.stop.is_set,
        )

    def _player(self, folder: NumberedFolder, number: int) -> ModelPlayer:
        model = load_model(folder.entry(number), self._config.task, self._features)
        backend = open_backend(
            model.path, self._config.inference, self._context.num_threads
        )
        return ModelPlayer(f"{number:06d}", self._config.task, backend)
