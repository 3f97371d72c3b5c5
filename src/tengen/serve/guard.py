"""The guard of the server: which requests are allowed."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tengen.serve.replies import MAX_BODY_BYTES, TOO_LONG

__all__ = ["Guard"]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_METHODS = ("GET", "HEAD", "POST")
_YEAR_S = 365 * 24 * 3600


class Guard:
    """Lets only requests of this server's own pages through.

    An unknown name in ``Host`` is refused, so that a page of another site cannot reach
    the server by a name of its own that points here (DNS rebinding). Other sites' pages
    are refused by ``Origin`` and ``Sec-Fetch-Site``.

    Args:
        app: The application behind the guard.
        names: Names of the server, without a port.
        any_address: Whether every numeric address counts as a name too.
        token: The token that clients must send; empty: none is needed.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        names: Collection[str],
        any_address: bool,
        token: str,
    ) -> None:
        self.app = app
        self._names = {name.lower() for name in names}
        self._any_address = any_address
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        reply = self._refusal(scope, headers) or self._unknown(scope, headers)
        if reply is not None:
            await reply(scope, receive, send_guarded)
            return
        await self.app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if not self._is_ours(_without_port(host)):
            return _refused(
                421,
                f"host ({host[:60]!a}) is no name of this server; start tengen serve "
                f"with --name to give it one",
            )
        if scope["method"] not in _METHODS:
            return _refused(405, f"method ({scope['method'][:20]}) is not known here")
        site = headers.get("sec-fetch-site", "none")
        origin = headers.get("origin")
        is_read = scope["method"] != "POST"
        is_page = is_read and headers.get("sec-fetch-mode", "navigate") == "navigate"
        foreign = site not in ("none", "same-origin") and not is_page
        if origin is not None and origin.partition("://")[2] != host:
            foreign = True
        if foreign:
            return _refused(403, "page (of another site) may not ask here; open this")
        kind = headers.get("content-type", "").partition(";")[0].strip()
        if not is_read and kind != "application/json":
            return _refused(415, f"content-type ({kind[:40]!a}) must be JSON's")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:18]) > MAX_BODY_BYTES:
            return _refused(413, TOO_LONG)
        return None

    def _unknown(self, scope: Scope, headers: Headers) -> Response | None:
        """Returns the answer to a client without the token, or with it in the query."""
        if not self._token:
            return None
        request = Request(scope)
        query = request.query_params
        given = query.get("token", "")
        name = f"tengen-{scope['server'][1] if scope.get('server') else 0}"
        if given and scope["method"] == "GET" and self._is_token(given):
            left = urlencode(
                [pair for pair in query.multi_items() if pair[0] != "token"]
            )
            # Only the path, beginning with one slash, so that nobody is sent to another
            # site.
            path = "/" + scope["path"].lstrip("/\\")
            reply = RedirectResponse(path + (f"?{left}" if left else ""), 303)
            reply.set_cookie(
                name, given, _YEAR_S, httponly=True, samesite="strict", path="/"
            )
            return reply
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        known = bearer or request.cookies.get(name, "")
        if known and self._is_token(known):
            return None
        return _refused(
            401,
            "token (none) is needed; open the address that tengen serve printed, which "
            "ends with it",
        )

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _is_ours(self, name: str) -> bool:
        if name.lower() in self._names:
            return True
        if not self._any_address:
            return False
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _refused(status: int, message: str) -> Response:
    return PlainTextResponse(f"{message}\n", status, {"Cache-Control": "no-store"})
