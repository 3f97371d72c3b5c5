"""Opens a model as a player of its game or environment."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence
from pathlib import Path

from tengen.bundled import level_of
from tengen.config import check
from tengen.evaluation.named_players import open_model
from tengen.models import ModelDir, resolve_model
from tengen.overrides import override
from tengen.play.agent_player import AgentPlayer, open_agent
from tengen.play.player import Player
from tengen.search import PlayConfig


def load(
    word: str | Path,
    play: PlayConfig | None = None,
    devices: str | None = None,
    task: str | None = None,
    *,
    keeps_tree: bool = False,
    level: int | str | None = None,
) -> Player | AgentPlayer:
    """Returns a player that uses a trained model. Blocks while the model is compiled.

    Args:
        word: RUN (its newest model), ``RUN@17``, a model directory, ``katago:FILE`` for
            a KataGo network, or a bundled player, ``bundled:go/9`` or ``go/9``. A
            KataGo network plays Go on 19x19; for other boards use ``Player.playing``.
            An existing path takes precedence over a bundled player.
        play: Play settings of a game, except ``keeps_tree``. None for the settings that
            are stored in the model, which are ``agent.play`` of its run.
        devices: ``cpu`` or one GPU, such as ``cuda:0``. A GPU's outputs may differ
            slightly between batch sizes. None: the CPU or, for a game, the first GPU if
            OpenVINO is not installed.
        task: The model's task. Required for a game or an environment in Python,
            ``module:Class``, which is imported from Python's search path or the working
            directory. Without ``task``, no Python module is imported, whatever the
            model's file names.
        keeps_tree: For a game, whether to reuse the tree between calls; overrides
            ``play``. If False, results do not depend on earlier calls.
        level: Strength of a bundled player: a number from 1, the weakest, a level's
            name, or ``rating:1200``; ``tengen players NAME`` lists the levels. None for
            full strength, which grows with the number of simulations.

    Returns:
        A ``Player`` for a game, or an ``AgentPlayer`` for an environment.

    Raises:
        UsageError: There is no such model, it cannot be used or has a different task,
            or this host lacks the GPU.
        RunError: The backend rejects the model.
    """
    name = str(word)
    model = resolve_model(name)
    if model.meta.signature.board is not None:
        play = play or model.meta.play or PlayConfig()
        play = dataclasses.replace(play, keeps_tree=keeps_tree)
        return _player(model, name, play, devices, task, level)
    rule = "needs a game; leave it out for an environment"
    check(play is None, "play", play, rule)
    check(not keeps_tree, "keeps_tree", keeps_tree, rule)
    check(level is None, "level", level, rule)
    return AgentPlayer(open_agent(model, name, task=task, devices=devices))


def load_player(
    word: str,
    settings: Sequence[str],
    devices: str | None = None,
    task: str | None = None,
    *,
    is_fresh: bool = False,
    level: str | None = None,
) -> Player:
    """Returns the player of a game that a command's options specify.

    Args:
        word: The name of the model, as for ``load``.
        settings: Play settings from the option ``--set``.
        devices: The device that runs the model, as for ``load``.
        task: The model's task, as for ``load``.
        is_fresh: Whether to disable tree reuse; overrides the model's settings. If
            True, levels with random moves use a fixed seed.
        level: The strength of a bundled player, as for ``load``.

    Raises:
        UsageError: As for ``load``, or a setting is invalid, or the model is for an
            environment.
        RunError: The backend rejects the model.
    """
    model = resolve_model(word)
    play = override(model.meta.play or PlayConfig(), settings)
    play.search.check_single()
    play = dataclasses.replace(play, keeps_tree=not is_fresh)
    draws = 0 if is_fresh else secrets.randbits(63)
    return _player(model, word, play, devices, task, level, draws)


def _player(
    model: ModelDir,
    name: str,
    play: PlayConfig,
    devices: str | None,
    task: str | None,
    level: int | str | None,
    draws: int = 0,
) -> Player:
    found = None if level is None else level_of(name, str(level))
    opened = open_model(model, name, play=play, scores=True, devices=devices, task=task)
    return Player(dataclasses.replace(opened, level=found), draws)
