"""Protocol constants that the store's servers and clients share."""

from __future__ import annotations

from tengen.transport import Dialect

__all__ = ["FOLDER_VERSION", "STORE", "WIRE_VERSION", "wait_for_name_s"]

WIRE_VERSION = 8
"""Incremented with each change of requests or of ``core/store/session/messages.h``."""
FOLDER_VERSION = 7
"""Incremented when stores can no longer continue from folders of earlier versions."""
STORE = Dialect("store", WIRE_VERSION)

# Long enough for the server to detect a killed client and free the client's name.
_WAIT_FOR_NAME_S = 5.0


def wait_for_name_s(timeout_s: float | None) -> float:
    """Returns how many seconds to wait until a writer's name is free."""
    if timeout_s is None:
        return _WAIT_FOR_NAME_S
    return min(max(0.0, timeout_s), _WAIT_FOR_NAME_S)
