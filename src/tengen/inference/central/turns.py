"""Several ports of one thread, in turns: one steps while the others are answered."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tengen.inference.backend import Batches, DriveStats
from tengen.inference.central.client import InferenceClient

__all__ = ["Asker", "drive_in_turns"]


class Asker(NamedTuple):
    """A port, and the session that answers it."""

    port: Batches
    """Where batches come from."""
    client: InferenceClient
    """Its arrays are the port's."""
    begin: Callable[[], None]
    """Begins a turn of the port."""


def drive_in_turns(
    askers: Sequence[Asker], is_over: Callable[[], bool], stats: DriveStats
) -> None:
    """Evaluates what ports ask for. Blocks until all turns have ended.

    Each port has a request under way while the others take their answers, draw and
    step. So the environments and the network work at the same time where the ports are
    two, and where there is one they wait for each other.

    Source: Petrenko et al. 2020, "Sample Factory" (arXiv:2006.11751), section 3.2,
    double-buffered sampling.

    Args:
        askers: At least one. Each begins turn after turn, so that none waits for
            another's turn to end.
        is_over: Asked when a turn of a port has ended; whether that was its last one.
        stats: Added to after every batch; ``inference_s`` is what was waited for.

    Raises:
        Exception: What a port or a client raised.
    """
    clock = time.perf_counter
    start_s = clock()
    asked: deque[tuple[Asker, int]] = deque()

    def ask(asker: Asker) -> None:
        num_rows = asker.port.next()
        if not num_rows and not is_over():
            asker.begin()
            num_rows = asker.port.next()
        if num_rows:
            asker.client.ask()
            asked.append((asker, num_rows))

    for asker in askers:
        asker.begin()
        ask(asker)
    while asked:
        asker, num_rows = asked.popleft()
        waits_s = clock()
        asker.client.wait()
        answered_s = clock()
        asker.port.done()
        stats.inference_s += answered_s - waits_s
        stats.port_s += waits_s - start_s
        stats.num_evaluations += num_rows
        stats.num_batches += 1
        start_s = answered_s
        ask(asker)
    stats.port_s += clock() - start_s
