"""Checks and opens the target of a run, ``agent.target.opponent``."""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
import shutil
from pathlib import Path

from tengen.config import check
from tengen.errors import RunError, UsageError
from tengen.evaluation.engines.side import check_engine
from tengen.evaluation.named_players import find_player, is_engine, open_model
from tengen.evaluation.players import EnginePlayer, MatchPlayer, ModelPlayer
from tengen.evaluation.targets.config import TargetConfig
from tengen.games import is_program, open_game
from tengen.inference.foreign_graph import ForeignGraph
from tengen.models import KATAGO, ModelDir
from tengen.nets import board_of
from tengen.run import file_sha256
from tengen.search import PlayConfig

__all__ = [
    "check_typed_opponent",
    "checked_opponent",
    "is_network",
    "open_opponent",
    "opponent_digest",
]

_NAME = "agent.target.opponent"
_ONNX = "onnx:"


def check_typed_opponent(
    opponent: str, typed: str | None, source: object, option: str
) -> None:
    """Rejects an engine that the user has not typed in this call; starts nothing.

    A run may come from an untrusted source, and an engine is an arbitrary command.

    Args:
        opponent: The opponent in ``run.json``.
        typed: The opponent that the user typed in this call, or None.
        source: The run, for the error message.
        option: The option that precedes a typed opponent, for the error message.

    Raises:
        UsageError: The opponent is an engine and was not typed, or another opponent
            was typed.
    """
    if typed is None and is_engine(opponent):
        words = f"{option}{shlex.quote(opponent)}"
        raise UsageError(
            f"{_NAME} ({opponent}) of {source} is a program, which runs only where it "
            f"is typed; add {words} to run it"
        )
    if typed not in (None, opponent):
        raise UsageError(
            f"opponent ({typed}) must be {opponent}, that of {source}; correct it"
        )


def checked_opponent(config: TargetConfig, task: str) -> TargetConfig:
    """Checks the opponent; returns the config with an absolute path to its model.

    Blocks while a network is compiled, an ONNX network evaluates a few rows, or an
    engine starts, sets up a game and quits. So these fail before training, not after.

    Args:
        config: The settings, with an opponent.
        task: The game.

    Raises:
        UsageError: There is no such opponent, or it cannot play the task.
    """
    word = config.opponent
    if word.startswith(_ONNX):
        path = Path(word.removeprefix(_ONNX)).resolve()
        check(path.is_file(), _NAME, word, "must name a file; check the path")
        _check_graph(path, task)
        return dataclasses.replace(config, opponent=f"{_ONNX}{path}")
    try:
        found = find_player(word)
    except UsageError as error:
        raise UsageError(f"{_NAME} ({word}) cannot be used: {error}") from error
    if isinstance(found, EnginePlayer):
        found.check_game(task)
        _check_program(found)
        _check_answers(found, task)
        return config
    if not isinstance(found, ModelDir):
        return config
    if found.boards is not None:
        rule = f"plays Go, not {task}; name another"
        check(task.startswith("go/"), _NAME, word, rule)
        full = f"{KATAGO}{Path(word.removeprefix(KATAGO)).resolve()}"
    else:
        _check_game(found, word, task)
        full = str(found.path.resolve())
    config = dataclasses.replace(config, opponent=full)
    try:
        open_opponent(config, task, PlayConfig(), 1)
    except (RunError, UsageError) as error:
        raise UsageError(f"{_NAME} ({word}) cannot be used: {error}") from error
    return config


def open_opponent(
    config: TargetConfig,
    task: str,
    play: PlayConfig,
    num_threads: int,
    devices: str | None = None,
) -> MatchPlayer:
    """Returns the opponent as a player. Blocks while a model is read and compiled.

    Args:
        config: The result of ``checked_opponent``.
        task: The game.
        play: Play settings of an opponent that is a network.
        num_threads: Threads that evaluate concurrently.
        devices: The device that runs a tengen model, as for ``open_for_play``. An ONNX
            graph runs on the CPU.

    Raises:
        UsageError: The opponent no longer exists, or this host lacks the GPU.
        RunError: The backend rejects the model.
    """
    word = config.opponent
    if word.startswith(_ONNX):
        graph = _open_graph(Path(word.removeprefix(_ONNX)), task, num_threads)
        return ModelPlayer(name=word, task=task, backend=graph, play=play)
    found = find_player(word)
    if not isinstance(found, ModelDir):
        return found
    # Imports a Python task only if it is also the run's own task. Other models may have
    # other rules or planes, or support all boards; ``playing`` checks them.
    typed = task if is_program(found.meta.task) else None
    player: ModelPlayer = open_model(
        found, word, num_threads=num_threads, play=play, task=typed, devices=devices
    )
    return player.playing(task)


def is_network(word: str) -> bool:
    """Returns whether an opponent is a model that ``open_opponent`` can put on a GPU.

    Raises:
        UsageError: The opponent no longer exists.
    """
    return not word.startswith(_ONNX) and isinstance(find_player(word), ModelDir)


def opponent_digest(config: TargetConfig) -> str:
    """Returns the SHA-256 of an opponent's files or, without files, of its name.

    Raises:
        UsageError: The opponent no longer exists.
    """
    text = config.opponent
    if text.startswith(_ONNX):
        return file_sha256(Path(text.removeprefix(_ONNX)))
    if text.startswith(KATAGO):
        return file_sha256(Path(text.removeprefix(KATAGO)))
    found = find_player(text)
    if isinstance(found, ModelDir):
        text = " ".join(
            f"{name}={found.meta.sha256[name]}" for name in sorted(found.meta.sha256)
        )
    return hashlib.sha256(text.encode()).hexdigest()


def _open_graph(path: Path, task: str, num_threads: int) -> ForeignGraph:
    signature = board_of(open_game(task)).signature
    try:
        return ForeignGraph(path, signature, num_threads)
    except UsageError as error:
        raise UsageError(f"{_NAME} ({_ONNX}{path}) cannot be used: {error}") from error


def _check_graph(path: Path, task: str) -> None:
    try:
        graph = _open_graph(path, task, 1)
    except RunError as error:
        # No run has begun, so the user's argument is at fault.
        raise UsageError(f"{_NAME} ({_ONNX}{path}) cannot be used: {error}") from error
    try:
        graph.check_rows()
    except UsageError as error:
        raise UsageError(f"{_NAME} ({_ONNX}{path}) cannot be used: {error}") from error


def _check_game(model: ModelDir, word: str, task: str) -> None:
    game, theirs = open_game(task), model.meta
    check(
        theirs.signature.board is not None,
        _NAME,
        word,
        f"must play {task}; it acts in the environment {theirs.task}",
    )
    board = theirs.signature.board
    assert board is not None
    wanted = (game.height, game.width, game.num_actions)
    check(
        (board.height, board.width, board.num_actions) == wanted,
        _NAME,
        word,
        f"must be of the board of {task}; it is a model of {theirs.task}",
    )


def _check_program(player: EnginePlayer) -> None:
    try:
        program = shlex.split(player.command)[0]
    except (ValueError, IndexError):
        raise UsageError(
            f"{_NAME} ({player.name}) must be a command line; quote it as a shell needs"
        ) from None
    found = shutil.which(program) or Path(program).exists()
    check(bool(found), _NAME, player.name, f"needs the program {program}; install it")


def _check_answers(player: EnginePlayer, task: str) -> None:
    try:
        check_engine(player, task)
    except (RunError, UsageError) as error:
        raise UsageError(f"{_NAME} ({player.name}) cannot be used: {error}") from error
