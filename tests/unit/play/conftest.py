import dataclasses
import io

import pytest

from tengen.play import Player
from tengen.search import PlayConfig


@pytest.fixture
def make_player(hash_player):
    """Returns a function that makes a player without a model."""

    def make(task, backend=None, *, mixed_sizes=False, keeps_tree=False):
        model = dataclasses.replace(
            hash_player(task, backend=backend),
            mixed_sizes=mixed_sizes,
            play=PlayConfig(keeps_tree=keeps_tree),
        )
        return Player(model)

    return make


@pytest.fixture
def type_in(monkeypatch):
    """Replaces the stdin of commands with lines, or with a fake terminal."""

    def put(text):
        stdin = io.StringIO(text) if isinstance(text, str) else text
        monkeypatch.setattr("sys.stdin", stdin)

    return put


@pytest.fixture
def give_cores(monkeypatch):
    """Makes the process see the given number of cores."""

    def give(count):
        monkeypatch.setattr("tengen.run.machine.available_cores", lambda: count)

    return give
