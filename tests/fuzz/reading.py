"""Reads changed files, case by case, and reports every failure that is not a refusal.

A case must be read, or refused with a one-line error of tengen's. Other exceptions,
signals, excessive memory and hangs are faults; the file that caused a fault is kept.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen.errors import UsageError, refusal
from tests.fuzz.changes import changed, changed_text

# Time limit per case, far above what any case needs.
MOST_S = 60
# Memory limit above the usage before the first case.
MOST_BYTES = 3 << 30
MOST_CHARACTERS = 2000
_TEXT = (".json", ".jsonl", ".toml", ".sgf")

Files = dict[str, bytes]


@dataclass(frozen=True)
class Surface:
    """A kind of file, and the functions that write and read it."""

    name: str
    make: Callable[[Path], None]
    """Writes valid files into an empty folder."""
    use: Callable[[Path], Any]
    """Reads the files."""
    num_cases: int
    """The number of cases that take about a second in total."""
    repair: Callable[[Path, str], None] | None = None
    """Repairs checksums after a file has been changed, in half of the cases."""
    names: tuple[str, ...] = ("*",)
    """The files to change, as patterns for ``Path.rglob``."""


def _cap_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf(
        "SC_PAGESIZE"
    )
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, used + MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Keeps files that a reader writes from growing without limit.
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))


def reason(use: Callable[[], Any]) -> str | None:
    """Returns the message of the refusal; None if nothing was refused.

    Raises:
        Exception: Any error that is not a refusal.
    """
    try:
        use()
    except MemoryError:
        raise
    except Exception as error:
        refused = refusal(error)
        if refused is None:
            raise
        text = str(refused)
        if "\n" in text or not text or len(text) > MOST_CHARACTERS:
            raise AssertionError(
                f"a refusal is one short line: {text[:3000]!r}"
            ) from error
        return text
    return None


def every(*uses: Callable[[], Any]) -> None:
    """Calls all ``uses``; then raises the last refusal, if any."""
    refused = [text for use in uses if (text := reason(use)) is not None]
    if refused:
        raise UsageError(refused[-1])


def fuzz(surface: Surface, seed: int, num_cases: int, kept: Path) -> dict[str, Any]:
    """Runs cases; returns their counts and ``faults``, at most five texts.

    Args:
        surface: The kind of file.
        seed: Seed of the changes.
        num_cases: Number of cases.
        kept: Folder for the files that caused faults.
    """
    rng = random.Random(f"{surface.name} {seed}")
    folder = Path(tempfile.mkdtemp(prefix="tengen-fuzz-"))
    faults: list[str] = []
    num_read = num_refused = 0
    try:
        whole = folder / "whole"
        whole.mkdir()
        surface.make(whole)
        _cap_memory()
        shutil.copytree(whole, folder / "case")
        surface.use(folder / "case")
        shutil.rmtree(folder / "case")
        names = sorted(
            {
                str(path.relative_to(whole))
                for pattern in surface.names
                for path in whole.rglob(pattern)
                if path.is_file()
            }
        )
        for number in range(num_cases):
            place = folder / "case"
            shutil.copytree(whole, place)
            name = rng.choice(names)
            path = place / name
            change = changed_text if path.suffix in _TEXT else changed
            path.write_bytes(change(rng, path.read_bytes()))
            if surface.repair is not None and rng.random() < 0.5:
                with contextlib.suppress(Exception):
                    surface.repair(place, name)
            faulthandler.dump_traceback_later(MOST_S, exit=True)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    refused = reason(lambda place=place: surface.use(place))
                num_refused += refused is not None
                num_read += refused is None
            except Exception:
                where = kept / f"{surface.name}-{seed}-{number}"
                shutil.copytree(place, where, dirs_exist_ok=True)
                if len(faults) < 5:
                    faults.append(f"{where}/{name}\n{traceback.format_exc()[-1500:]}")
            faulthandler.cancel_dump_traceback_later()
            shutil.rmtree(place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"read": num_read, "refused": num_refused, "faults": faults}


def fuzz_in_child(
    surface: Surface, seed: int, num_cases: int, kept: Path
) -> dict[str, Any]:
    """Runs ``fuzz`` in a child process, whose death by a signal is also a fault."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            warnings.simplefilter("ignore")
            found = fuzz(surface, seed, num_cases, kept)
        except BaseException:
            found = {"read": 0, "refused": 0, "faults": [traceback.format_exc()]}
        with os.fdopen(writer, "w") as pipe:
            json.dump(found, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status, used = os.wait4(child, 0)
    found = json.loads(text) if text else {"read": 0, "refused": 0, "faults": []}
    if status != 0:
        found["faults"].append(f"{surface.name}: the process ended with {status}")
    found["cpu_s"] = round(used.ru_utime + used.ru_stime, 2)
    return found


def main() -> None:
    """Fuzzes the named surfaces, or all; prints one line of JSON per surface.

    Arguments: the folder for files that caused faults, the seed, a factor for the
    usual number of cases, and names of surfaces.
    """
    from tests.fuzz.surfaces import SURFACES

    kept, seed, times = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    names = sys.argv[4:]
    for surface in SURFACES:
        if names and surface.name not in names:
            continue
        num_cases = max(1, int(surface.num_cases * times))
        found = fuzz_in_child(surface, seed, num_cases, kept)
        print(json.dumps({"surface": surface.name, **found}), flush=True)


if __name__ == "__main__":
    main()
