"""A small service, over a socket of this host and over TCP."""

import contextlib
import json
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tengen.errors import RunError, UsageError
from tengen.transport import (
    SOCKET_NAME,
    Client,
    Dialect,
    HostFolder,
    Message,
    NetAddress,
    NoAnswer,
    Server,
    Service,
    ServiceFull,
    listen_on,
)
from tengen.transport import client as client_module
from tengen.transport import server as server_module

ECHO = Dialect("echo", 3)
TOKEN = "a-token-of-some-length"
FULL = {"version": 3, "token": TOKEN}


class Echo:
    """Says what it is told: once, or for as long as a session lasts."""

    def __init__(self) -> None:
        self.open_sessions: set[threading.Thread] = set()
        self.is_closing = False
        self.service = Service(
            dialect=ECHO,
            questions={"say": lambda message: message["text"], "fail": self._fail},
            sessions={"pipe": self._open},
            num_sessions=lambda: len(self.open_sessions),
            is_closing=lambda: self.is_closing,
        )

    def _fail(self, message: Message) -> None:
        raise RunError(f"voice ({message['text']}) is lost; rest")

    def _open(self, connection: socket.socket, message: Message) -> dict[str, int]:
        if message["num_bytes"] < 1:
            raise UsageError("num_bytes (0) must be at least 1; say something")
        thread = threading.Thread(
            target=self._pipe, args=(connection.dup(), message["num_bytes"])
        )
        self.open_sessions.add(thread)
        thread.start()
        return {"num_bytes": message["num_bytes"]}

    def _pipe(self, stream: socket.socket, num_bytes: int) -> None:
        with stream, contextlib.suppress(OSError):
            while data := stream.recv(num_bytes):
                stream.sendall(data)
        self.open_sessions.remove(threading.current_thread())


class Way:
    """A way to an echo: its server, and a client's or raw bytes to it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.is_host = kind == "host"
        self.echo = Echo()
        self.folder = HostFolder("echo", folder / "echo")
        listener = (
            self.folder.listen()
            if self.is_host
            else listen_on(ECHO, "127.0.0.1:0", token=TOKEN)
        )
        self.server = Server(listener, self.echo.service)

    def client(self, dialect: Dialect = ECHO, **options: object) -> Client:
        if not self.is_host:
            options = {"token": TOKEN, **options}
        return Client(dialect, self.server.address, **options)

    def raw(self) -> socket.socket:
        """Returns a connection that has greeted, and asks nothing."""
        if self.is_host:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.connect(str(self.folder.path / SOCKET_NAME))
        else:
            address = NetAddress.parse(self.server.address)
            connection = socket.create_connection((address.host, address.port))
            connection.sendall(json.dumps(FULL).encode() + b"\n")
        connection.settimeout(20.0)
        return connection

    def close(self) -> None:
        self.server.close()
        self.folder.remove()


@pytest.fixture(params=["host", "tcp"])
def open_way(request) -> Iterator[Callable[[], Way]]:
    """Makes servers after the test has set limits."""
    with contextlib.ExitStack() as stack:

        def make() -> Way:
            # pytest's folders have names too long for a socket.
            folder = Path(tempfile.mkdtemp(prefix="tengen-"))
            stack.callback(shutil.rmtree, folder)
            way = Way(request.param, folder)
            stack.callback(way.close)
            return way

        yield make


def last_word(connection: socket.socket) -> dict:
    """Returns the one line that comes, behind which the connection ends."""
    with connection, connection.makefile("rb") as answers:
        line, rest = answers.readline(), answers.read()
    assert rest == b""
    return json.loads(line)


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 600.0
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_questions_are_answered(open_way) -> None:
    client = open_way().client()
    for text in ("hello", "", "x" * 100_000):
        assert client.ask({"ask": "say", "text": text}) == text


def test_errors_are_those_of_the_service(open_way) -> None:
    way = open_way()
    client = way.client()
    with pytest.raises(RunError, match=r"^voice \(x\) is lost; rest$"):
        client.ask({"ask": "fail", "text": "x"})
    with pytest.raises(UsageError, match=r"message \(say\) is refused: KeyError"):
        client.ask({"ask": "say"})
    for kind in ("sing", 3, None, ["say"]):
        with pytest.raises(UsageError, match=r"ask \(.*\) must be known"):
            client.ask({"ask": kind})
    with pytest.raises(UsageError, match=r"num_bytes \(0\) must be at least 1"):
        client.open({"ask": "pipe", "num_bytes": 0})
    way.echo.is_closing = True
    with pytest.raises(RunError, match=r"^echo \(closing\) serves nobody any more"):
        client.ask({"ask": "say", "text": "x"})
    client.close()
    with pytest.raises(UsageError, match=r"^echo \(.*, closed\) must be open"):
        client.ask({"ask": "say", "text": "x"})


def test_a_session_has_the_connection(open_way) -> None:
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


def test_who_speaks_another_dialect_is_told(open_way) -> None:
    way = open_way()
    with pytest.raises(UsageError, match=r"version \(4\) must be 3, the echo's"):
        way.client(Dialect("echo", 4)).ask({"ask": "say", "text": "x"})
    options = {} if way.is_host else {"token": TOKEN}
    with pytest.raises(UsageError, match=r'service \("store"\) must be echo'):
        way.client(Dialect("store", 3), **options).ask({"ask": "tables"})


def test_tokens_are_the_services_own(monkeypatch, tmp_path: Path) -> None:
    way = Way("tcp", tmp_path)
    with contextlib.closing(way):
        question = {"ask": "say", "text": "x"}
        client = way.client(token="another-token-of-length")
        with pytest.raises(UsageError, match=r"must be the echo's.* TENGEN_ECHO_TOKEN"):
            client.ask(question)
        monkeypatch.setenv("TENGEN_STORE_TOKEN", TOKEN)
        with pytest.raises(UsageError, match="must be the echo's"):
            way.client(token=None).ask(question)
        monkeypatch.setenv("TENGEN_ECHO_TOKEN", TOKEN)
        assert way.client(token=None).ask(question) == "x"
    # What lacks is named, and nothing else: the certificate, then the token too.
    with pytest.raises(UsageError, match="certificate; name certificate_file and key"):
        listen_on(ECHO, "0.0.0.0:0")
    monkeypatch.delenv("TENGEN_ECHO_TOKEN")
    with pytest.raises(UsageError, match="set TENGEN_ECHO_TOKEN, and name"):
        listen_on(ECHO, "0.0.0.0:0")


def test_a_line_that_is_too_long_is_refused(open_way) -> None:
    connection = open_way().raw()
    # The end of the line is never sent.
    connection.sendall(b'{"ask": "' + b"x" * (1 << 20))
    assert "must be at most 1048576" in last_word(connection)["error"]


def test_a_client_that_dies_leaves_its_place(monkeypatch, open_way) -> None:
    monkeypatch.setattr(server_module, "_MAX_CONNECTIONS", 2)
    monkeypatch.setattr(server_module, "_LINGER_S", 0.01)
    way = open_way()
    places = way.server._connections
    # Of one other host's two places one is left to others.
    dying = [way.raw() for _ in range(2 if way.is_host else 1)]
    wait_until(lambda: places._num_taken == len(dying))
    client = way.client(patience_s=0.0)
    with pytest.raises(ServiceFull, match=r"^echo \(full\) serves at most 2 conn"):
        client.ask({"ask": "say", "text": "x"})
    dying[0].sendall(b'{"ask": "say", "te')
    for one in dying:
        one.close()
    wait_until(lambda: places._num_taken == 0)
    assert client.ask({"ask": "say", "text": "x"}) == "x"


def test_sessions_are_bounded(monkeypatch, open_way) -> None:
    monkeypatch.setattr(server_module, "_MAX_SESSIONS", 1)
    way = open_way()
    client = way.client()
    pipe = {"ask": "pipe", "num_bytes": 1}
    with client.open(pipe)[0]:
        with pytest.raises(RunError, match=r"^session \(beside 1\) must be one of"):
            client.open(pipe)
        assert client.ask({"ask": "say", "text": "x"}) == "x"
    wait_until(lambda: not way.echo.open_sessions)
    client.open(pipe)[0].close()


def test_clients_of_a_folder_wait_for_the_next_server(tmp_path_factory) -> None:
    folder = Path(tempfile.mkdtemp(prefix="tengen-"))
    first = Way("host", folder)
    client = first.client(patience_s=60.0)
    assert client.ask({"ask": "say", "text": "x"}) == "x"
    with pytest.raises(UsageError, match="is a running echo's; connect to it"):
        HostFolder("echo", folder / "echo")
    first.server.close()
    with pytest.raises(NoAnswer, match=r"^echo \(.*\) does not answer: "):
        first.client(patience_s=0.0).ask({"ask": "say", "text": "x"})
    answers: list[str] = []
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
        client.ask({"ask": "say", "text": "x"})
    folder.rmdir()


def test_folders_of_others_are_refused(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(UsageError, match="must be new, or an echo's"):
        HostFolder("echo", tmp_path)
    (tmp_path / "precious").unlink()
    tmp_path.chmod(0o777)
    with pytest.raises(UsageError, match=r"mode 777.* that nobody else can write"):
        HostFolder("echo", tmp_path)


def test_a_server_that_stands_still_is_not_waited_for(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(client_module, "_LEAST_ANSWER_S", 0.02)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = str(NetAddress(*silent.getsockname()))
        client = Client(ECHO, address)
        with pytest.raises(NoAnswer, match="does not answer: timed out"):
            client.ask({"ask": "say", "text": "x"}, timeout_s=0.02)
