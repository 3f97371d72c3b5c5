import threading

import pytest

from tengen.play.gtp.engine import Engine
from tengen.play.gtp.play_commands import COMMANDS
from tengen.play.session.lines import LineReader


class Conversation:
    """An engine whose lines come one by one, and what it writes."""

    def __init__(self, player, simulations=8, threads=1, **settings):
        self.text = ""
        self.is_written = threading.Condition()
        self._chunks = []
        self._given = threading.Semaphore(0)
        self.engine = Engine(
            player,
            simulations=simulations,
            threads=threads,
            write=self._write,
            lines=LineReader(self._read),
            **settings,
        )
        self.engine.add(COMMANDS)

    def say(self, chunk):
        """Sends bytes; nothing ends the input."""
        self._chunks.append(chunk)
        self._given.release()

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

    def when_written(self, words, *chunks):
        """Sends bytes as soon as the engine has written some words."""

        def wait():
            with self.is_written:
                self.is_written.wait_for(lambda: words in self.text)
            for chunk in chunks:
                self.say(chunk)

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    def _read(self):
        self._given.acquire()
        return self._chunks.pop(0)

    def _write(self, text):
        with self.is_written:
            self.text += text
            self.is_written.notify_all()


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
