"""Drives several ports by one thread: one steps while the others are answered."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from tengen.inference.backend import Batches, DriveStats
from tengen.inference.central.client import InferenceClient

__all__ = ["Asker", "TurnPort", "drive_in_turns"]


class TurnPort(Batches, Protocol):
    """A port that may step while its caller is busy with others."""

    @property
    def is_stepping(self) -> bool:
        """Whether it is stepping by itself now, so that ``next`` would wait."""


class Asker(NamedTuple):
    """A port, and the session that answers it."""

    port: TurnPort
    """The port, which hands out batches."""
    client: InferenceClient
    """The client, whose arrays are the port's."""
    begin: Callable[[], None]
    """Begins a turn of the port."""


def drive_in_turns(
    askers: Sequence[Asker], is_over: Callable[[], bool], stats: DriveStats
) -> None:
    """Evaluates the batches of ports. Blocks until all turns have ended.

    Each port has a request under way while the others take their answers, draw actions
    and step. So with two ports the environments and the network work at the same time;
    with one port they wait for each other.

    Of two ports that step by themselves, one always steps while the other is answered.
    The one that is stepping when the other's last turn ends goes on stepping into the
    next call.

    Source: Petrenko et al. 2020, "Sample Factory" (arXiv:2006.11751), section 3.2,
    double-buffered sampling.

    Args:
        askers: At least one, the same in each call. Each begins turn after turn, so
            that none waits for another's turn to end.
        is_over: Called when a port's turn has ended; returns whether it was the last.
        stats: Added to after every batch; ``inference_s`` is the time of waiting.

    Raises:
        Exception: What a port or a client raised.
    """
    clock = time.perf_counter
    start_s = clock()
    asked: deque[tuple[Asker, int]] = deque()
    # The askers that step, in the order in which their actions were sent.
    stepping: deque[Asker] = deque()
    is_left = False

    def ask(asker: Asker) -> None:
        nonlocal is_left
        num_rows = asker.port.next()
        if not num_rows and not is_over():
            asker.begin()
            num_rows = asker.port.next()
        if num_rows:
            asker.client.ask()
            asked.append((asker, num_rows))
        else:
            is_left = True

    for asker in askers:
        asker.begin()
    for asker in askers:
        if asker.port.is_stepping:
            stepping.append(asker)
        else:
            ask(asker)
    while asked or (stepping and not is_left):
        if not asked or len(stepping) > 1:
            ask(stepping.popleft())
            continue
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
        if asker.port.is_stepping:
            stepping.append(asker)
        else:
            ask(asker)
    stats.port_s += clock() - start_s
