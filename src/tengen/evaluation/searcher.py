"""Searches single positions, and defines the sides of a match.

A search with one thread is deterministic. If several threads search one tree, the tree
may differ between runs. A thread may gather several leaves per batch. Until a leaf is
backed up, each edge on its path counts one more visit, and an edge without visits also
counts a virtual loss, so that the next descent takes another path.
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

_MAX_BATCH_ROWS = 8
# Maximum share of a search's simulations in flight. It is small because simulations in
# flight together cannot use each other's results.
_IN_FLIGHT = 1 / 32


def batch_rows(num_simulations: int, num_threads: int, most: int = 0) -> int:
    """Returns the number of leaves that each search thread gathers per batch.

    Args:
        num_simulations: Total number of simulations of the search.
        num_threads: Number of threads that search the tree.
        most: Maximum number to return, as in ``PlayConfig.batch_rows``. 0 for the
            default: 8 with several threads, otherwise 1.
    """
    if most == 0:
        most = _MAX_BATCH_ROWS if num_threads > 1 else 1
    share = int(num_simulations * _IN_FLIGHT / num_threads)
    return min(max(share, 1), most)


class Searcher:
    """Searches positions of one game with one model. Not thread-safe.

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
        if num_threads == batch_rows == 1:
            self._session = _core.make_session(rules, settings)
        else:
            if not isinstance(rules, str):
                raise UsageError(
                    f"threads ({num_threads}) must be 1 for {game.name}, a game in "
                    "Python; use one thread"
                )
            rule = f"must be 1 for a {search.policy} search; use one thread"
            check(search.policy == "puct", "threads", num_threads, rule)
            self._session = _core.make_shared_session(
                rules, settings, num_threads=num_threads, batch_rows=batch_rows
            )
        ports = [self._session.port(index) for index in range(num_threads)]
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
            request: The core's ``SearchRequest``. This method sets its field
                ``keep_scores``.
            variant: The variant of the game, as for ``Game.new_state``.
            keeps_tree: Whether to reuse the previous search's tree if ``moves``
                continue the moves of that search. Reused visits count as simulations. A
                Gumbel search never reuses a tree.

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
        """Extends the last search to ``num_simulations`` in total; returns the result.

        Raises:
            CoreError: There is no search to extend, it does not use PUCT, or
                ``num_simulations`` is out of range.
            Exception: Any exception of the backend.
        """
        self._session.extend(num_simulations)
        self._drive()
        return self._session.result

    def variation(self, action: int, max_length: int) -> list[int]:
        """Returns the principal variation from ``action``; empty if not visited."""
        variation: list[int] = self._session.variation(action, max_length)
        return variation

    def _drive(self) -> None:
        if len(self._drivers) == 1:
            drive(*self._drivers[0])
            return
        with ThreadPoolExecutor(len(self._drivers), thread_name_prefix="tree") as pool:
            try:
                futures = [pool.submit(drive, *driver) for driver in self._drivers]
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                self._session.stop()
            for future in futures:
                future.result()


class _FullBatches:
    """A runner that evaluates all rows of its buffers, so that batches have one size.

    A search thread gathers fewer leaves if other threads block it. Evaluating unused
    rows takes the backend less time than changing the batch size.
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
    """One player in the games of one match thread. Only ``stop`` is thread-safe."""

    def move(self, match: Any, player: int) -> None:
        """Plays the next moves of this side in the thread's games. Blocks.

        Args:
            match: The core's match object.
            player: The index of this side in the match, 0 or 1.
        """
        raise NotImplementedError

    def dispute(self, index: int) -> Dispute | None:
        """Returns the dispute of game ``index``; None if the game has a result."""
        return None

    def illegal_move(self, index: int) -> str:
        """Describes the illegal move with which this side lost the game, or ""."""
        return ""

    def finish(self, match: Any, player: int) -> None:
        """Completes the side's work after all games have finished. Blocks."""

    def stop(self) -> None:
        """Makes ``move`` return soon. Any thread may call this."""

    def close(self) -> None:
        """Releases the side's resources. Called after the match thread has ended."""


class PortSide(Side):
    """A side whose moves the core chooses, with or without a network.

    Args:
        backend: The backend of the player's network; None for a player without one.
    """

    def __init__(self, backend: Backend | None) -> None:
        self._backend = backend
        self._runner: Runner | None = None

    def move(self, match: Any, player: int) -> None:
        """Advances the core's searches, and evaluates one batch of their leaves."""
        port = match.port(player)
        if self._backend is not None and self._runner is None:
            self._runner = bind_port(self._backend, port)
        num_rows = port.next()
        if self._runner is not None and num_rows > 0:
            self._runner.run(num_rows)
            port.done()


class TreeSide(Side):
    """A side whose moves Python code searches, one game after another.

    Args:
        game: The game.
        player: The model and its play settings.
        num_simulations: Simulations per move; a level of the player overrides it.
        seed: Seed with which a level samples moves.
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
        self._resign_below = player.play.resign_below
        # Each game's latest searches in a row with a value below ``resign_below``.
        self._num_lost: dict[int, int] = {}
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
            # A level overlooks what its network does; its rating was measured so.
            request.considers_all = self._level is not None
            moves = self._framed.to_frame(turn.moves)
            result = self._searcher.run(moves, request, self._framed.variant)
            if self._resigns(turn.index, result.root_value_to_play):
                match.resign(turn.index)
                continue
            action = self._chosen(result, turn.index, len(turn.moves))
            match.play(turn.index, self._framed.from_frame(action))

    def _resigns(self, index: int, value_to_play: float) -> bool:
        """Counts a search of a game; returns whether this side resigns the game."""
        is_lost = self._level is None and value_to_play < self._resign_below
        num_lost = self._num_lost.pop(index, 0)
        num_lost = num_lost + 1 if is_lost else 0
        if 0 < num_lost < _core.RESIGN_MOVES:
            self._num_lost[index] = num_lost
        return num_lost == _core.RESIGN_MOVES

    def _chosen(self, result: Any, index: int, ply: int) -> int:
        """Returns the action to play, as an action number of the frame."""
        if self._level is None:
            return int(result.best_action)
        return self._level.draw(
            [row.action for row in result.actions],
            [row.prior for row in result.actions],
            result.best_action,
            draw_seed(self._seed, index, ply),
        )
