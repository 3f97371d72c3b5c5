"""The line of progress on a terminal, in a log, and where it is not wanted."""

import io
import threading

import pytest

from tengen.observe import progress_line
from tengen.observe.progress_line import ProgressLine, silenced, wiped


class Stream(io.StringIO):
    """Tells when something was written."""

    def __init__(self, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal
        self.has_text = threading.Event()

    def isatty(self):
        return self.is_terminal

    def write(self, text):
        count = super().write(text)
        self.has_text.set()
        return count


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for name in ("_PATIENCE_S", "_LOG_S", "_DRAW_S"):
        monkeypatch.setattr(progress_line, name, 0.001)


def shown(stream):
    with ProgressLine("playing", stream) as line:
        line.tell("game 3 of 4")
        # What is written first may be from before it.
        for _ in range(2):
            stream.has_text.clear()
            assert stream.has_text.wait(900)
    return stream.getvalue()


def test_a_terminal_has_one_line_that_goes():
    text = shown(Stream(True))
    assert "\r\033[Kgame 3 of 4 (" in text
    assert text.endswith("\r\033[K")
    assert "\n" not in text


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_log_has_lines_without_escapes(is_terminal, monkeypatch):
    if is_terminal:  # one that knows no escapes
        monkeypatch.setenv("TERM", "dumb")
    text = shown(Stream(is_terminal))
    assert "tengen: game 3 of 4 (" in text
    assert text.endswith("\n")
    assert "\033" not in text


def test_what_is_soon_done_shows_nothing(monkeypatch):
    monkeypatch.setattr(progress_line, "_PATIENCE_S", 3600)
    stream = Stream(True)
    with ProgressLine("playing", stream):
        pass
    assert stream.getvalue() == ""


def test_nothing_is_shown_where_it_is_quiet():
    stream = Stream(True)
    with silenced(), ProgressLine("playing", stream):
        assert not stream.has_text.wait(0.05)
    assert "playing" in shown_again(stream)


def shown_again(stream):
    with ProgressLine("playing", stream):
        assert stream.has_text.wait(900)
    return stream.getvalue()


def test_a_reader_that_left_is_no_error():
    stream = Stream(True)
    # What is drawn is taken away at the end, though nobody sees it.
    with ProgressLine("playing", stream):
        assert stream.has_text.wait(900)
        stream.close()


def test_others_print_where_no_line_is():
    stream = Stream(is_terminal=True)
    with ProgressLine("playing", stream):
        assert stream.has_text.wait(900)
        with wiped():
            stream.write("a warning\n")
        stream.has_text.clear()
        assert stream.has_text.wait(900)  # and it is drawn again
    before, after = stream.getvalue().split("a warning\n")
    assert before.endswith("\r\033[K")
    assert after.startswith("\r\033[Kplaying")
