"""Names of players on the command line."""

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

__all__ = [
    "find_player",
    "fixed_player",
    "is_engine",
    "open_model",
    "open_player",
]

_ENGINES = (GtpPlayer, GomocupPlayer)
_MAX_PLAYOUTS = 10_000_000


def fixed_player(word: str) -> RandomPlayer | MctsPlayer | None:
    """Returns the player of a word that needs no model; None for any other word.

    Raises:
        UsageError: N of ``mcts:N`` is not a number of playouts, or the word names an
            outside engine.
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


def is_engine(word: str) -> bool:
    """Returns whether a word names an outside engine, a program that is started."""
    return word.startswith(tuple(kind.PREFIX for kind in _ENGINES))


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
    task: str | None = None,
) -> MatchPlayer:
    """Returns the player that a word names. Blocks while a model is compiled.

    Args:
        word: ``random``, ``mcts:N``, ``gtp:COMMAND`` or ``gomocup:COMMAND`` (not
            started yet), RUN (its newest model), ``RUN@17``, a model directory,
            ``katago:FILE`` or ``bundled:NAME``. For a path that looks like a fixed
            player write ``./random``.
        num_threads: As for ``open_model``.
        play: As for ``open_model``.
        task: As for ``open_model``.

    Raises:
        UsageError: The word names nothing, or as ``open_model``.
        RunError: The backend refuses the model.
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
    """Returns the player of a model. Blocks while it is compiled.

    Args:
        model: The model.
        word: The word that named it.
        num_threads: Threads that evaluate at the same time, at least 1.
        play: How the model plays; None for its own settings.
        scores: Whether the model also estimates the final score, if it can; it must
            where the score counts in the search.
        devices: What the model computes on, as for ``open_for_play``.
        task: The model's task, as the user typed it in this call; without it no model
            of a game in Python is opened.

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
