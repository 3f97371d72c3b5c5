"""Sockets that a forked process has no part in, for as long as they are open."""

import contextlib
import os
import socket

import pytest

from tengen import _core
from tengen.transport import OwnedSocket


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    owned = OwnedSocket.of(ours)
    with contextlib.closing(owned), theirs:
        yield owned, theirs


def forked_has(descriptor):
    """Whether a forked process has the file, and not /dev/null in its place."""
    child = os.fork()
    if child == 0:
        os._exit(os.fstat(descriptor).st_rdev == 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_socket_whose_file_is_still_open_is_owned(pair):
    owned, theirs = pair
    number = owned.fileno()
    stream = owned.makefile("rb")
    assert not forked_has(number)
    owned.close()
    assert not forked_has(number)
    stream.close()
    assert owned.fileno() == -1
    assert theirs.recv(1) == b""


def test_a_copy_and_a_descriptor_that_is_handed_over_stay_owned(pair):
    owned, theirs = pair
    with owned.dup() as copy:
        assert not forked_has(copy.fileno())
    descriptor = owned.detach()
    assert not forked_has(descriptor)
    _core.close_owned(descriptor)
    assert theirs.recv(1) == b""


def test_a_number_that_is_used_again_is_not_owned(pair):
    owned, _ = pair
    number = owned.fileno()
    with owned.makefile("rb"):
        owned.close()
    other = os.open("/", os.O_RDONLY)
    os.dup2(other, number)
    assert forked_has(number)
    for each in {other, number}:
        os.close(each)
