"""Addresses that are refused before Ray waits for them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tengen.errors import UsageError
from tengen.overrides import override
from tengen.recipes import make_config
from tests.refusals import refused

connection = pytest.importorskip(
    "tengen.launch.cluster.connection", reason="Ray is not installed"
)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Takes connections and says nothing, as any other service might."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        kept = []

        def take() -> None:
            try:
                while True:
                    kept.append(server.accept())
            except OSError:
                pass

        threading.Thread(target=take, daemon=True).start()
        yield server


def address_of(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_what_listens_and_is_not_ray_is_one_line(
    listener: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(connection, "_ANSWER_S", 1.0)
    address = address_of(listener)
    made = override(make_config("tictactoe", None, None), [f"launch.address={address}"])
    with refused(UsageError, f"launch.address ({address})"):
        connection.connect(made)
    assert capfd.readouterr() == ("", "")


def test_a_cluster_of_this_host_that_is_gone_is_not_waited_for(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its port may be somebody else's by now."""
    monkeypatch.setattr(connection, "_ANSWER_S", 1.0)
    monkeypatch.setattr(connection.Path, "read_text", lambda path: address_of(listener))
    assert not connection._is_any_here()


@pytest.mark.parametrize(
    ("ends", "lack"), [("raise SystemExit('no.')", "no"), ("", "")]
)
def test_what_asks_says_what_it_was_told(
    monkeypatch: pytest.MonkeyPatch, ends: str, lack: str
) -> None:
    monkeypatch.setattr(connection, "_ASK", f"print('asking'); {ends}")
    assert connection._lack("127.0.0.1:1") == lack
