"""The book of openings of a run: a copy in the run, by its digest."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tengen.agents.alphazero import AlphaZero
from tengen.errors import RunError
from tengen.games import Book, open_game, read_book
from tengen.roles.config import RunConfig
from tengen.run import RunDirectory, publish_file

__all__ = ["checked_book", "keep_book", "run_book"]


def checked_book(config: RunConfig, run: RunDirectory) -> tuple[RunConfig, Path | None]:
    """Returns the config with its book by its digest, and the file to copy.

    Args:
        config: ``agent.book`` is a file, or the digest of one that the run has.
        run: The run, which may be new; nothing is written.

    Returns:
        The config, and the file; None where there is no book or the run has it.

    Raises:
        UsageError: The file cannot be read, is no book, or one of another game.
    """
    if not config.agent.book:
        return config, None
    agent = AlphaZero.of(config, "selfplay")
    if _path(run, agent.book).exists():
        return config, None
    path = Path(agent.book)
    book = read_book(path, open_game(config.task))
    agent = dataclasses.replace(agent, book=book.digest)
    return dataclasses.replace(config, agent=agent), path


def keep_book(run: RunDirectory, path: Path, digest: str) -> None:
    """Copies a file of ``checked_book`` into the run. Blocks until it is durable.

    Raises:
        RunError: The disk refuses.
    """
    target = _path(run, digest)
    target.parent.mkdir(exist_ok=True)
    publish_file(target, path.read_bytes())


def run_book(config: RunConfig, run: RunDirectory) -> Book | None:
    """Returns the book of a run; None where it has none.

    Raises:
        RunError: It is gone, or damaged.
    """
    digest = config.agent.book
    if not digest:
        return None
    return read_book(_path(run, digest), open_game(config.task), error=RunError)


def _path(run: RunDirectory, digest: str) -> Path:
    return run.path / "books" / f"{digest}.json"
