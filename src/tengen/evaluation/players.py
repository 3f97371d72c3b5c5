"""Players of a match."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from tengen import _core
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.evaluation.play_backend import open_for_play
from tengen.games import Framed, Game, open_game
from tengen.games.gomoku import read_gomoku_name
from tengen.inference import (
    Backend,
)
from tengen.models import ModelDir
from tengen.search import Level, PlayConfig

__all__ = [
    "EnginePlayer",
    "GomocupPlayer",
    "GtpPlayer",
    "MatchPlayer",
    "MctsPlayer",
    "ModelPlayer",
    "RandomPlayer",
]


@dataclass(frozen=True)
class RandomPlayer:
    """``random``: every legal move is as likely as another."""

    name: str = "random"
    """As on the command line."""

    def to_native(self, num_simulations: int) -> Any:
        """Returns the core's form; ``num_simulations`` does not apply."""
        player = _core.MatchPlayer()
        player.kind = _core.PlayerKind.RANDOM
        return player


@dataclass(frozen=True)
class MctsPlayer:
    """``mcts:N``: UCT with N uniform random playouts a move, no tree reuse."""

    num_playouts: int
    """N, at least 1."""

    @property
    def name(self) -> str:
        """As on the command line."""
        return f"mcts:{self.num_playouts}"

    def to_native(self, num_simulations: int) -> Any:
        """Returns the core's form; ``num_simulations`` does not apply."""
        player = _core.MatchPlayer()
        player.kind = _core.PlayerKind.MCTS
        player.num_simulations = self.num_playouts
        return player


@dataclass(frozen=True)
class ModelPlayer:
    """A network searched without noise; it plays the strongest move.

    Threads: shared freely; every game thread binds a runner of its own.
    """

    name: str
    """What reports call it."""
    task: str
    """The game it was trained for."""
    backend: Backend
    """Evaluates its positions."""
    play: PlayConfig = field(default_factory=PlayConfig)
    """How it searches."""
    directory: Path | None = None
    """Where the model lies; None where the backend serves any number of threads."""
    devices: str | None = None
    """What it computes on, as for ``open_for_play``."""
    num_threads: int = 1
    """Threads that the backend was opened for."""
    mixed_sizes: bool = False
    """Whether its network was trained for games that vary (``net.mixed_sizes``, or
    boards of all sizes)."""
    boards: Callable[[int, int], ModelDir] | None = None
    """As of the model."""
    frame: str = ""
    """The game whose planes its network reads; empty where they are the task's."""
    tree_threads: int = 1
    """Threads that search one tree; with more than one, moves differ each time."""
    level: Level | None = None
    """How strong it is to be; None: as strong as the simulations make it."""

    def __post_init__(self) -> None:
        if self.play.search.score_weight > 0:
            self.play.search.check_scores("score" in self.backend.signature.outputs)

    @property
    def is_outside(self) -> bool:
        """Whether a match has its moves made by searches of their own."""
        draws = self.level is not None and self.level.temperature > 0
        return self.tree_threads > 1 or self.frame != "" or draws

    def num_simulations(self, asked: int) -> int:
        """Returns the simulations of a move: its level's, or else those asked for."""
        return asked if self.level is None else self.level.simulations

    def opened_for(self, num_threads: int) -> ModelPlayer:
        """Returns the player, opened again where the backend serves fewer threads.

        Blocks while the model is compiled.

        Raises:
            RunError: The backend refuses the model.
        """
        if self.directory is None or num_threads <= self.num_threads:
            return self
        backend = open_for_play(
            self.directory,
            num_threads,
            outputs=tuple(self.backend.signature.outputs),
            devices=self.devices,
            precision=self.play.precision,
        )
        return dataclasses.replace(self, backend=backend, num_threads=num_threads)

    def playing(self, task: str) -> ModelPlayer:
        """Returns the same network as a player of another game.

        Args:
            task: A game with the same planes and actions; Go on the same board with
                other planes; for a network that was trained for games that vary, Go
                on a smaller board; or, for one of boards of all sizes, Go on any.

        Raises:
            UsageError: There is no such game, or it is another one to the network.
        """
        game, frame = open_game(task), open_game(self.frame or self.task)
        is_other = (game.height, game.width) != (frame.height, frame.width)
        if self.boards is not None and is_other and task.startswith("go/"):
            return self._on_board(game).playing(task)
        shapes = [
            (g.num_planes, g.height, g.width, g.num_actions, g.policy_layout)
            for g in (game, frame)
        ]
        if shapes[0] == shapes[1]:
            return dataclasses.replace(self, task=task, frame="")
        is_same_board = shapes[0][1:] == shapes[1][1:]
        rule = f"must have the planes and actions of {frame.name}; name another"
        check(self.mixed_sizes or is_same_board, "game", task, rule)
        Framed.corner(game, frame)
        return dataclasses.replace(self, task=task, frame=frame.name)

    def _on_board(self, game: Game) -> ModelPlayer:
        """Returns the player of the model of another board."""
        assert self.boards is not None
        model = self.boards(game.height, game.width)
        player = dataclasses.replace(
            self, task=model.meta.task, frame="", directory=model.path, num_threads=0
        )
        return player.opened_for(self.num_threads)

    def framed(self, game: Game) -> Framed:
        """Returns the task's game on the planes that the network reads."""
        if not self.frame:
            return Framed(game, game)
        return Framed.corner(game, open_game(self.frame))

    def to_native(self, num_simulations: int) -> Any:
        """Returns the core's form, with so many simulations a move."""
        player = _core.MatchPlayer()
        if self.is_outside:
            player.kind = _core.PlayerKind.OUTSIDE
            return player
        player.kind = _core.PlayerKind.NETWORK
        player.num_simulations = self.num_simulations(num_simulations)
        player.search = self.play.search.to_native()
        player.keeps_tree = self.play.keeps_tree
        return player


@dataclass(frozen=True)
class EnginePlayer:
    """A program that plays, and speaks a protocol of engines."""

    PREFIX: ClassVar[str] = ""
    """What its word begins with."""
    EXAMPLE: ClassVar[str] = ""
    """A command line."""

    command: str
    """Its command line."""
    answer_s: float = 60.0
    """How long one of its answers may take, in seconds."""

    def __post_init__(self) -> None:
        rule = f'must name a program; for example {self.PREFIX}"{self.EXAMPLE}"'
        check(self.command.strip() != "", "player", self.name, rule)
        check_range("answer-seconds", self.answer_s, 0.001, 1e6)

    @property
    def name(self) -> str:
        """As on the command line."""
        return f"{self.PREFIX}{self.command}"

    def check_game(self, name: str) -> None:
        """Raises UsageError unless the protocol has the game of that name."""
        raise NotImplementedError

    def to_native(self, num_simulations: int) -> Any:
        """Returns the core's form; ``num_simulations`` does not apply."""
        player = _core.MatchPlayer()
        player.kind = _core.PlayerKind.OUTSIDE
        return player


@dataclass(frozen=True)
class GtpPlayer(EnginePlayer):
    """``gtp:COMMAND``: a program that plays Go and speaks GTP."""

    PREFIX = "gtp:"
    EXAMPLE = "gnugo --mode gtp"

    def check_game(self, name: str) -> None:
        """Raises UsageError unless the game of that name is Go."""
        try:
            _core.parse_go_name(name)
        except _core.CoreError as error:
            raise UsageError(
                f"player ({self.name}) plays Go, not {name}; choose a game go/SIZE"
            ) from error


@dataclass(frozen=True)
class GomocupPlayer(EnginePlayer):
    """``gomocup:COMMAND``: a program that plays gomoku by the Gomocup protocol."""

    PREFIX = "gomocup:"
    EXAMPLE = "./pbrain-rapfi"

    turn_s: float = 1.0
    """How long it is told that it has for a move, in seconds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("turn-seconds", self.turn_s, 0.0, 1e6)
        rule = f"must be below answer-seconds ({self.answer_s:g}); raise that"
        check(self.turn_s < self.answer_s, "turn-seconds", self.turn_s, rule)

    def check_game(self, name: str) -> None:
        """Raises UsageError unless the game of that name is gomoku."""
        if read_gomoku_name(name) is None:
            raise UsageError(
                f"player ({self.name}) plays gomoku, not {name}; choose a game "
                f"gomoku/SIZE"
            )


MatchPlayer: TypeAlias = RandomPlayer | MctsPlayer | ModelPlayer | EnginePlayer
