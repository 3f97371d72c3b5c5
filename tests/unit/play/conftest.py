import dataclasses

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
