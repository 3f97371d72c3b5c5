"""A trained agent that chooses moves and says why."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from tengen import _core
from tengen.config import check_range
from tengen.errors import UsageError
from tengen.evaluation import ModelPlayer, open_player
from tengen.evaluation.match import MAX_SEED
from tengen.evaluation.searcher import Searcher, batch_rows
from tengen.games import Game, make
from tengen.run import usable_threads
from tengen.search import MAX_SIMULATIONS, SearchConfig

__all__ = ["ActionAnalysis", "Analysis", "Player", "load"]


@dataclass(frozen=True)
class ActionAnalysis:
    """What a search found of one legal action."""

    action: int
    """The action."""
    visits: int
    """Simulations that began with it."""
    prior: float
    """The network's probability of it among the legal actions, in [0, 1]."""
    value_to_play: float
    """Mean value of the side to move after it, in [-1, 1]; 0 where not visited."""
    policy: float
    """The search's probability of it, in [0, 1]; the sum over all is 1."""


@dataclass(frozen=True)
class Analysis:
    """What a search found of a position."""

    value_to_play: float
    """Value of the position to the side to move, in [-1, 1]: 1 is a sure win."""
    best_action: int
    """The strongest action found; what ``Player.choose`` returns."""
    num_simulations: int
    """Simulations made; fewer than asked for where the result became certain."""
    is_proven: bool
    """Whether ``value_to_play`` is certain, by search to the end of the game."""
    actions: tuple[ActionAnalysis, ...]
    """Every legal action, the best first, then by visits."""


class Player:
    """A model that plays one game. Made by ``tengen.load``.

    Threads: calls from several threads wait for each other.

    Args:
        model: Who plays.

    Attributes:
        name: The word that it was loaded by.
        game: The game that it plays.
    """

    def __init__(self, model: ModelPlayer) -> None:
        """Opens the game.

        Raises:
            UsageError: There is no such game.
        """
        self.name = model.name
        self.game: Game = make(model.task)
        self._model: ModelPlayer | None = model
        self._searchers: dict[tuple[int, int], Searcher] = {}  # by threads and rows
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

    def choose(
        self,
        moves: Sequence[int],
        simulations: int = 64,
        seed: int = 0,
        threads: int = 1,
    ) -> int:
        """Returns the strongest action in the position after ``moves``.

        With one thread the same arguments give the same action wherever evaluation is
        deterministic; several search one tree together, sooner and not twice alike.
        Blocks while it searches, without the GIL.

        Args:
            moves: Actions from the first move of the game; empty for its start.
            simulations: How long to search, 1 to 2**24.
            seed: Of whatever the search draws at random, below 2**63.
            threads: That search one tree, 1 to 1024; with a TengenWarning no more than
                there are cores. The first call with more threads than before compiles
                the model again.

        Raises:
            UsageError: The player was closed, a number is out of its range, or the
                game is one of Python's own and there are several threads.
            CoreError: A move is not legal, or the game is over (a ``ValueError``).
        """
        return self.analyse(moves, simulations, seed, threads).best_action

    def analyse(
        self,
        moves: Sequence[int],
        simulations: int = 64,
        seed: int = 0,
        threads: int = 1,
    ) -> Analysis:
        """Returns what a search finds of the position after ``moves``.

        Args and errors are those of ``choose``.
        """
        check_range("simulations", simulations, 1, MAX_SIMULATIONS)
        check_range("seed", seed, 0, MAX_SEED)
        request = _core.SearchRequest()
        request.num_simulations = simulations
        request.seed = seed
        request.ply = len(moves)
        threads = usable_threads(threads)
        rows = batch_rows(simulations, threads) if threads > 1 else 1
        with self._lock:
            if self._model is None:
                raise UsageError(f"player ({self.name}) is closed; load it again")
            # A search that was interrupted is in no state to begin another.
            searcher = self._searchers.pop((threads, rows), None)
            searcher = searcher or self._new_searcher(self._model, threads, rows)
            result = searcher.run([int(move) for move in moves], request)
            self._searchers[threads, rows] = searcher
        return _analysis(result)

    def _new_searcher(self, model: ModelPlayer, threads: int, rows: int) -> Searcher:
        self._model = model = model.opened_for(threads)
        return Searcher(self.game, model.backend, model.search, threads, rows)


def load(word: str | Path, search: SearchConfig | None = None) -> Player:
    """Returns the player of a trained model. Blocks while it is read and compiled.

    Args:
        word: RUN (its newest model), ``RUN@17`` or a model directory.
        search: How it searches; None as usual.

    Raises:
        UsageError: There is no such model, or it cannot be used.
        RunError: The backend refuses the model.
    """
    player = open_player(str(word))
    if not isinstance(player, ModelPlayer):
        raise UsageError(
            f"model ({word}) must be RUN, RUN@17 or a model directory; "
            f"train one with tengen train"
        )
    if search is not None:
        player = dataclasses.replace(player, search=search)
    return Player(player)


def _analysis(result: Any) -> Analysis:
    best = result.best_action
    actions = [
        ActionAnalysis(
            action=a.action,
            visits=a.visits,
            prior=a.prior,
            value_to_play=a.value_to_play,
            policy=a.policy,
        )
        for a in result.actions
    ]
    actions.sort(key=lambda a: (a.action != best, -a.visits, -a.prior, a.action))
    return Analysis(
        value_to_play=result.root_value_to_play,
        best_action=best,
        num_simulations=result.num_simulations,
        is_proven=result.proof != 0,
        actions=tuple(actions),
    )
