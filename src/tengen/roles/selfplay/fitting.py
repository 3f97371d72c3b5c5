"""Reduces the generation size on machines that are too slow for the config's size.

A call with a budget in minutes must play several generations, because otherwise its
network would learn only from games of random networks. So a generation has a time limit
(``RoleContext.generation_s``). When the first games have ended, the generation's total
time can be estimated. If the estimate exceeds the limit, this generation and the
following generations have fewer games.
"""

from __future__ import annotations

import dataclasses
import math
import time

from tengen.actors import SelfplayConfig
from tengen.observe.cpu_time import tree_cpu_s
from tengen.roles.role import RoleContext

# A generation whose estimated time exceeds the limit by this factor gets fewer games.
_SLACK = 1.25
# The minimum number of concurrent games per thread. Fewer native games would give too
# small inference batches. In games in Python the rules are the bottleneck instead.
_MIN_SLOTS = 8
_MIN_SLOTS_PYTHON = 1
# Games per slot, at least two, because slots are idle while the last games end.
_GAMES_A_SLOT = 2
# Seconds between readings of the process table.
_LOOK_S = 1.0


class WorkClock:
    """Measures the time that counts towards a generation's limit. Not thread-safe.

    Args:
        context: Its ``counts_cpu`` selects the CPU time of this process and its
            descendants, divided by ``num_threads``, instead of wall time.
    """

    def __init__(self, context: RoleContext) -> None:
        self._num_threads = context.num_threads
        self._counts_cpu = context.counts_cpu
        self._looked_s = -math.inf
        self._children_s = 0.0
        self._begun_s = self._now_s()

    def read(self) -> float:
        """Returns the seconds since this object was created.

        CPU time of other processes is read from the process table, which takes
        milliseconds.
        """
        self._looked_s = -math.inf
        return self.seconds

    @property
    def seconds(self) -> float:
        """As ``read``, with CPU time of other processes from up to a second ago."""
        return self._now_s() - self._begun_s

    def _now_s(self) -> float:
        now_s = time.monotonic()
        if not self._counts_cpu:
            return now_s
        own_s = time.process_time()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._children_s = max(0.0, (tree_cpu_s() or own_s) - own_s)
        return (own_s + self._children_s) / self._num_threads


def fewer_games(
    actor: SelfplayConfig,
    num_threads: int,
    generation_s: float | None,
    num_finished: int,
    seconds: float,
    num_recovered: int = 0,
) -> SelfplayConfig:
    """Returns settings with fewer games if a generation in progress is too slow.

    Games that have begun are always finished.

    Args:
        actor: The current settings.
        num_threads: Number of threads that play.
        generation_s: Time limit of a generation in seconds; None for no limit.
        num_finished: Number of games that ended in ``seconds``.
        seconds: Seconds that this process has played so far.
        num_recovered: Number of the generation's games that earlier processes finished.
    """
    num_games = max(1, actor.games_per_generation - num_recovered)
    num_slots = min(num_games, actor.num_slots * num_threads)
    # All slots begin at the same time, so estimate only when most slots ended a game.
    if generation_s is None or (num_finished < num_slots and seconds < generation_s):
        return actor
    # Count half of the games in progress, because they are half finished on average.
    done = num_finished + num_slots / 2
    if seconds * num_games / done <= _SLACK * generation_s:
        return actor
    fitting = int(generation_s * done / seconds)
    fewer = max(fitting, num_finished + num_slots)
    if fewer >= num_games:
        return actor
    return dataclasses.replace(actor, games_per_generation=num_recovered + fewer)


def first_slots(
    actor: SelfplayConfig, num_threads: int, generation_s: float, game_s: float
) -> SelfplayConfig:
    """Returns the settings for a run's first generation of a game in Python.

    The number of concurrent games is limited to those that can end in ``generation_s``,
    so that ``fewer_games`` can still choose the size of the generation.

    Args:
        actor: The current settings.
        num_threads: Number of threads that play.
        generation_s: Time limit of a generation in seconds.
        game_s: Seconds per game, measured on the first games.
    """
    fitting = int(generation_s / max(game_s, 1e-9) / num_threads)
    num_slots = min(actor.num_slots, max(_MIN_SLOTS_PYTHON, fitting))
    return dataclasses.replace(actor, num_slots=num_slots)


def smaller_generations(
    actor: SelfplayConfig,
    num_threads: int,
    generation_s: float,
    game_s: float,
    num_played: int,
    *,
    is_native: bool = True,
) -> SelfplayConfig:
    """Returns settings with fewer games if the next generations would be too slow.

    Args:
        actor: The current settings.
        num_threads: Number of threads that play.
        generation_s: Time limit of a generation in seconds.
        game_s: Seconds per game in the last generation.
        num_played: Number of games in the last generation, after ``fewer_games``.
        is_native: Whether the game is native rather than in Python.
    """
    num_games, num_slots = actor.games_per_generation, actor.num_slots
    is_whole = num_played >= num_games
    if is_whole and game_s * num_games <= _SLACK * generation_s:
        return actor
    least_slots = _MIN_SLOTS if is_native else _MIN_SLOTS_PYTHON
    least = min(num_games, _GAMES_A_SLOT * least_slots * num_threads)
    num_games = max(least, min(num_played, int(generation_s / max(game_s, 1e-9))))
    fitting_slots = max(least_slots, num_games // (_GAMES_A_SLOT * num_threads))
    return dataclasses.replace(
        actor,
        games_per_generation=num_games,
        num_slots=min(num_slots, fitting_slots),
    )
