"""Waiting for a checkpoint of a store, in this process or another."""

from __future__ import annotations

import math
import time

from tengen.store.backend import StoreBackend
from tengen.store.waiting import StoreTimeout

__all__ = ["make_checkpoint"]

# A server answers within this time, so that signals are handled between two answers.
_SLICE_S = 0.2


def make_checkpoint(backend: StoreBackend, timeout_s: float | None) -> None:
    """Blocks until all that a store holds now is on its disk.

    Args:
        backend: The store.
        timeout_s: The longest wait; None: as long as it takes.

    Raises:
        StoreTimeout: The checkpoint is not made yet.
    """
    end = math.inf if timeout_s is None else time.monotonic() + timeout_s
    number = backend.command("begin_checkpoint", {}, timeout_s)
    while True:
        left_s = max(0.0, end - time.monotonic())
        arguments = {"number": number, "timeout_s": min(left_s, _SLICE_S)}
        answer_s = None if timeout_s is None else left_s
        is_made = backend.command("wait_checkpoint", arguments, answer_s)
        if is_made:
            return
        if left_s == 0.0:
            raise StoreTimeout(f"checkpoint was not made within {timeout_s:g} s")
        if is_made is None:
            # The server was killed; the next one numbers checkpoints anew.
            number = backend.command("begin_checkpoint", {}, answer_s)
