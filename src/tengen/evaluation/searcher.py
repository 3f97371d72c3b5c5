"""Searches of one position at a time: by one thread, or by several in one tree.

One thread is deterministic. Several find another tree each time; each gathers a few
leaves, which keep the backend's batches full; a leaf on its way counts as a visit, and
as a loss where it is the first, so that the next descent takes another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from tengen import _core
from tengen.config import check
from tengen.errors import UsageError
from tengen.games import Game, core_game
from tengen.inference import Backend, Runner, bind_port, drive
from tengen.search import SearchConfig

__all__ = ["Searcher", "batch_rows"]

_MAX_BATCH_ROWS = 8
# Leaves on their way may be this part of all simulations, for they are taken without
# knowing of each other.
_IN_FLIGHT = 1 / 32


def batch_rows(num_simulations: int, num_threads: int, most: int = 0) -> int:
    """Returns how many leaves each thread of a tree gathers.

    Args:
        num_simulations: Of the whole search.
        num_threads: Threads of the tree.
        most: As ``PlayConfig.batch_rows``.
    """
    if most == 0:
        most = _MAX_BATCH_ROWS if num_threads > 1 else 1
    share = int(num_simulations * _IN_FLIGHT / num_threads)
    return min(max(share, 1), most)


class Searcher:
    """Searches positions of one game with one model. Used by one thread at a time.

    Args:
        game: The game.
        backend: Opened for ``num_threads``.
        search: How to search; PUCT where there are several threads.
        num_threads: Threads in one tree, at least 1.
        batch_rows: Leaves that each gathers, at least 1; see ``batch_rows``.

    Raises:
        UsageError: The game or the settings want one thread and one leaf, the settings
            want scores, which the backend has not, or their policy is minigo.
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
                    f"threads ({num_threads}) must be 1 for {game.name}, whose moves "
                    f"Python makes; use one thread"
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
        """Returns the core's result for the position after ``moves``. Blocks.

        Args:
            moves: Actions from the first move of the game.
            request: The core's ``SearchRequest``; scores are kept where the backend
                has them.
            variant: As for ``Game.new_state``.
            keeps_tree: Where the moves go on from those of the search before, its tree
                is searched on, and the visits that are left count. A Gumbel search
                begins anew.

        Raises:
            CoreError: There is no such variant, a move is not legal, or the game is
                over.
            Exception: What the backend raised; the search is ended.
        """
        request.keep_scores = self._has_scores
        self._session.begin(list(moves), request, variant, keeps_tree)
        self._drive()
        return self._session.result

    def extend(self, num_simulations: int) -> Any:
        """Returns the result of ``run``'s search gone on to so many in all. Blocks.

        Raises:
            CoreError: There was no search, it was not by puct, or the number is out of
                its range.
            Exception: What the backend raised; the search is ended.
        """
        self._session.extend(num_simulations)
        self._drive()
        return self._session.result

    def variation(self, action: int, max_length: int) -> list[int]:
        """Returns ``action`` and what the last search expects after it.

        Empty where it has no visit.
        """
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
    """Evaluates all rows of the buffers whatever is asked for.

    A batch is short when its thread was blocked, now and then; another size than the
    batch before would cost the backend more than the rows that nobody asked for.
    """

    def __init__(self, runner: Runner, num_rows: int) -> None:
        self._runner = runner
        self._num_rows = num_rows

    def run(self, num_rows: int) -> None:
        """Evaluates the rows; see ``Runner.run``."""
        self._runner.run(self._num_rows)


def _bound(backend: Backend, port: Any) -> Runner:
    return _FullBatches(bind_port(backend, port), len(port.value))
