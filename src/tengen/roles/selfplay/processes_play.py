"""Plays the generations of a game in Python in several processes."""

from __future__ import annotations

import dataclasses

from tengen.actors import (
    GamesOfGeneration,
    GenerationReport,
    SelfplayConfig,
    SelfplayProcesses,
)
from tengen.experience import OpenGeneration
from tengen.roles.role import RoleContext
from tengen.roles.selfplay.fitting import fewer_games, first_slots
from tengen.roles.selfplay.threads_play import take_counts

__all__ = ["PlayingProcesses"]


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
        num_recovered = len(wanted.finished)
        limit_s = self._context.generation_s
        if limit_s is not None and not self._is_measured:
            first = _first_games(wanted, self._context.num_threads)
            played, _ = self._play_part(first, opened, num_recovered, played)
            if self._context.stop.is_set():
                return played, wanted.config.games_per_generation
            self._is_measured = True
            self._context.write(opened.flush)
            game_s = played.seconds / max(1, played.num_games)
            config = first_slots(
                wanted.config, self._context.num_threads, limit_s, game_s
            )
            config = fewer_games(
                config,
                self._context.num_threads,
                limit_s,
                played.num_games,
                played.seconds,
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

        on_progress = take_counts(
            self._context,
            wanted.config,
            num_recovered,
            before,
            self._processes.stop,
            play_fewer,
        )
        played = self._processes.play(wanted, opened.append, on_progress)
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
