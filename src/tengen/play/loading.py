"""From a word to a player: of a game, or of an environment."""

from __future__ import annotations

from pathlib import Path

from tengen.config import check
from tengen.evaluation.players import open_model
from tengen.models import ModelDir, resolve_model
from tengen.play.agent_player import AgentPlayer, open_agent
from tengen.play.player import Player
from tengen.search import SearchConfig

__all__ = ["load", "load_player"]


def load(
    word: str | Path,
    search: SearchConfig | None = None,
    devices: str | None = None,
    task: str | None = None,
    *,
    keeps_tree: bool = False,
) -> Player | AgentPlayer:
    """Returns the player of a trained model. Blocks while it is read and compiled.

    Args:
        word: RUN (its newest model), ``RUN@17`` or a model directory.
        search: How a player of a game searches; None as usual.
        devices: ``cpu`` or one GPU, ``cuda:0``, whose answers are not the same bits in
            batches of other sizes. None: the CPU, or, for a game, the first GPU where
            OpenVINO is not installed.
        task: The model's task. Needed where it is a game or an environment in Python,
            ``module:Class``, which is imported from where this process looks and the
            working directory: a file alone makes nobody import anything.
        keeps_tree: As for ``Player``, of a game.

    Returns:
        A ``Player`` of a game, which chooses moves; an ``AgentPlayer`` of an
        environment, which acts.

    Raises:
        UsageError: There is no such model, it cannot be used or is of another task, or
            the GPU is not here.
        RunError: The backend refuses the model.
    """
    name = str(word)
    model = resolve_model(name)
    if model.meta.signature.board is not None:
        return _player(model, name, search, devices, task, keeps_tree=keeps_tree)
    rule = "is for games, which are searched; leave it out in an environment"
    check(search is None, "search", search, rule)
    check(not keeps_tree, "keeps_tree", keeps_tree, rule)
    return AgentPlayer(open_agent(model, name, task=task, devices=devices))


def load_player(
    word: str | Path,
    search: SearchConfig | None = None,
    devices: str | None = None,
    task: str | None = None,
    *,
    keeps_tree: bool = False,
) -> Player:
    """Returns the player of a game; see ``load``.

    Raises:
        UsageError: As ``load``, or the model is of an environment.
        RunError: The backend refuses the model.
    """
    return _player(
        resolve_model(word), str(word), search, devices, task, keeps_tree=keeps_tree
    )


def _player(
    model: ModelDir,
    name: str,
    search: SearchConfig | None,
    devices: str | None,
    task: str | None,
    *,
    keeps_tree: bool,
) -> Player:
    opened = open_model(
        model, name, search=search, scores=True, devices=devices, task=task
    )
    return Player(opened, keeps_tree=keeps_tree)
