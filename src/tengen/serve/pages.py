"""The built page and its files, as they lie in the package."""

from __future__ import annotations

import re
from importlib import resources

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

__all__ = ["Pages"]

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
