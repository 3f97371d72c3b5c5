import io
import threading

import pytest

from tengen.observe import Progress, make_view
from tengen.observe.progress_line import ProgressLine, silenced, wiped
from tengen.observe.view import describe, plain_line

FULL = Progress(
    generation=3,
    elapsed_s=61.0,
    stage="self-play",
    num_games=1234,
    rows_per_s=567.8,
    evaluations_per_s=12345.6,
    acting_evaluations_per_s=30000.0,
    cache_hit_share=0.417,
    batch_fill=0.93,
    num_steps=400,
    loss=1.2345,
    rating=310.2,
    rating_error=25.4,
    eta_s=3661.0,
    verdict="inference 94% busy: add actors",
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_plain_line_has_every_number():
    assert plain_line(FULL) == (
        "generation 3 | stage self-play | games 1,234 | rows/s 568 | "
        "evaluations/s 12,346 (30,000 while acting) | cache hits 42% | "
        "batch fill 93% | steps 400 | "
        "loss 1.234 | rating 310 +- 25 | elapsed 1:01 | ETA 1:01:01 | "
        "inference 94% busy: add actors"
    )


def test_what_does_not_apply_is_left_out():
    shown = describe(Progress(generation=0, elapsed_s=0.0, num_episodes=2))
    assert shown == [("turns", "0"), ("episodes", "2"), ("elapsed", "0:00")]
    assert describe(Progress(generation=0, elapsed_s=0, rating=5.0))[1][1] == "5"


def test_environments_show_frames_and_waits():
    shown = describe(
        Progress(
            generation=0,
            elapsed_s=0.0,
            num_episodes=2,
            rows_per_s=1234.0,
            simulation_share=0.25,
            actor_wait_share=0.6,
            learner_wait_share=0.03,
        )
    )
    assert ("frames/s", "1,234") in shown
    assert ("simulation", "25%") in shown
    assert ("waits", "actors 60%, learner 3%") in shown


def test_progress_round_trip_passes_over_event_keys():
    event = {"time_s": 1.0, "kind": "progress", **FULL.to_dict()}
    assert Progress.from_dict(event) == FULL


def test_pipe_gets_one_line_a_generation():
    stream = io.StringIO()
    with make_view("gomoku/9", stream) as view:
        view.starting("compiling the network")
        view.update(FULL)
        view.message("hello")
        view.generation(FULL)
    begun = "starting: compiling the network\nhello\n"
    assert stream.getvalue() == f"{begun}{plain_line(FULL)}\n"


@pytest.mark.parametrize("rates", [[], [0.0, 100.0, 50.0]])
def test_terminal_gets_a_panel(rates, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    with make_view("gomoku/9 by alphazero", stream) as view:
        view.message("hello [not markup]")
        view.update(FULL)
        for rating in rates:
            view.generation(Progress(generation=1, elapsed_s=1, rating=rating))
        if not rates:
            view.generation(FULL)
    text = stream.getvalue()
    assert "gomoku/9 by alphazero" in text
    assert "hello [not markup]" in text
    if rates:
        assert "0 -> 100 -> 50" in text
    else:
        assert "inference 94% busy: add actors" in text


def test_a_line_of_a_slow_start_is_wiped_once():
    """What is printed after it stays as it is when the view is closed again."""
    drawn = threading.Event()

    class Drawn(Terminal):
        def write(self, text):
            if "starting" in text:
                drawn.set()
            return super().write(text)

    stream = Drawn()
    with make_view("gomoku/9", stream) as view:
        assert drawn.wait(900)
        view.close()
        view.message("done")
    assert stream.getvalue().endswith("done\n")


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
def a_terminal_with_escapes(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


class AtOnce(ProgressLine):
    patience_s = draw_s = log_s = 0.001


class Patient(ProgressLine):
    patience_s = 3600.0


def shown(stream):
    with AtOnce("playing", stream) as line:
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


def test_what_is_soon_done_shows_nothing():
    stream = Stream(True)
    with Patient("playing", stream):
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
