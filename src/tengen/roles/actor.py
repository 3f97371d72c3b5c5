"""Role ``actor``: one turn steps environments for some unrolls on the newest model."""

from __future__ import annotations

import time
from typing import Any

from tengen import envs
from tengen.actors import EnvironmentActorConfig, EnvironmentPort, environment_seed
from tengen.errors import RunError, UsageError
from tengen.inference import drive, open_backend
from tengen.models import load_model
from tengen.roles.config import RunConfig
from tengen.roles.features import task_features
from tengen.roles.role import Report, RoleContext
from tengen.roles.table import open_unrolls
from tengen.run import RunDirectory

__all__ = ["ActorRole"]

WRITER = "actor-0"


class ActorRole:
    """Makes unrolls; see ``Role``. It shares the learner's process and its queue.

    Args:
        config: The run's config.
        run: The run.
        context: The process's tables.

    Raises:
        UsageError: The run has no environments.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        if not isinstance(config.actor, EnvironmentActorConfig):
            raise UsageError(
                f"role (actor) is not part of a run of {config.agent}; use tengen train"
            )
        self.waits_for = ""
        self._config = config
        self._run = run
        self._context = context
        self._queue = open_unrolls(config, run, context)
        first = self._queue.next_sequence(WRITER)
        seed = environment_seed(config.seed, first)
        self._features = task_features(config)
        self._env = envs.make(config.task, config.actor.num_envs, seed)
        self._port = EnvironmentPort(
            self._env,
            config.actor,
            self._queue,
            writer=WRITER,
            seed=config.seed,
            first_sequence=first,
        )

    def turn(self) -> Report | None:
        """Makes a turn's unrolls; None where no model is published yet."""
        model = self._run.models.latest()
        self.waits_for = "no model is published yet" if model is None else ""
        if model is None:
            return None
        directory = load_model(
            self._run.models.entry(model),
            self._config.task,
            self._features,
            error=RunError,
        )
        backend = open_backend(directory.path, self._config.inference, 1)
        port, before = self._port, self._counts()
        port.begin(directory.meta.num_steps)
        start_s = time.monotonic()
        stats = drive(port, backend.bind(port.planes, port.policy, port.value))
        self._queue.flush()  # what a turn has made outlives a kill
        seconds = max(1e-9, time.monotonic() - start_s)
        after = self._counts()
        grown = {name: after[name] - before[name] for name in after}
        return {
            **grown,
            "model": model,
            "num_evaluations": stats.num_evaluations,
            "batch_rows": stats.num_evaluations / max(1, stats.num_batches),
            "batch_capacity": len(port.planes),
            "inference_busy": stats.inference_s / seconds,
            "tree_busy": stats.port_s / seconds,
            "mean_return": port.stats.mean_return,
            "seconds": seconds,
        }

    def close(self) -> None:
        """Closes the environments."""
        self._env.close()

    def _counts(self) -> dict[str, Any]:
        stats = self._port.stats
        return {
            "num_games": stats.num_unrolls,
            "num_rows": stats.num_frames,
            "num_episodes": stats.num_episodes,
        }
