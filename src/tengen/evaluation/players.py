"""Players of a match, and the words that name them on the command line."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from tengen import _core
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.games import Framed, Game, check_typed, open_game
from tengen.games.gomoku import read_gomoku_name
from tengen.inference import (
    Backend,
    InferenceConfig,
    check_device_words,
    default_devices,
    open_backend,
    parse_devices,
    search_outputs,
)
from tengen.inference.openvino_backend import (
    ONNX_FILE,
    is_installed,
    supported_precisions,
)
from tengen.models import ModelDir, resolve_model
from tengen.search import Level, PlayConfig, PlayPrecision

__all__ = [
    "EnginePlayer",
    "GomocupPlayer",
    "GtpPlayer",
    "MatchPlayer",
    "MctsPlayer",
    "ModelPlayer",
    "RandomPlayer",
    "find_player",
    "fixed_player",
    "open_for_play",
    "open_model",
    "open_player",
]

_MAX_PLAYOUTS = 10_000_000


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


_ENGINES = (GtpPlayer, GomocupPlayer)

MatchPlayer: TypeAlias = RandomPlayer | MctsPlayer | ModelPlayer | EnginePlayer


def fixed_player(word: str) -> RandomPlayer | MctsPlayer | None:
    """Returns the player that needs no model, or None where the word names one.

    Args:
        word: ``random``, ``mcts:N``, or anything else.

    Raises:
        UsageError: N is no number of playouts, or the word names an outside engine,
            which is no fixed player.
    """
    if word == "random":
        return RandomPlayer()
    if word == "mcts" or word.startswith("mcts:"):
        count = word.removeprefix("mcts").removeprefix(":")
        if not re.fullmatch("[0-9]{1,18}", count):
            raise UsageError(f"player ({word}) must be mcts:N; try mcts:1000")
        if not 1 <= int(count) <= _MAX_PLAYOUTS:
            raise UsageError(
                f"player ({word}) must have 1 to {_MAX_PLAYOUTS} playouts; "
                f"try mcts:1000"
            )
        return MctsPlayer(int(count))
    if _engine(word) is not None:
        raise UsageError(
            f"player ({word}) is an outside engine, which only tengen match plays; "
            f"use random or mcts:N"
        )
    return None


def _engine(word: str) -> EnginePlayer | None:
    """Returns the engine that a word names, None where it names something else."""
    for kind in _ENGINES:
        if word.startswith(kind.PREFIX):
            return kind(word.removeprefix(kind.PREFIX))
    return None


def find_player(word: str) -> RandomPlayer | MctsPlayer | EnginePlayer | ModelDir:
    """Returns the player of a word that needs no model, or the model that it names.

    Args:
        word: As for ``open_player``.

    Raises:
        UsageError: The word names nothing, or a model that is damaged.
    """
    return _engine(word) or fixed_player(word) or resolve_model(word)


def open_player(
    word: str,
    *,
    num_threads: int = 1,
    play: PlayConfig | None = None,
    scores: bool = False,
    devices: str | None = None,
    task: str | None = None,
) -> MatchPlayer:
    """Returns the player of a word. Blocks while a model is read and compiled.

    Args:
        word: ``random``, ``mcts:N``, ``gtp:COMMAND`` or ``gomocup:COMMAND`` (which is
            not started yet), RUN (its newest model), ``RUN@17``, a model directory,
            ``katago:FILE`` or ``bundled:NAME``. A path that looks like a fixed player
            is reached as ``./random``.
        num_threads: Threads that will evaluate at the same time, at least 1.
        play: How a model plays; None as it says itself.
        scores: Whether a model shall estimate the final score, too, if it can; it
            must where the score counts in the search.
        devices: What a model computes on, as for ``open_for_play``.
        task: The model's, as the user typed it in this call; without it no model of a
            game in Python is opened.

    Raises:
        UsageError: The word names nothing, a model that cannot be used or is of another
            task, or a GPU that is not here.
        RunError: The backend refuses the model.
    """
    found = find_player(word)
    if not isinstance(found, ModelDir):
        return found
    return open_model(
        found,
        word,
        num_threads=num_threads,
        play=play,
        scores=scores,
        devices=devices,
        task=task,
    )


def open_model(
    model: ModelDir,
    word: str,
    *,
    num_threads: int = 1,
    play: PlayConfig | None = None,
    scores: bool = False,
    devices: str | None = None,
    task: str | None = None,
) -> ModelPlayer:
    """Returns the player of a model. Blocks while it is compiled.

    Args:
        model: The model.
        word: The word that named it.
        num_threads: As for ``open_player``.
        play: As for ``open_player``.
        scores: As for ``open_player``.
        devices: As for ``open_player``.
        task: As for ``open_player``.

    Raises:
        UsageError: It is a model of an environment or of another task, cannot be used,
            or wants a GPU that is not here.
        RunError: The backend refuses the model.
    """
    if model.meta.signature.board is None:
        raise UsageError(
            f"model ({word}) acts in the environment {model.meta.task} and plays no "
            f"board game; tengen eval {word} says what it scores"
        )
    check_typed(model.meta.task, task, word)
    play = play or model.meta.play or PlayConfig()
    scores = scores or play.search.score_weight > 0
    return ModelPlayer(
        name=word,
        task=model.meta.task,
        backend=open_for_play(
            model.path,
            num_threads,
            outputs=search_outputs(scores=scores),
            devices=devices,
            precision=play.precision,
        ),
        play=play,
        directory=model.path,
        devices=devices,
        num_threads=num_threads,
        mixed_sizes=model.meta.net.mixed_sizes or model.boards is not None,
        boards=model.boards,
    )


def open_for_play(
    directory: Path,
    num_threads: int,
    *,
    outputs: Sequence[str] | None = None,
    devices: str | None = None,
    precision: PlayPrecision = "fp32",
) -> Backend:
    """Returns a model's backend for play. Blocks while the model is compiled.

    Args:
        directory: A model directory.
        num_threads: Threads that will evaluate at the same time, at least 1.
        outputs: What to answer with, as for ``open_backend``; None for all.
        devices: ``cpu`` or one GPU, ``cuda:0``. None: the CPU, or the first GPU where
            OpenVINO is not installed.
        precision: Arithmetic of the trunk where OpenVINO computes on the CPU; one that
            the CPU does not compute natively, or that only a run knows, is fp32, as is
            what torch computes in.

    Raises:
        UsageError: The model cannot be used, or the GPU is not here.
        RunError: The backend refuses the model.
    """
    # A model of a run that computes by torch has no graph, and plays so too.
    has_openvino = is_installed() and (directory / ONNX_FILE).exists()
    if devices is None:
        # Without OpenVINO torch is imported anyway, and can say what there is.
        devices = "cpu" if has_openvino else default_devices()
    else:
        _check_devices(devices)
    is_openvino = has_openvino and devices == "cpu"
    is_native = is_openvino and precision in supported_precisions()
    config = InferenceConfig(
        devices=devices,
        backend="openvino" if is_openvino else "torch",
        precision=precision if is_native and precision != "run" else "fp32",
        batch_shape="dynamic",
    )
    return open_backend(directory, config, num_threads, outputs=outputs)


def _check_devices(devices: str) -> None:
    check_device_words("devices", devices)
    is_one = devices != "auto" and "," not in devices
    check(is_one, "devices", devices, "must be cpu or one GPU, as cuda:0; name one")
    parse_devices("devices", devices)
