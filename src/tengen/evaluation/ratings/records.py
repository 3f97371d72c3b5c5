"""Match records: the results of matches, in immutable files in ``RUN/eval``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tengen.config import from_dict, to_dict
from tengen.evaluation.elo import Tally
from tengen.evaluation.ratings.fit import Pairing
from tengen.run import RunDirectory, make_directory, publish_json, read_object
from tengen.search import PlayConfig

RECORD_SCHEMA = 3
"""The schema version of new match records, and the newest version that can be read."""

_FILE = re.compile(r"(.+)-(\d+)\.json")


@dataclass(frozen=True, kw_only=True)
class MatchRecord:
    """The record of one match: players, settings and result."""

    schema: int = RECORD_SCHEMA
    """The schema version of the record."""
    task: str
    """The name of the game."""
    a: str
    """Player A's name: ``random``, ``mcts:N``, ``bundled:NAME`` or a model number with
    six digits."""
    b: str
    """Player B's name, in the same form as ``a``."""
    wins_a: int
    """Number of games that player A won."""
    draws: int
    """Number of drawn games."""
    wins_b: int
    """Number of games that player B won."""
    num_simulations: int
    """Simulations per move of players that are models."""
    play: PlayConfig = field(default_factory=PlayConfig)
    """Play settings of models; the defaults in schema 1, which lacks this field."""
    opening_plies: int
    """Number of random plies at the start of each game."""
    book: str = ""
    """Digest of the opening book, played before random plies; empty for no book."""
    seed: int
    """Seed with which the match was played."""

    def to_pairing(self) -> Pairing:
        """Returns the match result as input for ``fit_ratings``."""
        return Pairing(self.a, self.b, Tally(self.wins_a, self.draws, self.wins_b))


def publish_record(run: RunDirectory, name: str, record: MatchRecord) -> Path:
    """Writes a match record to ``RUN/eval/<name>-<n>.json`` with the next free n.

    n starts at 1. Blocks until the file is durable. Only one process may write records
    of a given ``name``.

    Returns:
        The path of the new file.

    Raises:
        RunError: The write fails.
    """
    make_directory(run.eval)
    taken = [number for found, number, _ in _files(run) if found == name]
    path = run.eval / f"{name}-{max(taken, default=0) + 1}.json"
    publish_json(path, to_dict(record))
    return path


def read_records(run: RunDirectory) -> list[MatchRecord]:
    """Returns all match records of a run, sorted by file name and number.

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
    """Returns the match record in the file ``path``.

    Raises:
        UsageError: The record has a newer schema.
        RunError: The record is damaged.
    """
    content = read_object(
        path,
        "match record",
        schema=RECORD_SCHEMA,
        advice="remove it, and its games are played again",
    )
    return from_dict(MatchRecord, content, where=str(path))
