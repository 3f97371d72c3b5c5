"""The application: all routes behind one guard."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from importlib import resources

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from tengen.serve import Limits
from tengen.serve.catalog import Catalog
from tengen.serve.games_api import GamesApi
from tengen.serve.guard import Guard
from tengen.serve.play_api import PlayApi
from tengen.serve.players import Players
from tengen.serve.replies import ERROR_HANDLERS
from tengen.serve.runs_api import RunsApi
from tengen.serve.searches import Searches

__all__ = ["Application", "Pages"]


class Application:
    """The application that answers all requests.

    Args:
        catalog: The runs.
        limits: Bounds of what clients may ask.
        names: Names of the server, without a port.
        any_address: Whether every numeric address counts as a name too.
        token: The token that clients must send; empty: none is needed.
        tasks: Games in Python that the user typed.

    Attributes:
        asgi: The ASGI application that a server runs.
    """

    def __init__(
        self,
        catalog: Catalog,
        limits: Limits,
        *,
        names: Collection[str],
        any_address: bool = False,
        token: str = "",
        tasks: Sequence[str] = (),
    ) -> None:
        self._players = Players(limits.max_players, tasks)
        play = PlayApi(catalog, self._players, Searches(limits), limits)
        routes = [
            *RunsApi(catalog, limits.look_s).routes(),
            *GamesApi(catalog).routes(),
            *play.routes(),
            *Pages().routes(),
        ]
        self.asgi: ASGIApp = Guard(
            Starlette(
                routes=routes,
                middleware=[Middleware(GZipMiddleware, compresslevel=5)],
                exception_handlers=ERROR_HANDLERS,
                lifespan=self._lifespan,
            ),
            names=names,
            any_address=any_address,
            token=token,
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        self._players.close()


# What web/src/main.tsx draws a page for; for all else it draws "No such page".
_PAGES = re.compile(r"/(environments|store|players/[^/]+|runs/[^/]+(/games|/play)?)?/?")
_ASKED_AGAIN = {"Cache-Control": "no-cache"}


class Pages:
    """Serves what is in ``tengen/serve/assets``, and nothing else.

    Every address gets the same HTML shell, which draws the page that the path names; an
    unknown address also gets it, with status 404. A browser keeps the scripts and
    styles, and asks whether they have changed.
    """

    def __init__(self) -> None:
        folder = resources.files("tengen.serve") / "assets"
        self._files = StaticFiles(directory=str(folder))
        self._shell = (folder / "index.html").read_bytes()

    def routes(self) -> list[Route]:
        """Returns the routes; the last takes every path that is no other's."""
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
        status = 200 if _PAGES.fullmatch(path) else 404
        return Response(self._shell, status, _ASKED_AGAIN, "text/html; charset=utf-8")
