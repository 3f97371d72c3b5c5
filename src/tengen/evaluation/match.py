"""Matches: many games between two players, colours exchanged, openings varied.

Games 2k and 2k + 1 begin with the same random opening; A has the first move in the
even one and B in the odd one. Where the number of games is odd, the last opening is
played once and A has the first move in one game more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from typing import Any

from tengen import _core
from tengen.config import check_range
from tengen.evaluation.elo import Tally
from tengen.evaluation.engine_side import EngineReport, EngineSide
from tengen.evaluation.players import GtpPlayer, MatchPlayer, ModelPlayer
from tengen.evaluation.sides import PortSide, Side, TreeSide
from tengen.games import Game, core_game
from tengen.run import MAX_THREADS
from tengen.search import MAX_SIMULATIONS

__all__ = [
    "MAX_GAMES",
    "MAX_SEED",
    "MatchReport",
    "MatchStopped",
    "PlayedGame",
    "check_moves",
    "play_match",
    "stopped_by",
]

MAX_GAMES = 10_000_000
"""Most games of one match."""
MAX_SEED = (1 << 63) - 1
"""The greatest seed."""

# Plies are stored as 16 bits.
_MAX_PLIES = 65535
# Games a thread plays at once: the most rows of one batch. More would raise the
# batch little, for half of them wait for the other player.
_NUM_SLOTS = 16
# The same where an engine has a process a game: a batch and all cores are still busy.
_NUM_ENGINE_SLOTS = 4
# How often a watcher is told.
_WATCH_EVERY_S = 0.1


class MatchStopped(Exception):
    """Somebody wanted an end before a match was whole: none of it counts."""


def stopped_by(stop: Callable[[], bool]) -> Callable[[Tally], bool]:
    """Returns a ``watch`` that raises ``MatchStopped`` once ``stop`` says so."""

    def watch(tally: Tally) -> bool:
        if stop():
            raise MatchStopped
        return False

    return watch


@dataclass(frozen=True)
class PlayedGame:
    """One finished game of a match."""

    index: int
    """Its place in the match, from 0."""
    a_moves_first: bool
    """Whether A had the first move, of the opening too."""
    moves: tuple[int, ...]
    """Actions from the first, the opening included."""
    num_opening_plies: int
    """Random plies that the game began with."""
    score_a: float
    """1 where A won, 0.5 drawn, 0 lost."""

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON values."""
        return {**asdict(self), "moves": list(self.moves)}


@dataclass(frozen=True)
class MatchReport:
    """What a match ended with."""

    tally: Tally
    """Results as A sees them."""
    games: tuple[PlayedGame, ...]
    """Finished games in order of index; fewer than asked for if it was ended early."""
    engines: dict[str, EngineReport] = field(default_factory=dict)
    """What was seen of outside engines, by side: ``a`` and ``b`` where they are one."""

    def to_json(self) -> dict[str, Any]:
        """Returns the numbers of ``tengen match --json``.

        ``games``, ``wins_a``, ``draws``, ``score_a`` in [0, 1], ``elo`` of A above B
        with its 95 % interval ``elo_low`` to ``elo_high``; see ``Tally`` for the
        method. All are finite. ``engines``, where there are any, has the fields of
        ``EngineReport`` by side.
        """
        low, high = self.tally.elo_interval
        engines = {side: asdict(seen) for side, seen in self.engines.items()}
        return {
            "games": self.tally.num_games,
            "wins_a": self.tally.wins,
            "draws": self.tally.draws,
            "score_a": self.tally.score,
            "elo": round(self.tally.elo, 1),
            "elo_low": round(low, 1),
            "elo_high": round(high, 1),
            **({"engines": engines} if engines else {}),
        }


def check_moves(
    num_simulations: int, opening_plies: int, max_plies: int = _MAX_PLIES
) -> None:
    """Checks how the games of a match are to be played.

    Args:
        num_simulations: Simulations a move.
        opening_plies: Random plies that each game begins with; none ends a game.
        max_plies: The game's, where it is known.

    Raises:
        UsageError: One is out of its range.
    """
    check_range("num_simulations", num_simulations, 1, MAX_SIMULATIONS)
    check_range("opening_plies", opening_plies, 0, max_plies - 1)


def play_match(
    game: Game,
    a: MatchPlayer,
    b: MatchPlayer,
    *,
    num_games: int,
    num_simulations: int = 64,
    seed: int = 0,
    num_threads: int = 1,
    opening_plies: int = 2,
    watch: Callable[[Tally], bool] | None = None,
    keep: Callable[[Sequence[PlayedGame]], None] | None = None,
) -> MatchReport:
    """Plays games between two players. Blocks until they are finished.

    The games are a function of the seed, the players and the number of games alone,
    whatever the threads, if evaluation is deterministic, nobody ends the match and no
    player has several threads in one tree.
    An interrupt ends it within one move of every thread and is raised.

    Args:
        game: The game.
        a: One player.
        b: The other.
        num_games: How many, 1 to MAX_GAMES.
        num_simulations: Simulations a move of a network, 1 to MAX_SIMULATIONS.
        seed: Of the openings and of every player's random numbers, 0 to
            MAX_SEED.
        num_threads: Threads that play, 1 to MAX_THREADS; each takes a part. Beside
            them each has the threads that its players' trees ask for.
        opening_plies: Random plies that each game begins with; none ends a game.
        watch: Told the results so far, at once and then ten times a second, in this
            thread; True ends the match within a move and drops unfinished games.
        keep: Given the finished games, in order, once the match is over, even by an
            error.

    Raises:
        UsageError: A number is out of its range, or an engine cannot play the game.
        RunError: An engine died, was too slow, or refuses a move that is legal.
        Exception: What a backend or ``watch`` raised; the match is ended.
    """
    ranges = (
        ("num_games", num_games, 1, MAX_GAMES),
        ("seed", seed, 0, MAX_SEED),
        ("num_threads", num_threads, 1, MAX_THREADS),
    )
    for name, value, low, high in ranges:
        check_range(name, value, low, high)
    check_moves(num_simulations, opening_plies, game.max_plies)
    has_engine = isinstance(a, GtpPlayer) or isinstance(b, GtpPlayer)
    num_slots = _NUM_ENGINE_SLOTS if has_engine else _NUM_SLOTS
    tables = [
        _Table(
            [_side(game, player, num_simulations, num_slots) for player in (a, b)],
            _core.make_match(
                core_game(game),
                a.to_native(num_simulations),
                b.to_native(num_simulations),
                seed=seed,
                first_game=first,
                num_games=count,
                num_slots=min(num_slots, count),
                num_opening_plies=opening_plies,
            ),
            is_watched=watch is not None,
        )
        for first, count in _ranges(num_games, num_threads)
    ]
    try:
        with ThreadPoolExecutor(len(tables), thread_name_prefix="match") as pool:
            try:
                futures = [pool.submit(table.play) for table in tables]
                _wait(futures, tables, watch)
            finally:
                for table in tables:
                    table.stop()
    finally:
        for table in tables:
            for side in table.sides:
                side.close()
        games = sorted(
            (played for table in tables for played in table.games()),
            key=lambda game: game.index,
        )
        if keep is not None:
            keep(games)
    for future in futures:
        future.result()
    return MatchReport(_tally(games), tuple(games), _engines(tables))


def _engines(tables: Sequence[_Table]) -> dict[str, EngineReport]:
    """Returns what the tables saw of engines, together, by side."""
    sides: dict[str, list[EngineSide]] = {}
    for table in tables:
        for name, side in zip("ab", table.sides, strict=True):
            if isinstance(side, EngineSide):
                sides.setdefault(name, []).append(side)
    return {name: EngineReport.of(found) for name, found in sides.items()}


def _ranges(num_games: int, num_threads: int) -> list[tuple[int, int]]:
    """Returns (first game, number of games) of each thread, pairs kept together."""
    num_pairs = (num_games + 1) // 2
    num_parts = min(num_threads, num_pairs)
    cuts = [2 * (num_pairs * part // num_parts) for part in range(num_parts)]
    ends = [*cuts[1:], num_games]
    return [(first, end - first) for first, end in zip(cuts, ends, strict=True)]


def _wait(
    futures: list[Future[None]],
    tables: list[_Table],
    watch: Callable[[Tally], bool] | None,
) -> None:
    """Blocks until all have ended, one has failed or ``watch`` wants no more."""
    interval_s = None if watch is None else _WATCH_EVERY_S
    running = set(futures)
    while running:
        tally = sum((table.tally for table in tables), Tally())
        if watch is not None and watch(tally):
            return
        ended, running = wait(running, interval_s, return_when=FIRST_EXCEPTION)
        if any(future.exception() is not None for future in ended):
            return


def _tally(games: list[PlayedGame]) -> Tally:
    scores = [game.score_a for game in games]
    return Tally(scores.count(1.0), scores.count(0.5), scores.count(0.0))


def _side(
    game: Game, player: MatchPlayer, num_simulations: int, num_slots: int
) -> Side:
    if isinstance(player, GtpPlayer):
        return EngineSide(game, player, num_slots)
    if not isinstance(player, ModelPlayer):
        return PortSide(None)
    if player.tree_threads > 1:
        return TreeSide(game, player, num_simulations)
    return PortSide(player.backend)


class _Table:
    """One thread's part of a match."""

    def __init__(self, sides: Sequence[Side], match: Any, *, is_watched: bool) -> None:
        self.sides = sides
        self._match = match
        self._is_watched = is_watched
        self.tally = Tally()
        """Finished games, a moment ago; for any thread."""

    def play(self) -> None:
        """Plays until the games are finished or somebody calls ``stop``."""
        counted_s = time.monotonic()
        while not self._match.finished:
            for player, side in enumerate(self.sides):
                side.move(self._match, player)
            # Now and then: copying the games out is not free.
            if self._is_watched and time.monotonic() - counted_s > _WATCH_EVERY_S:
                self.tally = _tally(self.games())
                counted_s = time.monotonic()
        for player, side in enumerate(self.sides):
            side.finish(self._match, player)

    def stop(self) -> None:
        """Ends the match soon; from any thread."""
        self._match.stop()
        for side in self.sides:
            side.stop()

    def games(self) -> list[PlayedGame]:
        """Returns the finished games; for the playing thread, or after it."""
        return [
            PlayedGame(
                index=game.index,
                a_moves_first=game.first_player == 0,
                moves=tuple(game.moves),
                num_opening_plies=game.num_opening_plies,
                score_a=0.5 + 0.5 * game.value_of_player0,
            )
            for game in self._match.games
        ]
