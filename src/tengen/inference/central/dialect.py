"""Central inference's dialect of the transport: opening sessions, asking the model."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from tengen.config import from_dict, to_dict
from tengen.errors import RunError, UsageError
from tengen.inference.central.messages import Stream
from tengen.inference.central.server import InferenceServer
from tengen.tensors import Signature
from tengen.transport import Client, Dialect, Message, Service, is_net

__all__ = ["INFERENCE", "ask_model", "connect_rows", "serve_rows"]

INFERENCE = Dialect("inference", version=3)
_ROWS = "rows"
_MODEL = "model"


def connect_rows(
    client: Client, signature: Signature, num_rows: int
) -> Callable[[], Stream]:
    """Returns a function that opens a session of N rows; see ``InferenceClient``."""
    # Told by the name: an encrypted connection's socket leads to a local thread.
    is_shared = not is_net(client.name)
    message = {
        "ask": _ROWS,
        "num_rows": num_rows,
        "is_shared": is_shared,
        "signature": to_dict(signature),
    }
    return lambda: Stream(client.open_now(message)[0], is_shared)


def ask_model(client: Client, patience_s: float) -> int | None:
    """Returns which model is served, -1 for none yet; None where nobody answers.

    A server answers on its own thread, however long its batch takes.

    Args:
        client: The client of the server.
        patience_s: Seconds to wait for an answer, at least 2.

    Raises:
        UsageError: The server is of another version, or refuses the token.
    """
    try:
        connection, model = client.open_now({"ask": _MODEL}, patience_s)
    except (OSError, RunError):
        return None
    connection.close()
    return int(model)


def serve_rows(server: InferenceServer, signature: Signature) -> Service:
    """Returns the service by which actors open sessions with a server."""

    def open_rows(connection: socket.socket, message: Message) -> dict[str, Any]:
        num_rows = message["num_rows"]
        if type(num_rows) is not int or not 1 <= num_rows <= server.max_rows:
            raise UsageError(
                f"num_rows ({num_rows}) must be 1 to {server.max_rows}; use more actors"
            )
        is_shared = message["is_shared"]
        if is_shared is not False and connection.family != socket.AF_UNIX:
            raise UsageError(
                f"is_shared ({is_shared}) must be False between hosts; connect by the "
                f"folder"
            )
        asked = from_dict(Signature, message["signature"], "signature")
        for part in ("inputs", "outputs", "state"):
            mine, theirs = getattr(signature, part), getattr(asked, part)
            # The order must be equal too, because arrays are sent in this order.
            if list(mine.items()) != list(theirs.items()):
                raise UsageError(
                    f"signature ({part} {', '.join(theirs) or 'none'}) must be the "
                    f"network's, {', '.join(mine) or 'none'}; start this role again"
                )
        server.add(Stream(connection.dup(), bool(is_shared)), num_rows)
        return {}

    return Service(
        dialect=INFERENCE,
        questions={_MODEL: lambda message: server.model},
        sessions={_ROWS: open_rows},
        num_sessions=lambda: server.num_sessions,
    )
