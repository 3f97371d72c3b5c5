"""Role ``export``: one turn makes a candidate of the newest checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen import games
from tengen.inference import choose, open_backend
from tengen.learners.checkpoint import read_model
from tengen.models import ModelExporter, ModelMeta, check_export, publish_model
from tengen.models.load import read_meta
from tengen.models.publish import next_number
from tengen.roles.config import RunConfig, record_inference
from tengen.roles.role import Report, RoleContext
from tengen.run import RunDirectory

__all__ = ["ExportRole"]

_CHECK_ROWS = 128


class ExportRole:
    """Exports the averaged weights of checkpoints that no model has yet; see ``Role``.

    Each exported model is compared with its torch source, on positions of games,
    before anyone sees it.

    Args:
        config: The run's config.
        run: The run.
        context: Threads.

    Raises:
        UsageError: Another process exports for this run.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        self._config = config
        self._run = run
        self._context = context
        self._lock = run.lock("export")
        self._exporter = ModelExporter(run.path / "templates")
        # Environments have no positions to compare on.
        self._planes: NDArray[np.float32] | None = None
        if config.actor.kind == "selfplay":
            self._planes = games.random_positions(
                games.make(config.task), _CHECK_ROWS, config.seed
            )

    def turn(self) -> Report | None:
        """Exports the newest checkpoint; None where it is exported already."""
        number = self._run.checkpoints.latest()
        if number is None:
            return None
        saved = read_model(self._run.checkpoints.entry(number))
        if saved.num_steps <= _exported_steps(self._run):
            return None
        meta = ModelMeta(
            task=self._config.task,
            agent=self._config.agent,
            net=saved.net,
            features=saved.features,
            generation=int(saved.extra["generation"]),
            num_steps=saved.num_steps,
            num_samples=saved.num_samples,
            sha256={},
        )
        # Not the checkpoint's: one that was taken out by hand is made again.
        candidate = next_number(self._run)
        checks: list[dict[str, float]] = []

        def check(directory: Path) -> None:
            if self._planes is not None:
                checks.append(self._check(directory, meta.features.num_actions))

        publish_model(
            self._run.candidates, candidate, meta, saved.tensors, self._exporter, check
        )
        return {"candidate": candidate, "check": checks[0] if checks else {}}

    def close(self) -> None:
        """Lets another process export."""
        self._lock.release()

    def _check(self, directory: Path, num_actions: int) -> dict[str, float]:
        assert self._planes is not None
        inference = self._config.inference
        if inference.has_auto:
            choice = choose(
                directory,
                inference,
                self._planes,
                num_actions,
                self._context.num_threads,
            )
            self._config = record_inference(self._run, choice)
            inference = choice.config
        backend = open_backend(directory, inference, 1)
        return check_export(directory, backend, self._planes, num_actions).record()


def _exported_steps(run: RunDirectory) -> int:
    """Returns the learner steps of the newest model of any kind, -1 without one."""
    newest = -1
    for folder in (run.candidates, run.rejected, run.models):
        number = folder.latest()
        if number is not None:
            newest = max(newest, read_meta(folder.entry(number)).num_steps)
    return newest
