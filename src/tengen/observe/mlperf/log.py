"""The log of a benchmark run, its lines made by MLPerf's own package."""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tengen.config import check
from tengen.distribution import pip_install_extra
from tengen.observe.mlperf.benchmark import read_benchmark
from tengen.observe.mlperf.events import Event, make_events
from tengen.run import RunDirectory, publish_file

__all__ = ["check_package", "write_mllog"]

_PACKAGE = "mlperf_logging"
# The folder that holds tengen: a line names the file that made it, from there on.
_ROOT = Path(__file__).parents[3]


def check_package() -> None:
    """Makes sure that MLPerf's package can be imported; imports nothing.

    Raises:
        UsageError: It is not installed.
    """
    is_there = _PACKAGE in sys.modules or find_spec(_PACKAGE) is not None
    line = pip_install_extra("mlperf")
    rule = f"is not installed, and makes the lines of a log; {line}"
    check(is_there, "package", _PACKAGE, rule)


def write_mllog(run: RunDirectory, path: Path | None = None) -> Path:
    """Publishes the whole log of a run, finished or not. Blocks until it is durable.

    The same files of a run give the same bytes.

    Args:
        run: The run; it may be going on.
        path: The file to write; None for ``RUN/eval/result_0.txt``.

    Returns:
        The path of the log.

    Raises:
        UsageError: The package mlperf_logging is not installed, it is no run of the
            benchmark, or the file has no folder.
        RunError: A file of the run is damaged, or the disk refuses.
    """
    check_package()
    path = run.eval / "result_0.txt" if path is None else path
    is_file = bool(path.name) and path.parent.is_dir() and not path.is_dir()
    check(is_file, "out", path, "must be a file in a folder that is there; name one")
    lines = _render(make_events(read_benchmark(run)))
    publish_file(path, "".join(f"{line}\n" for line in lines).encode())
    return path


def _render(events: Sequence[Event]) -> list[str]:
    """Returns a line an event."""
    package = importlib.import_module(f"{_PACKAGE}.mllog.mllog")
    lines = _Lines()
    # Known to nobody else, so that no handler of the process shows the lines too.
    logger = logging.Logger("tengen.mllog", logging.INFO)
    logger.addHandler(lines)
    teller = package.MLLogger(logger, root_dir=re.escape(str(_ROOT)))
    for event in events:
        tell = getattr(teller, event.kind)
        metadata = dict(event.metadata)
        tell(event.key, event.value, metadata=metadata, time_ms=event.time_ms)
    return lines.told


class _Lines(logging.Handler):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())
