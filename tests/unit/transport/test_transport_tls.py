"""The threads that carry bytes between an encrypted socket and a plain one."""

import hashlib
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest

from tengen.transport import tls

FILES = Path(__file__).parents[1] / "store"
# Of localhost and 127.0.0.1, vouched for by itself.
CERTIFICATE = FILES / "tls_certificate.pem"
KEY = FILES / "tls_key.pem"
FINGERPRINT = hashlib.sha256(
    ssl.PEM_cert_to_DER_cert(CERTIFICATE.read_text())
).hexdigest()


def threads(name):
    return {one for one in threading.enumerate() if one.name == name}


def test_a_peer_that_takes_nothing_keeps_no_thread(monkeypatch):
    monkeypatch.setattr(tls, "_REST_S", 0.05, raising=False)
    before = threads("echo-tls")
    ours, theirs = socket.socketpair()
    context = ssl.create_default_context(cafile=CERTIFICATE)
    context.check_hostname = False
    plain = []
    serve = tls.server_tls("echo", CERTIFICATE, KEY)
    server = threading.Thread(
        target=lambda: plain.append(serve(theirs, time.monotonic() + 20.0))
    )
    server.start()
    with context.wrap_socket(ours):
        server.join()
        plain[0].settimeout(0.2)
        with pytest.raises(TimeoutError):
            plain[0].sendall(bytes(1 << 24))
        plain[0].close()
        for thread in threads("echo-tls") - before:
            thread.join(900)
            assert not thread.is_alive()


def test_an_end_that_nothing_is_wanted_from_is_not_looked_at():
    ours, theirs = socket.socketpair()
    until = time.monotonic() + 600.0
    wrapped = []
    serve = tls.server_tls("echo", CERTIFICATE, KEY)
    peer = threading.Thread(target=lambda: wrapped.append(serve(theirs, until)))
    peer.start()
    with tls.client_tls("echo", "localhost", None, FINGERPRINT)(ours, until) as plain:
        peer.join()
        plain.sendall(b"x")
        assert wrapped[0].recv(1) == b"x"
    # One way is over; the other is not, as long as the peer stands still.
    assert wrapped[0].recv(1) == b""
    before_s = time.process_time()
    time.sleep(1.0)
    # A thread that looked again and again would need all of that second.
    assert time.process_time() - before_s < 0.3
    wrapped[0].close()
