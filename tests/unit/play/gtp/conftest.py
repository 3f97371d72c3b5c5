import pytest

from tengen.play.gtp.command import COMMANDS
from tengen.play.gtp.engine import Engine
from tests.unit.play.talk import Talk


class Conversation(Talk):
    """An engine of Go whose lines come one by one, and what it writes."""

    def __init__(self, player, *numbers, **settings):
        super().__init__(Engine, COMMANDS, player, *numbers, **settings)

    def ask(self, *lines):
        """Returns the answers to lines that come at once, the input then ending."""
        self.say("".join(f"{line}\n" for line in lines).encode())
        return self.run()

    def run(self):
        """Returns the answers to what was said, the input ending there."""
        self.say(b"")
        return self.listen()

    def listen(self):
        """Returns the answers until the input ends."""
        self.engine.run()
        *answers, rest = self.text.split("\n\n")
        assert rest == ""
        return answers


@pytest.fixture
def talk_to():
    """Makes a conversation with a player."""
    return Conversation


@pytest.fixture
def converse(make_player):
    """Makes a conversation with a player of a game without a model."""

    def make(task="go/5", simulations=8, threads=1, resigning=None, **settings):
        player = make_player(task, **settings)
        return Conversation(player, simulations, threads, resigning=resigning)

    return make


@pytest.fixture
def ask(converse):
    """Returns the answers of a new engine to some lines."""

    def ask(*lines, **settings):
        return converse(**settings).ask(*lines)

    return ask
