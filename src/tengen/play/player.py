"""The player that chooses moves and analyses positions with a trained model."""

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

_USUAL_SIMULATIONS = 64


class Player(Closable):
    """A player of one game with a trained model, as returned by ``tengen.load``.

    Thread-safe; calls from several threads run one after another.

    Args:
        model: The model with its settings, such as the level and tree reuse. With tree
            reuse, a search's result depends on earlier calls.
        draws: Seed with which a weak level samples its moves, in combination with the
            seed of each call.

    Attributes:
        name: The name with which the model was loaded.
        game: The game.
        resign_below: The value, -1 to 1, below which a position counts as lost; -1 if
            the player never resigns.
    """

    def __init__(self, model: ModelPlayer, draws: int = 0) -> None:
        """Creates the player and opens its game.

        Raises:
            UsageError: The game does not exist, or the model's search is only for
                self-play and matches.
        """
        model.play.search.check_single()
        self.name = model.name
        self.game: Game = open_game(model.task)
        self._framed = model.framed(self.game)
        self._model: ModelPlayer | None = model
        self._draws = draws
        self._keeps_tree = model.play.keeps_tree
        is_whole = model.level is None
        self.resign_below = model.play.resign_below if is_whole else -1.0
        self._searchers: dict[tuple[int, int], Searcher] = {}  # By (threads, rows).
        self._forecaster: Forecaster | None = None
        self._lock = Lock()

    def close(self) -> None:
        """Waits for a search in progress and releases the model. Idempotent."""
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
        """Searches the position after ``moves``; returns the best action found.

        A player of a weak level samples the action instead.

        With one thread, no tree reuse and deterministic network evaluation, the same
        arguments return the same action. With several threads, which search the same
        tree, results are not reproducible. Blocks during the search, without the GIL.

        Args:
            moves: The actions from the start of the game; empty for the initial
                position.
            simulations: Number of simulations, 1 to 2**24, including the visits of a
                reused tree. None for the player's level, or for 64 without a level.
            seed: Seed of the search's random numbers, below 2**63.
            threads: Number of threads that search the tree, 1 to 1024. Limited to the
                number of cores, with a TengenWarning. The first call with more threads
                than before compiles the model again.

        Raises:
            UsageError: The player is closed, a number is out of its range, or
                ``threads`` is above 1 for a game written in Python.
            CoreError: A move is not legal, or the game has ended (a ``ValueError``).
        """
        return self.analyse(moves, simulations, seed, threads).action_to_play

    def analyse(
        self,
        moves: Sequence[int],
        simulations: int | None = None,
        seed: int = 0,
        threads: int = 1,
    ) -> Analysis:
        """Searches the position after ``moves`` and returns the complete analysis.

        Arguments and errors are those of ``choose``.
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
        """Begins a search of the position after ``moves``; yields the search.

            with player.begin([3, 3]) as search:
                while not search.is_proven and not enough():
                    search.grow(16)
                print(search.analysis())

        A search that grows in slices returns the same result as ``analyse`` with the
        same number of simulations. ``begin`` blocks for one network evaluation.

        Args:
            moves: The actions from the start of the game, as for ``choose``.
            simulations: Expected number of simulations, for the choice of batch size.
            seed: Seed of the search's random numbers, as for ``choose``.
            threads: Number of threads that search the tree, as for ``choose``.
            left_out: Excluded actions as tuples (player, action, depth): within
                ``depth`` plies of this position, ``player`` does not consider
                ``action``, unless no other action is legal.

        Raises:
            UsageError: As for ``choose``, or the search's policy is not PUCT.
            CoreError: A move is not legal, or the game has ended.
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
            rule = "must be puct for a search that is extended; set search.policy=puct"
            check(policy == "puct", "search.policy", policy, rule)
            searcher = self._take_searcher(*key)
            result = self._run(searcher, moves, request)
        draw = self._draw(seed, len(moves))
        yield GrowingSearch(searcher, result, self._lock, self._framed, moves, draw)
        # Keep the searcher for reuse. After an exception it is unusable, and not kept.
        with self._lock:
            if self._model is not None:
                self._put_searcher(key, searcher)

    def playing(self, task: str) -> Player:
        """Returns a player that plays the game ``task`` with the same model.

        Args:
            task: A game with the same planes and actions as this player's game, for
                example Go on the same board with a different komi. A network with
                ``net.mixed_sizes`` also plays Go on any board up to its task's size.

        Raises:
            UsageError: The game does not exist, the network cannot play it, or the
                player is closed.
        """
        other = Player(self._open_model().playing(task), self._draws)
        other._forecaster = self._forecaster
        return other

    def at_level(self, level: Level | None) -> Player:
        """Returns a player with the same model at the level ``level``.

        Args:
            level: The playing level; None for full strength.

        Raises:
            UsageError: The player is closed.
        """
        other = Player(dataclasses.replace(self._open_model(), level=level))
        other._forecaster = self._forecaster
        return other

    @property
    def level(self) -> Level | None:
        """The player's level; None for full strength."""
        return self._open_model().level

    def usual_threads(
        self, asked: int | None = None, *, is_repeatable: bool = False
    ) -> int:
        """Returns the number of threads to use for searching one tree.

        Args:
            asked: The number that the user requested; a number above the number of
                cores is reduced to it, with a TengenWarning. None for the number of
                cores, or for 1 if the game is written in Python or the search's policy
                is not PUCT.
            is_repeatable: Whether to return one thread if ``asked`` is None, so that
                searches are reproducible.

        Raises:
            UsageError: ``asked`` is out of its range.
        """
        if asked is not None:
            return usable_threads(asked)
        if is_repeatable or not self.can_grow or is_external(self.game):
            return 1
        return available_cores()

    def forecast(self, moves: Sequence[int]) -> Forecast | None:
        """Returns the network's prediction of the final position, or None.

        None if the network has no auxiliary heads; only networks for games with a score
        have them. Blocks. The first call loads the network's weights again.

        Args:
            moves: The actions from the start of the game, which may have ended.

        Raises:
            UsageError: The player is closed, or the model no longer exists.
            CoreError: A move is not legal.
        """
        with self._lock:
            directory = self._open_model().directory
            if self._forecaster is None:
                self._forecaster = Forecaster(directory)
            return self._forecaster.forecast(self._framed, moves)

    @property
    def can_grow(self) -> bool:
        """Whether ``begin`` is available, which requires the search policy PUCT."""
        return self._open_model().play.search.policy == "puct"

    @property
    def mixed_sizes(self) -> bool:
        """Whether the network was trained for several board sizes or rules."""
        return self._open_model().mixed_sizes

    def _open_model(self) -> ModelPlayer:
        if self._model is None:
            raise UsageError(f"player ({self.name}) is closed; load it again")
        return self._model

    def _take_searcher(self, threads: int, rows: int) -> Searcher:
        model = self._open_model()
        # Remove the searcher while it is used: an interrupted searcher is unusable.
        if searcher := self._searchers.pop(self._place(threads, rows), None):
            return searcher
        self._model = model = model.opened_for(threads)
        frame = self._framed.frame
        return Searcher(frame, model.backend, model.play.search, threads, rows)

    def _put_searcher(self, key: tuple[int, int], searcher: Searcher) -> None:
        self._searchers[self._place(*key)] = searcher

    def _place(self, threads: int, rows: int) -> tuple[int, int]:
        # With tree reuse, requests for any number of rows share a searcher's tree.
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
        """Returns a function that samples the action of a ply, or None."""
        level = self._open_model().level
        if level is None or level.temperature == 0:
            return None
        number = draw_seed(self._draws, seed, ply)
        return lambda actions, priors, best: level.draw(actions, priors, best, number)

    def _request(
        self, moves: Sequence[int], simulations: int | None, seed: int, threads: int
    ) -> tuple[tuple[int, int], Any]:
        """Returns a searcher's key (threads, rows) and the request for its search."""
        if simulations is None:
            simulations = self._open_model().num_simulations(_USUAL_SIMULATIONS)
        check_range("simulations", simulations, 1, MAX_SIMULATIONS)
        check_range("seed", seed, 0, MAX_SEED)
        request = _core.SearchRequest()
        request.num_simulations = simulations
        request.seed = seed
        request.ply = len(moves)
        request.keep_squares = True
        # A level overlooks what its network does; its rating was measured so.
        request.considers_all = self.level is not None
        threads = usable_threads(threads)
        play = self._open_model().play
        most = play.batch_rows
        if threads == 1 and (is_external(self.game) or play.search.policy != "puct"):
            most = 1  # These searches evaluate one leaf at a time.
        return (threads, batch_rows(simulations, threads, most)), request
