"""Arbitrary lines sent to a store's server, and from a server to a client."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tengen.errors import refusal
from tengen.store import Column, Store, StoreConfig, TableConfig
from tengen.store.messages import WIRE_VERSION
from tengen.transport import NetAddress
from tests.fuzz.changes import any_json, changed, changed_json

TOKEN = "a-token-of-the-fuzzer"
TIMES = float(os.environ.get("TENGEN_FUZZ_TIMES", "1"))
SEED = random.randrange(1 << 30) if "TENGEN_FUZZ_TIMES" in os.environ else 1
TABLE = TableConfig(name="t", columns={"x": Column(dtype="int64")}, max_items=50)
MOST_S = 60
# An unhandled exception in a server's thread is a fault.
pytestmark = pytest.mark.filterwarnings(
    "error::pytest.PytestUnhandledThreadExceptionWarning"
)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store(
        StoreConfig.of([TABLE], memory_bytes=1 << 20, listen="127.0.0.1:0"), token=TOKEN
    ) as made:
        yield made


def line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def speak(store: Store, data: bytes) -> bytes:
    """Sends bytes, closes the sending side; returns the complete response."""
    address = NetAddress.parse(store.address)
    found = b""
    with socket.create_connection((address.host, address.port), MOST_S) as connection:
        try:
            connection.sendall(data)
            # The server may have responded and closed the connection.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                found += part
        except ConnectionError:
            pass
    return found


def messages() -> list[dict[str, Any]]:
    """Returns one message of each kind that a store accepts."""
    commands = ("describe", "set_capacity", "insert", "x")
    return [
        {"ask": "tables"},
        {"ask": "writer", "name": "w", "pool": 0, "wait_s": 0.0},
        {"ask": "sampler", "table": 0, "num_samples": 2, "num_ahead": 1},
        {"ask": "replica", "name": "copy", "place": "a"},
        *(
            {
                "ask": "command",
                "name": name,
                "arguments": {"table": 0, "max_items": 9, "max_bytes": None},
            }
            for name in commands
        ),
    ]


def test_every_greeting_and_question_is_answered(store: Store) -> None:
    rng = random.Random(SEED)
    hello = {"version": WIRE_VERSION, "token": TOKEN}
    for _ in range(int(120 * TIMES)):
        said = line(hello)
        message = line({"version": WIRE_VERSION, **rng.choice(messages())})
        match rng.randrange(4):
            case 0:
                said = line(changed_json(rng, hello))
            case 1:
                message = line(changed_json(rng, json.loads(message)))
            case 2:
                message = changed(rng, message)
            case 3:
                message += rng.randbytes(rng.choice((8, 200)))
        answer, _, _ = speak(store, said + message).partition(b"\n")
        if answer.startswith(b"{"):
            told = json.loads(answer)
            assert "answer" in told or len(told["error"]) < 1000, told
            assert "\n" not in told.get("error", ""), told
    with Store.connect(store.address, token=TOKEN) as client:
        with client.writer("after", "t") as writer:
            writer.append({"x": np.int64(1)})
            writer.insert("t", 1)
        client.table("t").sample(1, timeout_s=MOST_S).ack()


def test_nothing_is_answered_without_the_token(store: Store) -> None:
    rng = random.Random(SEED + 1)
    for number in range(int(60 * TIMES)):
        hello = {"version": WIRE_VERSION}
        if number % 4:
            hello["token"] = rng.choice(
                [TOKEN[:-1], TOKEN + "\n", TOKEN.upper(), "\ud800", any_json(rng)]
            )
        told = json.loads(speak(store, line(hello) + line(rng.choice(messages()))))
        assert told["kind"] == "usage"
        assert "token (not shown) must be that of the store" in told["error"]


def test_a_client_refuses_what_is_no_answer() -> None:
    rng = random.Random(SEED + 2)
    answers = [
        {"answer": {"tables": {}, "version": WIRE_VERSION}},
        {"answer": {"tables": {"t": {"number": 0, "pool": 0, "config": {}}}}},
        {"error": "store (x) is full; wait", "kind": "full"},
        {"answer": None},
    ]
    with socket.create_server(("127.0.0.1", 0)) as server:
        said: list[bytes] = []

        def answer() -> None:
            while True:
                with contextlib.suppress(OSError):
                    connection, _ = server.accept()
                    with connection:
                        if not said:
                            return
                        connection.recv(1 << 16)
                        connection.sendall(said[0])

        # A daemon thread, so that a failure leaves no thread to wait for.
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        address = str(NetAddress("127.0.0.1", server.getsockname()[1]))
        hostile = [{}, {"error": "no", "kind": []}, {"error": {}}, {"error": "a\nb"}]
        for number in range(int(60 * TIMES)):
            value = changed_json(rng, rng.choice(answers))
            data = line(hostile.pop() if hostile else value)
            said[:] = [changed(rng, data) if number % 3 == 2 else data]
            try:
                Store.connect(address, token=TOKEN).close()
            except Exception as error:
                refused = refusal(error)
                if refused is None:
                    raise AssertionError(f"after {said}: {error!r}") from error
                assert "\n" not in str(refused), said
        said.clear()
        with socket.create_connection(server.getsockname()):
            thread.join(MOST_S)
    assert not thread.is_alive()
