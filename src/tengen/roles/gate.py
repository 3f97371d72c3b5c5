"""Role ``gate``: one turn decides on the oldest candidate."""

from __future__ import annotations

from typing import Any

from tengen import games
from tengen.evaluation import AcceptAllGate, GateVerdict, ModelPlayer, judge
from tengen.inference import open_backend
from tengen.models import accept, load_model, reject
from tengen.roles.config import RunConfig
from tengen.roles.role import Report, RoleContext
from tengen.run import NumberedFolder, RunDirectory

__all__ = ["GateRole"]


class GateRole:
    """Accepts or rejects candidates by rename; see ``Role``.

    Args:
        config: The run's config.
        run: The run.
        context: Threads and stop.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        self._config = config
        self._run = run
        self._context = context

    def turn(self) -> Report | None:
        """Decides on the oldest candidate; None where there is none."""
        numbers = self._run.candidates.numbers()
        if not numbers:
            return None
        candidate = numbers[0]
        report: dict[str, Any] = {"candidate": candidate}
        champion = self._run.models.latest()
        if champion is not None and not isinstance(self._config.gate, AcceptAllGate):
            verdict = self._judge(candidate, champion)
            tally = verdict.tally
            report["match"] = [tally.wins, tally.draws, tally.losses]
            if not verdict.is_accepted:
                reject(self._run, candidate)
                return {**report, "accepted": False}
        accept(self._run, candidate)
        return {**report, "accepted": True}

    def close(self) -> None:
        """Holds nothing."""

    def _judge(self, candidate: int, champion: int) -> GateVerdict:
        """Plays the match. A stop waits for it: a gate's match takes seconds."""
        return judge(
            self._config.gate,
            games.make(self._config.task),
            self._player(self._run.candidates, candidate),
            self._player(self._run.models, champion),
            seed=self._config.seed + candidate,
            num_threads=self._context.num_threads,
        )

    def _player(self, folder: NumberedFolder, number: int) -> ModelPlayer:
        model = load_model(folder.entry(number))
        backend = open_backend(
            model.path, self._config.inference, self._context.num_threads
        )
        return ModelPlayer(f"{number:06d}", self._config.task, backend)
