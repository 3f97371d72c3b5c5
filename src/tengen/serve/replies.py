"""Replies of the server: JSON, files to save, and errors in the one form."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tengen.errors import TengenError, UsageError, refusal

__all__ = [
    "ERROR_HANDLERS",
    "MAX_BODY_BYTES",
    "TOO_LONG",
    "UNPACKED",
    "Busy",
    "Endpoint",
    "encoded",
    "json_reply",
    "message_of",
    "read_json",
    "saved",
    "shows",
]

Endpoint = Callable[[Request], Awaitable[Response]]

MAX_BODY_BYTES = 64 * 1024
"""Most bytes of a request's body."""
TOO_LONG = "request (its body) is too long; send less"

UNPACKED = {"Cache-Control": "no-store", "Content-Encoding": "identity"}
"""Headers of a stream, which the server sends at once and does not compress."""


class Busy(HTTPException):
    """The server has enough to do; the message says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(503, message, {"Retry-After": "5"})


def json_reply(content: Any, status: int = 200) -> Response:
    """Returns JSON that no browser keeps."""
    headers = {"Cache-Control": "no-store"}
    return Response(encoded(content), status, headers, "application/json")


def encoded(content: Any) -> bytes:
    """Returns a value as JSON without spaces."""
    return json.dumps(content, separators=(",", ":")).encode()


def message_of(error: Exception) -> str | None:
    """Returns the one line of an error that a page is told; None for a bug."""
    if isinstance(error, Busy):
        return error.detail
    refused = refusal(error)
    return None if refused is None else str(refused)


async def _refuse(request: Request, error: Exception) -> Response:
    refused = refusal(error)
    if refused is None:
        raise error
    status = 422 if isinstance(refused, UsageError) else 409
    return json_reply({"error": str(refused)}, status)


# ValueError and RuntimeError are those of the core and of torch.
ERROR_HANDLERS: dict[Any, Any] = dict.fromkeys(
    (TengenError, OSError, MemoryError, ValueError, RuntimeError), _refuse
)
"""The handlers of an application for errors that are no bugs."""


def shows(find: Callable[[Request], Any]) -> Endpoint:
    """Returns an endpoint that answers with what a function finds, as JSON.

    Args:
        find: Finds it, on a thread where it may block.
    """

    async def shown(request: Request) -> Response:
        return json_reply(await run_in_threadpool(find, request))

    return shown


def saved(name: str, suffix: str, data: bytes) -> Response:
    """Returns a file that the browser saves, under a name with an ending."""
    disposition = f'attachment; filename="{name}.{suffix}"'
    headers = {"Content-Disposition": disposition, "Cache-Control": "no-store"}
    return Response(data, 200, headers, "application/octet-stream")


async def read_json(request: Request) -> dict[str, Any]:
    """Returns the JSON object of a request.

    Raises:
        UsageError: It is none.
        HTTPException: It is too long.
    """
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise HTTPException(413, TOO_LONG)
        content = json.loads(body)
    except (ValueError, RecursionError, ClientDisconnect):
        content = None
    if not isinstance(content, dict):
        raise UsageError("body (of the request) must be a JSON object; send one")
    return content
