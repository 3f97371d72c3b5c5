"""A generation of native games, played by threads of this process.

Where roles take turns, a generation is played on one model. A role by itself looks for
newer models meanwhile and goes on with them (KataGo's ``switchNetsMidGame``). The new
model is opened while the games go on. Then each game returns to its last ply with a
full search, which began without a tree, and the new model plays from there. The record
says which model played each ply, so each ply can be replayed as in a generation on one
model.
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
    play_generation,
)
from tengen.errors import DiskFullError
from tengen.experience import OpenGeneration
from tengen.experience.games.journal import core_errors
from tengen.games import Game
from tengen.inference import Backend, open_backend, search_outputs
from tengen.roles.role import RoleContext
from tengen.roles.selfplay.fitting import fewer_games
from tengen.run import RunDirectory

__all__ = ["PlayingThreads", "take_counts"]

_LOOK_S = 1.0
"""Seconds between two looks for a newer model; a look lists one folder."""


class PlayingThreads:
    """Plays generations, and keeps the model that is open. Used by one thread.

    Args:
        run: The run.
        game: The game that is played.
        context: Threads, stop, progress, and whether newer models are followed.
        on_model: Returns the same games, set to be played by another model.
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

    def play(
        self,
        wanted: GamesOfGeneration,
        opened: OpenGeneration,
        part_games: int = 0,
        *,
        ends_with_model: bool = False,
    ) -> tuple[GenerationReport, list[int], bool, int]:
        """Plays until every game is over or the context stops it.

        On a full disk it waits as ``RoleContext.write`` does, and keeps the games in
        flight in memory.

        Args:
            wanted: The games.
            opened: Takes finished games, and has the games in flight of an earlier
                process.
            part_games: Whenever so many games are finished they are sealed, while the
                others go on; 0: the caller seals all games at the end.
            ends_with_model: Whether a newer model ends the generation, which then has
                only the finished games.

        Returns:
            What was played, the models that played, in order, whether a newer model
            ended the generation, and how many games it has: fewer than wanted where
            they would take too long.
        """
        unfinished = opened.unfinished()
        kept = opened.recorded()
        num_recovered = len(wanted.finished)
        played = GenerationReport()
        models = [wanted.model]
        num_begun: int | None = None
        while True:
            part = _Part(
                wanted,
                self._queue(wanted, unfinished),
                opened,
                # Games that were finished before a newer model came count too.
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
                self._context.say(f"goes on with model {wanted.model}")

    def _play_part(
        self, part: _Part, num_recovered: int, before: GenerationReport
    ) -> GenerationReport:
        """Plays until a newer model, a full part or a full disk; else as ``play``."""
        # First, because compiling it is not playing.
        with core_errors():
            backend = self._open(part.wanted)
        count = take_counts(
            self._context, num_recovered, part.queue.stop, before, part.num_sealed
        )

        start_s = time.monotonic()

        def on_progress(num_games: int, num_evaluations: int) -> None:
            count(num_games, num_evaluations)
            seconds = before.seconds + time.monotonic() - start_s
            num_finished = before.num_games + num_games
            fitting = fewer_games(
                part.wanted.config,
                self._context.num_threads,
                self._context.generation_s,
                num_finished,
                seconds,
                num_recovered,
            )
            if fitting != part.wanted.config and not part.queue.stopped:
                part.wanted = dataclasses.replace(part.wanted, config=fitting)
                part.queue.stop()
            if 0 < part.num_games <= num_games:
                part.queue.stop()
            part.newer = part.newer or self._newer(part)
            if part.newer is not None:
                self._open(part.newer)
                part.queue.stop()

        try:
            with core_errors():
                return play_generation(
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
            # Finished games wait in the journal's queue.
            self._context.write(lambda: part.keep(part.queue.unfinished()))
            return GenerationReport()

    def _queue(
        self, wanted: GamesOfGeneration, unfinished: list[bytes]
    ) -> _core.GameQueue:
        return _core.GameQueue(
            seed=wanted.seed,
            generation=wanted.generation,
            model=wanted.model,
            num_games=wanted.config.games_per_generation,
            # The generation may have had more games when it began.
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
        """Returns the games on the newest model, if it is newer and wanted."""
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
                made = make()  # while games go on, perhaps
            self._backend = (wanted.model, made)
        return self._backend[1]


@dataclasses.dataclass
class _Part:
    """A part of a generation: games on one model that are sealed together."""

    wanted: GamesOfGeneration
    queue: _core.GameQueue
    opened: OpenGeneration
    num_games: int
    """Games after which the part is sealed; 0: never."""
    num_sealed: int
    """Games of the generation that were sealed before."""
    follows_models: bool
    """Whether a newer model ends the part."""
    newer: GamesOfGeneration | None = None
    """The same games on the newer model that goes on."""

    def keep(self, unfinished: list[bytes]) -> None:
        """Keeps the games in flight on the disk."""
        self.opened.keep_unfinished(unfinished)


def take_counts(
    context: RoleContext,
    num_recovered: int,
    stop: Callable[[], None],
    before: GenerationReport,
    num_sealed: int = 0,
) -> Callable[[int, int], None]:
    """Returns a function that reports counts during play, and stops play when asked.

    Args:
        context: Takes the counts, and says when to stop.
        num_recovered: Games that were durable when the turn began.
        stop: Ends the playing.
        before: What the turn has played before.
        num_sealed: Games of the generation that are already sealed.
    """
    start_s = time.monotonic()

    def on_progress(num_games: int, num_evaluations: int) -> None:
        if context.stop.is_set():
            stop()
        context.progress(
            {
                "stage": "self-play",
                "num_games": num_recovered + before.num_games + num_games,
                "num_recovered": num_recovered,
                "num_sealed": num_sealed,
                "num_evaluations": before.num_evaluations + num_evaluations,
                "seconds": before.seconds + time.monotonic() - start_s,
            }
        )

    return on_progress
