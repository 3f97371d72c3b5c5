"""Reading a run directory: finding files, and reading JSON with a ``schema``."""

from __future__ import annotations

import glob
import json
from pathlib import Path
from typing import Any

from tengen.errors import RunError, TengenError, UsageError, os_reason

__all__ = ["find_files", "newer_schema", "read_object"]


def find_files(folder: Path, pattern: str) -> list[Path]:
    """Returns what matches a pattern below a folder, in no order.

    Unlike ``Path.glob`` it ignores folders that other processes remove meanwhile.

    Args:
        folder: Where to look; it need not exist.
        pattern: As ``Path.glob`` takes it; ``*`` stands for no temporary.
    """
    return [folder / name for name in glob.glob(pattern, root_dir=folder)]


def read_object(
    path: Path,
    name: str,
    *,
    schema: int,
    advice: str,
    error: type[TengenError] = RunError,
) -> dict[str, Any]:
    """Returns the JSON object in a file, whose ``schema`` this code reads.

    Args:
        path: The file.
        name: The file's name in messages.
        schema: The newest version that is read.
        advice: What to do if the file cannot be read, or is damaged.
        error: The exception that is raised then.

    Raises:
        UsageError: The schema is newer.
        RunError: Or ``error``: the file cannot be read, or is damaged.
    """
    try:
        content: Any = json.loads(path.read_bytes())
    except OSError as failure:
        raise error(
            f"{name} ({path}) cannot be read, {os_reason(failure)}; {advice}"
        ) from failure
    except (ValueError, RecursionError):
        raise error(f"{name} ({path}) is damaged, it is not JSON; {advice}") from None
    found = content.get("schema") if isinstance(content, dict) else None
    if type(found) is not int:
        raise error(f"{name} ({path}) is damaged, it has no schema number; {advice}")
    if found < 1:
        raise error(f"{name} ({path}) is damaged, its schema is {found}; {advice}")
    if found > schema:
        raise newer_schema(path, found, schema)
    return dict(content)


def newer_schema(path: Path, found: int, newest: int) -> UsageError:
    """Returns the error for a file that a later version wrote.

    Args:
        path: The file.
        found: Its schema.
        newest: The newest that this code reads.
    """
    return UsageError(
        f"schema ({found}) of {path} is newer than this tengen reads, which is "
        f"{newest}; use the tengen that made it, or a later one"
    )
