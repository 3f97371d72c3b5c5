"""The players of matches, and the inference backend for a model that plays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from tengen import _core
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.evaluation.engines.process import EngineProcess
from tengen.evaluation.engines.protocols import GomocupEngine, GtpEngine
from tengen.games import Framed, Game, open_game
from tengen.games.gomoku import read_gomoku_name
from tengen.inference import (
    Backend,
    InferenceConfig,
    check_device_words,
    default_devices,
    open_backend,
    parse_devices,
)
from tengen.inference.architecture import read_architecture
from tengen.inference.config import BackendName, Precision
from tengen.inference.openvino_backend import (
    ONNX_FILE,
    is_installed,
    supported_precisions,
)
from tengen.models import ModelDir
from tengen.search import Level, PlayConfig, PlayPrecision


@dataclass(frozen=True)
class RandomPlayer:
    """The player ``random``, which plays uniformly random legal moves."""

    name: str = "random"
    """The player's name on the command line."""

    def to_native(self, num_simulations: int) -> Any:
        """Returns the core's player object; ``num_simulations`` is not used."""
        player = _core.MatchPlayer()
        player.kind = _core.PlayerKind.RANDOM
        return player


@dataclass(frozen=True)
class MctsPlayer:
    """The player ``mcts:N``: UCT with N random playouts per move and no tree reuse."""

    num_playouts: int
    """Number of playouts per move, at least 1."""

    @property
    def name(self) -> str:
        """The player's name on the command line."""
        return f"mcts:{self.num_playouts}"

    def to_native(self, num_simulations: int) -> Any:
        """Returns the core's player object; ``num_simulations`` is not used."""
        player = _core.MatchPlayer()
        player.kind = _core.PlayerKind.MCTS
        player.num_simulations = self.num_playouts
        return player


@dataclass(frozen=True)
class ModelPlayer:
    """A player that searches with a network, without exploration noise.

    Thread-safe: each thread binds its own runner of the backend.
    """

    name: str
    """The player's name in reports."""
    task: str
    """The game that the network was trained for."""
    backend: Backend
    """The backend that evaluates the network."""
    play: PlayConfig = field(default_factory=PlayConfig)
    """The play settings, which include the search settings."""
    directory: Path | None = None
    """The model directory; None if the backend can serve any number of threads."""
    devices: str | None = None
    """The device that runs the network, as for ``open_for_play``."""
    num_threads: int = 1
    """The number of threads that the backend serves."""
    mixed_sizes: bool = False
    """Whether the network can play several board sizes or rules: it was trained with
    ``net.mixed_sizes``, or has ``boards``."""
    boards: Callable[[int, int], ModelDir] | None = None
    """The model for a board's height and width, see ``ModelDir.boards``; or None."""
    frame: str = ""
    """The game whose planes are the network's input; empty for ``task``."""
    tree_threads: int = 1
    """Threads that search one tree. With more than one, moves are not reproducible."""
    level: Level | None = None
    """The playing level; None for full strength."""

    def __post_init__(self) -> None:
        if self.play.search.score_weight > 0:
            self.play.search.check_scores("score" in self.backend.signature.outputs)

    @property
    def is_outside(self) -> bool:
        """Whether Python code searches the moves, and not the core's match."""
        draws = self.level is not None and self.level.temperature > 0
        return self.tree_threads > 1 or self.frame != "" or draws

    def num_simulations(self, asked: int) -> int:
        """Returns the level's simulations per move; ``asked`` if there is none."""
        return asked if self.level is None else self.level.simulations

    def opened_for(self, num_threads: int) -> ModelPlayer:
        """Returns this player with a backend for ``num_threads`` threads. Blocks.

        Raises:
            RunError: The backend cannot load the model.
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
        """Returns a player that plays the game ``task`` with the same network.

        Args:
            task: A game with the same planes and actions, or Go on the same board. A
                network with ``mixed_sizes`` also plays Go on smaller boards, and one
                with ``boards`` on any board.

        Raises:
            UsageError: The game does not exist, or the network cannot play it.
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
        rule = f"must have the planes and actions of {frame.name}; choose another"
        check(self.mixed_sizes or is_same_board, "game", task, rule)
        Framed.corner(game, frame)
        return dataclasses.replace(self, task=task, frame=frame.name)

    def _on_board(self, game: Game) -> ModelPlayer:
        """Returns this player with the model for the board size of ``game``. Blocks."""
        assert self.boards is not None
        model = self.boards(game.height, game.width)
        player = dataclasses.replace(
            self, task=model.meta.task, frame="", directory=model.path, num_threads=0
        )
        return player.opened_for(self.num_threads)

    def framed(self, game: Game) -> Framed:
        """Returns ``game`` in the frame of the game that the network was trained on."""
        if not self.frame:
            return Framed(game, game)
        return Framed.corner(game, open_game(self.frame))

    def to_native(self, num_simulations: int) -> Any:
        """Returns the core's player object; a level overrides ``num_simulations``."""
        player = _core.MatchPlayer()
        if self.is_outside:
            player.kind = _core.PlayerKind.OUTSIDE
            return player
        player.kind = _core.PlayerKind.NETWORK
        player.num_simulations = self.num_simulations(num_simulations)
        player.search = self.play.search.to_native()
        player.keeps_tree = self.play.keeps_tree
        player.resign_below = self.play.resign_below
        return player


@dataclass(frozen=True)
class EnginePlayer:
    """An external engine as a player; base class of one class per protocol."""

    PREFIX: ClassVar[str] = ""
    """The prefix of the player's name, such as ``gtp:``."""
    EXAMPLE: ClassVar[str] = ""
    """An example of ``command`` for error messages."""

    command: str
    """The command line that starts the engine."""
    answer_s: float = 60.0
    """Maximum time for each response of the engine, in seconds."""

    def __post_init__(self) -> None:
        rule = f'must name a program; for example {self.PREFIX}"{self.EXAMPLE}"'
        check(self.command.strip() != "", "player", self.name, rule)
        check_range("answer-seconds", self.answer_s, 0.001, 1e6)

    @property
    def name(self) -> str:
        """The player's name on the command line."""
        return f"{self.PREFIX}{self.command}"

    def check_game(self, name: str) -> None:
        """Raises UsageError unless the protocol supports the game ``name``."""
        raise NotImplementedError

    def start(self, game: Game) -> EngineProcess:
        """Starts the engine and prepares it to play ``game``. Blocks.

        Raises:
            UsageError: The engine cannot be started, or speaks a different protocol.
            RunError: The engine does not respond, or does not support the game.
        """
        engine = self._process()
        try:
            engine.open(game)
        except BaseException:
            engine.close()
            raise
        return engine

    def _process(self) -> EngineProcess:
        raise NotImplementedError

    def to_native(self, num_simulations: int) -> Any:
        """Returns the core's player object; ``num_simulations`` is not used."""
        player = _core.MatchPlayer()
        player.kind = _core.PlayerKind.OUTSIDE
        return player


@dataclass(frozen=True)
class GtpPlayer(EnginePlayer):
    """The player ``gtp:COMMAND``: a program that plays Go and speaks GTP."""

    PREFIX = "gtp:"
    EXAMPLE = "gnugo --mode gtp"

    def check_game(self, name: str) -> None:
        """Raises UsageError unless the game ``name`` is Go."""
        try:
            _core.parse_go_name(name)
        except _core.CoreError as error:
            raise UsageError(
                f"player ({self.name}) plays Go, not {name}; choose go/SIZE"
            ) from error

    def _process(self) -> EngineProcess:
        return GtpEngine(self.command, self.answer_s)


@dataclass(frozen=True)
class GomocupPlayer(EnginePlayer):
    """The player ``gomocup:COMMAND``: a gomoku program with the Gomocup protocol."""

    PREFIX = "gomocup:"
    EXAMPLE = "./pbrain-rapfi"

    turn_s: float = 1.0
    """Time limit per move that is sent to the engine, in seconds."""
    turn_nodes: int = 0
    """Limit of nodes per move that is sent to the engine; 0 for none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("turn-seconds", self.turn_s, 0.0, 1e6)
        check_range("turn-nodes", self.turn_nodes, 0, (1 << 31) - 1)
        rule = f"must be below answer-seconds ({self.answer_s:g}); raise answer-seconds"
        check(self.turn_s < self.answer_s, "turn-seconds", self.turn_s, rule)

    def check_game(self, name: str) -> None:
        """Raises UsageError unless the game ``name`` is gomoku."""
        if read_gomoku_name(name) is None:
            raise UsageError(
                f"player ({self.name}) plays gomoku, not {name}; choose gomoku/SIZE"
            )

    def _process(self) -> EngineProcess:
        return GomocupEngine(self.command, self.answer_s, self.turn_s, self.turn_nodes)


MatchPlayer: TypeAlias = RandomPlayer | MctsPlayer | ModelPlayer | EnginePlayer


def open_for_play(
    directory: Path,
    num_threads: int,
    *,
    outputs: Sequence[str] | None = None,
    devices: str | None = None,
    precision: PlayPrecision = "fp32",
) -> Backend:
    """Returns a backend with which a model plays. Blocks while the model is compiled.

    Args:
        directory: The model directory.
        num_threads: The number of threads that evaluate concurrently, at least 1.
        outputs: Names of the network outputs to compute; None for all.
        devices: ``cpu`` or one GPU, such as ``cuda:0``. None for the CPU if OpenVINO
            can run the model, otherwise for the first GPU, or the CPU if there is none.
        precision: Precision of the trunk. It applies to OpenVINO on a CPU that supports
            it; otherwise, and for ``run``, the trunk is fp32.

    Raises:
        UsageError: The model cannot be used, or the GPU does not exist.
        RunError: The backend cannot load the model.
    """
    # A run that evaluates with torch publishes no graph, so its models need torch.
    has_openvino = is_installed() and (directory / ONNX_FILE).exists()
    is_native = read_architecture(directory).net.is_native
    if devices is None:
        # Without OpenVINO, torch is imported anyway, so it can detect a GPU.
        devices = "cpu" if has_openvino or is_native else default_devices()
    else:
        _check_devices(devices)
        rule = "cannot evaluate this network, which the core evaluates; use cpu"
        check(not is_native or devices == "cpu", "devices", devices, rule)
    backend: BackendName = "torch"
    played: Precision = "fp32"
    if is_native:
        backend = "native"
    elif has_openvino and devices == "cpu":
        backend = "openvino"
        if precision != "run" and precision in supported_precisions():
            played = precision
    config = InferenceConfig(
        devices=devices, backend=backend, precision=played, batch_shape="dynamic"
    )
    return open_backend(directory, config, num_threads, outputs=outputs)


def _check_devices(devices: str) -> None:
    check_device_words("devices", devices)
    is_one = devices != "auto" and "," not in devices
    check(is_one, "devices", devices, "must be cpu or one GPU; for example cuda:0")
    parse_devices("devices", devices)
