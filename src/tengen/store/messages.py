"""What the store's servers and clients must agree on; `tengen.transport` carries it."""

from __future__ import annotations

from tengen.transport import Dialect

__all__ = ["MAX_KEYS", "STORE", "VERSION", "wait_for_name_s"]

VERSION = 7
STORE = Dialect("store", VERSION)
MAX_KEYS = 16384
"""Keys that one command may have; more go by several."""

# The server learns of a killed client within moments; then its name is free.
_WAIT_FOR_NAME_S = 5.0


def wait_for_name_s(timeout_s: float | None) -> float:
    """Returns how long a writer's name is waited for, within bounds."""
    if timeout_s is None:
        return _WAIT_FOR_NAME_S
    return min(max(0.0, timeout_s), _WAIT_FOR_NAME_S)
