"""Searches of single positions, and the sides of a match.

A search with one thread is deterministic. If several threads search one tree, the
tree's shape differs between searches. Each thread gathers several leaves per batch. A
leaf in flight counts as a visit, and as a virtual loss on an edge without visits, so
that the next descent takes another path.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from tengen import _core
from tengen.config import check
from tengen.errors import UsageError
from tengen.evaluation.played_game import Dispute
from tengen.evaluation.players import ModelPlayer
from tengen.games import Game, core_game
from tengen.inference import Backend, Runner, bind_port, drive
from tengen.search import SearchConfig, draw_seed

__all__ = ["PortSide", "Searcher", "Side", "TreeSide", "batch_rows"]

_MAX_BATCH_ROWS = 8
# Maximum share of a search's simulations in flight. The share is small, because leaves
# in flight are selected without each other's results.
_IN_FLIGHT = 1 / 32


def batch_rows(num_simulations: int, num_threads: int, most: int = 0) -> int:
    """Returns the number of leaves that each search thread gathers per batch.

    Args:
        num_simulations: Total number of simulations of the search.
        num_threads: Number of threads that search the tree.
        most: Maximum to return, as in ``PlayConfig.batch_rows``; 0 for the default.
    """
    if most == 0:
        most = _MAX_BATCH_ROWS if num_threads > 1 else 1
    share = int(num_simulations * _IN_FLIGHT / num_threads)
    return min(max(share, 1), most)


class Searcher:
    """Searches positions of one game with one model. Used by one thread at a time.

    Args:
        game: The game of the positions.
        backend: The model's backend, opened for ``num_threads`` threads.
        search: The search settings; several threads or leaves per batch require PUCT.
        num_threads: Threads that search one tree, at least 1.
        batch_rows: Leaves that each thread gathers per batch, at least 1.

    Raises:
        UsageError: The game or the settings require one thread and one leaf per batch,
            the search needs scores that the backend lacks, or its policy is minigo.
    """

    def __init__(
        self,
        game: Game,
        backend: Backend,
        search: SearchConfig,
        num_threads: int = 1,
        batch_rows: int = 1,
    ) -> None:
        search.check_single()
        rules = core_game(game)
        settings = search.to_native()
        self._has_scores = "score" in backend.signature.outputs
        search.check_scores(self._has_scores)
        self._shared: Any = None
        self._alone: Any = None
        if num_threads == batch_rows == 1:
            self._alone = _core.make_session(rules, settings)
            ports = [self._alone]
        else:
            if not isinstance(rules, str):
                raise UsageError(
                    f"threads ({num_threads}) must be 1 for {game.name}, a game in "
                    "Python; use one thread"
                )
            rule = f"must be 1 for a {search.policy} search; use one thread"
            check(search.policy == "puct", "threads", num_threads, rule)
            self._shared = _core.make_shared_session(
                rules, settings, num_threads=num_threads, batch_rows=batch_rows
            )
            ports = [self._shared.port(index) for index in range(num_threads)]
        self._drivers = [(port, _bound(backend, port)) for port in ports]

    def run(
        self,
        moves: Sequence[int],
        request: Any,
        variant: str = "",
        *,
        keeps_tree: bool = False,
    ) -> Any:
        """Searches the position after ``moves``; returns the core's result. Blocks.

        Args:
            moves: Actions from the first move of the game.
            request: The core's ``SearchRequest``. Its ``keep_scores`` is set if the
                backend estimates scores.
            variant: The variant of the game, as for ``Game.new_state``.
            keeps_tree: Whether to reuse the tree of the previous search if ``moves``
                continue its moves; the reused visits count. A Gumbel search never
                reuses a tree.

        Raises:
            CoreError: The variant does not exist, a move is illegal, or the game has
                ended.
            Exception: Any exception of the backend.
        """
        request.keep_scores = self._has_scores
        self._session.begin(list(moves), request, variant, keeps_tree)
        self._drive()
        return self._session.result

    def extend(self, num_simulations: int) -> Any:
        """Extends the last search of ``run`` to ``num_simulations`` in total. Blocks.

        Raises:
            CoreError: There is no search to extend, it does not use PUCT, or
                ``num_simulations`` is out of range.
            Exception: Any exception of the backend.
        """
        self._session.extend(num_simulations)
        self._drive()
        return self._session.result

    def variation(self, action: int, max_length: int) -> list[int]:
        """Returns the principal variation from ``action`` on; empty if unvisited."""
        variation: list[int] = self._session.variation(action, max_length)
        return variation

    @property
    def _session(self) -> Any:
        return self._shared if self._alone is None else self._alone

    def _drive(self) -> None:
        if self._alone is not None:
            drive(*self._drivers[0])
            return
        with ThreadPoolExecutor(len(self._drivers), thread_name_prefix="tree") as pool:
            try:
                futures = [pool.submit(drive, *driver) for driver in self._drivers]
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                self._shared.stop()
            for future in futures:
                future.result()


class _FullBatches:
    """A runner that always evaluates all rows of the buffers, so batches have one size.

    A thread that is blocked by other threads gathers fewer leaves. A change of the
    batch size would cost the backend more time than the additional rows.
    """

    def __init__(self, runner: Runner, num_rows: int) -> None:
        self._runner = runner
        self._num_rows = num_rows

    def run(self, num_rows: int) -> None:
        """Evaluates all rows of the buffers; ``num_rows`` is ignored."""
        self._runner.run(self._num_rows)


def _bound(backend: Backend, port: Any) -> Runner:
    return _FullBatches(bind_port(backend, port), len(port.value))


class Side:
    """One player in the games of one match thread. Used only by this thread."""

    def move(self, match: Any, player: int) -> None:
        """Plays the next moves of this side in the thread's games. Blocks.

        Args:
            match: The core's match object.
            player: The index of this side in the match, 0 or 1.
        """
        raise NotImplementedError

    def dispute(self, index: int) -> Dispute | None:
        """Returns why game ``index`` has no result; None if it has a result."""
        return None

    def illegal_move(self, index: int) -> str:
        """Returns the illegal move with which this side lost a game; empty if none."""
        return ""

    def finish(self, match: Any, player: int) -> None:
        """Ends the side's work when all games are finished. Blocks."""

    def stop(self) -> None:
        """Makes ``move`` return soon. May be called from any thread."""

    def close(self) -> None:
        """Releases the side's resources. Called after its thread has ended."""


class PortSide(Side):
    """The side of a player whose moves the core chooses, with or without a network.

    Args:
        backend: The backend of the player's network; None without a network.
    """

    def __init__(self, backend: Backend | None) -> None:
        self._backend = backend
        self._runner: Runner | None = None

    def move(self, match: Any, player: int) -> None:
        """Evaluates one batch of leaves for the core's searches."""
        port = match.port(player)
        if self._backend is not None and self._runner is None:
            self._runner = bind_port(self._backend, port)
        num_rows = port.next()
        if self._runner is not None and num_rows > 0:
            self._runner.run(num_rows)
            port.done()


class TreeSide(Side):
    """The side of a model that searches one game at a time, with several threads.

    Args:
        game: The game.
        player: The model and its play settings.
        num_simulations: Simulations per move, unless the player has a level.
        seed: Seed for sampling moves, if the player has a level.
    """

    def __init__(
        self, game: Game, player: ModelPlayer, num_simulations: int, seed: int
    ) -> None:
        threads = player.tree_threads
        num_simulations = player.num_simulations(num_simulations)
        self._level = player.level
        self._seed = seed
        rows = batch_rows(num_simulations, threads, player.play.batch_rows)
        self._num_simulations = num_simulations
        self._framed = player.framed(game)
        self._searcher = Searcher(
            self._framed.frame, player.backend, player.play.search, threads, rows
        )

    def move(self, match: Any, player: int) -> None:
        """Plays one move in every game in which this side is to move."""
        match.port(player).next()  # Starts new games in free slots.
        for turn in match.turns(player):
            if match.finished:
                return
            request = _core.SearchRequest()
            request.num_simulations = self._num_simulations
            moves = self._framed.to_frame(turn.moves)
            result = self._searcher.run(moves, request, self._framed.variant)
            action = self._chosen(result, turn.index, len(turn.moves))
            match.play(turn.index, self._framed.from_frame(action))

    def _chosen(self, result: Any, index: int, ply: int) -> int:
        """Returns the action to play, with the action numbers of the frame."""
        if self._level is None:
            return int(result.best_action)
        return self._level.draw(
            [row.action for row in result.actions],
            [row.prior for row in result.actions],
            result.best_action,
            draw_seed(self._seed, index, ply),
        )
