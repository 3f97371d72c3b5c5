"""Messages in pieces, and late."""

import json
import socket
import time

import pytest

from tengen.transport import lines
from tengen.transport.lines import read_line


def test_a_line_in_pieces_is_looked_at_once(monkeypatch):
    num_seen = 0

    class Counted(bytearray):
        def lstrip(self, *given):
            nonlocal num_seen
            num_seen += len(self)
            return super().lstrip(*given)

    monkeypatch.setattr(lines, "bytearray", Counted, raising=False)
    words = {"text": "x" * 100_000}
    line = b"\0\0" + json.dumps(words).encode() + b"\n"
    dribbled = Dribbled(line + b"behind", piece_bytes=100)
    assert read_line(dribbled, time.monotonic() + 60.0, 1 << 20) == words
    assert dribbled.rest == b"behind"
    assert num_seen <= 2 * len(line)


class Dribbled:
    """A connection that has at most so many bytes at once."""

    def __init__(self, data, piece_bytes):
        self.rest = data
        self._piece_bytes = piece_bytes

    def settimeout(self, timeout_s):
        pass

    def recv(self, num_bytes, flags=0):
        some = self.rest[: min(num_bytes, self._piece_bytes)]
        if not flags & socket.MSG_PEEK:
            self.rest = self.rest[len(some) :]
        return some


def test_a_line_that_is_there_is_read_late():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b'{"a": 1}\n{"b": ')
        assert read_line(ours, time.monotonic() - 5.0, 1 << 20) == {"a": 1}
        with pytest.raises(TimeoutError):
            read_line(ours, time.monotonic() - 5.0, 1 << 20)
