"""Answers: JSON, small over a slow link, and errors in the one form."""

from __future__ import annotations

import gzip
import json
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tengen.errors import UsageError, refusal

__all__ = [
    "Busy",
    "Endpoint",
    "answers",
    "error_reply",
    "json_reply",
    "read_json",
    "saved",
    "shows",
    "takes_gzip",
]

_SMALL_BYTES = 1024
Endpoint = Callable[[Request], Awaitable[Response]]


class Busy(Exception):
    """The server has enough to do; the message says what to do."""


def json_reply(request: Request, content: Any, status: int = 200) -> Response:
    """Returns JSON, compressed where that helps and the browser takes it."""
    body = json.dumps(content, separators=(",", ":")).encode()
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    if len(body) > _SMALL_BYTES and takes_gzip(request):
        body = gzip.compress(body, 5)
        headers["Content-Encoding"] = "gzip"
    return Response(body, status, headers, "application/json")


def takes_gzip(request: Request) -> bool:
    """Returns whether a browser takes compressed answers."""
    return "gzip" in request.headers.get("accept-encoding", "")


def error_reply(request: Request, error: Exception) -> Response | None:
    """Returns the answer to a request that was refused; None for a bug."""
    if isinstance(error, Busy):
        reply = json_reply(request, {"error": str(error)}, 503)
        reply.headers["Retry-After"] = "5"
        return reply
    refused = refusal(error)
    if refused is None:
        return None
    status = 422 if isinstance(refused, UsageError) else 409
    return json_reply(request, {"error": str(refused)}, status)


def answers(endpoint: Endpoint) -> Endpoint:
    """Makes errors of an endpoint its answers."""

    @wraps(endpoint)
    async def guarded(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            reply = error_reply(request, error)
            if reply is None:
                raise
            return reply

    return guarded


def shows(find: Callable[[Request], Any]) -> Endpoint:
    """Returns an endpoint that answers with what a function finds, as JSON.

    Args:
        find: Finds it, on a thread where it may block.
    """

    async def shown(request: Request) -> Response:
        return json_reply(request, await run_in_threadpool(find, request))

    return answers(shown)


def saved(name: str, suffix: str, data: bytes) -> Response:
    """Returns a file that the browser saves, under a name with an ending."""
    disposition = f'attachment; filename="{name}.{suffix}"'
    headers = {"Content-Disposition": disposition, "Cache-Control": "no-store"}
    return Response(data, 200, headers, "application/octet-stream")


async def read_json(request: Request) -> dict[str, Any]:
    """Returns the JSON object of a request.

    Raises:
        UsageError: It is none.
    """
    body = await request.body()
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise UsageError("body (of the request) must be a JSON object; send one")
    return content
