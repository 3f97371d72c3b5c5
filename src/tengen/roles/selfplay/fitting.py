"""How many games a generation has where the machine is too slow for the run's number.

A call by minutes makes several generations, or its network learns from the games of
random networks alone. So a generation may take a part of the minutes
(``RoleContext.generation_s``). How long it will take is known once the first games have
ended; a generation that would take too long then ends with fewer games, and the next
ones begin with fewer.
"""

from __future__ import annotations

import dataclasses

from tengen.actors import SelfplayConfig

__all__ = ["fewer_games", "first_slots", "smaller_generations"]

# A generation that takes a little longer stays as it is.
_SLACK = 1.25
# With fewer games at once, batches would be too small for the network. A game in Python
# is slow by its own rules, whatever the batches are.
_MIN_SLOTS = 8
_MIN_SLOTS_PYTHON = 1
# The last games of a generation leave slots empty, so each slot plays at least two.
_GAMES_A_SLOT = 2


def fewer_games(
    actor: SelfplayConfig,
    num_threads: int,
    generation_s: float | None,
    num_finished: int,
    seconds: float,
    num_recovered: int = 0,
) -> SelfplayConfig:
    """Returns how a generation in progress goes on, with fewer games if it is too slow.

    Games that have begun are not given up.

    Args:
        actor: How games are played.
        num_threads: Threads that play.
        generation_s: Seconds that a generation may take; None for no limit.
        num_finished: Games that ended in these seconds.
        seconds: Seconds since it began.
        num_recovered: Games that were finished before.
    """
    num_games = max(1, actor.games_per_generation - num_recovered)
    num_slots = min(num_games, actor.num_slots * num_threads)
    # All slots begin at once, and nothing is known before most of them have ended a
    # game.
    if generation_s is None or (num_finished < num_slots and seconds < generation_s):
        return actor
    # Games in progress are half done, on the mean.
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
    """Returns how a game in Python is first played, perhaps with fewer games at once.

    As many begin as end within ``generation_s``, so that ``fewer_games`` finds out in
    time how many a generation may have.

    Args:
        actor: How games are played.
        num_threads: Threads that play.
        generation_s: Seconds that a generation may take.
        game_s: Seconds of the first games over their number.
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
    """Returns how the next generations are played, with fewer games where need be.

    Args:
        actor: How games are played now.
        num_threads: Threads that play.
        generation_s: Seconds that a generation may take.
        game_s: Seconds of the last generation over its games.
        num_played: Games that it had, after ``fewer_games``.
        is_native: Whether the game is native, and not in Python.
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
