"""A small service, over a socket of this host, over TCP and with TLS."""

import contextlib
import json
import shutil
import socket
import ssl
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from tengen.errors import RunError, UsageError
from tengen.transport import (
    SOCKET_NAME,
    Client,
    Dialect,
    HostFolder,
    Limits,
    NetAddress,
    NetDoor,
    NoAnswer,
    Server,
    Service,
    ServiceFull,
)
from tests.refusals import refused

ECHO = Dialect("echo", 3)
TOKEN = "a-token-of-some-length"
USUAL = Limits()
FULL = {"version": 3, "token": TOKEN}
QUESTION = {"ask": "say", "text": "x"}
FILES = Path(__file__).parents[1] / "store"
CERTIFICATE = FILES / "tls_certificate.pem"
KEY = FILES / "tls_key.pem"


class Echo:
    """Says what it is told: once, or for as long as a session lasts."""

    def __init__(self, limits):
        self.open_sessions: set[threading.Thread] = set()
        self.is_closing = False
        self.service = Service(
            dialect=ECHO,
            questions={"say": lambda message: message["text"], "fail": self._fail},
            sessions={"pipe": self._open},
            num_sessions=lambda: len(self.open_sessions),
            is_closing=lambda: self.is_closing,
            limits=limits,
        )

    def _fail(self, message):
        raise RunError(f"voice ({message['text']}) is lost; rest")

    def _open(self, connection, message):
        if message["num_bytes"] < 1:
            raise UsageError("num_bytes (0) must be at least 1; say something")
        thread = threading.Thread(
            target=self._pipe, args=(connection.dup(), message["num_bytes"])
        )
        self.open_sessions.add(thread)
        thread.start()
        return {"num_bytes": message["num_bytes"]}

    def _pipe(self, stream, num_bytes):
        with stream, contextlib.suppress(OSError):
            while data := stream.recv(num_bytes):
                stream.sendall(data)
        self.open_sessions.remove(threading.current_thread())


class Way:
    """A way to an echo: its server, and a client's or raw bytes to it."""

    def __init__(self, kind, folder, limits=USUAL):
        self.is_host = kind == "host"
        self.echo = Echo(limits)
        self.folder = HostFolder("echo", folder / "echo")
        self._trust = {"ca_file": CERTIFICATE} if kind == "tls" else {}
        tls = {"certificate_file": CERTIFICATE, "key_file": KEY} if self._trust else {}
        listener = (
            self.folder.listen()
            if self.is_host
            else NetDoor(listen="127.0.0.1:0", token=TOKEN, **tls).open(ECHO)
        )
        self.server = Server(listener, self.echo.service)

    def client(self, dialect=ECHO, **options):
        if not self.is_host:
            options = {"token": TOKEN, **self._trust, **options}
        return Client(dialect, self.server.address, **options)

    def silent(self, source="127.0.0.1"):
        """Returns a connection over TCP that has not even greeted."""
        address = NetAddress.parse(self.server.address)
        return socket.create_connection(
            (address.host, address.port), 20.0, source_address=(source, 0)
        )

    def raw(self):
        """Returns a connection that has greeted, and asks nothing."""
        if self.is_host:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(20.0)
            connection.connect(str(self.folder.path / SOCKET_NAME))
            return connection
        connection = self.silent()
        if self._trust:
            context = ssl.create_default_context(cafile=CERTIFICATE)
            connection = context.wrap_socket(connection, server_hostname="127.0.0.1")
        connection.sendall(json.dumps(FULL).encode() + b"\n")
        return connection

    def is_full(self):
        """Returns whether there is no place for one more question, for a while."""
        for _ in range(10):  # the place of the last question may be left just now
            try:
                assert self.client(patience_s=0.0).ask(QUESTION) == "x"
            except ServiceFull:
                time.sleep(0.05)
            else:
                return False
        return True

    def fill(self):
        """Takes the places for questions; returns connections that hold them."""
        holding = []

        def is_full():
            # The last question may have come first, so that a connection was refused.
            holding.append(self.raw())
            return self.is_full()

        wait_until(is_full)
        return holding

    def close(self):
        self.server.close()
        self.folder.remove()


@pytest.fixture(params=["host", "tcp", "tls"])
def open_way(request):
    """Makes servers with the limits that a test sets."""
    with contextlib.ExitStack() as stack:

        def make(kind=request.param, **limits):
            # pytest's folders have names too long for a socket.
            folder = Path(tempfile.mkdtemp(prefix="tengen-"))
            stack.callback(shutil.rmtree, folder)
            way = Way(kind, folder, Limits(**limits))
            stack.callback(way.close)
            return way

        yield make


def last_word(connection):
    """Returns the one line that comes, behind which the connection ends."""
    with connection, connection.makefile("rb") as answers:
        line, rest = answers.readline(), answers.read()
    assert rest == b""
    return json.loads(line)


def threads(name):
    return {one for one in threading.enumerate() if one.name == name}


def wait_until(holds):
    end = time.monotonic() + 600.0
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_questions_are_answered(open_way):
    client = open_way().client()
    for text in ("hello", "", "x" * 100_000):
        assert client.ask({"ask": "say", "text": text}) == text


def test_errors_are_those_of_the_service(open_way):
    way = open_way()
    client = way.client()
    with refused(RunError, "voice (x)"):
        client.ask({"ask": "fail", "text": "x"})
    with refused(UsageError, "message (say)"):
        client.ask({"ask": "say"})
    for kind in ("sing", 3, None, ["say"]):
        with refused(UsageError, "ask ("):
            client.ask({"ask": kind})
    with refused(UsageError, "num_bytes (0)"):
        client.open({"ask": "pipe", "num_bytes": 0})
    way.echo.is_closing = True
    with refused(RunError, "echo (closing)"):
        client.ask(QUESTION)
    client.close()
    with refused(UsageError, "echo (", "closed)"):
        client.ask(QUESTION)


def test_a_session_has_the_connection(open_way):
    way = open_way()
    with way.client().open({"ask": "pipe", "num_bytes": 7})[0] as stream:
        assert stream.gettimeout() is None
        for data in (b"one", b"and another"):
            stream.sendall(data)
            with stream.makefile("rb", buffering=0) as answer:
                assert b"".join(answer.read(1) for _ in data) == data
        assert way.client().ask({"ask": "say", "text": "too"}) == "too"
        assert len(way.echo.open_sessions) == 1
    # The service hears of a client that has died by the end of the stream.
    wait_until(lambda: not way.echo.open_sessions)


def test_who_speaks_another_dialect_is_told(open_way):
    way = open_way()
    with refused(UsageError, "version (4)"):
        way.client(Dialect("echo", 4)).ask(QUESTION)
    options = {} if way.is_host else {"token": TOKEN}
    with refused(UsageError, 'service ("store")'):
        way.client(Dialect("store", 3), **options).ask({"ask": "tables"})


def test_tokens_are_the_services_own(monkeypatch, tmp_path):
    way = Way("tcp", tmp_path)
    with contextlib.closing(way):
        client = way.client(token="another-token-of-length")
        with refused(UsageError, "token (not shown)", "TENGEN_ECHO_TOKEN"):
            client.ask(QUESTION)
        monkeypatch.setenv("TENGEN_STORE_TOKEN", TOKEN)
        with refused(UsageError, "token (not shown)"):
            way.client(token=None).ask(QUESTION)
        monkeypatch.setenv("TENGEN_ECHO_TOKEN", TOKEN)
        assert way.client(token=None).ask(QUESTION) == "x"
    # What lacks is named, and nothing else: the certificate, then the token too.
    with refused(UsageError, "certificate_file"):
        NetDoor(listen="0.0.0.0:0").open(ECHO)
    monkeypatch.delenv("TENGEN_ECHO_TOKEN")
    with refused(UsageError, "TENGEN_ECHO_TOKEN"):
        NetDoor(listen="0.0.0.0:0").open(ECHO)


def test_a_line_that_is_too_long_is_refused(open_way):
    connection = open_way().raw()
    # The end of the line is never sent.
    connection.sendall(b'{"ask": "' + b"x" * (1 << 20))
    assert "must be at most 1048576" in last_word(connection)["error"]


def test_a_connection_that_asks_nothing_is_told_and_closed(open_way):
    way = open_way(question_s=0.1)
    told = last_word(way.raw())
    assert told["kind"] == "run"
    assert "0.1 s" in told["error"]
    assert way.client().ask(QUESTION) == "x"


def test_a_connection_that_was_answered_is_closed(open_way):
    way = open_way()
    before = threads("echo-hello") | threads("echo-tls")
    connections = [way.raw() for _ in range(20)]
    for one in connections:
        one.sendall(json.dumps({"version": 3, **QUESTION}).encode() + b"\n")
        answer = b""
        while some := one.recv(4096):
            answer += some
        assert json.loads(answer) == {"answer": "x"}
    # Though none of the clients has closed its own.
    wait_until(lambda: not (threads("echo-hello") | threads("echo-tls")) - before)
    for one in connections:
        one.close()


def test_a_question_that_dribbles_has_a_deadline(open_way):
    with open_way(question_s=0.3).raw() as connection:
        connection.sendall(b'{"ask": "')
        connection.settimeout(0.01)
        told = b""
        for _ in range(2000):
            with contextlib.suppress(TimeoutError, OSError):
                connection.sendall(b" ")
                told += connection.recv(4096)
            if told.endswith(b"\n"):
                break
        assert b"0.3 s" in told


def test_connections_that_are_too_many_are_told(open_way):
    way = open_way(max_connections=2, linger_s=0.01)
    dying = way.fill()
    told = last_word(way.raw())
    assert told["kind"] == "full"
    assert "echo (full)" in told["error"]
    for one in dying:
        with one, contextlib.suppress(OSError):  # some have been turned away
            one.sendall(b'{"ask": "say", "te')
    wait_until(lambda: not way.is_full())


def test_clients_of_the_host_wait_for_a_place(open_way):
    way = open_way("host", max_connections=1, linger_s=0.01)
    waiting = way.fill()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(way.client().ask(QUESTION)))
    asking.start()
    time.sleep(0.2)  # in which it asks several times
    assert not answers
    for one in waiting:
        one.close()
    asking.join(900)
    assert answers == ["x"]


@pytest.mark.skipif(sys.platform != "linux", reason="has one loopback address")
def test_a_host_that_says_nothing_does_not_lock_others_out(open_way):
    way = open_way("tcp", max_hellos=4)
    silent = [way.silent("127.0.0.2") for _ in range(5)]
    told = b"".join(one.recv(4096) for one in silent[3:])
    assert told.count(b"echo (full)") == 2
    assert way.client().ask(QUESTION) == "x"
    for one in silent:
        one.close()


def test_a_greeting_that_dribbles_has_a_deadline(open_way):
    way = open_way("tcp", hello_s=0.3)
    with way.silent() as connection:
        connection.settimeout(0.05)
        for num_sent in range(1000):
            try:
                connection.sendall(b" " if num_sent else b"{")
                if not connection.recv(1):
                    break
            except TimeoutError:
                pass
            except OSError:
                break
        else:
            pytest.fail("nobody sends it away")
    assert way.client().ask(QUESTION) == "x"


def test_sessions_may_be_silent(open_way):
    way = open_way(hello_s=0.5, question_s=0.5, linger_s=0.5)
    with way.client().open({"ask": "pipe", "num_bytes": 7})[0] as stream:
        time.sleep(1.2)  # beyond every deadline
        stream.sendall(b"late")
        stream.settimeout(300.0)
        assert stream.recv(4) == b"late"


def test_sessions_are_bounded(open_way):
    way = open_way(max_sessions=1)
    client = way.client()
    pipe = {"ask": "pipe", "num_bytes": 1}
    with client.open(pipe)[0]:
        with refused(RunError, "session (beside 1)"):
            client.open(pipe)
        assert client.ask(QUESTION) == "x"
    wait_until(lambda: not way.echo.open_sessions)
    client.open(pipe)[0].close()


def test_clients_of_a_folder_wait_for_the_next_server(tmp_path_factory):
    folder = Path(tempfile.mkdtemp(prefix="tengen-"))
    first = Way("host", folder)
    client = first.client(patience_s=60.0)
    assert client.ask(QUESTION) == "x"
    with refused(UsageError, "directory ("):
        HostFolder("echo", folder / "echo")
    first.server.close()
    with refused(NoAnswer, "echo ("):
        first.client(patience_s=0.0).ask(QUESTION)
    answers = []
    waiting = threading.Thread(
        target=lambda: answers.append(client.ask({"ask": "say", "text": "y"}))
    )
    waiting.start()
    first.folder.leave()  # with its socket, as a killed server does
    second = Way("host", folder)
    waiting.join(900)
    second.close()
    assert answers == ["y"]
    with pytest.raises(NoAnswer):
        client.ask(QUESTION)
    folder.rmdir()


def test_folders_of_others_are_refused(monkeypatch, tmp_path):
    (tmp_path / "precious").touch()
    with refused(UsageError, "directory ("):
        HostFolder("echo", tmp_path)
    (tmp_path / "precious").unlink()
    tmp_path.chmod(0o777)
    with refused(UsageError, "mode 777"):
        HostFolder("echo", tmp_path)


def test_a_server_that_stands_still_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = str(NetAddress(*silent.getsockname()))
        client = Client(ECHO, address)
        with refused(NoAnswer, "timed out"):
            client.ask({"ask": "say", "text": "x"}, timeout_s=0.02)
