"""Role ``selfplay``: each turn plays a generation of games with published models."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from tengen import games
from tengen.actors import (
    GamesOfGeneration,
    GenerationReport,
    SelfplayConfig,
)
from tengen.agents.alphazero import AlphaZero
from tengen.errors import RunError, UsageError
from tengen.experience import (
    TRAIN_WRITER,
    ExperienceWriter,
    OpenGeneration,
    adopt_writer,
    begin_generation,
    claim_writer,
    has_orphan,
    sealed_generation,
    writer_directory,
)
from tengen.inference import parse_devices
from tengen.roles.config import RunConfig, newest_inference
from tengen.roles.config.launch import LaunchConfig
from tengen.roles.config.run_file import read_part
from tengen.roles.inputs import run_book
from tengen.roles.role import Report, Role, RoleContext, patiently
from tengen.roles.selfplay.earlier_games import check_resignation, fork_sources
from tengen.roles.selfplay.fitting import smaller_generations
from tengen.roles.selfplay.playing import PlayingProcesses, PlayingThreads
from tengen.run import RunDirectory, evict_mirrors

_SENT_S = 10.0
_PARTS_OF_PASS = 4
"""Number of parts in which a process seals its games of a pass. When the pass has its
games, each process has half an unsealed part on average, which wastes an eighth of the
pass. More parts would waste less, but each part costs games in flight a few plies."""


class SelfplayRole(Role):
    """Plays generations of games.

    Threads of this process play native games. Games in Python are played in the same
    number of processes, because threads would wait for the interpreter's lock.

    A killed generation is resumed. Its durable games count, and the other games are
    played again from their own seeds. With a single model, the sealed segment is
    identical to that of a generation that was not killed.

    Raises:
        UsageError: The run has no self-play, another process holds the writer, or this
            host lacks a GPU.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        agent = AlphaZero.of(config.agent, "selfplay")
        if agent.learn_from:
            raise UsageError(
                f"role (selfplay) is not part of a run that learns from the games of "
                f"{agent.learn_from}; run it there"
            )
        if config.inference.is_on_gpu:
            parse_devices("inference.devices", config.inference.devices)
        super().__init__(config, run, context)
        self._actor = agent.actor
        self._bootstrap = agent.bootstrap
        self._writer = _writer(run, context)
        self._held.callback(lambda: self._writer.release())
        self._game = games.open_game(config.task)
        self._book = run_book(config, run) if agent.actor.book_share else None
        self._threads = PlayingThreads(run, self._game, context, self._on_model)
        self._is_native = not games.is_external(self._game)
        self._processes: PlayingProcesses | None = None
        if not self._is_native and context.num_threads > 1:
            self._processes = PlayingProcesses(context)

    def turn(self) -> Report | None:
        """Plays a generation to completion; returns None if there is no model yet."""
        model = self._newest_model()
        if model is None:
            return None
        before = self._context.sealed
        sealed = sealed_generation(self._writer.directory)
        # On a mirror ``before`` is ignored, because the run's host may lag behind.
        mirror = self._context.mirror
        if mirror is None and before is not None and sealed > before:
            return self._sealed_before(sealed, model)
        self._take_over()
        adopted = self._adopted()
        try:
            return self._play(adopted or self._writer, model)
        finally:
            if adopted is not None:
                adopted.release()

    def _play(self, writer: ExperienceWriter, model: int) -> Report | None:
        """Plays the writer's unfinished generation, or a new one, to completion."""
        mirror = self._context.mirror
        begun = begin_generation(
            self._run,
            writer,
            self._config.task,
            None if mirror is None else mirror.next_generation,
        )
        if begun is None:
            self.waits_for = "" if mirror is None else mirror.waits_for
            return None
        generation, recorded, segment = begun
        finished = recorded.indices
        is_over = False
        num_wanted = self._actor.games_per_generation
        opened = OpenGeneration(
            writer,
            generation,
            self._config.task,
            segment,
            lambda: _new_incarnation(self._run),
        )
        try:
            may_resign, resignation = self._resignation(generation)
            wanted = GamesOfGeneration(
                task=self._config.task,
                config=self._played(model),
                directory=self._directory(model),
                inference=newest_inference(self._run, self._config),
                seed=self._config.seed,
                generation=generation,
                model=model,
                finished=finished,
                may_resign=may_resign,
                fork_sources=self._fork_sources(generation),
                openings=() if self._book is None else self._book.openings,
            )
            if self._processes is None:
                part_games = self._part_games()
                played, models, is_over, num_wanted = self._threads.play(
                    wanted,
                    opened,
                    part_games,
                    # The first trained model ends a generation of bootstrap games.
                    ends_with_model=part_games > 0 and self._is_bootstrap(model),
                )
            else:
                played, num_wanted = self._processes.play(wanted, opened)
                models = [model]
            self._context.write(opened.flush)
        finally:
            opened.close()
        stopped = self._context.stop.is_set()
        if not stopped:
            num_wanted = 0 if is_over else num_wanted
            self._context.write(lambda: self._seal(writer, generation, num_wanted))
            if mirror is not None and self._context.is_vouched:
                # The runner expects all games of an ended turn in the run directory.
                mirror.wait_until_sent(_SENT_S)
        return {
            "generation": generation,
            "model": models[-1],
            "stopped": stopped,
            "num_games": opened.num_appended + len(finished),
            **({"num_sealed": opened.recorded().num_sealed} if stopped else {}),
            "num_recovered": len(finished),
            "journal_gaps": [str(gap) for gap in recorded.gaps],
            **_shown(played),
            **self._cache_hits(played),
            **resignation,
            **self._fitted(played, num_wanted),
            **({"models": models} if len(models) > 1 else {}),
        }

    def _is_bootstrap(self, model: int) -> bool:
        """Returns whether games played with ``model`` are bootstrap games."""
        is_random = model == 0 and not self._config.learner.initial_model
        return self._bootstrap is not None and is_random

    def _played(self, model: int) -> SelfplayConfig:
        """Returns the self-play settings of games that begin with ``model``."""
        if self._bootstrap is None or not self._is_bootstrap(model):
            return self._actor
        return self._bootstrap.played(self._actor)

    def close(self) -> None:
        """Ends the playing processes, and releases the writer for another process."""
        if self._processes is not None:
            self._processes.close()
        super().close()

    def _sealed_before(self, generation: int, model: int) -> Report:
        """Returns the report for a turn that was killed after it sealed its games."""
        return {
            "generation": generation,
            "model": model,
            "stopped": False,
            "num_games": self._actor.games_per_generation,
            "num_recovered": 0,
            "journal_gaps": [],
            **_shown(GenerationReport()),
        }

    def _take_over(self) -> None:
        """Switches to a dead process's writer if this one's generations are sealed."""
        context = self._context
        is_free = not context.is_vouched and context.mirror is None
        if not is_free or self._writer.unsealed():
            return
        if has_orphan(self._run):
            self._writer.release()
            self._writer = claim_writer(
                self._run, self._run.new_incarnation("selfplay")
            )

    def _adopted(self) -> ExperienceWriter | None:
        """Returns the writer of a dead process, to use for one turn, or None.

        Only the first self-play process of ``tengen train`` adopts writers, and only if
        all generations of its own writer are sealed.
        """
        context = self._context
        is_first = context.is_vouched and context.index == 0
        if context.mirror is not None or not is_first:
            return None
        if self._writer.unsealed():
            return None
        count = self._num_processes()
        return adopt_writer(
            self._run,
            lambda: self._run.new_incarnation("selfplay"),
            TRAIN_WRITER + (count if context.at_once else 1),
        )

    def _part_games(self) -> int:
        """Returns the number of games after which a part is sealed; 0: no parts.

        The learner can begin when ``store.games_of_model`` games of a model are sealed.
        Concurrent processes that sealed only complete generations would play many more
        games than the learner needs.
        """
        context, num_games = self._context, self._config.store.games_of_model
        if num_games == 0 or not context.follow_models or context.mirror is not None:
            return 0
        return max(1, num_games // (_PARTS_OF_PASS * max(1, self._num_processes())))

    def _num_processes(self) -> int:
        """Returns the role's current number of processes; see ``tengen scale``."""
        return read_part(self._run, "launch", LaunchConfig).of("selfplay").count

    def _on_model(self, wanted: GamesOfGeneration, model: int) -> GamesOfGeneration:
        return dataclasses.replace(
            wanted,
            directory=self._directory(model),
            inference=newest_inference(self._run, self._config),
            model=model,
        )

    def _directory(self, model: int) -> Path:
        return self._config.load_model(self._run.models.entry(model)).path

    def _fitted(self, played: GenerationReport, num_wanted: int) -> Report:
        """Fits the next generations to the time limit; returns the changed settings."""
        context, before = self._context, self._actor
        if context.generation_s is None or context.stop.is_set():
            return {}
        player = self._threads if self._processes is None else self._processes
        game_s = player.work_s / max(1, played.num_games)
        self._actor = smaller_generations(
            before,
            context.num_threads,
            context.generation_s,
            game_s,
            num_wanted,
            is_native=self._is_native,
        )
        if self._actor == before:
            return {}
        num_games = before.games_per_generation
        return {
            "fitted": {
                "games_per_generation": self._actor.games_per_generation,
                "num_slots": self._actor.num_slots,
                "game_s": round(game_s, 4),
                "generation_s": context.generation_s,
                "num_rows": played.num_rows,
            },
            "told": f"generations have {self._actor.games_per_generation} games, not "
            f"{num_games}, which would take {game_s * num_games:.0f} s here, so that "
            "more generations fit into the time budget",
        }

    def _seal(self, writer: ExperienceWriter, generation: int, wanted: int) -> None:
        """Seals a generation if at least ``wanted`` games are on the disk."""
        num_kept = len(writer.recorded_games(generation).indices)
        if num_kept < wanted:
            raise RunError(
                f"generation ({generation}) must have {wanted} games on the disk, not "
                f"{num_kept}; run the same command again to play the others again"
            )
        writer.seal(generation)

    def _fork_sources(self, generation: int) -> list[tuple[str, list[int]]]:
        if self._actor.early_fork_share + self._actor.late_fork_share == 0:
            return []
        return fork_sources(self._run.experience, generation)

    def _resignation(self, generation: int) -> tuple[bool, Report]:
        """Returns whether a generation may resign, with the counts behind it."""
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
        """Returns the evaluation caches' hit rate as a report; empty without caches."""
        if self._actor.cache_mib == 0:
            return {}
        return {"cache_hit_share": played.cache_hit_share}


def _writer(run: RunDirectory, context: RoleContext) -> ExperienceWriter:
    """Opens the writer of this process under a new incarnation."""
    if context.mirror is not None:
        folder = writer_directory(run, context.mirror.place.index)
        return ExperienceWriter(folder, context.mirror.new_incarnation())
    incarnation = run.new_incarnation("selfplay")
    if not context.is_vouched:
        writer = claim_writer(run, incarnation)
    else:
        number = TRAIN_WRITER + context.index
        folder = writer_directory(run, number)
        # Evict and retry, because a mirror of an earlier call or lost host may hold the
        # writer, or the first self-play process may have adopted it for a turn.
        evict_mirrors(run, "selfplay", number)
        writer = patiently(lambda: ExperienceWriter(folder, incarnation), context)
    run.forget_incarnations("selfplay", incarnation)
    return writer


def _new_incarnation(run: RunDirectory) -> int:
    """Returns a new incarnation of role selfplay, and forgets earlier incarnations."""
    incarnation = run.new_incarnation("selfplay")
    run.forget_incarnations("selfplay", incarnation)
    return incarnation


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
