"""Role ``selfplay``: one turn is one generation of games on one published model."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tengen import _core, games
from tengen.actors import (
    GamesOfGeneration,
    GenerationReport,
    SelfplayConfig,
    SelfplayProcesses,
    play_generation,
)
from tengen.errors import RunError, UsageError
from tengen.inference import Backend, open_backend
from tengen.models import load_model
from tengen.nets import game_features
from tengen.roles.config import RunConfig
from tengen.roles.generations import (
    begin_generation,
    claim_writer,
    sealed_generation,
    writer_directory,
)
from tengen.roles.resignation import check_resignation
from tengen.roles.role import Report, RoleContext
from tengen.run import RunDirectory
from tengen.store import ExperienceWriter, OpenSegment

__all__ = ["SelfplayRole"]


class SelfplayRole:
    """Plays generations; see ``Role``.

    Native games are played by threads of this process. A game in Python would hold the
    interpreter's lock for all of them, so it is played by as many processes.

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
                f"role (selfplay) is not part of a run of {config.agent}; use tengen "
                "train, which runs its actor and learner"
            )
        if config.learn_from:
            raise UsageError(
                f"role (selfplay) is not part of a run that learns from the games of "
                f"{config.learn_from}; run it there"
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
        self._variants = games.variants_of(config.task, self._actor.variety)
        self._features = game_features(self._game)
        self._backend: tuple[int, Backend] | None = None
        self._processes: SelfplayProcesses | None = None
        if games.is_external(self._game) and context.num_threads > 1:
            self._processes = SelfplayProcesses(context.num_threads)

    def turn(self) -> Report | None:
        """Plays a generation to its end; None where no model is published yet."""
        model = self._run.models.latest()
        if model is None:
            return None
        sealed = sealed_generation(self._writer.directory)
        if self._context.sealed is not None and sealed > self._context.sealed:
            return self._sealed_before(sealed, model)
        generation, recorded, segment = begin_generation(
            self._run, self._writer, self._config.task
        )
        finished = recorded.indices
        unfinished = self._writer.unfinished_games(generation)
        try:
            may_resign, resignation = self._resignation(generation)
            wanted = GamesOfGeneration(
                task=self._config.task,
                config=self._actor,
                directory=self._directory(model),
                inference=self._config.inference,
                seed=self._config.seed,
                generation=generation,
                model=model,
                # It may have had more games when it began.
                finished=[i for i in finished if i < self._actor.games_per_generation],
                may_resign=may_resign,
            )
            if self._processes is None:
                played = self._play_in_threads(wanted, segment, unfinished)
            else:
                on_progress = self._watch(len(finished), self._processes.stop)
                played = self._processes.play(wanted, segment.append, on_progress)
        finally:
            segment.close()
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
            **_shown(played),
            **self._cache_hits(played),
            **resignation,
        }

    def close(self) -> None:
        """Lets another process play for the run."""
        if self._processes is not None:
            self._processes.close()
        self._writer.release()

    def _sealed_before(self, generation: int, model: int) -> Report:
        """The report of a turn that was killed after its games were sealed."""
        return {
            "generation": generation,
            "model": model,
            "stopped": False,
            "num_games": self._actor.games_per_generation,
            "num_recovered": 0,
            "journal_gaps": [],
            **_shown(GenerationReport()),
        }

    def _directory(self, model: int) -> Path:
        entry = self._run.models.entry(model)
        return load_model(entry, self._config.task, self._features).path

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

    def _resignation(self, generation: int) -> tuple[bool, Report]:
        """Whether games may be resigned, and the report of why; empty where never."""
        if self._actor.resign_above >= 1.0:
            return False, {}
        check = check_resignation(self._run, self._game, self._actor, generation)
        may_resign = check.allows(self._actor.resign_max_false_share)
        return may_resign, {
            "may_resign": may_resign,
            "num_resignations_checked": check.num_checked,
            "num_resignations_false": check.num_false,
        }

    def _cache_hits(self, played: GenerationReport) -> Report:
        """What the caches saved; empty where there are none."""
        if self._actor.cache_mib == 0:
            return {}
        return {"cache_hit_share": played.cache_hit_share}

    def _play_in_threads(
        self,
        wanted: GamesOfGeneration,
        segment: OpenSegment,
        unfinished: list[bytes],
    ) -> GenerationReport:
        def keep(games: list[bytes]) -> None:
            # What was finished since is in the journal.
            segment.flush()
            self._writer.keep_unfinished(wanted.generation, games)

        queue = _core.GameQueue(
            seed=wanted.seed,
            generation=wanted.generation,
            model=wanted.model,
            num_games=wanted.config.games_per_generation,
            finished=list(wanted.finished),
            may_resign=wanted.may_resign,
            variants=self._variants,
            unfinished=unfinished,
        )
        played = play_generation(
            self._game,
            wanted.config,
            self._open(wanted),
            queue,
            segment.sink,
            num_threads=self._context.num_threads,
            on_progress=self._watch(len(wanted.finished), queue.stop),
            on_unfinished=keep,
        )
        return dataclasses.replace(played, num_gone_on_with=queue.num_begun)

    def _open(self, wanted: GamesOfGeneration) -> Backend:
        if self._backend is None or self._backend[0] != wanted.model:
            made = open_backend(
                wanted.directory, wanted.inference, self._context.num_threads
            )
            self._backend = (wanted.model, made)
        return self._backend[1]

    def _watch(
        self, num_recovered: int, stop: Callable[[], None]
    ) -> Callable[[int, int], None]:
        """Returns what takes counts while games are played, and stops when asked to."""
        start_s = time.monotonic()

        def on_progress(num_games: int, num_evaluations: int) -> None:
            if self._context.stop.is_set():
                stop()
            self._context.progress(
                {
                    "stage": "self-play",
                    "num_games": num_recovered + num_games,
                    "num_recovered": num_recovered,
                    "num_evaluations": num_evaluations,
                    "seconds": time.monotonic() - start_s,
                }
            )

        return on_progress


def _shown(played: GenerationReport) -> dict[str, Any]:
    threads_s = played.threads_s
    return {
        "num_gone_on_with": played.num_gone_on_with,
        "num_plies": played.num_plies,
        "num_rows": played.num_rows,
        "num_simulations": played.num_simulations,
        "num_evaluations": played.num_evaluations,
        "num_cache_hits": played.num_cache_hits,
        "batch_rows": played.batch_rows,
        "seconds": played.seconds,
        "batch_capacity": played.batch_capacity,
        **({"warning": "; ".join(played.notes)} if played.notes else {}),
        "inference_busy": played.inference_s / threads_s,
        "tree_busy": played.tree_s / threads_s,
    }
