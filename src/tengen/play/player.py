"""A trained agent that chooses moves and says why."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from tengen import _core
from tengen.closable import Closable
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.evaluation import ModelPlayer
from tengen.evaluation.match import MAX_SEED
from tengen.evaluation.searcher import Searcher, batch_rows
from tengen.games import Game, is_external, open_game
from tengen.play.forecast import Forecast, Forecaster
from tengen.play.growing import Analysis, Draw, GrowingSearch, to_analysis
from tengen.run import available_cores, usable_threads
from tengen.search import MAX_SIMULATIONS, Level, draw_seed

__all__ = ["Player"]

_USUAL_SIMULATIONS = 64


class Player(Closable):
    """A model that plays one game. Made by ``tengen.load``.

    Threads: calls from several threads wait for each other.

    Args:
        model: The model, its level if it has one, and whether trees are kept between
            calls. With kept trees a search's result depends on earlier calls.
        draws: Seed of the moves that a weak level draws, combined with each call's
            seed.

    Attributes:
        name: The word that it was loaded by.
        game: The game that it plays.
    """

    def __init__(self, model: ModelPlayer, draws: int = 0) -> None:
        """Opens the game.

        Raises:
            UsageError: There is no such game, or the model's search is only for
                self-play and matches.
        """
        model.play.search.check_single()
        self.name = model.name
        self.game: Game = open_game(model.task)
        self._framed = model.framed(self.game)
        self._model: ModelPlayer | None = model
        self._draws = draws
        self._keeps_tree = model.play.keeps_tree
        self._searchers: dict[tuple[int, int], Searcher] = {}  # by threads and rows
        self._forecaster: Forecaster | None = None
        self._lock = Lock()

    def close(self) -> None:
        """Releases the model; waits for a search in progress. Idempotent."""
        with self._lock:
            self._model = None
            self._searchers = {}
            self._forecaster = None

    def choose(
        self,
        moves: Sequence[int],
        simulations: int | None = None,
        seed: int = 0,
        threads: int = 1,
    ) -> int:
        """Returns the strongest action in the position after ``moves``.

        A player of a weak level draws an action instead.

        With one thread and no kept trees the same arguments give the same action, if
        evaluation is deterministic. Several threads search one tree together, which is
        faster, but results may differ from call to call. Blocks while it searches,
        without the GIL.

        Args:
            moves: Actions from the first move of the game; empty for its start.
            simulations: How long to search, 1 to 2**24; visits of a kept tree count.
                None: the number of the player's level, or 64 without a level.
            seed: Seed of what the search draws at random, below 2**63.
            threads: Threads that search one tree, 1 to 1024; more than the cores are
                cut to the cores with a TengenWarning. The first call with more threads
                than before compiles the model again.

        Raises:
            UsageError: The player was closed, a number is out of its range, or several
                threads are asked for in a game in Python.
            CoreError: A move is not legal, or the game is over (a ``ValueError``).
        """
        return self.analyse(moves, simulations, seed, threads).action_to_play

    def analyse(
        self,
        moves: Sequence[int],
        simulations: int | None = None,
        seed: int = 0,
        threads: int = 1,
    ) -> Analysis:
        """Returns what a search finds of the position after ``moves``.

        Args and errors are those of ``choose``.
        """
        key, request = self._request(moves, simulations, seed, threads)
        with self._lock:
            searcher = self._take_searcher(*key)
            result = self._run(searcher, moves, request)
            self._put_searcher(key, searcher)
        draw = self._draw(seed, len(moves))
        return to_analysis(result, self._framed, moves, draw=draw)

    @contextmanager
    def begin(
        self,
        moves: Sequence[int],
        simulations: int | None = None,
        seed: int = 0,
        threads: int = 1,
        left_out: Sequence[tuple[int, int, int]] = (),
    ) -> Iterator[GrowingSearch]:
        """Begins a search of the position after ``moves``, and yields it.

            with player.begin([3, 3]) as search:
                while not search.is_proven and not enough():
                    search.grow(16)
                print(search.analysis())

        Grown slice by slice to so many simulations, it is the same search as that of
        ``analyse``. Blocks for one evaluation.

        Args:
            moves: As for ``choose``.
            simulations: About how many simulations it may grow to.
            seed: As for ``choose``.
            threads: As for ``choose``.
            left_out: (player, action, depth): actions that a player does not take
                within so many moves from here, unless there is no other.

        Raises:
            UsageError: As for ``choose``, or the search's policy is not PUCT.
            CoreError: As for ``choose``.
        """
        key, request = self._request(moves, simulations, seed, threads)
        request.num_simulations = 0
        request.left_out = [
            _core.LeftOut(player, outer, depth)
            for player, action, depth in left_out
            for outer in self._framed.to_frame([action])
        ]
        with self._lock:
            policy = self._open_model().play.search.policy
            rule = "must be puct where a search grows; set search.policy=puct"
            check(policy == "puct", "search.policy", policy, rule)
            searcher = self._take_searcher(*key)
            result = self._run(searcher, moves, request)
        draw = self._draw(seed, len(moves))
        yield GrowingSearch(searcher, result, self._lock, self._framed, moves, draw)
        # A searcher whose search was interrupted cannot begin another: it is dropped.
        with self._lock:
            if self._model is not None:
                self._put_searcher(key, searcher)

    def playing(self, task: str) -> Player:
        """Returns a player of the same model in another game.

        Args:
            task: A game whose planes and actions are those of this one: Go on the same
                board with another komi, for example. For a network of
                ``net.mixed_sizes`` also Go on any board that the task's planes hold.

        Raises:
            UsageError: There is no such game, the network cannot play it, or the player
                was closed.
        """
        other = Player(self._open_model().playing(task), self._draws)
        other._forecaster = self._forecaster
        return other

    def at_level(self, level: Level | None) -> Player:
        """Returns a player with the same model and another level.

        Args:
            level: How strong; None: as strong as the simulations make it.

        Raises:
            UsageError: The player was closed.
        """
        other = Player(dataclasses.replace(self._open_model(), level=level))
        other._forecaster = self._forecaster
        return other

    @property
    def level(self) -> Level | None:
        """The player's level; None: as strong as the simulations make it."""
        return self._open_model().level

    def usual_threads(
        self, asked: int | None = None, *, is_repeatable: bool = False
    ) -> int:
        """Returns how many threads are to search one tree.

        Args:
            asked: The number that a person asked for; a TengenWarning says if there are
                fewer cores. None: as many as there are cores, but one in a game in
                Python, or if the search's policy is not PUCT.
            is_repeatable: Whether None always means one thread, so that searches are
                repeatable.

        Raises:
            UsageError: The number is out of its range.
        """
        if asked is not None:
            return usable_threads(asked)
        if is_repeatable or not self.can_grow or is_external(self.game):
            return 1
        return available_cores()

    def forecast(self, moves: Sequence[int]) -> Forecast | None:
        """Returns how the network expects a game to end; None where it cannot say.

        Only a network that was trained with auxiliary heads, in a game with a score,
        can. Blocks; the first call reads the network's weights again.

        Args:
            moves: As for ``choose``; the game may be over.

        Raises:
            UsageError: The player was closed, or the model is gone.
            CoreError: A move is not legal.
        """
        with self._lock:
            directory = self._open_model().directory
            if self._forecaster is None:
                self._forecaster = Forecaster(directory)
            return self._forecaster.forecast(self._framed, moves)

    @property
    def can_grow(self) -> bool:
        """Whether ``begin`` works for this player: its search's policy is PUCT."""
        return self._open_model().play.search.policy == "puct"

    @property
    def mixed_sizes(self) -> bool:
        """Whether the network was trained for games that vary, as on smaller boards."""
        return self._open_model().mixed_sizes

    def _open_model(self) -> ModelPlayer:
        if self._model is None:
            raise UsageError(f"player ({self.name}) is closed; load it again")
        return self._model

    def _take_searcher(self, threads: int, rows: int) -> Searcher:
        model = self._open_model()
        # A searcher whose search was interrupted cannot begin another.
        if searcher := self._searchers.pop(self._place(threads, rows), None):
            return searcher
        self._model = model = model.opened_for(threads)
        frame = self._framed.frame
        return Searcher(frame, model.backend, model.play.search, threads, rows)

    def _put_searcher(self, key: tuple[int, int], searcher: Searcher) -> None:
        self._searchers[self._place(*key)] = searcher

    def _place(self, threads: int, rows: int) -> tuple[int, int]:
        # The kept tree is in one searcher, whatever the later requests' simulations
        # are.
        return threads, 0 if self._keeps_tree else rows

    def _run(self, searcher: Searcher, moves: Sequence[int], request: Any) -> Any:
        framed = self._framed
        return searcher.run(
            framed.to_frame(moves),
            request,
            framed.variant,
            keeps_tree=self._keeps_tree,
        )

    def _draw(self, seed: int, ply: int) -> Draw | None:
        """Returns a function that draws a ply's move; None to play the best."""
        level = self._open_model().level
        if level is None or level.temperature == 0:
            return None
        number = draw_seed(self._draws, seed, ply)
        return lambda actions, priors, best: level.draw(actions, priors, best, number)

    def _request(
        self, moves: Sequence[int], simulations: int | None, seed: int, threads: int
    ) -> tuple[tuple[int, int], Any]:
        """Returns (threads, rows of each) of a searcher, and what is asked of it."""
        if simulations is None:
            simulations = self._open_model().num_simulations(_USUAL_SIMULATIONS)
        check_range("simulations", simulations, 1, MAX_SIMULATIONS)
        check_range("seed", seed, 0, MAX_SEED)
        request = _core.SearchRequest()
        request.num_simulations = simulations
        request.seed = seed
        request.ply = len(moves)
        request.keep_squares = True
        threads = usable_threads(threads)
        play = self._open_model().play
        most = play.batch_rows
        if threads == 1 and (is_external(self.game) or play.search.policy != "puct"):
            most = 1  # such a search evaluates one leaf at a time
        return (threads, batch_rows(simulations, threads, most)), request
