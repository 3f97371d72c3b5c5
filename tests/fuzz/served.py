"""Arbitrary requests to ``tengen serve``, as bytes on a socket."""

from __future__ import annotations

import json
import re
import socket
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from starlette.routing import Route

from tests.unit.serve.served import Site

# A server that does not respond for this long has hung.
MOST_S = 60


@dataclass
class Answer:
    """A response; ``status`` is 0 if the server closed the connection without one."""

    status: int
    head: bytes
    body: bytes


def ask_raw(site: Site, request: bytes) -> Answer:
    """Sends bytes, closes the sending side, and returns the first response.

    Of an endless response, such as a run's event stream, reads the first part.
    """
    with socket.create_connection(("127.0.0.1", site.port), timeout=MOST_S) as line:
        try:
            line.sendall(request)
            found = b""
            while b"\r\n\r\n" not in found and (part := line.recv(1 << 16)):
                found += part
            head, _, body = found.partition(b"\r\n\r\n")
            if b"text/event-stream" not in head.lower():
                while part := line.recv(1 << 16):
                    body += part
        except (ConnectionError, BrokenPipeError):
            return Answer(0, b"", b"")
    words = head.split(b" ", 2)
    is_http = len(words) > 1 and words[0].startswith(b"HTTP/1.")
    assert not head or is_http, head[:200]
    return Answer(int(words[1]) if is_http else 0, head, body)


def paths_of(site: Site) -> list[tuple[str, list[str]]]:
    """Returns every route of the application, so also a new one, with its methods."""
    app: Any = site.application.asgi
    routes = [route for route in app.app.routes if isinstance(route, Route)]
    assert len(routes) == len(app.app.routes)
    return [(route.path, sorted(route.methods or {"GET"})) for route in routes]


NAMES = """
tictactoe CartPole outside link secret.txt .. . %2e%2e ..%2f..%2fsecret.txt ....// ~
%2fetc%2fpasswd run.json %00 secret.mp4 link.mp4 episode-0.mp4 final-1 final-9 app.js
gate-000004 gate-000009 selfplay-0.1.000001 selfplay-0.1.000009 0 1 -1 %ff%fe %0d%0aX
index.html ..%5c.. %252e%252e%252fsecret.txt
"""
PARTS = st.one_of(
    st.sampled_from([*NAMES.split(), "", "9" * 30, "a" * 3000, "\u0663"]),
    st.text(max_size=8),
)
RANGES = ("bytes=0-3", "bytes=-1", "bytes=9-2", "x")
HEADERS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *(f"Range: {range_}" for range_ in RANGES),
                "Range: bytes=0-0,1-1,2-2," + ",".join(["5-9"] * 200),
                "Range: bytes=99999999999999999999999-",
                *("Accept-Encoding: gzip", "Accept-Encoding: \xff", "If-None-Match: *"),
                *("If-Range: x", "Expect: 100-continue", "Upgrade: websocket"),
                *("Transfer-Encoding: gzip", "Content-Length: -1", "Cookie: a=b; =;;"),
                *("Authorization: Bearer wrong", "Authorization:", "X: " + "y" * 5000),
                *("Cookie: tengen-1=x", 'Cookie: tengen-0="\\"', "Origin: null"),
                *("Sec-Fetch-Site: cross-site", "Connection: keep-alive", "a" * 500),
            ]
        ),
        st.tuples(st.text(max_size=8), st.text(max_size=12)).map(": ".join),
    ),
    max_size=3,
)
METHODS = st.sampled_from(
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "X"]
)
QUERIES = st.one_of(
    st.just(""),
    st.sampled_from(
        ["?epoch=9&num_points=99999999", "?epoch=-1", "?token=wrong", "?v=1"]
    ),
    st.sampled_from(["?%", "?num_points=%D9%A3", "?token=%00"]),
    st.sampled_from(["?token=" + "x" * 3000, "?" + "a&" * 500]),
    st.text(max_size=10).map("?{}".format),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=9)
        | st.dictionaries(
            st.sampled_from(
                ["moves", "model", "simulations", "plays", "forecasts", "at", "choice"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@st.composite
def requests(draw: st.DrawFn, routes: list[tuple[str, list[str]]]) -> tuple[str, bytes]:
    """Generates a route and the bytes of a request for it, possibly malformed."""
    path, methods = draw(st.sampled_from(routes))
    filled = re.sub(r"\{[^}]*\}", lambda _: draw(PARTS), path)
    method = draw(st.one_of(st.sampled_from(methods), METHODS))
    body = b""
    headers = ["Host: 127.0.0.1", "Connection: close"]
    if method == "POST" or draw(st.integers(0, 9)) == 0:
        body = draw(
            st.one_of(
                JSON.map(lambda value: json.dumps(value).encode()),
                st.sampled_from(
                    [b"[" * 9000, b'{"moves":', b"\xff", b"{}" * 40_000, b""]
                ),
                st.binary(max_size=20),
            )
        )
        headers.append(f"Content-Length: {len(body)}")
        headers.append("Content-Type: application/json")
    headers += draw(HEADERS)
    line = f"{method} {filled}{draw(QUERIES)} HTTP/1.1"
    text = "\r\n".join([line, *headers]) + "\r\n\r\n"
    # Special characters are sent both percent-encoded and raw.
    return path, text.encode("utf-8", "surrogatepass") + body
