"""What referees of games between two engines share: whose fault it was, and the table.

A game whose engine was late because the machine gave it no processor is played again,
with what was drawn for it; it is left without a result after ``--tries`` of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from tengen.errors import RunError

STARVED = "starved"
FAULTS = ("illegal", "time", "crash", "memory", "refused", STARVED)
_ENDLESS = 1 << 31


class Fault(Exception):
    """A side loses by what it did; ``kind`` is one of ``FAULTS``."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Loss(Exception):
    """Who loses by a fault."""

    def __init__(self, seat: Any, fault: Fault) -> None:
        super().__init__(str(fault))
        self.seat = seat
        self.fault = fault

    def told(self, seats: Mapping[str, Any]) -> dict[str, Any]:
        """Returns who has won, and why; nobody where the machine starved the loser.

        Args:
            seats: Those of ``a`` and ``b``, by these names.
        """
        winner = next(name for name, seat in seats.items() if seat is not self.seat)
        kind = self.fault.kind
        return {
            "winner": None if kind == STARVED else winner,
            "end": kind,
            "why": str(self),
        }


class Blame:
    """Says whose fault it is that is raised inside."""

    def __init__(self, seat: Any) -> None:
        self.seat = seat

    def __enter__(self) -> None:
        """Nothing happens."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """Names the seat."""
        if isinstance(error, Fault):
            raise Loss(self.seat, error) from error
        if isinstance(error, RunError):
            refused = hasattr(error, "words")
            fault = Fault("refused" if refused else "crash", str(error))
            raise Loss(self.seat, fault) from error


class Waits:
    """How long an engine and this thread were ready to run and had no processor.

    Args:
        pid: The engine's process.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = self._read()

    def ms(self) -> float:
        """Returns the milliseconds since it was made.

        Those of this thread, and of the engine's thread that waited longest. 0 where
        the kernel does not say.
        """
        now = self._read()
        own = now.pop(0, 0.0) - self._before.get(0, 0.0)
        waited = (ms - self._before.get(thread, 0.0) for thread, ms in now.items())
        return own + max(waited, default=0.0)

    def _read(self) -> dict[int, float]:
        paths = {0: Path("/proc/thread-self/schedstat")}
        try:
            for task in Path(f"/proc/{self._pid}/task").iterdir():
                paths[int(task.name)] = task / "schedstat"
            return {t: int(p.read_text().split()[1]) / 1e6 for t, p in paths.items()}
        except OSError:
            return {}


def late(over_ms: float, waited_ms: float, text: str) -> Fault:
    """Returns the fault of an answer that came so much after its time."""
    kind = STARVED if waited_ms >= over_ms else "time"
    return Fault(kind, f"{text}, {waited_ms:.0f} ms without a processor")


class Table(Protocol):
    """One pair of engines that plays game after game."""

    def game(self, index: int) -> dict[str, Any]:
        """Plays the game of an index; returns its line, with ``end``."""

    def close(self) -> None:
        """Ends the engines."""


def add_referee_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what every referee takes."""
    parser.add_argument("--a", required=True, metavar="COMMAND")
    parser.add_argument("--b", required=True, metavar="COMMAND")
    parser.add_argument("--size", type=int, default=9)
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tries", type=int, default=20, help="of a starved game")
    parser.add_argument("--out", type=Path, required=True)


def play_all(
    args: argparse.Namespace, make_table: Callable[[], Table], good: Sequence[str]
) -> list[dict[str, Any]]:
    """Plays the games that ``--out`` has no result of, and adds them to it.

    Args:
        args: Of ``add_referee_arguments``.
        make_table: Makes what plays, for each of ``--jobs`` threads.
        good: Ends that are nobody's fault; others are told on stderr.
    """
    known = args.out.read_bytes() if args.out.exists() else b""
    # A referee that was killed while it wrote left part of a line: its game is played.
    whole = known[: known.rfind(b"\n") + 1]
    if whole != known:
        args.out.write_bytes(whole)
    lines = {line["game"]: line for line in map(json.loads, whole.splitlines())}
    todo = iter(
        index
        for index in range(args.games)
        if lines.get(index, {"end": STARVED})["end"] == STARVED
    )
    lock = Lock()

    def work() -> None:
        table = make_table()
        try:
            while True:
                with lock:
                    index = next(todo, None)
                if index is None:
                    return
                line = table.game(index)
                line["starved_tries"] = 0
                while line["end"] == STARVED and line["starved_tries"] < args.tries:
                    tries = line["starved_tries"] + 1
                    line = {**table.game(index), "starved_tries": tries}
                with lock, args.out.open("a") as file:
                    lines[index] = line
                    file.write(json.dumps(line) + "\n")
                    if line["end"] not in good:
                        print(line, file=sys.stderr, flush=True)
        finally:
            table.close()

    with ThreadPoolExecutor(args.jobs) as pool:
        for future in [pool.submit(work) for _ in range(args.jobs)]:
            future.result()
    return list(lines.values())


def report(lines: Sequence[dict[str, Any]], good: Sequence[str]) -> str:
    """Returns the games by kind of control as a table, and one line of JSON."""
    ends = (*good, *FAULTS)
    rows = [
        f"| limits | games | {' | '.join(ends)} | played again | least slack |",
        "|---|---|---|" + "---|" * (len(ends) + 1),
    ]
    for control in sorted({line["control"] for line in lines}):
        some = [line for line in lines if line["control"] == control]
        counts = [sum(line["end"] == end for line in some) for end in ends]
        counts.append(sum(line["starved_tries"] for line in some))
        slack = min(line.get(f"slack_ms_{n}", _ENDLESS) for line in some for n in "ab")
        shown = "" if slack >= _ENDLESS - 1 else f"{slack} ms"
        cells = " | ".join(map(str, (len(some), *counts)))
        rows.append(f"| {control} | {cells} | {shown} |")
    totals = {end: sum(line["end"] == end for line in lines) for end in ends}
    totals["played_again"] = sum(line["starved_tries"] for line in lines)
    seen = {name: count for name, count in totals.items() if count}
    rows.append(json.dumps({"games": len(lines), **seen}))
    return "\n".join(rows)
