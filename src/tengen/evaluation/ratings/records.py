"""Results of matches in ``RUN/eval``, an immutable file each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tengen.config import from_dict, to_dict
from tengen.evaluation.elo import Tally
from tengen.evaluation.ratings.fit import Pairing
from tengen.run import RunDirectory, make_directory, publish_json, read_object
from tengen.search import PlayConfig

__all__ = [
    "RECORD_SCHEMA",
    "MatchRecord",
    "publish_record",
    "read_record",
    "read_records",
]

RECORD_SCHEMA = 3
"""The version of records written here, and the newest that is read."""

_FILE = re.compile(r"(.+)-(\d+)\.json")


@dataclass(frozen=True, kw_only=True)
class MatchRecord:
    """The result of one match."""

    schema: int = RECORD_SCHEMA
    """Version of the record."""
    task: str
    """The game."""
    a: str
    """One player: ``random``, ``mcts:N`` or a model's number, six digits."""
    b: str
    """The other."""
    wins_a: int
    """Games that A won."""
    draws: int
    """Games drawn."""
    wins_b: int
    """Games that B won."""
    num_simulations: int
    """Simulations of a move of models."""
    play: PlayConfig = field(default_factory=PlayConfig)
    """How models play; the defaults in records of schema 1, which do not have it."""
    opening_plies: int
    """Random plies at the start of each game."""
    book: str = ""
    """The digest of the book whose openings came before them; empty for none."""
    seed: int
    """Seed of the match."""

    def to_pairing(self) -> Pairing:
        """Returns the result for ``fit_ratings``."""
        return Pairing(self.a, self.b, Tally(self.wins_a, self.draws, self.wins_b))


def publish_record(run: RunDirectory, name: str, record: MatchRecord) -> Path:
    """Writes ``RUN/eval/<name>-<n>.json`` with the next n, from 1.

    Blocks until the file is durable. Only one process may write records of a name.

    Returns:
        The file.

    Raises:
        RunError: The disk refuses.
    """
    make_directory(run.eval)
    taken = [number for found, number, _ in _files(run) if found == name]
    path = run.eval / f"{name}-{max(taken, default=0) + 1}.json"
    publish_json(path, to_dict(record))
    return path


def read_records(run: RunDirectory) -> list[MatchRecord]:
    """Returns every record of a run, by name and then by number.

    Raises:
        UsageError: A record has a newer schema.
        RunError: A record is damaged.
    """
    return [read_record(path) for _, _, path in sorted(_files(run))]


def _files(run: RunDirectory) -> list[tuple[str, int, Path]]:
    if not run.eval.is_dir():
        return []
    matched = ((_FILE.fullmatch(path.name), path) for path in run.eval.iterdir())
    return [
        (match[1], int(match[2]), path)
        for match, path in matched
        if match is not None and not match[1].startswith(".")
    ]


def read_record(path: Path) -> MatchRecord:
    """Returns one record.

    Raises:
        UsageError: The record has a newer schema.
        RunError: The record is damaged.
    """
    content = read_object(
        path,
        "match record",
        schema=RECORD_SCHEMA,
        advice="remove it, its games are played again",
    )
    return from_dict(MatchRecord, content, where=str(path))
