"""TLS between a server and its clients.

Sessions use plain sockets. One thread per connection copies bytes between the plain
socket and the TLS socket.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tengen import _core
from tengen.errors import RunError, UsageError, os_reason
from tengen.transport.owned import OwnedSocket

# Space for several TLS records of at most 16 KiB, which are forwarded together.
_BUFFER_BYTES = 1 << 18
_TLS_HANDSHAKE = 0x16
# Time limit in seconds for sending buffered bytes after the session has ended.
_REST_S = 10.0

Tls = Callable[[socket.socket, float], socket.socket]
"""A function of a connection and a handshake deadline that returns a plain socket."""


def server_tls(service: str, certificate_file: Path, key_file: Path) -> Tls:
    """Returns the function that encrypts a server's connections.

    Args:
        service: The name of the service, for thread names.
        certificate_file: The PEM file of the certificate and intermediate certificates.
        key_file: The PEM file of the private key.

    Raises:
        UsageError: A file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate_file, key_file)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"certificate_file ({certificate_file}) and its key cannot be used: "
            f"{os_reason(error)}; give matching PEM files"
        ) from error

    def wrap(connection: socket.socket, until: float) -> socket.socket:
        connection.settimeout(max(0.001, until - time.monotonic()))
        first = connection.recv(1, socket.MSG_PEEK)
        if first and first[0] != _TLS_HANDSHAKE:
            raise UsageError(
                "connection (not encrypted) must use TLS; pass ca_file or fingerprint"
            )
        tls = _shake_hands(context, connection, until, server_side=True)
        return _pump(tls, service)

    return wrap


def client_tls(
    service: str, host: str, ca_file: Path | None, fingerprint: str | None
) -> Tls:
    """Returns the function that encrypts a client's connections.

    Args:
        service: The name of the service, for error messages.
        host: The host name that the certificate must have if ``ca_file`` is given.
        ca_file: The PEM file of the certificate authority.
        fingerprint: Instead of ``ca_file``, the certificate's SHA-256 in hex.

    Raises:
        UsageError: ``ca_file`` and ``fingerprint`` are both None, both set or invalid.
    """
    if (ca_file is None) == (fingerprint is None):
        raise UsageError(
            "ca_file and fingerprint (both) exclude each other; leave one out"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    pinned = b""
    if fingerprint is not None:
        with contextlib.suppress(ValueError):
            pinned = bytes.fromhex(fingerprint.replace(":", ""))
        if len(pinned) != hashlib.sha256().digest_size:
            raise UsageError(
                f"fingerprint ({fingerprint}) must be the certificate's SHA-256 in "
                f"hex; ask the {service}'s owner for it"
            )
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"ca_file ({ca_file}) cannot be used: {os_reason(error)}; give a PEM "
                "file"
            ) from error

    def wrap(connection: socket.socket, until: float) -> socket.socket:
        try:
            tls = _shake_hands(context, connection, until, server_hostname=host)
        except ssl.SSLError as error:
            raise RunError(
                f"{service} ({host}) is not trusted: {error.reason or error}; check "
                f"ca_file or fingerprint, and that the {service} uses TLS"
            ) from error
        if fingerprint is not None:
            found = hashlib.sha256(tls.getpeercert(binary_form=True) or b"").digest()
            if not hmac.compare_digest(found, pinned):
                tls.close()
                raise RunError(
                    f"{service} ({host}) has another fingerprint, {found.hex()}; check "
                    f"that the {service} is the right one"
                )
        return _pump(tls, service)

    return wrap


def _shake_hands(
    context: ssl.SSLContext,
    connection: socket.socket,
    until: float,
    *,
    server_side: bool = False,
    server_hostname: str | None = None,
) -> ssl.SSLSocket:
    connection.setblocking(False)
    context.sslsocket_class = _OwnedTls
    tls = context.wrap_socket(
        connection,
        server_side=server_side,
        server_hostname=server_hostname,
        do_handshake_on_connect=False,
    )
    while True:
        try:
            tls.do_handshake()
            return tls
        except ssl.SSLWantReadError:
            wanted = select.POLLIN
        except ssl.SSLWantWriteError:
            wanted = select.POLLOUT
        except BaseException:
            tls.close()
            raise
        poll = select.poll()
        poll.register(tls, wanted)
        if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
            tls.close()
            raise TimeoutError("timed out")


def _pump(tls: ssl.SSLSocket, service: str) -> socket.socket:
    """Starts a thread that forwards the data of ``tls``; returns a plain socket."""
    ours, theirs = (OwnedSocket.of(end) for end in socket.socketpair())
    carrier = threading.Thread(
        target=_carry, args=(tls, theirs), name=f"{service}-tls", daemon=True
    )
    try:
        carrier.start()
    except RuntimeError as error:
        for one in (tls, ours, theirs):
            one.close()
        raise RunError(
            f"thread (of {service}'s TLS) cannot be started; close other clients, or "
            f"raise ulimit -u"
        ) from error
    return ours


class _OwnedTls(ssl.SSLSocket):
    """TLS over an `OwnedSocket`; takes ownership of the socket's descriptor."""

    def _real_close(self) -> None:
        # Close only the descriptor, because TLS state has no other system resources.
        _core.close_owned(self.detach())
        self._sslobj = None


class _Way:
    """One direction of a connection, with a buffer from ``source`` to ``sink``."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self._source = source
        self._sink = sink
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._begin = 0
        self._end = 0
        self._ended = False
        self.is_over = False

    @property
    def waits_for_sink(self) -> bool:
        """Whether buffered bytes wait for ``sink``; if not, wait for ``source``."""
        return self._begin < self._end

    def move(self) -> bool:
        """Copies available bytes without blocking; returns whether anything changed."""
        moved = False
        while self._end < _BUFFER_BYTES and not self._ended:
            try:
                count = self._source.recv_into(self._buffer[self._end :])
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except OSError:
                count = 0
            self._ended = count == 0
            self._end += count
            moved = True
        while self._begin < self._end:
            try:
                self._begin += self._sink.send(self._buffer[self._begin : self._end])
                moved = True
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return moved
            except OSError:
                # The sink is closed, so the remaining bytes are discarded.
                self._begin = self._end
                self._ended = True
        self._begin = self._end = 0
        if self._ended and not self.is_over:
            self.is_over = moved = True
            # SSLSocket.shutdown would end the encryption of the other direction.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._sink, socket.SHUT_WR)
        return moved


def _carry(tls: ssl.SSLSocket, plain: socket.socket) -> None:
    plain.setblocking(False)
    out, back = _Way(plain, tls), _Way(tls, plain)
    # A deadline, set when the plain end is closed in both directions. It ends the
    # thread if the peer neither reads the remaining bytes nor disconnects.
    until: float | None = None
    with tls, plain:
        while not (out.is_over and (back.is_over or until is not None)):
            moved = out.move() | back.move()
            if until is not None and time.monotonic() > until:
                return
            if moved:
                continue
            events = {plain: 0, tls: 0}
            for way, source, sink in ((out, plain, tls), (back, tls, plain)):
                if way.is_over:
                    continue
                if way.waits_for_sink:
                    events[sink] |= select.POLLOUT
                else:
                    events[source] |= select.POLLIN
            # Poll only sockets with wanted events: poll always reports hang-ups.
            poll = select.poll()
            for one, wanted in events.items():
                if wanted or (one is plain and until is None):
                    poll.register(one, wanted)
            if until is not None:
                poll.poll(max(0.0, until - time.monotonic()) * 1000)
            elif dict(poll.poll()).get(plain.fileno(), 0) & select.POLLHUP:
                until = time.monotonic() + _REST_S
