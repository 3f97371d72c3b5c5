"""A trained agent that chooses moves and says why."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import Any

from tengen import _core
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


class Player:
    """A model that plays one game. Made by ``tengen.load``.

    Threads: calls from several threads wait for each other.

    Args:
        model: Who plays, and whether trees are kept: then what a search finds depends
            on what was asked before; and its level, if it has one.
        draws: Seed of the moves that a weak level draws, beside that of each call.

    Attributes:
        name: The word that it was loaded by.
        game: The game that it plays.
    """

    def __init__(self, model: ModelPlayer, draws: int = 0) -> None:
        """Opens the game.

        Raises:
            UsageError: There is no such game, or the model's search is for self-play
                and matches alone.
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

    def __enter__(self) -> Player:
        """Returns the player itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the player."""
        self.close()

    def close(self) -> None:
        """Lets go of the model; waits for a search in progress. Twice is fine."""
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

        A player of a weak level draws one instead.

        With one thread the same arguments give the same action wherever evaluation is
        deterministic, unless trees are kept; several search one tree together, sooner
        and not twice alike. Blocks while it searches, without the GIL.

        Args:
            moves: Actions from the first move of the game; empty for its start.
            simulations: How long to search, 1 to 2**24; what a kept tree has counts.
                None: as its level says, 64 without one.
            seed: Of whatever the search draws at random, below 2**63.
            threads: That search one tree, 1 to 1024; with a TengenWarning no more than
                there are cores. The first call with more threads than before compiles
                the model again.

        Raises:
            UsageError: The player was closed, a number is out of its range, or the
                game is one of Python's own and there are several threads.
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
        """Gives a search of the position after ``moves`` that has only begun.

            with player.begin([3, 3]) as search:
                while not search.is_proven and not enough():
                    search.grow(16)
                print(search.analysis())

        Grown to so many simulations it is the search of ``analyse``, slice by slice.
        Blocks for one evaluation.

        Args:
            moves: As for ``choose``.
            simulations: About how many it may grow to.
            seed: As for ``choose``.
            threads: As for ``choose``.
            left_out: (player, action, depth): actions that a player does not take less
                than so many moves from here, unless there is no other.

        Raises:
            UsageError: As for ``choose``, or the search is no PUCT.
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
        # A search that was interrupted is in no state to begin another: it is let go.
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
            UsageError: There is no such game, it is another one to the network, or the
                player was closed.
        """
        other = Player(self._open_model().playing(task), self._draws)
        other._forecaster = self._forecaster
        return other

    def at_level(self, level: Level | None, draws: int = 0) -> Player:
        """Returns a player of the same model and another strength.

        Args:
            level: How strong; None: as strong as the simulations make it.
            draws: As for ``Player``.

        Raises:
            UsageError: The player was closed.
        """
        other = Player(dataclasses.replace(self._open_model(), level=level), draws)
        other._forecaster = self._forecaster
        return other

    @property
    def level(self) -> Level | None:
        """How strong it is to be; None: as strong as the simulations make it."""
        return self._open_model().level

    def usual_threads(
        self, asked: int | None = None, *, is_repeatable: bool = False
    ) -> int:
        """Returns how many threads are to search one tree.

        Args:
            asked: What a person asked for, with a TengenWarning where there are fewer
                cores; None: as many as there are cores, one in a game that Python
                makes the moves of, or where the search is no PUCT.
            is_repeatable: Whether the usual number is one in any case, whose searches
                are the same twice.

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

        A network that was trained with auxiliary heads, of a game with a score, can.
        Blocks; the first call reads its weights again.

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
        """Whether ``begin`` is for this player: its search is PUCT."""
        return self._open_model().play.search.policy == "puct"

    @property
    def mixed_sizes(self) -> bool:
        """Whether it was trained for games that vary, and plays smaller boards."""
        return self._open_model().mixed_sizes

    def _open_model(self) -> ModelPlayer:
        if self._model is None:
            raise UsageError(f"player ({self.name}) is closed; load it again")
        return self._model

    def _take_searcher(self, threads: int, rows: int) -> Searcher:
        model = self._open_model()
        # A search that was interrupted is in no state to begin another.
        if searcher := self._searchers.pop(self._place(threads, rows), None):
            return searcher
        self._model = model = model.opened_for(threads)
        frame = self._framed.frame
        return Searcher(frame, model.backend, model.play.search, threads, rows)

    def _put_searcher(self, key: tuple[int, int], searcher: Searcher) -> None:
        self._searchers[self._place(*key)] = searcher

    def _place(self, threads: int, rows: int) -> tuple[int, int]:
        # The tree is in the searcher of the first request, however long others are.
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
        """Returns what draws moves at a ply; None for a player that plays the best."""
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
            most = 1  # such a search takes one leaf after the other
        return (threads, batch_rows(simulations, threads, most)), request
