"""A run on one page of HTML, a file that needs no other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tengen import __version__
from tengen.config import check
from tengen.drawing import Markup, element, page, text
from tengen.errors import RunError, TengenError, UsageError
from tengen.report.sections import SECTIONS, Source
from tengen.run import RunDirectory, check_no_mirror, publish_file

__all__ = ["REPORT_FILE", "WrittenReport", "write_report"]

REPORT_FILE = "report.html"
"""In RUN, where no other file is named."""

# What files that somebody else wrote, or a disk has damaged, make a reader raise.
_DAMAGED = (
    TengenError,
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class WrittenReport:
    """The file of a report."""

    path: Path
    """The file."""
    num_bytes: int
    """Its size."""
    missing: tuple[str, ...]
    """What the page has not, a line for each part that could not be read."""


def write_report(
    run: str | Path,
    out: str | Path | None = None,
    *,
    task: str | None = None,
    made_by: str = "tengen.report.write_report",
) -> WrittenReport:
    """Writes the report of a run, which may be training. Blocks until it is durable.

    A part whose files are damaged is left out, and the page says which and why.

    Args:
        run: The run directory.
        out: The file; None for ``RUN/report.html``.
        task: The run's, needed to draw the games of a game in Python,
            ``module:Class``, which is imported then.
        made_by: The command or call that makes it, as the page tells it.

    Raises:
        UsageError: There is no run, it is a mirror or of a newer schema, ``task`` is
            another, or the file has no folder.
        RunError: The disk refuses.
    """
    found = RunDirectory(run)
    if not (found.path / "run.json").is_file():
        raise UsageError(
            f"run ({run}) is not a run directory; "
            f"give the folder that tengen train --out made"
        )
    check_no_mirror(found)
    path = found.path / REPORT_FILE if out is None else Path(out)
    is_file = bool(path.name) and path.parent.is_dir() and not path.is_dir()
    check(is_file, "out", str(out), "must be a file in a folder that is there")
    source = Source(found, task)
    name, missing = _name(source), list[str]()
    parts = [_part(title, make, source, missing) for title, make in SECTIONS]
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    footer = f"Made by {made_by}, tengen {__version__}, {made}."
    heading = f"{name}: {found.path}" if name else str(found.path)
    data = page(
        heading,
        [
            element("h1", text(heading)),
            *parts,
            element("footer", element("p", text(footer), class_="soft")),
        ],
    )
    publish_file(path, data)
    return WrittenReport(path, len(data), tuple(missing))


def _name(source: Source) -> str:
    """Returns the task; empty where it cannot be read, as every part then says.

    Raises:
        UsageError: ``run.json`` is of a newer schema, or another task was typed.
    """
    try:
        task = source.task()
    except RunError:
        return ""
    if source.typed not in (None, task):
        raise UsageError(
            f"task ({source.typed}) must be {task}, that of {source.run.path}; "
            f"correct it"
        )
    return task


def _part(
    title: str, make: Callable[[Source], Markup], source: Source, missing: list[str]
) -> Markup:
    """Returns a part of the page; what it lacks is told there and in ``missing``."""
    try:
        content = make(source)
    except _DAMAGED as error:
        is_told = isinstance(error, TengenError)
        why = str(error) if is_told else f"{type(error).__name__}: {error}"
        line = f"{title}: {' '.join(why.split())}"
        missing.append(line)
        content = element("p", text(f"Missing. {line}"), class_="missing")
    return element("section", element("h2", text(title)), content)
