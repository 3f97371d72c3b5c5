"""What the store's servers and clients must agree on; `tengen.transport` carries it."""

from __future__ import annotations

from tengen.transport import Dialect

__all__ = ["FOLDER_VERSION", "STORE", "WIRE_VERSION", "wait_for_name_s"]

WIRE_VERSION = 8
"""Raised by every change of the questions, or of ``core/store/session/messages.h``."""
FOLDER_VERSION = 7
"""Raised by a change after which an earlier store's folder cannot be continued."""
STORE = Dialect("store", WIRE_VERSION)

# The server notices a killed client within moments; then its name is free.
_WAIT_FOR_NAME_S = 5.0


def wait_for_name_s(timeout_s: float | None) -> float:
    """Returns how long to wait for a writer's name to be free, within bounds."""
    if timeout_s is None:
        return _WAIT_FOR_NAME_S
    return min(max(0.0, timeout_s), _WAIT_FOR_NAME_S)
