"""Finds and opens players by their names on the command line."""

from __future__ import annotations

import re

from tengen.errors import UsageError
from tengen.evaluation.players import (
    EnginePlayer,
    GomocupPlayer,
    GtpPlayer,
    MatchPlayer,
    MctsPlayer,
    ModelPlayer,
    RandomPlayer,
    open_for_play,
)
from tengen.games import check_typed
from tengen.inference import search_outputs
from tengen.models import ModelDir, resolve_model
from tengen.search import PlayConfig

_ENGINES = (GtpPlayer, GomocupPlayer)
_MAX_PLAYOUTS = 10_000_000


def fixed_player(word: str) -> RandomPlayer | MctsPlayer | None:
    """Returns the player ``random`` or ``mcts:N``; None for any other name.

    Raises:
        UsageError: N of ``mcts:N`` is not a valid number of playouts, or ``word`` names
            an external engine.
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
            f"player ({word}) is an external engine, which only tengen match supports; "
            "use random or mcts:N"
        )
    return None


def is_engine(word: str) -> bool:
    """Returns whether ``word`` names an external engine, such as ``gtp:COMMAND``."""
    return word.startswith(tuple(kind.PREFIX for kind in _ENGINES))


def _engine(word: str) -> EnginePlayer | None:
    """Returns the external engine that ``word`` names; None if it names no engine."""
    for kind in _ENGINES:
        if word.startswith(kind.PREFIX):
            return kind(word.removeprefix(kind.PREFIX))
    return None


def find_player(word: str) -> RandomPlayer | MctsPlayer | EnginePlayer | ModelDir:
    """Returns the player that ``word`` names, or its model directory if it is a model.

    Args:
        word: The name of a player, as for ``open_player``.

    Raises:
        UsageError: ``word`` names no model and no player, or the model is damaged.
    """
    return _engine(word) or fixed_player(word) or resolve_model(word)


def open_player(
    word: str,
    *,
    num_threads: int = 1,
    play: PlayConfig | None = None,
    task: str | None = None,
) -> MatchPlayer:
    """Returns the player that ``word`` names. Blocks while a model is compiled.

    Args:
        word: ``random``, ``mcts:N``, ``gtp:COMMAND`` or ``gomocup:COMMAND`` (engines
            are not started yet), RUN (its newest model), ``RUN@17``, a model directory,
            ``katago:FILE`` or ``bundled:NAME``. For a path named like a fixed player,
            prepend ``./``, as in ``./random``.
        num_threads: As for ``open_model``.
        play: As for ``open_model``.
        task: As for ``open_model``.

    Raises:
        UsageError: ``word`` names no player, or as for ``open_model``.
        RunError: The backend rejects the model.
    """
    found = find_player(word)
    if not isinstance(found, ModelDir):
        return found
    return open_model(found, word, num_threads=num_threads, play=play, task=task)


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
    """Returns a player that uses a model. Blocks while the model is compiled.

    Args:
        model: The model directory.
        word: The name with which the user specified the model.
        num_threads: Number of threads that evaluate positions concurrently, at least 1.
        play: Play settings; None for the settings stored in the model.
        scores: Whether to compute the model's estimates of the final score, if it has
            them. They are always computed, and required, if the search uses the score.
        devices: The device that runs the model, as for ``open_for_play``.
        task: The model's task, if the user typed it in this call. Required for a game
            in Python.

    Raises:
        UsageError: The model is for an environment or for a different task, cannot be
            used, or requires a GPU that this host lacks.
        RunError: The backend rejects the model.
    """
    if model.meta.signature.board is None:
        raise UsageError(
            f"model ({word}) acts in the environment {model.meta.task}, and plays no "
            f"game; evaluate it with tengen eval {word}"
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
