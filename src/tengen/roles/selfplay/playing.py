"""Plays generations: native games in threads, games in Python in several processes.

If roles take turns, a generation is played with one model. Otherwise the role polls for
newer models and switches to them during a generation (KataGo's ``switchNetsMidGame``).
The new model is opened while games continue. Then each game goes back to its last full
search that began without a tree, and continues from that ply with the new model. The
game record has the model of each ply, so each ply can be replayed as in a generation
with one model. Games in Python keep their initial model.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable

from tengen import _core, games
from tengen.actors import (
    GamesOfGeneration,
    GenerationReport,
    SelfplayConfig,
    SelfplayProcesses,
    play_generation,
)
from tengen.errors import DiskFullError
from tengen.experience import OpenGeneration
from tengen.experience.games.journal import core_errors
from tengen.games import Game
from tengen.inference import Backend, open_backend, search_outputs
from tengen.roles.role import RoleContext
from tengen.roles.selfplay.fitting import WorkClock, fewer_games, first_slots
from tengen.run import RunDirectory

_LOOK_S = 1.0
"""Polling interval for newer models in seconds; each poll lists one folder."""


class PlayingThreads:
    """Plays generations, and caches the open model. Not thread-safe.

    Args:
        run: The run.
        game: The game.
        context: The number of threads, stop, progress and ``follow_models``.
        on_model: Returns the given games with the settings for a different model.
    """

    def __init__(
        self,
        run: RunDirectory,
        game: Game,
        context: RoleContext,
        on_model: Callable[[GamesOfGeneration, int], GamesOfGeneration],
    ) -> None:
        self._run = run
        self._game = game
        self._context = context
        self._on_model = on_model
        self._backend: tuple[int, Backend] | None = None
        self._looked_s = -math.inf
        self.work_s = 0.0
        """Time of the last call of ``play`` that counts towards ``generation_s``."""

    def play(
        self,
        wanted: GamesOfGeneration,
        opened: OpenGeneration,
        part_games: int = 0,
        *,
        ends_with_model: bool = False,
    ) -> tuple[GenerationReport, list[int], bool, int]:
        """Plays until all games have ended or the context's ``stop`` is set.

        If the disk is full, it waits like ``RoleContext.write``, with the games in
        flight in memory.

        Args:
            wanted: The games to play.
            opened: Receives finished games, and has a killed process's games in flight.
            part_games: Number of finished games after which a part is sealed while
                other games continue; 0: the caller seals all games at the end.
            ends_with_model: Whether a newer model ends the generation, which then has
                only the finished games.

        Returns:
            A report of the games played; the numbers of the models that played, in
            order; whether a newer model ended the generation; and the generation's
            number of games, which is reduced if all games would take too long.
        """
        unfinished = opened.unfinished()
        kept = opened.recorded()
        num_recovered = len(wanted.finished)
        played = GenerationReport()
        self.work_s = 0.0
        models = [wanted.model]
        num_begun: int | None = None
        while True:
            part = _Part(
                wanted,
                self._queue(wanted, unfinished),
                opened,
                # Unsealed games of earlier models count towards the part.
                part_games - opened.num_unsealed if part_games else 0,
                kept.num_sealed,
                self._context.follow_models
                and (ends_with_model or wanted.config.follows_models),
            )
            num_begun = part.queue.num_begun if num_begun is None else num_begun
            done = self._play_part(part, num_recovered, played)
            played = played.plus(done)
            is_over = part.newer is not None and ends_with_model
            if is_over or self._context.stop.is_set() or not part.queue.stopped:
                played = dataclasses.replace(played, num_gone_on_with=num_begun)
                return played, models, is_over, wanted.config.games_per_generation
            self._context.write(opened.flush)
            unfinished = part.queue.unfinished()
            if 0 < part_games <= opened.num_unsealed:
                self._context.write(functools.partial(part.keep, unfinished))
                self._context.write(opened.seal_part)
            kept = opened.recorded()
            wanted = dataclasses.replace(
                part.newer or wanted, config=part.wanted.config, finished=kept.indices
            )
            if part.newer is not None:
                models.append(wanted.model)
                self._context.say(f"continues with model {wanted.model}")

    def _play_part(
        self, part: _Part, num_recovered: int, before: GenerationReport
    ) -> GenerationReport:
        """Plays until the part is complete, a model is newer, or the disk is full."""
        # Open the model before the clock starts, because compilation is not play time.
        with core_errors():
            backend = self._open(part.wanted)
        clock, work_s = WorkClock(self._context), self.work_s
        count = _progress(
            self._context,
            part.wanted.config,
            num_recovered,
            before,
            lambda: work_s + clock.seconds,
            part.queue.stop,
            part.play_fewer,
            part.num_sealed,
        )

        def on_progress(num_games: int, num_evaluations: int) -> None:
            count(num_games, num_evaluations)
            if 0 < part.num_games <= num_games:
                part.queue.stop()
            part.newer = part.newer or self._newer(part)
            if part.newer is not None:
                self._open(part.newer)
                part.queue.stop()

        try:
            with core_errors():
                done = play_generation(
                    self._game,
                    part.wanted.config,
                    backend,
                    part.queue,
                    part.opened.sink,
                    num_threads=self._context.num_threads,
                    on_progress=on_progress,
                    on_unfinished=part.keep,
                )
        except DiskFullError:
            self.work_s = work_s + clock.read()  # without the wait for space
            # Finished games are not lost, because they are in the journal's queue.
            self._context.write(lambda: part.keep(part.queue.unfinished()))
            return GenerationReport()
        self.work_s = work_s + clock.read()
        return done

    def _queue(
        self, wanted: GamesOfGeneration, unfinished: list[bytes]
    ) -> _core.GameQueue:
        return _core.GameQueue(
            seed=wanted.seed,
            generation=wanted.generation,
            model=wanted.model,
            num_games=wanted.config.games_per_generation,
            # Leave out games beyond the generation's size, which may be reduced.
            finished=[
                index
                for index in wanted.finished
                if index < wanted.config.games_per_generation
            ],
            may_resign=wanted.may_resign,
            variants=games.variants_of(wanted.task, wanted.config.variety),
            unfinished=unfinished,
            fork_sources=list(wanted.fork_sources),
            openings=[list(opening) for opening in wanted.openings],
        )

    def _newer(self, part: _Part) -> GamesOfGeneration | None:
        """Returns the games with a newer model if the part must switch to one."""
        now_s = time.monotonic()
        if not part.follows_models or now_s - self._looked_s < _LOOK_S:
            return None
        self._looked_s = now_s
        latest = self._run.models.latest()
        if latest is None or latest <= part.wanted.model:
            return None
        return self._on_model(part.wanted, latest)

    def _open(self, wanted: GamesOfGeneration) -> Backend:
        if self._backend is None or self._backend[0] != wanted.model:
            outputs = search_outputs(scores=wanted.config.search.score_weight > 0)
            make = functools.partial(
                open_backend,
                wanted.directory,
                wanted.inference,
                self._context.num_threads,
                outputs=outputs,
            )
            if self._backend is None:
                with self._context.starting("compiling the network"):
                    made = make()
            else:
                made = make()  # while games continue
            self._backend = (wanted.model, made)
        return self._backend[1]


@dataclasses.dataclass
class _Part:
    """The part of a generation that is played with one model until play stops."""

    wanted: GamesOfGeneration
    queue: _core.GameQueue
    opened: OpenGeneration
    num_games: int
    """Number of finished games after which the part is sealed; 0: it is not sealed."""
    num_sealed: int
    """Number of the generation's games that are already sealed."""
    follows_models: bool
    """Whether a newer model ends the part."""
    newer: GamesOfGeneration | None = None
    """The same games with the newer model, which plays the next part."""

    def play_fewer(self, config: SelfplayConfig) -> None:
        """Ends the part early; the next part has the number of games of ``config``."""
        if not self.queue.stopped:
            self.wanted = dataclasses.replace(self.wanted, config=config)
            self.queue.stop()

    def keep(self, unfinished: list[bytes]) -> None:
        """Writes the games in flight to the disk."""
        self.opened.keep_unfinished(unfinished)


class PlayingProcesses:
    """Plays generations in processes that stay alive between calls. Not thread-safe.

    Args:
        context: The number of processes (``num_threads``), stop, progress, and the time
            limit per generation.
    """

    def __init__(self, context: RoleContext) -> None:
        self._context = context
        self._processes = SelfplayProcesses(context.num_threads)
        self._is_measured = False
        self.work_s = 0.0
        """Time of the last call of ``play`` that counts towards ``generation_s``."""

    def play(
        self, wanted: GamesOfGeneration, opened: OpenGeneration
    ) -> tuple[GenerationReport, int]:
        """Plays until all games have ended or the context's ``stop`` is set.

        If there is a time limit and the speed of the game is unknown, each process
        first plays a single game. Otherwise all games of a slow generation could begin
        before the first game ends, and then no game could be dropped.

        Args:
            wanted: The games to play.
            opened: Receives finished games.

        Returns:
            A report of the games played, and the generation's number of games, which is
            reduced if all games of ``wanted`` would take too long.
        """
        played = GenerationReport()
        self.work_s = 0.0
        num_recovered = len(wanted.finished)
        limit_s = self._context.generation_s
        if limit_s is not None and not self._is_measured:
            first = _first_games(wanted, self._context.num_threads)
            played, _ = self._play_part(first, opened, num_recovered, played)
            if self._context.stop.is_set():
                return played, wanted.config.games_per_generation
            self._is_measured = True
            self._context.write(opened.flush)
            game_s = self.work_s / max(1, played.num_games)
            config = first_slots(
                wanted.config, self._context.num_threads, limit_s, game_s
            )
            config = fewer_games(
                config,
                self._context.num_threads,
                limit_s,
                played.num_games,
                self.work_s,
                num_recovered,
            )
            num_games = config.games_per_generation
            kept = opened.recorded().indices
            wanted = dataclasses.replace(
                wanted,
                config=config,
                finished=[index for index in kept if index < num_games],
            )
        return self._play_part(wanted, opened, num_recovered, played)

    def close(self) -> None:
        """Ends the playing processes. A second call does nothing."""
        self._processes.close()

    def _play_part(
        self,
        wanted: GamesOfGeneration,
        opened: OpenGeneration,
        num_recovered: int,
        before: GenerationReport,
    ) -> tuple[GenerationReport, int]:
        """Plays the unfinished games of ``wanted``; see ``play``."""
        num_games = wanted.config.games_per_generation

        def play_fewer(config: SelfplayConfig) -> None:
            nonlocal num_games
            num_games = config.games_per_generation
            self._processes.play_fewer(num_games)

        clock, work_s = WorkClock(self._context), self.work_s
        on_progress = _progress(
            self._context,
            wanted.config,
            num_recovered,
            before,
            lambda: work_s + clock.seconds,
            self._processes.stop,
            play_fewer,
        )
        played = self._processes.play(wanted, opened.append, on_progress)
        self.work_s = work_s + clock.read()
        return before.plus(played), num_games


def _first_games(wanted: GamesOfGeneration, num_processes: int) -> GamesOfGeneration:
    """Returns ``wanted`` with only its first unfinished games, one per process."""
    num_games = wanted.config.games_per_generation
    left = sorted({*range(num_games)} - {*wanted.finished})[:num_processes]
    config = dataclasses.replace(
        wanted.config,
        games_per_generation=left[-1] + 1 if left else num_games,
        num_slots=1,
    )
    return dataclasses.replace(wanted, config=config)


def _progress(
    context: RoleContext,
    config: SelfplayConfig,
    num_recovered: int,
    before: GenerationReport,
    worked: Callable[[], float],
    stop: Callable[[], None],
    play_fewer: Callable[[SelfplayConfig], None],
    num_sealed: int = 0,
) -> Callable[[int, int], None]:
    """Returns a callback of self-play that reports game counts and limits the games.

    Args:
        context: Its ``progress`` receives the counts; its ``stop`` requests a stop, and
            its ``generation_s`` limits the time.
        config: The settings of the games.
        num_recovered: Number of games that were durable when the turn began.
        before: Report of the games that the turn has played so far.
        worked: Returns the time of the generation that counts towards the limit.
        stop: Called to stop play.
        play_fewer: Called with new settings if all games would take too long.
        num_sealed: Number of the generation's games that are already sealed.
    """
    start_s = time.monotonic()

    def on_progress(num_games: int, num_evaluations: int) -> None:
        nonlocal config
        if context.stop.is_set():
            stop()
        num_finished = before.num_games + num_games
        context.progress(
            {
                "stage": "self-play",
                "num_games": num_recovered + num_finished,
                "num_recovered": num_recovered,
                "num_sealed": num_sealed,
                "num_evaluations": before.num_evaluations + num_evaluations,
                "seconds": before.seconds + time.monotonic() - start_s,
            }
        )
        fitting = fewer_games(
            config,
            context.num_threads,
            context.generation_s,
            num_finished,
            worked(),
            num_recovered,
        )
        if fitting != config:
            config = fitting
            play_fewer(config)

    return on_progress
