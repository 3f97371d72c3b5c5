"""A run's book of openings: the run has a copy, named by its digest."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from tengen.agents.alphazero import AlphaZero
from tengen.errors import RunError
from tengen.games import Book, open_game, parse_book, read_book, read_book_bytes
from tengen.roles.config import RunConfig
from tengen.run import RunDirectory, publish_file

__all__ = ["checked_book", "keep_book", "run_book"]

_DIGEST = re.compile("[0-9a-f]{12}")


def checked_book(
    config: RunConfig, run: RunDirectory
) -> tuple[RunConfig, bytes | None]:
    """Returns the config with the book's digest, and the bytes to copy.

    Args:
        config: The config, whose ``agent.book`` is a file, or the digest of a book that
            the run has.
        run: The run, which may be new; nothing is written.

    Returns:
        The config, and the file's bytes; None where there is no book or the run has it.

    Raises:
        UsageError: The file cannot be read, is not a book, or is for another game.
        RunError: The run's copy is damaged.
    """
    if not config.agent.book:
        return config, None
    agent = AlphaZero.of(config, "selfplay")
    if _DIGEST.fullmatch(agent.book) and _path(run, agent.book).exists():
        run_book(config, run)
        return config, None
    game, path = open_game(config.task), Path(agent.book)
    data = read_book_bytes(path)
    book = parse_book(data, path, game)
    agent = dataclasses.replace(agent, book=book.digest)
    return dataclasses.replace(config, agent=agent), data


def keep_book(run: RunDirectory, data: bytes, digest: str) -> None:
    """Writes the bytes of ``checked_book`` into the run. Blocks until they are durable.

    Raises:
        RunError: The disk refuses.
    """
    target = _path(run, digest)
    target.parent.mkdir(exist_ok=True)
    publish_file(target, data)


def run_book(config: RunConfig, run: RunDirectory) -> Book | None:
    """Returns the book of a run; None if the run has none.

    Raises:
        RunError: The book is missing or damaged.
    """
    digest = config.agent.book
    if not digest:
        return None
    path = _path(run, digest)
    book = read_book(path, open_game(config.task), error=RunError)
    if book.digest != digest:
        raise RunError(
            f"book ({path}) is damaged, its digest is {book.digest}; put back the file "
            "that tengen book wrote"
        )
    return book


def _path(run: RunDirectory, digest: str) -> Path:
    return run.path / "books" / f"{digest}.json"
