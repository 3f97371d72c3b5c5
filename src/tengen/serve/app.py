"""The web application: all routes, behind a guard that implements access control."""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tengen.serve import Limits
from tengen.serve.catalog import Catalog
from tengen.serve.play_api import PlayApi
from tengen.serve.players import Players
from tengen.serve.replies import ERROR_HANDLERS, MAX_BODY_BYTES, TOO_LONG
from tengen.serve.runs_api import GamesApi, RunsApi
from tengen.serve.searches import Searches

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
    """ASGI middleware that rejects requests from other sites, or without the token.

    The guard rejects unknown names in the header ``Host``. This prevents DNS rebinding,
    in which another site's name resolves to this host, so that a page of the site can
    reach the server. It also rejects requests whose headers ``Origin`` or
    ``Sec-Fetch-Site`` show that another site's page sent them.

    Args:
        app: The application behind the guard.
        names: Names of the server, without a port.
        any_address: Whether every numeric address is accepted as a name.
        token: The token that clients must send; empty if no token is needed.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        names: Collection[str],
        any_address: bool = False,
        token: str = "",
    ) -> None:
        self.app = app
        self._names = {name.lower() for name in names}
        self._any_address = any_address
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Rejects one request, or passes it to the application."""
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
                f"host ({host[:60]!a}) is not a name of this server; start it with "
                "--name to add it",
            )
        if scope["method"] not in _METHODS:
            return _refused(405, f"method ({scope['method'][:20]}) is not supported")
        site = headers.get("sec-fetch-site", "none")
        origin = headers.get("origin")
        is_read = scope["method"] != "POST"
        is_page = is_read and headers.get("sec-fetch-mode", "navigate") == "navigate"
        foreign = site not in ("none", "same-origin") and not is_page
        if origin is not None and origin.partition("://")[2] != host:
            foreign = True
        if foreign:
            return _refused(403, "page (of another site) is rejected; open this server")
        kind = headers.get("content-type", "").partition(";")[0].strip()
        if not is_read and kind != "application/json":
            return _refused(415, f"content-type ({kind[:40]!a}) must be JSON; set it")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:18]) > MAX_BODY_BYTES:
            return _refused(413, TOO_LONG)
        return None

    def _unknown(self, scope: Scope, headers: Headers) -> Response | None:
        """Checks the token; returns a redirect, an error, or None to proceed."""
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
            # Keep exactly one leading slash: "//host" would redirect to another site.
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
            "token (none) is required; open the address that the server printed, "
            "which contains it",
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


class Application:
    """A web application behind the guard.

    Args:
        routes: The routes.
        close: Called when the server ends.
        access: See ``Guard``: ``names``, ``any_address`` and ``token``.

    Attributes:
        asgi: The ASGI application that a server runs.
    """

    def __init__(
        self, routes: Sequence[Route], close: Callable[[], None], **access: Any
    ) -> None:
        self._close = close
        self.asgi: ASGIApp = Guard(
            Starlette(
                routes=routes,
                middleware=[Middleware(GZipMiddleware, compresslevel=5)],
                exception_handlers=ERROR_HANDLERS,
                lifespan=self._lifespan,
            ),
            **access,
        )

    @classmethod
    def of_runs(
        cls, catalog: Catalog, limits: Limits, tasks: Sequence[str], **access: Any
    ) -> Application:
        """Returns the application of ``tengen serve``.

        Args:
            catalog: The runs.
            limits: The limits for requests.
            tasks: Tasks ``module:Class`` that the user typed, which may be imported.
            access: See ``Guard``.
        """
        players = Players(limits.max_players, tasks)
        routes = [
            *RunsApi(catalog, limits.look_s).routes(),
            *GamesApi(catalog).routes(),
            *PlayApi(catalog, players, Searches(limits), limits).routes(),
            *Pages(_PAGES).routes(),
        ]
        return cls(routes, players.close, **access)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        self._close()


# Paths of the pages in web/src/main.tsx, which shows "No such page" for others.
_PAGES = (
    r"/(play|compare|environments|store|players/[^/]+|runs(/[^/]+(/games|/play)?)?)?/?"
)
_ASKED_AGAIN = {"Cache-Control": "no-cache"}


class Pages:
    """Serves only the files in ``tengen/serve/assets``.

    All other paths return the same HTML shell, which renders the page for its path; for
    unknown paths, the status is 404. Browsers cache scripts and styles, and revalidate
    them on each use.

    Args:
        paths: A regular expression for the paths of pages.
    """

    def __init__(self, paths: str) -> None:
        self._paths = re.compile(paths)
        folder = resources.files("tengen.serve") / "assets"
        self._files = StaticFiles(directory=str(folder))
        self._shell = (folder / "index.html").read_bytes()

    def routes(self) -> list[Route]:
        """Returns the routes. The last one matches all remaining paths."""
        return [
            Route("/assets/{name}", self._asset, methods=["GET"]),
            Route("/favicon.ico", self._icon, methods=["GET"]),
            Route("/{rest:path}", self._page, methods=["GET"]),
        ]

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        reply = await self._files.get_response(name, request.scope)
        reply.headers.update(_ASKED_AGAIN)
        return reply

    async def _icon(self, request: Request) -> Response:
        return await self._files.get_response("icon.svg", request.scope)

    async def _page(self, request: Request) -> Response:
        path = request.url.path
        if path.startswith("/api/"):
            raise HTTPException(404, "no such address")
        status = 200 if self._paths.fullmatch(path) else 404
        return Response(self._shell, status, _ASKED_AGAIN, "text/html; charset=utf-8")
