"""The built page and its files, as they lie in the package."""

from __future__ import annotations

import gzip
import hashlib
import re
from importlib import resources

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tengen.serve.replies import takes_gzip

__all__ = ["Pages"]

_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_SHELL = "index.html"
# What web/src/main.tsx draws a page for; for all else it draws "No such page".
_PAGES = re.compile(r"/(environments|store|players/[^/]+|runs/[^/]+(/games|/play)?)?/?")
_FOREVER = "public, max-age=31536000, immutable"


class Pages:
    """Serves what is in ``tengen/serve/assets``, read once, and nothing else.

    Every address gets the same HTML shell, which draws the page that the path names; an
    unknown address also gets it, with status 404. The shell asks for scripts and styles
    with the hash of their bytes in the query, so that a browser keeps them until they
    change.
    """

    def __init__(self) -> None:
        folder = resources.files("tengen.serve") / "assets"
        self._files = {
            path.name: path.read_bytes()
            for path in folder.iterdir()
            if path.is_file() and path.name.rpartition(".")[2] in _TYPES
        }
        self._hashes = {
            name: hashlib.sha256(data).hexdigest()[:12]
            for name, data in self._files.items()
        }
        shell = self._files.pop(_SHELL).decode()
        for name, digest in self._hashes.items():
            shell = shell.replace(f'"/assets/{name}"', f'"/assets/{name}?v={digest}"')
        self._shell = shell.encode()
        self._packed = {
            name: gzip.compress(data, 9, mtime=0) for name, data in self._files.items()
        }

    def routes(self) -> list[Route]:
        """Returns the routes; the last takes every path that is no other's."""
        return [
            Route("/assets/{name}", self._asset, methods=["GET"]),
            Route("/assets/{rest:path}", _unknown, methods=["GET"]),
            Route("/favicon.ico", self._icon, methods=["GET"]),
            Route("/api/{rest:path}", _unknown, methods=["GET", "POST"]),
            Route("/{rest:path}", self._page, methods=["GET"]),
        ]

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        data = self._files.get(name)
        if data is None:
            return PlainTextResponse("no such file\n", 404)
        digest = self._hashes[name]
        is_named = request.query_params.get("v") == digest
        headers = {
            "ETag": f'"{digest}"',
            "Vary": "Accept-Encoding",
            "Cache-Control": _FOREVER if is_named else "no-cache",
        }
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(b"", 304, headers)
        if takes_gzip(request):
            data = self._packed[name]
            headers["Content-Encoding"] = "gzip"
        return Response(data, 200, headers, _TYPES[name.rpartition(".")[2]])

    async def _icon(self, request: Request) -> Response:
        return Response(self._files["icon.svg"], 200, {}, _TYPES["svg"])

    async def _page(self, request: Request) -> Response:
        status = 200 if _PAGES.fullmatch(request.url.path) else 404
        headers = {"Cache-Control": "no-cache"}
        return Response(self._shell, status, headers, _TYPES["html"])


async def _unknown(request: Request) -> Response:
    return PlainTextResponse("no such address\n", 404)
