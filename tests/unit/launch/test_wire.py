"""Who may join a runner, and what is heard of a connection that others speak on."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tengen.errors import RunError, UsageError
from tengen.launch.messages import (
    MOST_BYTES,
    Begun,
    Message,
    Progress,
    Report,
    Stop,
    Turn,
    decode,
    encode,
)
from tengen.launch.wire import TICKET_VARIABLE, Hub, Stream, join
from tengen.transport import NoAnswer
from tests.unit.launch.children import JOINS, started, the_hub

__all__ = ["the_hub"]

SECRET = bytes(32)


@pytest.fixture
def pair() -> Iterator[tuple[Stream, socket.socket]]:
    """The runner's stream, and the other side's plain socket."""
    ours, theirs = socket.socketpair()
    stream = Stream(ours, SECRET, is_runner=True)
    yield stream, theirs
    stream.close()
    theirs.close()


@pytest.mark.parametrize("is_far", [False, True])
def test_a_process_with_a_ticket_joins_and_speaks(hub: Hub, is_far: bool) -> None:
    made = Hub.on_network(["127.0.0.1"]) if is_far else hub
    ticket = made.ticket()
    environment = dict(ticket.environment)
    theirs = join(environment, Begun(7, "a", "node 1"))
    assert environment == {}  # what it starts does not have it
    ours = ticket.wait(60)
    assert ours is not None
    assert ours.receive() == Begun(7, "a", "node 1")
    for message in (Turn("learn", {"sealed": 3}), Stop()):
        ours.send(message)
        assert theirs.receive() == message
    theirs.send(Report({"num_steps": 1}, False))
    assert ours.receive() == Report({"num_steps": 1}, False)
    with pytest.raises(TimeoutError):
        ours.receive(0.01)
    theirs.close()
    assert ours.receive() is None
    ours.close()
    # Nobody joins with it a second time.
    with pytest.raises(UsageError):
        join(dict(ticket.environment), Begun())
    made.close()


def test_a_ticket_of_another_secret_or_a_closed_one_is_refused(hub: Hub) -> None:
    ticket = hub.ticket()
    content = json.loads(ticket.environment[TICKET_VARIABLE])
    forged = {TICKET_VARIABLE: json.dumps({**content, "secret": "00" * 32})}
    with pytest.raises(UsageError):
        join(forged, Begun())
    assert ticket.wait(0.0) is None
    ticket.close()
    with pytest.raises(UsageError):
        join(dict(ticket.environment), Begun())


@pytest.mark.parametrize(
    "text",
    ["", "5", "{}", "[" * 100_000, '{"addresses": [], "name": "n", "secret": "00"}'],
)
def test_a_damaged_ticket_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        join({TICKET_VARIABLE: text}, Begun())


def test_a_process_that_ends_before_its_first_message_has_not_joined(hub: Hub) -> None:
    """So a turn that was not sent to it is not missed."""
    child = started(hub, ["-c", f"{JOINS[: JOINS.index('stream')]}\n{SAYS_NOTHING}"])
    assert child.receive() is None
    assert not child.has_joined
    child.end(60)


SAYS_NOTHING = """
from tengen.launch import wire
def send(stream, message): os._exit(0)
wire.Stream.send = send
join(os.environ, Begun())
"""


def test_a_runner_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    content = {"addresses": ["tcp://127.0.0.1:9"], "name": "n", "secret": "00" * 32}
    with pytest.raises(NoAnswer):
        join({TICKET_VARIABLE: json.dumps(content)}, Begun())


def line_of(message: Message, *, is_runner: bool = False) -> bytes:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Stream(ours, SECRET, is_runner=is_runner).send(message)
        return theirs.recv(1 << 16)


@pytest.mark.parametrize(
    "lines",
    [
        [b'{"kind": "stop"}\n'],
        [bytes(64) + b' {"kind": "stop"}\n'],
        [line_of(Report({"a": 1})).replace(b'"a": 1', b'"a": 2')],
        # Said before, as by somebody who listens; and what the runner said itself.
        [line_of(Report(None)), line_of(Report(None))],
        [line_of(Turn("learn"), is_runner=True)],
        [b"x" * (MOST_BYTES + 100)],
    ],
)
def test_a_line_of_somebody_else_is_none(
    pair: tuple[Stream, socket.socket], lines: list[bytes]
) -> None:
    stream, other = pair
    other.settimeout(0.0)
    for line in lines:
        sent = 0
        while sent < len(line):
            try:
                sent += other.send(line[sent:])
            except BlockingIOError:
                with pytest.raises(TimeoutError):
                    stream.receive(0.0)
    for _ in lines[:-1]:
        assert stream.receive() is not None
    with pytest.raises(RunError):
        stream.receive()


def test_half_a_line_is_the_end(pair: tuple[Stream, socket.socket]) -> None:
    stream, other = pair
    other.sendall(line_of(Progress({"stage": "a"}))[:-1])
    other.close()
    assert stream.receive() is None
    assert stream.receive() is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"kind": "other"}',
        b'{"kind": []}',
        b'{"kind": "turn"}',
        b'{"kind": "turn", "role": 3}',
        b'{"kind": "turn", "role": "a", "details": []}',
        b'{"kind": "report", "report": [], "is_saved": true}',
        b'{"kind": "report", "report": null, "is_saved": 1}',
        b'{"kind": "alive", "within_s": "1", "otherwise": ""}',
        b'{"kind": "failed", "error": "", "exit_code": true}',
        b'{"kind": "saved", "is_saved": true, "more": 1}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(RunError):
        decode(data)


def test_messages_are_as_they_were() -> None:
    for message in (Turn("a"), Stop(), Progress({"a": 1.5}), Report(None, False)):
        assert decode(encode(message)) == message
