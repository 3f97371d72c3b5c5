"""Finds bundled players, and reads their manifests, ``player.json``."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range, from_dict
from tengen.errors import UsageError, did_you_mean, os_reason
from tengen.run import read_object
from tengen.search import Level

MANIFEST_FILE = "player.json"
"""Name of the manifest file in a bundled player's model directory."""
MANIFEST_SCHEMA = 1
"""The schema version of manifests; newer manifests are rejected."""

_RATING = "rating:"
_MOST_RATING = 100_000
_SHA256 = re.compile("[0-9a-f]{64}")
_NAME = re.compile("[a-z0-9]{1,20}(/[a-z0-9]{1,20}){0,3}")
_MOST_LEVELS = 32


@dataclass(frozen=True, kw_only=True)
class Strength:
    """A measurement of a player's strength, and the command that repeats it."""

    what: str
    """What ``value`` measures, such as the score against an opponent."""
    value: float
    """The measured value, a fraction in [0, 1]."""
    low: float
    """Lower end of the 95 % confidence interval of ``value``."""
    high: float
    """Upper end of the 95 % confidence interval of ``value``."""
    number: int
    """Number of games or positions on which ``value`` is based."""
    command: str
    """The command that repeats the measurement."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is out of its range."""
        for name in ("value", "low", "high"):
            check_range(name, getattr(self, name), 0.0, 1.0)
        check_range("number", self.number, 1, 10_000_000)


@dataclass(frozen=True, kw_only=True)
class RatedLevel(Level):
    """A playing level of a bundled player, with a rating from matches."""

    name: str
    """The level's name for ``--level``, a single word."""
    rating: float = bounded(0.0, -_MOST_RATING, _MOST_RATING)
    """The level's Elo rating, on the scale on which ``random`` is rated 0."""
    rating_error: float = bounded(0.0, 0.0, _MOST_RATING)
    """Half-width of the rating's 95 % confidence interval, in Elo."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The manifest of a bundled player: its training, strength, levels and files."""

    schema: int = MANIFEST_SCHEMA
    """Schema version of the manifest file."""
    name: str
    """The player's name, without the prefix ``bundled:``."""
    task: str
    """The game that the player was trained on and plays."""
    net: str
    """The size of the network, such as ``2x32``."""
    recipe: str
    """The name of the recipe with which the player was trained."""
    command: str
    """The command that trained the player."""
    commit: str
    """The Git commit of tengen with which the player was trained."""
    games: int = bounded(0, 0)
    """Number of self-play games in the training run."""
    cpu_seconds: float = bounded(0.0, 0.0)
    """CPU time of all processes of the training run, in seconds."""
    strength: tuple[Strength, ...] = ()
    """Measurements of the player's playing strength."""
    levels: tuple[RatedLevel, ...] = ()
    """The player's levels, weakest first."""
    levels_command: str = ""
    """The command that measures the levels' ratings."""
    num_bytes: int = bounded(0, 0)
    """Total size of the model's files except the manifest, in bytes."""
    sha256: dict[str, str]
    """SHA-256 digests of the model's files by file name, in lower-case hexadecimal."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is out of its range or malformed."""
        check_fields(self)
        is_name = _NAME.fullmatch(self.name) is not None
        check(is_name, "name", self.name, "must be a name such as go/9; rename it")
        for name, digest in self.sha256.items():
            is_plain = re.fullmatch("[a-z0-9_]+[.][a-z]+", name) is not None
            check(is_plain, "sha256", name, "must name a file of the model; correct it")
            is_digest = _SHA256.fullmatch(digest) is not None
            check(is_digest, f"sha256.{name}", digest, "must be 64 hex digits; fix it")
        num_levels = len(self.levels)
        rule = f"must be at most {_MOST_LEVELS}; remove some"
        check(num_levels <= _MOST_LEVELS, "levels", num_levels, rule)


def find_level(manifest: Manifest, word: str) -> RatedLevel:
    """Returns the level of a bundled player that ``word`` specifies.

    Args:
        manifest: The manifest of the player.
        word: A number from 1, the weakest level; a level's name; or ``rating:1200`` for
            the level with the nearest rating.

    Raises:
        UsageError: The player does not have this level, or has no levels.
    """
    levels = manifest.levels
    if not levels:
        raise UsageError(
            f"level ({word}) of {manifest.name} was never rated; use --simulations"
        )
    if re.fullmatch("[0-9]{1,9}", word):
        check_range("level", int(word), 1, len(levels), "choose one")
        return levels[int(word) - 1]
    if match := re.fullmatch(f"{_RATING}(-?[0-9]{{1,6}})", word):
        return min(levels, key=lambda level: abs(level.rating - int(match[1])))
    names = {level.name: level for level in levels}
    if word not in names:
        raise UsageError(
            f"level ({word}) must be a number from 1 to {len(levels)}, rating:N or a "
            f"level's name; {did_you_mean(word, names)}"
        )
    return names[word]


BUNDLED = "bundled:"
"""The prefix that marks the name of a bundled player."""

FOLDER = Path(__file__).parent / "players"
"""The folder that contains one model directory per bundled player."""

_ADVICE = "reinstall tengen"
_MOST_BYTES = 4 << 20
# In the name of a player's folder, this character replaces each slash.
_SLASH = "-"


def bundled_names() -> list[str]:
    """Returns the sorted names of all bundled players. Reads no file."""
    folders = [path.parent.name for path in FOLDER.glob(f"*/{MANIFEST_FILE}")]
    return sorted(name.replace(_SLASH, "/") for name in folders)


def bundled_name(word: str) -> str | None:
    """Returns the bundled player that ``word`` names, or None.

    A word that is an existing path names that path, not a bundled player.

    Args:
        word: The name with or without prefix, ``bundled:go/9`` or ``go/9``.

    Raises:
        UsageError: ``word`` begins with ``bundled:``, but the player does not exist.
    """
    if _exists(word):
        return None
    if word.startswith(BUNDLED):
        return known_name(word.removeprefix(BUNDLED))
    return word if word in bundled_names() else None


def known_name(name: str) -> str:
    """Returns ``name`` after checking that a bundled player has this name.

    Raises:
        UsageError: No bundled player has this name.
    """
    known = bundled_names()
    if name not in known:
        raise UsageError(
            f"bundled player ({name}) is not known; {did_you_mean(name, known)}"
        )
    return name


def read_manifest(name: str) -> Manifest:
    """Returns the manifest of a bundled player, without reading its model.

    Args:
        name: One of ``bundled_names``.

    Raises:
        UsageError: The manifest is missing or damaged, or has a newer schema.
    """
    path = _folder(name) / MANIFEST_FILE
    content = read_object(
        path, MANIFEST_FILE, schema=MANIFEST_SCHEMA, advice=_ADVICE, error=UsageError
    )
    manifest = from_dict(Manifest, content, where=str(path))
    if manifest.name != name:
        raise UsageError(f"{MANIFEST_FILE} ({path}) is for {manifest.name}; {_ADVICE}")
    return manifest


def bundled_folder(name: str) -> Path:
    """Verifies the checksums of a bundled player; returns its model directory.

    Args:
        name: One of ``bundled_names``.

    Raises:
        UsageError: The manifest or a model file is missing, damaged or too large.
    """
    folder, manifest = _folder(name), read_manifest(name)
    num_bytes = 0
    for file, digest in manifest.sha256.items():
        path = folder / file
        try:
            size = path.stat().st_size
            if size > _MOST_BYTES:
                raise UsageError(
                    f"bundled file ({path}) must have at most {_MOST_BYTES} bytes; "
                    f"{_ADVICE}"
                )
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise UsageError(
                f"bundled file ({path}) cannot be read, {os_reason(error)}; {_ADVICE}"
            ) from error
        num_bytes += size
        if found != digest:
            raise UsageError(
                f"bundled file ({path}) is damaged, its SHA-256 differs from that in "
                f"{MANIFEST_FILE}; {_ADVICE}"
            )
    if num_bytes != manifest.num_bytes:
        raise UsageError(
            f"{MANIFEST_FILE} ({folder / MANIFEST_FILE}) must give {num_bytes} as "
            f"num_bytes, not {manifest.num_bytes}; {_ADVICE}"
        )
    return folder


def level_of(word: str, level: str) -> RatedLevel:
    """Returns a level of the bundled player that ``word`` names.

    Args:
        word: The player's name, ``bundled:go/9`` or ``go/9``.
        level: A level's number or name, or ``rating:1200``, as for ``find_level``.

    Raises:
        UsageError: ``word`` names no bundled player, or the level does not exist.
    """
    name = bundled_name(word)
    if name is None:
        raise UsageError(
            f"level ({level}) needs a bundled player, and {word} is not one; use "
            "--simulations, or choose one from tengen players"
        )
    return find_level(read_manifest(name), level)


def _folder(name: str) -> Path:
    return FOLDER / name.replace("/", _SLASH)


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):
        return False  # The name is too long for a path, or contains a null byte.
