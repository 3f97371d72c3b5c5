"""Checks the external files that a run's config names.

These are ``learner.initial_model``, ``agent.learn_from`` and ``agent.book``. A run
stores a copy of its opening book in a file named after the book's digest.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

from tengen.agents.alphazero import AlphaZero
from tengen.bundled import BUNDLED, bundled_name
from tengen.config import check, to_dict
from tengen.errors import RunError, UsageError
from tengen.games import Book, open_game, parse_book, read_book, read_book_bytes
from tengen.models import ModelDir, resolve_model
from tengen.models.load import differences, is_other_size
from tengen.nets import NetConfig
from tengen.roles.config import RunConfig, read_config
from tengen.run import RunDirectory, publish_file
from tengen.tensors import Signature

_DIGEST = re.compile("[0-9a-f]{12}")
_INITIAL = "learner.initial_model"


def checked_initial_model(config: RunConfig, run: RunDirectory) -> RunConfig:
    """Returns the config with ``learner.initial_model`` resolved to one model.

    A run directory is replaced by the path of its newest model. A bundled player is
    left as it is, because all hosts have the player. If ``run`` has a checkpoint, it no
    longer needs the model, so the model is not checked.

    Raises:
        UsageError: The model does not exist, or does not fit the run.
    """
    if not config.learner.initial_model or run.checkpoints.latest() is not None:
        return config
    model = fitting_model(config, config.agent.signature(config.task))
    name = bundled_name(config.learner.initial_model)
    word = str(model.path.resolve()) if name is None else f"{BUNDLED}{name}"
    learner = dataclasses.replace(config.learner, initial_model=word)
    return dataclasses.replace(config, learner=learner)


def fitting_model(config: RunConfig, wanted: Signature) -> ModelDir:
    """Returns the verified initial model of a run.

    Args:
        config: The run's config, which names a model.
        wanted: The signature that the agent requires of a network for its task.

    Raises:
        UsageError: The model does not exist, its weights depend on another board
            size, or the run's initial network neither equals the model's network nor
            can grow from it.
    """
    source, net = config.learner.initial_model, config.nets[0]
    try:
        model = resolve_model(source)
    except UsageError as error:
        raise UsageError(f"{_INITIAL} ({source}) cannot be used: {error}") from error
    theirs = model.meta
    if is_other_size(theirs.signature, wanted):
        from tengen.inference.torch_backend import load_head
        from tengen.nets.modules.board_size import on_board

        try:
            on_board(load_head(model.path).head.net, wanted)
        except UsageError as error:
            raise UsageError(
                f"{_INITIAL} ({source}) is a model of {theirs.task}: {error}"
            ) from error
    else:
        wrong = differences(theirs.signature, wanted)
        check(
            not wrong,
            _INITIAL,
            source,
            f"must be a model with the shapes of {config.task}, not one of "
            f"{theirs.task} with {wrong}; choose another",
        )
    if theirs.net == net:
        return model
    try:
        theirs.net.check_grows(net)
    except UsageError as error:
        raise UsageError(
            f"{_INITIAL} ({source}) must have the run's own network, or one that can "
            f"grow into it; set {_other_settings(theirs.net, net)} as in that model"
        ) from error
    return model


def _other_settings(theirs: NetConfig, net: NetConfig) -> str:
    """Returns the settings in which ``theirs`` differs from ``net``, for a message."""
    ours = to_dict(net)
    return ", ".join(
        f"net.{name}={json.dumps(value)}"
        for name, value in to_dict(theirs).items()
        if name not in ours or value != ours[name]
    )


def checked_source(config: RunConfig) -> RunConfig:
    """Returns the config with ``agent.learn_from`` as an absolute path, checked.

    Raises:
        UsageError: The folder is not a run, or that run has a different task, itself
            plays no games, or plays on boards that the network does not support.
    """
    agent = config.games
    if agent is None or not agent.learn_from:
        return config
    source = RunDirectory.open(Path(agent.learn_from).resolve())
    _check_source(config, source)
    agent = dataclasses.replace(agent, learn_from=str(source.path))
    return dataclasses.replace(config, agent=agent)


def _check_source(config: RunConfig, source: RunDirectory) -> None:
    name, theirs = str(source.path), read_config(source)
    check(
        theirs.task == config.task,
        "agent.learn_from",
        name,
        f"must be a run of {config.task}, not of {theirs.task}; choose another",
    )
    their_agent = AlphaZero.of(theirs.agent, "selfplay")
    check(
        not their_agent.learn_from,
        "agent.learn_from",
        name,
        f"must have games of its own; use {their_agent.learn_from}, whose games it "
        "learns from",
    )
    variety = their_agent.actor.variety
    AlphaZero.check_boards(config.net, theirs.task, open_game(theirs.task), variety)


def with_games(config: RunConfig, run: RunDirectory) -> RunDirectory:
    """Returns ``run`` with the experience of ``agent.learn_from``, if that is set.

    Raises:
        UsageError: The run of ``learn_from`` no longer exists, or ``checked_source``
            would no longer accept it.
    """
    agent = config.games
    if agent is None or not agent.learn_from:
        return run
    source = RunDirectory(agent.learn_from)
    if source.is_new:
        raise UsageError(
            f"agent.learn_from ({agent.learn_from}) is not a run directory; restore it"
        )
    _check_source(config, source)
    view = RunDirectory(run.path)
    view.experience = source.experience
    return view


def checked_book(
    config: RunConfig, run: RunDirectory
) -> tuple[RunConfig, bytes | None]:
    """Returns the config with the opening book's digest, and the book's content.

    Args:
        config: The config; its ``agent.book`` is a file, or the digest of a book that
            the run already stores.
        run: The run, which may be new; nothing is written.

    Returns:
        The config, and the bytes to pass to ``keep_book``; None instead of the bytes if
        there is no book or the run already stores it.

    Raises:
        UsageError: The file cannot be read, is not a book, or is for a different game.
        RunError: The run's copy is damaged.
    """
    agent = config.games
    if agent is None or not agent.book:
        return config, None
    if _DIGEST.fullmatch(agent.book) and _book_path(run, agent.book).exists():
        run_book(config, run)
        return config, None
    game, path = open_game(config.task), Path(agent.book)
    data = read_book_bytes(path)
    book = parse_book(data, path, game)
    agent = dataclasses.replace(agent, book=book.digest)
    return dataclasses.replace(config, agent=agent), data


def keep_book(run: RunDirectory, data: bytes, digest: str) -> None:
    """Writes an opening book into the run. Blocks until the file is durable.

    Raises:
        RunError: Writing to the disk failed.
    """
    target = _book_path(run, digest)
    target.parent.mkdir(exist_ok=True)
    publish_file(target, data)


def run_book(config: RunConfig, run: RunDirectory) -> Book | None:
    """Returns the opening book that a run stores; None if the run uses no book.

    Raises:
        RunError: The book is missing or damaged.
    """
    agent = config.games
    if agent is None or not agent.book:
        return None
    digest = agent.book
    path = _book_path(run, digest)
    book = read_book(path, open_game(config.task), error=RunError)
    if book.digest != digest:
        raise RunError(
            f"book ({path}) is damaged, its digest is {book.digest}; restore the file "
            "that tengen book wrote"
        )
    return book


def _book_path(run: RunDirectory, digest: str) -> Path:
    return run.path / "books" / f"{digest}.json"
