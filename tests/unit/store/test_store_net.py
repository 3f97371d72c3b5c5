"""Who a store that listens lets in, and what it tells the others."""

import hashlib
import json
import re
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tengen.errors import RunError, TengenError, UsageError
from tengen.store import Column, Store, StoreConfig, TableConfig
from tengen.store.messages import WIRE_VERSION
from tengen.transport import NetAddress, listener
from tengen.transport import client as transport_client
from tests.refusals import refused

TABLE = TableConfig(
    name="t",
    columns={
        "value": Column(dtype="int64"),
        "pixels": Column(dtype="uint8", shape=(70_000,)),
    },
)
TOKEN = "a-token-of-some-length"
# Of localhost and 127.0.0.1, vouched for by itself.
CERTIFICATE = Path(__file__).with_name("tls_certificate.pem")
KEY = Path(__file__).with_name("tls_key.pem")
ANOTHER_AUTHORITY = Path(__file__).with_name("tls_another_authority.pem")
FINGERPRINT = hashlib.sha256(
    ssl.PEM_cert_to_DER_cert(CERTIFICATE.read_text())
).hexdigest()
TLS = {"certificate_file": CERTIFICATE, "key_file": KEY}


def listening(token=None, **options):
    config = {"memory_bytes": 1 << 24, "listen": "127.0.0.1:0", **options}
    return Store(StoreConfig.of([TABLE], **config), token=token)


@pytest.fixture
def store():
    with listening(token=TOKEN) as made:
        yield made


def speak(store, data):
    """Sends bytes, and returns the one line that comes back."""
    address = NetAddress.parse(store.address)
    with socket.create_connection((address.host, address.port), 20.0) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile() as answers:
            return json.loads(answers.readline())


def check_served(address, **options):
    """A client writes and draws a step."""
    with Store.connect(address, **options) as client:
        pixels = np.arange(70_000, dtype=np.uint8)
        with client.writer("w", "t") as writer:
            value = writer.next_sequence
            writer.append({"value": np.int64(value), "pixels": pixels})
            writer.insert("t", 1)
        batch = client.table("t").sample(1, timeout_s=300.0)
        assert batch.columns["value"].tolist() <= [value]
        assert (batch.columns["pixels"] == pixels).all()
        batch.ack()


def hello(**fields):
    words = {"version": WIRE_VERSION, "token": TOKEN, **fields}
    return json.dumps(words).encode() + b"\n"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "message ("),
        (b"\x16\x03\x01\x02\x00", "message ("),
        (b"{" + b" " * 5000 + b"\n", "4096"),
        (hello(version=99), "version (99)"),
        (hello(token="another-token-of-length"), "token (not shown)"),
        (hello(token=None), "token (not shown)"),
        (b'{"version": %d}\n' % WIRE_VERSION, "token (not shown)"),
        (hello() + b'{"ask": "tables"}\n', "version (None)"),
        (hello() + b"nonsense\n", "message ("),
    ],
)
def test_who_speaks_wrongly_is_told_and_others_are_served(store, data, error):
    with refused(UsageError, error):
        raise UsageError(speak(store, data)["error"])
    check_served(store.address, token=TOKEN)


@pytest.mark.parametrize(
    "message",
    [
        {"ask": "command", "name": "describe", "arguments": []},
        {
            "ask": "command",
            "name": "set_capacity",
            "arguments": {"table": 0, "max_items": 2**70, "max_bytes": None},
        },
        {"ask": "writer", "name": "\ud800", "pool": 0, "wait_s": 0},
        {"ask": "replica", "name": "copy", "place": None},
    ],
)
def test_every_message_is_answered(store, message):
    line = json.dumps({"version": WIRE_VERSION, **message}).encode() + b"\n"
    assert speak(store, hello() + line)["kind"] == "usage"
    check_served(store.address, token=TOKEN)


def test_a_client_whose_hello_fails_is_let_go(monkeypatch, store):
    def fail(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    monkeypatch.setattr(listener, "check_hello", fail)
    with refused(RunError, "store ("):
        Store.connect(store.address, token=TOKEN)


def test_the_token_comes_from_the_environment_too(monkeypatch):
    monkeypatch.setenv("TENGEN_STORE_TOKEN", TOKEN)
    with listening() as store:
        check_served(store.address)
        monkeypatch.delenv("TENGEN_STORE_TOKEN")
        with refused(UsageError, "token (not shown)"):
            Store.connect(store.address)
        check_served(store.address, token=TOKEN)


@pytest.mark.parametrize(
    "trust",
    [
        {"ca_file": CERTIFICATE},
        {"fingerprint": FINGERPRINT},
        {"fingerprint": FINGERPRINT.upper()},
    ],
)
def test_clients_that_trust_the_certificate_are_served(trust):
    with listening(token=TOKEN, **TLS) as store:
        check_served(store.address, token=TOKEN, **trust)
        with refused(UsageError, "token (not shown)"):
            Store.connect(store.address, token="another-token-of-length", **trust)


def test_nobody_is_trusted_blindly():
    other = "00" * 32
    with listening(**TLS) as store:
        with refused(RunError, FINGERPRINT):
            Store.connect(store.address, fingerprint=other)
        with refused(RunError, "CERTIFICATE"):
            Store.connect(store.address, ca_file=ANOTHER_AUTHORITY)
        with refused(UsageError, "connection (not encrypted)"):
            Store.connect(store.address)
    with listening() as plain, refused(RunError, "store ("):
        Store.connect(plain.address, fingerprint=FINGERPRINT)


def test_a_long_batch_goes_through_tls_both_ways():
    with listening(**TLS) as store:
        client = Store.connect(store.address, fingerprint=FINGERPRINT)
        pixels = np.random.default_rng(1).integers(0, 256, (60, 70_000), np.uint8)
        with client.writer("w", "t") as writer:
            writer.append({"value": np.arange(60), "pixels": pixels})
            writer.insert_each("t")
        sampler = client.table("t").sampler(32)
        for _ in range(20):
            batch = sampler.sample(timeout_s=300.0)
            values = batch.columns["value"]
            assert (batch.columns["pixels"] == pixels[values]).all()
            batch.ack()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"listen": "0.0.0.0:0"}, "listen (0.0.0.0:0)"),
        ({"listen": "0.0.0.0:0", "token": TOKEN}, "certificate_file"),
        ({"listen": "0.0.0.0:0", **TLS}, "TENGEN_STORE_TOKEN"),
        ({"listen": "[::]:0"}, "listen ([::]:0)"),
        ({"listen": "127.0.0.1"}, "address (127.0.0.1)"),
        ({"listen": "127.0.0.1:99999"}, "address (127.0.0.1:99999)"),
        ({"listen": "127.0.0.1:0", "token": "short"}, "token (5 bytes)"),
        ({"listen": "127.0.0.1:0", "key_file": KEY}, "key_file"),
        (
            {"listen": "127.0.0.1:0", "key_file": KEY, "certificate_file": KEY},
            "certificate_file (",
        ),
    ],
)
def test_addresses_that_are_not_safe_are_refused(options, error):
    with refused(UsageError, error):
        listening(**options)


def test_a_store_with_token_and_tls_listens_wider():
    with listening(TOKEN, listen="0.0.0.0:0", **TLS) as store:
        port = NetAddress.parse(store.address).port
        check_served(f"tcp://127.0.0.1:{port}", token=TOKEN, fingerprint=FINGERPRINT)


def test_a_taken_port_is_refused(store):
    with refused(UsageError, "listen ("):
        Store(StoreConfig.of([TABLE], listen=store.address))


def test_no_token_goes_to_another_host_in_the_clear(monkeypatch, store):
    monkeypatch.setattr(transport_client, "_is_safe", lambda _: False)
    with refused(UsageError, "address ("):
        Store.connect(store.address, token=TOKEN)


def test_one_store_serves_its_host_and_others(tmp_path_factory):
    directory = Path("/tmp") / f"tengen-{tmp_path_factory.mktemp('d').name}"
    with listening(directory=directory) as store:
        check_served(str(directory))
        check_served(store.address)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="it has no /proc")
def test_a_session_that_has_ended_has_no_descriptor():
    def count():
        return len(list(Path("/proc/self/fd").iterdir()))

    with listening() as store, Store.connect(store.address) as client:
        client.table("t").describe()
        before = count()
        samplers = [client.table("t").sampler(1) for _ in range(5)]
        for sampler in samplers:
            sampler.close()
        # Nobody else comes, whose session would end the others.
        until = time.monotonic() + 600.0
        while count() > before and time.monotonic() < until:
            time.sleep(0.01)
        assert count() <= before


def test_a_store_that_closes_ends_its_clients():
    store = listening()
    client = Store.connect(store.address)
    sampler = client.table("t").sampler(1)
    errors = []

    def wait():
        try:
            sampler.sample()
        except UsageError as error:
            errors.append(str(error))

    waiter = threading.Thread(target=wait)
    waiter.start()
    store.close()
    waiter.join(900)
    assert len(errors) == 1
    with refused(RunError, "store ("):
        client.table("t").describe()


def test_calls_end_where_a_server_of_another_host_stands_still():
    with listening() as server:
        client = Store.connect(server.address)
        address = NetAddress.parse(server.address)
    with socket.create_server((address.host, address.port)):
        calls = (
            lambda: client.checkpoint(0.02),
            lambda: client.table("t").sample(1, 0.02),
            lambda: client.table("t").insert("a", 0, {}, timeout_s=0.02),
        )
        with ThreadPoolExecutor(len(calls)) as pool:  # each waits for two seconds
            for asked in [pool.submit(call) for call in calls]:
                with refused(RunError, "timed out"):
                    asked.result()


def test_the_short_forms_find_a_server_that_is_back():
    step = {"value": np.int64(1), "pixels": np.zeros(70_000, np.uint8)}
    first = listening()
    table = Store.connect(first.address).table("t")
    table.insert("a", 0, step)
    table.sample(1, timeout_s=300.0)
    first.close()

    def insert_until_it_is_heard_of():
        for _ in range(1000):
            table.insert("a", 1, step)

    with refused(TengenError, "store ("):
        insert_until_it_is_heard_of()
    with refused(TengenError, "store ("):
        table.sample(1, timeout_s=300.0)
    with Store(StoreConfig.of([TABLE], memory_bytes=1 << 24, listen=first.address)):
        table.insert("a", 0, step)
        assert table.sample(1, timeout_s=300.0).table_size == 1


def test_the_version_is_raised_with_the_messages():
    # Where this fails: raise WIRE_VERSION, and write its digest here.
    core = Path(__file__).parents[3] / "core" / "store"
    messages = (core / "session" / "messages.h").read_text()
    messages += (core / "net" / "replica.h").read_text().partition("class Replica ")[0]
    code = "".join(line.partition("//")[0] for line in messages.splitlines(True))
    structs = re.findall(r"(?:enum class|struct) \w+[^;]*?\{.*?\n\};", code, re.DOTALL)
    digest = hashlib.sha256("".join("".join(structs).split()).encode()).hexdigest()[:16]
    assert len(structs) > 15
    assert (WIRE_VERSION, digest) == (8, "87e0103140c8eabe")
