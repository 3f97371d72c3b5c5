import pytest

from tengen.play.gtp.command import COMMANDS
from tengen.play.gtp.engine import Engine
from tests.unit.play.talk import Talk


class Conversation(Talk):
    """A session with a Go engine: input line by line, and the output."""

    def __init__(self, player, *numbers, **settings):
        super().__init__(Engine, COMMANDS, player, *numbers, **settings)

    def ask(self, *lines):
        """Returns the responses to lines sent together and followed by end of input."""
        self.say("".join(f"{line}\n" for line in lines).encode())
        return self.run()

    def run(self):
        """Ends the input and returns the responses."""
        self.say(b"")
        return self.listen()

    def listen(self):
        """Returns all responses up to the end of the input."""
        self.engine.run()
        *answers, rest = self.text.split("\n\n")
        assert rest == ""
        return answers


@pytest.fixture
def talk_to():
    """Returns the class of conversations with a player."""
    return Conversation


@pytest.fixture
def converse(make_player):
    """Returns a function that makes a conversation with a player without a model."""

    def make(task="go/5", simulations=8, threads=1, resigning=None, **settings):
        player = make_player(task, **settings)
        return Conversation(player, simulations, threads, resigning=resigning)

    return make


@pytest.fixture
def ask(converse):
    """Returns a function that sends lines to a new engine and returns the responses."""

    def ask(*lines, **settings):
        return converse(**settings).ask(*lines)

    return ask
