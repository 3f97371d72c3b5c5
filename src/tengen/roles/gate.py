"""Role ``gate``: one turn decides on the oldest candidate."""

from __future__ import annotations

from typing import Any

from tengen.evaluation import GateConfig, decide
from tengen.models import accept, load_model, reject
from tengen.models.load import read_meta
from tengen.roles.config import RunConfig
from tengen.roles.role import Report, RoleContext
from tengen.run import RunDirectory, publish_json

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
        newest = self._run.models.latest()
        report: dict[str, Any] = {"candidate": candidate}
        if newest is not None and self._config.gate.kind == "match":
            verdict = self._match(candidate, newest, self._config.gate)
            if verdict is None:
                return {**report, "stopped": True}
            report["match"] = verdict
            if not verdict["accepted"]:
                reject(self._run.candidates, self._run.rejected, candidate)
                return {**report, "accepted": False}
        model = accept(self._run.candidates, self._run.models, candidate)
        return {**report, "accepted": True, "model": int(model.path.name)}

    def close(self) -> None:
        """Holds nothing."""

    def _match(
        self, candidate: int, newest: int, gate: GateConfig
    ) -> dict[str, Any] | None:
        """Plays the match and keeps its record; None where it was stopped."""
        challenger = load_model(self._run.candidates.entry(candidate))
        holder = load_model(self._run.models.entry(newest))
        result = decide(
            self._config.task,
            challenger,
            holder,
            gate,
            inference=self._config.inference,
            seed=self._config.seed + read_meta(challenger.path).num_steps,
            num_threads=self._context.num_threads,
            stop=self._context.stop,
        )
        if result is None:
            return None
        record = result.to_dict()
        publish_json(self._run.eval / f"gate-{candidate:06d}.json", record)
        return record
