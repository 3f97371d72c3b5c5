"""Matches: many games between two players, with alternating colours and openings.

Games 2k and 2k + 1 have the same opening, random or from a book. Player A moves first
in game 2k, player B in game 2k + 1. If the number of games is odd, A moves first in the
only game of the last opening.

All threads take games from one queue. Each game depends only on the seed, the players
and its index, and results are processed in order of index. Threads and timing therefore
do not affect results, and short games are not overrepresented.

If an engine rejects a legal move, the game is disputed: it ends without a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from tengen import _core
from tengen.config import check_range
from tengen.evaluation.elo import Tally
from tengen.evaluation.engines.side import EngineReport, EngineSide
from tengen.evaluation.played_game import Dispute, PlayedGame
from tengen.evaluation.players import EnginePlayer, MatchPlayer, ModelPlayer
from tengen.evaluation.searcher import PortSide, Side, TreeSide
from tengen.games import Book, Game, core_game
from tengen.run import MAX_THREADS
from tengen.search import MAX_SIMULATIONS, draw_seed

MAX_GAMES = 10_000_000
"""The maximum number of games in a match."""
MAX_SEED = (1 << 63) - 1
"""The maximum seed of a match."""

# The maximum length of a game in plies: ply numbers are stored in 16 bits.
_MAX_PLIES = 65535
# Concurrent games per thread, which limit the batch size. More games would hardly
# enlarge batches, because about half of the games wait for the other player.
_NUM_SLOTS = 16
# Concurrent games per thread if a player is an engine, which needs a process for each
# game. This number suffices to keep all cores busy.
_NUM_ENGINE_SLOTS = 4
# Interval in seconds at which ``play_match`` collects games and calls ``watch``.
_COLLECT_EVERY_S = 0.1


class MatchStopped(Exception):
    """The match was stopped before its end and has no result."""


def stopped_by(stop: Callable[[], bool]) -> Callable[[Tally], None]:
    """Returns a ``watch`` function that raises MatchStopped if ``stop()`` is True."""

    def watch(tally: Tally) -> None:
        if stop():
            raise MatchStopped

    return watch


@dataclass(frozen=True)
class MatchReport:
    """The result of a match between players A and B."""

    tally: Tally
    """Player A's results in all games except disputed games."""
    games: tuple[PlayedGame, ...]
    """All finished games in order of index, including disputed games; fewer than
    requested if the callback ``until`` ended the match."""
    engines: dict[str, EngineReport] = field(default_factory=dict)
    """Reports of external engines, by side: ``a`` or ``b``."""

    @property
    def disputes(self) -> dict[int, Dispute]:
        """The disputes of all disputed games, by game index."""
        return {
            game.index: game.disputed
            for game in self.games
            if game.disputed is not None
        }

    def to_json(self) -> dict[str, Any]:
        """Returns the report of ``tengen match --json``.

        Keys: ``games``, the number of games with a result; ``wins_a``; ``draws``;
        ``score_a``, in [0, 1]; ``elo``, A's Elo minus B's, with the 95 % confidence
        interval ``elo_low`` to ``elo_high``, see ``Tally``. All values are finite. If a
        side is an engine, ``engines`` has the fields of ``EngineReport`` by side, and
        ``disputed`` is a list with an entry for each disputed game: its index ``game``
        and the fields of ``Dispute``.
        """
        low, high = self.tally.elo_interval
        engines = {side: asdict(seen) for side, seen in self.engines.items()}
        disputed = [{"game": k, **asdict(seen)} for k, seen in self.disputes.items()]
        return {
            "games": self.tally.num_games,
            "wins_a": self.tally.wins,
            "draws": self.tally.draws,
            "score_a": self.tally.score,
            "elo": round(self.tally.elo, 1),
            "elo_low": round(low, 1),
            "elo_high": round(high, 1),
            **({"engines": engines} if engines else {}),
            **({"disputed": disputed} if engines or disputed else {}),
        }


def check_moves(
    num_simulations: int, opening_plies: int, max_plies: int = _MAX_PLIES
) -> None:
    """Checks that the numbers of simulations and opening plies are in range.

    Args:
        num_simulations: Simulations per move.
        opening_plies: Number of random plies at the start of each game.
        max_plies: The game's maximum length in plies, if known.

    Raises:
        UsageError: A number is out of its range.
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
    num_slots: int | None = None,
    opening_plies: int = 2,
    book: Book | None = None,
    played: Sequence[PlayedGame] = (),
    watch: Callable[[Tally], None] | None = None,
    keep: Callable[[Sequence[PlayedGame]], None] | None = None,
    until: Callable[[PlayedGame], bool] | None = None,
) -> MatchReport:
    """Plays a match between two players. Blocks until all games are finished.

    If network evaluation is deterministic and no player searches one tree with several
    threads, the report does not depend on timing, ``num_threads`` or ``num_slots``.
    KeyboardInterrupt ends the match within one move per thread.

    Args:
        game: The game.
        a: Player A.
        b: Player B.
        num_games: Number of games, 1 to MAX_GAMES.
        num_simulations: Simulations per move of a network, 1 to MAX_SIMULATIONS.
        seed: Seed of the openings and of the players, 0 to MAX_SEED.
        num_threads: Number of threads that play games, 1 to MAX_THREADS. For a player
            with several threads per tree, each starts further threads.
        num_slots: Maximum number of concurrent games per thread, at least 1. Their rows
            are evaluated in one batch. If a player is an engine, at most 4 are used.
            None for 16, which suits CPUs.
        opening_plies: Random plies at the start of each game; they never end a game.
            With 0 and no book, games start from the empty board.
        book: Openings to play before the random plies, each in a pair of games. All
            openings are played before any is repeated, in a random order that depends
            on the seed.
        played: Finished games of this match from an earlier call, in any order. They
            are not played again.
        watch: Called in this thread with the results of all finished games, first
            immediately and then ten times a second. An exception in it ends the match.
        keep: Called in this thread ten times a second, and once at the end, even after
            an error, with the games that have finished since its last call, in order of
            index and without those in ``played``. Not called if there are none.
        until: Called in this thread with each finished game, including disputed games,
            in order of index. If it returns True, the match ends with that game, and
            the report excludes later games.

    Raises:
        UsageError: A number is out of its range, or an engine cannot play the game.
        RunError: An engine died or timed out, or refuses to set up a game or to move.
        Exception: A backend, ``watch``, ``keep`` or ``until`` raised this exception.
    """
    ranges = (
        ("num_games", num_games, 1, MAX_GAMES),
        ("seed", seed, 0, MAX_SEED),
        ("num_threads", num_threads, 1, MAX_THREADS),
        ("num_slots", _NUM_SLOTS if num_slots is None else num_slots, 1, MAX_GAMES),
    )
    for name, value, low, high in ranges:
        check_range(name, value, low, high)
    check_moves(num_simulations, opening_plies, game.max_plies)
    results = _Results(played, watch, keep, until)
    num_left = num_games - len(played)
    if results.is_decided or num_left == 0:
        return MatchReport(_tally(results.ordered), tuple(results.ordered))
    queue = _core.GameQueue(
        seed=seed,
        generation=0,
        model=0,
        num_games=num_games,
        finished=[game.index for game in played],
        openings=[] if book is None else [list(moves) for moves in book.openings],
    )
    num_threads = min(num_threads, num_left)
    has_engine = isinstance(a, EnginePlayer) or isinstance(b, EnginePlayer)
    # Limit the slots, so that in a short match every thread gets games.
    most = _NUM_SLOTS if num_slots is None else num_slots
    if has_engine:
        most = min(most, _NUM_ENGINE_SLOTS)
    num_slots = min(most, -(-num_left // num_threads))
    tables = [
        _Table(
            [
                _side(game, player, num_simulations, num_slots, draw_seed(seed, side))
                for side, player in enumerate((a, b))
            ],
            _core.make_match(
                core_game(game),
                a.to_native(num_simulations),
                b.to_native(num_simulations),
                queue,
                num_slots=num_slots,
                num_opening_plies=opening_plies,
            ),
            results.arrived,
        )
        for _ in range(num_threads)
    ]
    try:
        with ThreadPoolExecutor(len(tables), thread_name_prefix="match") as pool:
            try:
                futures = [pool.submit(table.play) for table in tables]
                _wait(futures, results)
            finally:
                queue.stop()
                for table in tables:
                    table.stop()
    finally:
        for table in tables:
            for side in table.sides:
                side.close()
        results.collect()
    for future in futures:
        future.result()
    return MatchReport(
        _tally(results.ordered), tuple(results.ordered), _engines(tables)
    )


def _engines(tables: Sequence[_Table]) -> dict[str, EngineReport]:
    """Returns the report of each external engine, by side: ``a`` or ``b``."""
    sides: dict[str, list[EngineSide]] = {}
    for table in tables:
        for name, side in zip("ab", table.sides, strict=True):
            if isinstance(side, EngineSide):
                sides.setdefault(name, []).append(side)
    return {name: EngineReport.of(found) for name, found in sides.items()}


def _wait(futures: list[Future[None]], results: _Results) -> None:
    """Blocks until all match threads end, one fails, or ``until`` ends the match."""
    running = set(futures)
    while running:
        results.collect()
        if results.is_decided:
            return
        results.tell()
        ended, running = wait(running, _COLLECT_EVERY_S, return_when=FIRST_EXCEPTION)
        if any(future.exception() is not None for future in ended):
            return


def _tally(games: Sequence[PlayedGame]) -> Tally:
    scores = [game.score_a for game in games]
    return Tally(scores.count(1.0), scores.count(0.5), scores.count(0.0))


def _side(
    game: Game,
    player: MatchPlayer,
    num_simulations: int,
    num_slots: int,
    seed: int,
) -> Side:
    if isinstance(player, EnginePlayer):
        return EngineSide(game, player, num_slots)
    if not isinstance(player, ModelPlayer):
        return PortSide(None)
    if player.is_outside:
        return TreeSide(game, player, num_simulations, seed)
    return PortSide(player.backend)


class _Results:
    """The finished games of all threads. Only the thread of ``play_match`` calls it."""

    def __init__(
        self,
        played: Sequence[PlayedGame],
        watch: Callable[[Tally], None] | None,
        keep: Callable[[Sequence[PlayedGame]], None] | None,
        until: Callable[[PlayedGame], bool] | None,
    ) -> None:
        self.arrived: SimpleQueue[PlayedGame] = SimpleQueue()
        """Queue to which all match threads add finished games."""
        self.ordered: list[PlayedGame] = []
        """Games in order of index, up to an unfinished or the last counted game."""
        self.is_decided = False
        """Whether the callback ``until`` has ended the match."""
        self._watch = watch
        self._keep = keep
        self._until = until
        self._tally = Tally()
        self._later: dict[int, PlayedGame] = {}  # Games behind an unfinished one.
        self._take(played)

    def collect(self) -> None:
        """Takes all games out of the queue, passes them to ``keep``, and adds them."""
        new = []
        while True:
            try:
                new.append(self.arrived.get_nowait())
            except Empty:
                break
        new.sort(key=lambda game: game.index)
        if new and self._keep is not None:
            self._keep(new)
        self._take(new)

    def tell(self) -> None:
        """Calls ``watch`` with the results of all finished games."""
        if self._watch is not None:
            self._watch(self._tally)

    def _take(self, games: Sequence[PlayedGame]) -> None:
        self._tally += _tally(games)
        self._later.update((game.index, game) for game in games)
        while not self.is_decided and len(self.ordered) in self._later:
            game = self._later.pop(len(self.ordered))
            self.ordered.append(game)
            self.is_decided = self._until is not None and self._until(game)


class _Table:
    """The concurrent games of one match thread, and the thread's two sides."""

    def __init__(
        self, sides: Sequence[Side], match: Any, finished: SimpleQueue[PlayedGame]
    ) -> None:
        self.sides = sides
        self._match = match
        self._finished = finished

    def play(self) -> None:
        """Plays games until all are finished or the game queue is stopped."""
        num_seen = 0
        while not self._match.finished:
            try:
                for player, side in enumerate(self.sides):
                    side.move(self._match, player)
            finally:
                if self._match.num_games > num_seen:
                    for game in self._match.games(num_seen):
                        self._finished.put(self._played_game(game))
                    num_seen = self._match.num_games
        for player, side in enumerate(self.sides):
            side.finish(self._match, player)

    def stop(self) -> None:
        """Makes both sides return from ``move`` soon. Any thread may call this."""
        for side in self.sides:
            side.stop()

    def _played_game(self, game: Any) -> PlayedGame:
        disputes = [side.dispute(game.index) for side in self.sides]
        disputed = disputes[0] or disputes[1]
        illegal = [side.illegal_move(game.index) for side in self.sides]
        return PlayedGame(
            index=game.index,
            a_moves_first=game.first_player == 0,
            moves=tuple(game.moves),
            num_opening_plies=game.num_opening_plies,
            score_a=None if disputed else 0.5 + 0.5 * game.value_of_player0,
            disputed=disputed,
            illegal=illegal[0] or illegal[1],
        )
