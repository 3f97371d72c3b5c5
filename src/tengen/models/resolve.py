"""Finds a model by name: of a run, in a directory, bundled, or in a KataGo file."""

from __future__ import annotations

import re
from pathlib import Path

from tengen.bundled import bundled_folder, bundled_name, bundled_names
from tengen.errors import UsageError, did_you_mean
from tengen.models.katago_model import katago_model
from tengen.models.load import META_FILE, ModelDir, load_model
from tengen.run import RunDirectory

KATAGO = "katago:"
"""Prefix of a model name that is the path of a KataGo network file."""


def resolve_model(source: str | Path) -> ModelDir:
    """Returns the verified model that ``source`` specifies.

    Args:
        source: A run directory (for its newest model), ``RUN@17`` (for its model 17), a
            model directory, ``katago:FILE`` for a KataGo network, or ``bundled:go/9``
            or ``go/9`` for a bundled player. The path of an existing file or directory
            takes precedence over ``RUN@17`` and bundled players.

    Raises:
        UsageError: The model does not exist, is damaged, is not supported, or has a
            newer schema; the message contains the file and the reason.
    """
    word = str(source)
    if word.startswith(KATAGO):
        return katago_model(Path(word.removeprefix(KATAGO)))
    path = Path(source)
    if (path / META_FILE).exists():
        return load_model(path)
    if path.is_dir():
        return _newest(path)
    name, at, number = str(source).rpartition("@")
    if at and re.fullmatch("[0-9]{1,18}", number) and Path(name).is_dir():
        return _numbered(Path(name), int(number))
    if (bundled := bundled_name(word)) is not None:
        return load_model(bundled_folder(bundled))
    known = [] if Path(word).exists() else bundled_names()
    advice = did_you_mean(word, known, "check the path")
    raise UsageError(
        f"model ({source}) must be a run directory, RUN@NUMBER, a model directory or a "
        f"bundled player; {advice}"
    )


def _newest(path: Path) -> ModelDir:
    run = RunDirectory.open(path)
    number = run.models.latest()
    if number is None:
        raise UsageError(
            f"run ({path}) has no published model yet; train it longer, or name another"
        )
    return load_model(run.models.entry(number), _task(run))


def _numbered(path: Path, number: int) -> ModelDir:
    run = RunDirectory.open(path)
    numbers = run.models.numbers()
    if number not in numbers:
        known = (
            f"the run has {numbers[0]} to {numbers[-1]}" if numbers else "it has none"
        )
        raise UsageError(f"model ({path}@{number}) does not exist; {known}")
    return load_model(run.models.entry(number), _task(run))


def _task(run: RunDirectory) -> str | None:
    task = run.read_run().get("config", {}).get("task")
    return None if task is None else str(task)
