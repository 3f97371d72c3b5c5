"""Protocol constants shared by the servers and clients of a store."""

from __future__ import annotations

from tengen.transport import Dialect

WIRE_VERSION = 8
"""Protocol version, incremented if requests or ``session/messages.h`` change."""
FOLDER_VERSION = 7
"""Folder version, incremented if stores cannot resume from earlier folders."""
STORE = Dialect("store", WIRE_VERSION)

# Maximum time in which a server detects a killed client and frees its writer name.
_WAIT_FOR_NAME_S = 5.0


def wait_for_name_s(timeout_s: float | None) -> float:
    """Returns the seconds for which the server waits for a writer's name to be free."""
    if timeout_s is None:
        return _WAIT_FOR_NAME_S
    return min(max(0.0, timeout_s), _WAIT_FOR_NAME_S)
