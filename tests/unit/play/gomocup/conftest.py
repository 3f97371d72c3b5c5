import pytest

from tengen.play.gomocup.command import COMMANDS
from tengen.play.gomocup.engine import Engine
from tests.unit.play.talk import Talk


class Conversation(Talk):
    """A session with a gomoku engine: input line by line, and the output."""

    def __init__(self, player, *numbers, **settings):
        super().__init__(Engine, COMMANDS, player, *numbers, **settings)

    def ask(self, *lines):
        """Returns the engine's output for lines sent together, including messages.

        An ABOUT after them keeps the end of the input from ending the last search.
        """
        self.say("".join(f"{line}\r\n" for line in [*lines, "ABOUT"]).encode())
        self.say(b"")
        self.engine.run()
        *answers, about = self.text.splitlines()
        assert about.startswith('name="tengen"')
        return answers


@pytest.fixture
def converse(make_player):
    """Returns a function that makes a conversation with a player without a model."""

    def make(task="gomoku/6", simulations=8, threads=1, keeps_tree=False, **settings):
        player = make_player(task, keeps_tree=keeps_tree)
        return Conversation(player, simulations, threads, **settings)

    return make


@pytest.fixture
def ask(converse):
    """Returns a function that sends lines to a new engine; messages are omitted."""

    def ask(*lines, **settings):
        answers = converse(**settings).ask(*lines)
        return [line for line in answers if not line.startswith("MESSAGE")]

    return ask
