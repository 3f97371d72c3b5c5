"""Who makes the moves of one player in the games of one thread of a match."""

from __future__ import annotations

from typing import Any

from tengen import _core
from tengen.evaluation.played_game import Dispute
from tengen.evaluation.players import ModelPlayer
from tengen.evaluation.searcher import Searcher, batch_rows
from tengen.games import Game
from tengen.inference import Backend, Runner, bind_port
from tengen.search import draw_seed

__all__ = ["PortSide", "Side", "TreeSide"]


class Side:
    """One player's part in the games of one thread. Used by that thread."""

    def move(self, match: Any, player: int) -> None:
        """Plays the games on as far as the player can. Blocks.

        Args:
            match: The core's match.
            player: Who it is there, 0 or 1.
        """
        raise NotImplementedError

    def dispute(self, index: int) -> Dispute | None:
        """Returns why a finished game has no result; None where it has one."""
        return None

    def illegal_move(self, index: int) -> str:
        """Returns the move that is not legal by which the side lost a finished game."""
        return ""

    def finish(self, match: Any, player: int) -> None:
        """Is told that every game was played. Blocks."""

    def stop(self) -> None:
        """Lets ``move`` return soon, for good. From any thread."""

    def close(self) -> None:
        """Frees what the side holds, once its thread has ended."""


class PortSide(Side):
    """A player of the core; the network's runner is bound to its port.

    Args:
        backend: The network's; None where there is none.
    """

    def __init__(self, backend: Backend | None) -> None:
        self._backend = backend
        self._runner: Runner | None = None

    def move(self, match: Any, player: int) -> None:
        """Evaluates one batch, or lets the core move."""
        port = match.port(player)
        if self._backend is not None and self._runner is None:
            self._runner = bind_port(self._backend, port)
        num_rows = port.next()
        if self._runner is not None and num_rows > 0:
            self._runner.run(num_rows)
            port.done()


class TreeSide(Side):
    """A network that searches one game after the other, by threads in one tree.

    Args:
        game: The game.
        player: The network, and how many threads.
        num_simulations: A move, where the player has no level.
        seed: Of its draws, where its level draws moves.
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
        """Makes one move in every game that waits for one."""
        match.port(player).next()  # begins games
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
        """Returns the move of a search, as the frame numbers it."""
        if self._level is None:
            return int(result.best_action)
        return self._level.draw(
            [row.action for row in result.actions],
            [row.prior for row in result.actions],
            result.best_action,
            draw_seed(self._seed, index, ply),
        )
