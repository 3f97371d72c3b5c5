"""Finding a bundled player by its name, and making sure that it is whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tengen.bundled.manifest import (
    MANIFEST_FILE,
    MANIFEST_SCHEMA,
    Manifest,
    RatedLevel,
    find_level,
)
from tengen.config import from_dict
from tengen.errors import UsageError, did_you_mean, os_reason
from tengen.run import read_object

__all__ = [
    "BUNDLED",
    "FOLDER",
    "bundled_folder",
    "bundled_name",
    "bundled_names",
    "known_name",
    "level_of",
    "read_manifest",
]

BUNDLED = "bundled:"
"""Begins a word that names a bundled player and nothing else."""

FOLDER = Path(__file__).parent / "players"
"""Where they lie, a folder each."""

_ADVICE = "install tengen again"
_MOST_BYTES = 4 << 20
# Letters that stand for the slashes of a name in that of its folder.
_SLASH = "-"


def bundled_names() -> list[str]:
    """Returns the names of all, in order. Reads one folder, no file."""
    folders = [path.parent.name for path in FOLDER.glob(f"*/{MANIFEST_FILE}")]
    return sorted(name.replace(_SLASH, "/") for name in folders)


def bundled_name(word: str) -> str | None:
    """Returns the name of the bundled player that a word names, None for another word.

    A path that exists always wins.

    Args:
        word: ``bundled:go/9`` or ``go/9``.

    Raises:
        UsageError: It begins with ``bundled:``, and there is no such player.
    """
    if _exists(word):
        return None
    if word.startswith(BUNDLED):
        return known_name(word.removeprefix(BUNDLED))
    return word if word in bundled_names() else None


def known_name(name: str) -> str:
    """Returns a name that is one of ``bundled_names``.

    Raises:
        UsageError: It is none.
    """
    known = bundled_names()
    if name not in known:
        raise UsageError(
            f"bundled player ({name}) is not known; {did_you_mean(name, known)}"
        )
    return name


def read_manifest(name: str) -> Manifest:
    """Returns what is known of a bundled player, without reading its model.

    Args:
        name: One of ``bundled_names``.

    Raises:
        UsageError: Its file is missing, damaged or of a newer schema.
    """
    path = _folder(name) / MANIFEST_FILE
    content = read_object(
        path, MANIFEST_FILE, schema=MANIFEST_SCHEMA, advice=_ADVICE, error=UsageError
    )
    manifest = from_dict(Manifest, content, where=str(path))
    if manifest.name != name:
        raise UsageError(f"{MANIFEST_FILE} ({path}) is of {manifest.name}; {_ADVICE}")
    return manifest


def bundled_folder(name: str) -> Path:
    """Returns the model directory of a bundled player, every byte of it verified.

    Args:
        name: One of ``bundled_names``.

    Raises:
        UsageError: A file is missing, damaged or too large.
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
                f"bundled file ({path}) is damaged, its sha256 is not the one in "
                f"{MANIFEST_FILE}; {_ADVICE}"
            )
    if num_bytes != manifest.num_bytes:
        raise UsageError(
            f"{MANIFEST_FILE} ({folder / MANIFEST_FILE}) must say {num_bytes} bytes, "
            f"not {manifest.num_bytes}; {_ADVICE}"
        )
    return folder


def level_of(word: str, level: str) -> RatedLevel:
    """Returns a level of the bundled player that a word names.

    Args:
        word: As for ``bundled_name``.
        level: As for ``find_level``.

    Raises:
        UsageError: It names no bundled player, or the player has no such level.
    """
    name = bundled_name(word)
    if name is None:
        raise UsageError(
            f"level ({level}) is of bundled players, and {word} is none; use "
            f"--simulations, or tengen players lists them"
        )
    return find_level(read_manifest(name), level)


def _folder(name: str) -> Path:
    return FOLDER / name.replace("/", _SLASH)


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):
        return False  # too long for a path, or with a zero byte
