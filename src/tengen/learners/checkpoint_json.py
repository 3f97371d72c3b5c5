"""The JSON file of a checkpoint; imports no torch, so that launchers can read it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tengen.errors import RunError, UsageError
from tengen.run import read_object

__all__ = [
    "CHECKPOINT_ADVICE",
    "damaged_checkpoint",
    "read_checkpoint_json",
    "read_extra",
    "write_checkpoint_json",
]

_SCHEMA = 6
# The oldest schema that can be read; older ones have features and no signature.
_OLDEST_SCHEMA = 5
_JSON = "state.json"
_JSON_HASH = "json_sha256"

CHECKPOINT_ADVICE = "remove its folder to resume from the one before"


def write_checkpoint_json(folder: Path, content: dict[str, Any]) -> None:
    """Writes the file into a checkpoint's folder, with its schema and its hash."""
    content = {"schema": _SCHEMA, **content}
    text = json.dumps({**content, _JSON_HASH: _hash(content)}, indent=2) + "\n"
    (folder / _JSON).write_text(text)


def read_checkpoint_json(folder: Path) -> dict[str, Any]:
    """Returns what ``write_checkpoint_json`` was given, and the schema.

    Raises:
        UsageError: The checkpoint is of another schema.
        RunError: It is absent or damaged.
    """
    path = folder / _JSON
    content = read_object(path, "checkpoint", schema=_SCHEMA, advice=CHECKPOINT_ADVICE)
    if content["schema"] < _OLDEST_SCHEMA:
        raise UsageError(
            f"schema ({content['schema']}) of {path} must be {_OLDEST_SCHEMA} to "
            f"{_SCHEMA}, what this tengen reads; use the tengen that made it"
        )
    if content.pop(_JSON_HASH, None) != _hash(content):
        raise damaged_checkpoint(path)
    return content


def read_extra(folder: Path) -> Any:
    """Returns what ``save_checkpoint`` was given as ``extra``.

    Raises:
        UsageError: The checkpoint is of another schema.
        RunError: It is absent or damaged.
    """
    return read_checkpoint_json(folder)["extra"]


def damaged_checkpoint(path: Path) -> RunError:
    """Returns the error for a file that is damaged."""
    return RunError(f"checkpoint ({path}) is damaged; {CHECKPOINT_ADVICE}")


def _hash(content: dict[str, Any]) -> str:
    """Returns a hash of JSON values that does not depend on their layout in a file."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
