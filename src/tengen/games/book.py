"""Opening books: files of opening moves.

A book is a JSON object with ``schema``, ``task``, ``made_by`` (a human-readable origin)
and ``openings``. Each opening has ``moves``, the actions from the start of the game.
Other keys are ignored. ``tengen book`` finds openings with searches.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.config import shown
from tengen.errors import TengenError, UsageError, os_reason
from tengen.games.protocol import Game
from tengen.run import newer_schema

BOOK_SCHEMA = 1
"""The schema version of new books, and the newest version that can be read."""
MAX_OPENINGS = 65_536
"""The maximum number of openings in an opening book."""
_MAX_BYTES = 64 << 20
_ADVICE = "make one with tengen book"


@dataclass(frozen=True, kw_only=True)
class Book:
    """An opening book of one game. Its openings are legal and do not end the game."""

    task: str
    """The name of the game that the openings belong to."""
    openings: tuple[tuple[int, ...], ...]
    """The actions of each opening; at least one opening, and no duplicates."""
    digest: str
    """The first 12 hexadecimal digits of the SHA-256 digest of the book's file."""


def read_book(path: Path, game: Game, *, error: type[TengenError] = UsageError) -> Book:
    """Reads an opening book from a file.

    Args:
        path: The path of the book's file.
        game: The game; a book for a different game is an error.
        error: The exception type to raise if the file is unreadable or damaged.

    Raises:
        UsageError: The book is for a different game, or has a newer schema.
        TengenError: ``error``, if the file cannot be read or is not a book.
    """
    return parse_book(read_book_bytes(path, error=error), path, game, error=error)


def read_book_bytes(path: Path, *, error: type[TengenError] = UsageError) -> bytes:
    """Returns a file's bytes, truncated just above the maximum size of a book.

    Raises:
        TengenError: ``error``, if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES + 1)
    except OSError as failure:
        raise error(
            f"book ({path}) cannot be read, {os_reason(failure)}; {_ADVICE}"
        ) from failure


def parse_book(
    data: bytes, path: Path, game: Game, *, error: type[TengenError] = UsageError
) -> Book:
    """Parses an opening book from the bytes of a file.

    Args:
        data: The bytes of the file, from ``read_book_bytes``.
        path: The path of the file, for error messages.
        game: The game; a book for a different game is an error.
        error: The type of exception to raise if the file is damaged.

    Raises:
        UsageError: The book is for a different game, or has a newer schema.
        TengenError: ``error``, if the bytes are not a book.
    """

    def damaged(what: str) -> TengenError:
        return error(f"book ({path}) is damaged, {what}; {_ADVICE}")

    if len(data) > _MAX_BYTES:
        raise damaged(f"it has over {_MAX_BYTES >> 20} MiB")
    try:
        content: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise damaged("it is not JSON") from None
    if not isinstance(content, dict) or type(content.get("schema")) is not int:
        raise damaged("it has no schema number")
    if content["schema"] < 1:
        raise damaged("its schema is below 1")
    if content["schema"] > BOOK_SCHEMA:
        raise newer_schema(path, content["schema"], BOOK_SCHEMA)
    if content.get("task") != game.name:
        raise UsageError(
            f"book ({path}) is for {shown(content.get('task'))}, not {game.name}; "
            f"{_ADVICE}"
        )
    found = content.get("openings")
    if not isinstance(found, list) or not 1 <= len(found) <= MAX_OPENINGS:
        raise damaged(f"it must have 1 to {MAX_OPENINGS} openings")
    openings = []
    for index, opening in enumerate(found):
        moves = opening.get("moves") if isinstance(opening, dict) else None
        if not isinstance(moves, list) or not _are_moves(game, moves):
            raise damaged(f"opening {index} is not legal in {game.name}")
        openings.append(tuple(moves))
    if len(set(openings)) < len(openings):
        raise damaged("it has an opening twice")
    digest = hashlib.sha256(data).hexdigest()[:12]
    return Book(task=game.name, openings=tuple(openings), digest=digest)


def openings_text(random_plies: int, book: Book | None) -> str:
    """Describes a match's openings for users, such as ``2 random plies``."""
    plies = f"{random_plies} random pl{'y' if random_plies == 1 else 'ies'}"
    if book is None:
        return plies if random_plies else "the empty board"
    text = f"book {book.digest}, {len(book.openings)} openings"
    return f"{text}, then {plies}" if random_plies else text


def _are_moves(game: Game, moves: list[Any]) -> bool:
    """Returns whether ``moves`` are legal from the start and do not end the game."""
    if len(moves) >= game.max_plies:
        return False
    state = game.new_state()
    try:
        for action in moves:
            if type(action) is not int or state.is_terminal():
                return False
            state.apply(action)
    except (_core.CoreError, TypeError, OverflowError):
        return False
    return not state.is_terminal()
