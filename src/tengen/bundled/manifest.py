"""What the package says about a player that it brings: ``player.json``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.errors import UsageError, did_you_mean
from tengen.search import Level

__all__ = [
    "MANIFEST_FILE",
    "MANIFEST_SCHEMA",
    "Manifest",
    "RatedLevel",
    "Strength",
    "find_level",
]

MANIFEST_FILE = "player.json"
"""Its file, beside those of the model."""
MANIFEST_SCHEMA = 1
"""The version that is written here, and the newest that is read."""

_RATING = "rating:"
_MOST_RATING = 100_000
_SHA256 = re.compile("[0-9a-f]{64}")
_NAME = re.compile("[a-z0-9]{1,20}(/[a-z0-9]{1,20}){0,3}")
_MOST_LEVELS = 32


@dataclass(frozen=True, kw_only=True)
class Strength:
    """One measured figure, and what measures it again."""

    what: str
    """What was measured, in words."""
    value: float
    """The figure, a share of 0 to 1."""
    low: float
    """Where its 95 % interval begins."""
    high: float
    """Where it ends."""
    number: int
    """Games or positions that it rests on."""
    command: str
    """What measures it."""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: One is out of its range.
        """
        for name in ("value", "low", "high"):
            check_range(name, getattr(self, name), 0.0, 1.0)
        check_range("number", self.number, 1, 10_000_000)


@dataclass(frozen=True, kw_only=True)
class RatedLevel(Level):
    """A level that was rated by matches."""

    name: str
    """One word, as ``--level`` takes it."""
    rating: float = bounded(0.0, -_MOST_RATING, _MOST_RATING)
    """Elo, where ``random`` has 0."""
    rating_error: float = bounded(0.0, 0.0, _MOST_RATING)
    """Half of the rating's 95 % interval."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One bundled player: how it was made, how strong it is, which bytes it is."""

    schema: int = MANIFEST_SCHEMA
    """Version of this file."""
    name: str
    """What it is called after ``bundled:``."""
    task: str
    """The game that it plays."""
    trained_on: str
    """The game that it learned; another board of the same where its network, which
    knows no size of board, plays a larger one with the same weights."""
    net: str
    """Its network's size, as ``2x32``."""
    recipe: str
    """What it was trained by."""
    command: str
    """The command that trained it."""
    commit: str
    """Of the code that did."""
    games: int = bounded(0, 0)
    """Games of self-play behind it."""
    cpu_seconds: float = bounded(0.0, 0.0)
    """Of all processes of its training."""
    strength: tuple[Strength, ...] = ()
    """What it was measured to score."""
    levels: tuple[RatedLevel, ...] = ()
    """The weakest first."""
    levels_command: str = ""
    """What measures the levels' ratings."""
    num_bytes: int = bounded(0, 0)
    """Of all its files but this one."""
    sha256: dict[str, str]
    """Lower-case hexadecimal sha256 of each of them."""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: One is out of its range, or no name or digest at all.
        """
        check_fields(self)
        is_name = _NAME.fullmatch(self.name) is not None
        check(is_name, "name", self.name, "must be as go/9; name it so")
        for name, digest in self.sha256.items():
            is_plain = re.fullmatch("[a-z0-9_]+[.][a-z]+", name) is not None
            check(is_plain, "sha256", name, "must be of a file of the model")
            is_digest = _SHA256.fullmatch(digest) is not None
            check(is_digest, f"sha256.{name}", digest, "must be 64 hexadecimal digits")
        num_levels = len(self.levels)
        rule = f"must be at most {_MOST_LEVELS}; leave some out"
        check(num_levels <= _MOST_LEVELS, "levels", num_levels, rule)


def find_level(manifest: Manifest, word: str) -> RatedLevel:
    """Returns the level of a player that a word names.

    Args:
        manifest: The player's.
        word: A number, 1 the weakest; a level's name; or ``rating:1200`` for the level
            whose rating is nearest.

    Raises:
        UsageError: There is no such level.
    """
    levels = manifest.levels
    if not levels:
        raise UsageError(
            f"level ({word}) of {manifest.name} was not measured; use --simulations"
        )
    if re.fullmatch("[0-9]{1,9}", word):
        check_range("level", int(word), 1, len(levels), "choose one")
        return levels[int(word) - 1]
    if match := re.fullmatch(f"{_RATING}(-?[0-9]{{1,6}})", word):
        return min(levels, key=lambda level: abs(level.rating - int(match[1])))
    names = {level.name: level for level in levels}
    if word not in names:
        raise UsageError(
            f"level ({word}) is neither a number of 1 to {len(levels)}, rating:N nor "
            f"a level's name; {did_you_mean(word, names)}"
        )
    return names[word]
