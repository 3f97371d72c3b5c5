"""HTTP responses of the server: JSON, file downloads and errors."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tengen.errors import TengenError, UsageError, refusal

Endpoint = Callable[[Request], Awaitable[Response]]

MAX_BODY_BYTES = 64 * 1024
"""Maximum size of a request body in bytes."""
TOO_LONG = "request (its body) is too long; send less"

UNPACKED = {"Cache-Control": "no-store", "Content-Encoding": "identity"}
"""Headers of a streamed response. They prevent compression, which would buffer it."""


class Busy(HTTPException):
    """The server is overloaded: HTTP status 503, with a header ``Retry-After``."""

    def __init__(self, message: str) -> None:
        super().__init__(503, message, {"Retry-After": "5"})


def json_reply(content: Any, status: int = 200) -> Response:
    """Returns a JSON response that browsers do not cache."""
    headers = {"Cache-Control": "no-store"}
    return Response(encoded(content), status, headers, "application/json")


def encoded(content: Any) -> bytes:
    """Returns a value as compact JSON."""
    return json.dumps(content, separators=(",", ":")).encode()


def message_of(error: Exception) -> str | None:
    """Returns an expected error's message as one line; None if the error is a bug."""
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


# The core and torch raise ValueError and RuntimeError for expected errors.
ERROR_HANDLERS: dict[Any, Any] = dict.fromkeys(
    (TengenError, OSError, MemoryError, ValueError, RuntimeError), _refuse
)
"""The application's handlers of expected errors."""


def shows(find: Callable[[Request], Any]) -> Endpoint:
    """Returns an endpoint that responds with a function's result as JSON.

    Args:
        find: The function. It runs in a worker thread and may block.
    """

    async def shown(request: Request) -> Response:
        return json_reply(await run_in_threadpool(find, request))

    return shown


def saved(name: str, suffix: str, data: bytes) -> Response:
    """Returns a response that browsers save as the file ``name.suffix``."""
    disposition = f'attachment; filename="{name}.{suffix}"'
    headers = {"Content-Disposition": disposition, "Cache-Control": "no-store"}
    return Response(data, 200, headers, "application/octet-stream")


async def read_json(request: Request) -> dict[str, Any]:
    """Returns the JSON object in a request's body.

    Raises:
        UsageError: The body is not a JSON object.
        HTTPException: The body is too long.
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
