"""Role ``selfplay``: one turn is one generation of games on one published model."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any

from tengen import _core, games
from tengen.actors import GenerationReport, SelfplayConfig, play_generation
from tengen.errors import RunError, UsageError
from tengen.inference import Backend, LaneBackend, open_backend
from tengen.models import load_model
from tengen.roles.config import RunConfig
from tengen.roles.generations import (
    begin_generation,
    claim_writer,
    sealed_generation,
    writer_directory,
)
from tengen.roles.role import Report, RoleContext
from tengen.run import RunDirectory
from tengen.store import ExperienceWriter, OpenSegment

__all__ = ["SelfplayRole"]


class SelfplayRole:
    """Plays generations; see ``Role``.

    A killed generation is continued: its durable games count, the others are played
    again from their own random streams, and the sealed segment comes out the same.

    Args:
        config: The run's config.
        run: The run.
        context: Threads, stop and progress.

    Raises:
        UsageError: The run has no self-play, or another process is its writer now.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        if not isinstance(config.actor, SelfplayConfig):
            raise UsageError(
                f"role (selfplay) is not part of a run of {config.agent}; use actor"
            )
        self._config = config
        self._actor = config.actor
        self._run = run
        self._context = context
        incarnation = run.new_incarnation("selfplay")
        if context.writer is None:
            self._writer = claim_writer(run, incarnation)
        else:
            folder = writer_directory(run, context.writer)
            self._writer = ExperienceWriter(folder, incarnation)
        self._game = games.make(config.task)
        self._backend: tuple[int, Backend] | None = None

    def turn(self) -> Report | None:
        """Plays a generation to its end; None where no model is published yet."""
        model = self._run.models.latest()
        if model is None:
            return None
        sealed = sealed_generation(self._writer.directory)
        if self._context.sealed is not None and sealed > self._context.sealed:
            return self._sealed_before(sealed, model)
        backend = self._load(model)
        generation, recorded, segment = begin_generation(
            self._run, self._writer, self._config.task
        )
        finished = recorded.indices
        num_games = self._actor.games_per_generation
        queue = _core.GameQueue(
            seed=self._config.seed,
            generation=generation,
            model=model,
            num_games=num_games,
            # It may have had more games when it began.
            finished=[index for index in finished if index < num_games],
        )
        played = self._play(queue, segment, backend, len(finished))
        stopped = self._context.stop.is_set()
        if not stopped:
            self._seal(generation)
        return {
            "generation": generation,
            "model": model,
            "stopped": stopped,
            "num_games": played.num_games + len(finished),
            "num_recovered": len(finished),
            "journal_gaps": [str(gap) for gap in recorded.gaps],
            "notes": backend.notes if isinstance(backend, LaneBackend) else [],
            **_shown(played),
        }

    def close(self) -> None:
        """Lets another process play for the run."""
        self._writer.release()

    def _sealed_before(self, generation: int, model: int) -> Report:
        """The report of a turn that was killed after its games were sealed."""
        nothing = dict.fromkeys((f.name for f in fields(GenerationReport)), 0)
        return {
            "generation": generation,
            "model": model,
            "stopped": False,
            "num_games": self._actor.games_per_generation,
            "num_recovered": 0,
            "journal_gaps": [],
            **_shown(GenerationReport(**nothing)),
        }

    def _seal(self, generation: int) -> None:
        """Seals a generation that is whole on the disk."""
        wanted = self._actor.games_per_generation
        num_kept = len(self._writer.recorded_games(generation).indices)
        if num_kept < wanted:
            raise RunError(
                f"generation ({generation}) must have {wanted} games on the disk, not "
                f"{num_kept}; run the same command again, it plays the others again"
            )
        self._writer.seal(generation)

    def _load(self, model: int) -> Backend:
        if self._backend is None or self._backend[0] != model:
            directory = load_model(self._run.models.entry(model))
            made = open_backend(
                directory.path, self._config.inference, self._context.num_threads
            )
            self._backend = (model, made)
        return self._backend[1]

    def _play(
        self,
        queue: _core.GameQueue,
        segment: OpenSegment,
        backend: Backend,
        num_recovered: int,
    ) -> GenerationReport:
        start_s = time.monotonic()

        def on_progress(num_games: int, num_evaluations: int) -> None:
            if self._context.stop.is_set():
                queue.stop()
            self._context.progress(
                {
                    "stage": "self-play",
                    "num_games": num_recovered + num_games,
                    "num_recovered": num_recovered,
                    "num_evaluations": num_evaluations,
                    "seconds": time.monotonic() - start_s,
                }
            )

        try:
            return play_generation(
                self._game,
                self._actor,
                backend,
                queue,
                segment.sink,
                num_threads=self._context.num_threads,
                on_progress=on_progress,
            )
        finally:
            segment.close()


def _shown(played: GenerationReport) -> dict[str, Any]:
    threads_s = played.threads_s
    return {
        "num_plies": played.num_plies,
        "num_rows": played.num_rows,
        "num_simulations": played.num_simulations,
        "num_evaluations": played.num_evaluations,
        "num_cache_hits": played.num_cache_hits,
        "batch_rows": played.batch_rows,
        "seconds": played.seconds,
        "batch_capacity": played.batch_capacity,
        "inference_busy": played.inference_s / threads_s,
        "tree_busy": played.tree_s / threads_s,
    }
