"""A server in a thread, and a client that uses real sockets."""

from __future__ import annotations

import http.client
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen.serve import Limits
from tengen.serve.catalog import Catalog

QUICK = Limits(look_s=0.2, max_simulations=64)


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def lines(self):
        return [json.loads(line) for line in self.body.splitlines()]


@dataclass
class Site:
    """A running server."""

    port: int
    application: Any

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path, body=None, *, method=None, data=None, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            data = json.dumps(body).encode()
            named.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=900)
        try:
            method = method or ("GET" if data is None else "POST")
            connection.request(method, path, data, named)
            reply = connection.getresponse()
            found = {name.lower(): value for name, value in reply.getheaders()}
            return Reply(reply.status, found, reply.read())
        finally:
            connection.close()


@contextmanager
def serving(
    paths,
    limits=QUICK,
    *,
    token="",
    folder=Path("runs"),
    names=("localhost", "127.0.0.1"),
    any_address=False,
    connection=None,
):
    """Serves runs for the duration of a ``with`` block."""
    from tengen.serve.app import Application

    application = Application.of_runs(
        Catalog(paths, folder),
        limits,
        (),
        names=names,
        any_address=any_address,
        token=token,
    )
    with running(application, connection) as site:
        yield site


@contextmanager
def running(application, connection=None):
    """Serves an application for the duration of a ``with`` block."""
    from tengen.serve.running import Server, bind

    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = Server(application, listener)
    if connection is not None:
        server.config.http = connection
    has_begun = threading.Event()
    thread = threading.Thread(target=server.run_until_stopped, args=(has_begun.set,))
    thread.start()
    try:
        assert has_begun.wait(900)
        yield Site(port, application)
    finally:
        server.stop()
        thread.join(900)
        assert not thread.is_alive()
