"""Idle and slow connections must not keep other clients out."""

import contextlib
import socket
from typing import ClassVar

import pytest

TOKEN = "a-token-of-the-test"

pytest.importorskip("uvicorn", reason="the extra serve is not installed")

from tengen.serve import Limits  # noqa: E402
from tengen.serve.running import Connection  # noqa: E402
from tests.integration.runs import wait_for  # noqa: E402
from tests.unit.serve.served import serving  # noqa: E402


class Noted(Connection):
    """A connection, of eight at most; records its start and when its buffer is full."""

    max_connections = 8
    unread_s = 0.2
    made: ClassVar[list[Connection]] = []
    full: ClassVar[set[int]] = set()

    def connection_made(self, transport):
        super().connection_made(transport)
        self.made.append(self)

    def pause_writing(self):
        super().pause_writing()
        self.full.add(id(self))


class Patient(Noted):
    """A connection whose client may read slowly."""

    unread_s = 900.0


class Hurried(Connection):
    request_s = 0.2


@pytest.fixture
def door(request):
    """Returns a server that accepts eight concurrent connections."""
    kind = getattr(request, "param", Patient)
    Noted.made.clear()
    Noted.full.clear()
    limits = Limits(max_simulations=2**24)
    with serving([], limits, token=TOKEN, connection=kind) as site:
        yield site


@contextlib.contextmanager
def connected(site, count, said=b""):
    with contextlib.ExitStack() as stack:
        silent = []
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", site.port), timeout=900)
            silent.append(stack.enter_context(one))
            one.sendall(said)
        yield silent


@pytest.mark.parametrize(
    "said", [b"", b"GET /api/runs HT", b"GET /api/runs HTTP/1.1\r\nHost: localhost\r\n"]
)
def test_silent_connections_keep_nobody_out(door, said):
    with connected(door, 20, said):
        for _ in range(20):
            reply = door.ask("/api/runs", Authorization=f"Bearer {TOKEN}")
            assert reply.status == 200


def test_connections_of_those_who_may_not_ask_keep_nobody_out(door):
    request = b"GET /api/runs HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(door, 20, request) as others:
        assert b" 401 " in others[-1].recv(65536)
        reply = door.ask("/api/runs", Authorization=f"Bearer {TOKEN}")
        assert reply.status == 200


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"POST /api/runs HTTP/1.1\r\nHost: loc",
        b"POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
        b"Content-Type: application/json\r\nAuthorization: Bearer "
        + TOKEN.encode()
        + b"\r\n\r\n{",
        # An incomplete request after one that was answered.
        b"GET /api/runs HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api",
    ],
)
def test_a_request_that_does_not_come_whole_is_ended(said):
    with (
        serving([], token=TOKEN, connection=Hurried) as site,
        connected(site, 1, said) as (one,),
    ):
        while one.recv(65536):
            pass


@pytest.mark.parametrize("door", [Noted], indirect=True)
def test_those_who_never_read_keep_nobody_out(door):
    # 30 MB in total, more than the system's buffers hold.
    request = (
        f"GET /assets/app.js HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {TOKEN}\r\n\r\n"
    )
    with connected(door, 8, 300 * request.encode()):
        wait_for(lambda: len(Noted.full) == 8)
        wait_for(lambda: door.ask("/").status != 503)


def test_what_makes_room_is_closed_though_it_has_not_read(door):
    with connected(door, 1):
        wait_for(lambda: Noted.made)
        (first,) = Noted.made
        descriptor = first.transport.get_extra_info("socket")
        unread = b"more than any buffer of the system's" * 1_000_000
        first.loop.call_soon_threadsafe(first.transport.write, unread)
        wait_for(lambda: first.transport.get_write_buffer_size())
        with connected(door, 20):
            wait_for(lambda: descriptor.fileno() == -1)


def test_what_is_being_answered_is_not_ended_for_others(door):
    body = b'{"moves": [], "simulations": 16777216}'
    request = (
        f"POST /api/players/go~7/play/search HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"Authorization: Bearer {TOKEN}\r\n\r\n"
    ).encode() + body
    with connected(door, 1, request) as (page,):
        assert b" 200 " in page.recv(65536)
        with connected(door, 20):
            page.setblocking(False)
            # The server has not closed the connection.
            with contextlib.suppress(BlockingIOError):
                assert all(iter(lambda: page.recv(65536), None))
