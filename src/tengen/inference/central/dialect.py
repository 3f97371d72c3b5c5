"""How central inference is found and asked: its part of the transport."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from tengen.config import from_dict, to_dict
from tengen.errors import UsageError
from tengen.inference.central.server import InferenceServer
from tengen.tensors import Signature
from tengen.transport import Client, Dialect, Message, Service

__all__ = ["INFERENCE", "connect_rows", "serve_rows"]

INFERENCE = Dialect("inference", version=1)
_ROWS = "rows"


def connect_rows(
    client: Client, signature: Signature, num_rows: int
) -> Callable[[], socket.socket]:
    """Returns what opens a session of N rows; see ``InferenceClient``."""
    message = {"ask": _ROWS, "num_rows": num_rows, "signature": to_dict(signature)}
    return lambda: client.open_now(message)[0]


def serve_rows(server: InferenceServer, signature: Signature) -> Service:
    """Returns the service by which actors get sessions of a server."""

    def open_rows(connection: socket.socket, message: Message) -> dict[str, Any]:
        num_rows = message["num_rows"]
        if type(num_rows) is not int or not 1 <= num_rows <= server.max_rows:
            raise UsageError(
                f"num_rows ({num_rows}) must be 1 to {server.max_rows}; use more actors"
            )
        asked = from_dict(Signature, message["signature"], "signature")
        for part in ("inputs", "outputs", "state"):
            mine, theirs = getattr(signature, part), getattr(asked, part)
            # The order too, as arrays follow one another in it.
            if list(mine.items()) != list(theirs.items()):
                raise UsageError(
                    f"signature ({part} {', '.join(theirs) or 'none'}) must be the "
                    f"network's, {', '.join(mine) or 'none'}; start this role again"
                )
        server.add(connection.dup(), num_rows)
        return {}

    return Service(
        dialect=INFERENCE,
        sessions={_ROWS: open_rows},
        num_sessions=lambda: server.num_sessions,
    )
