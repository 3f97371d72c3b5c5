"""Memory of a window, predicted before it is loaded."""

import pytest
from store_games import write_generation

from tengen.errors import RunError
from tengen.experience import (
    GameWindow,
    WindowConfig,
    check_window_memory,
    predicted_window_bytes,
)
from tests.refusals import refused

CONFIG = WindowConfig(min_rows=200, expand_per_row=0.5)


@pytest.mark.parametrize("game", ["connect4", "go/5"])
def test_it_is_what_the_games_take(tmp_path, game):
    for generation in range(1, 9):
        write_generation(tmp_path, generation, 30, name=game)
    window = GameWindow(game, tmp_path, CONFIG, 0)
    window.refresh()
    state = window.state()
    predicted = predicted_window_bytes(game, tmp_path, CONFIG, state)
    held = window.num_rows - window.rows.oldest_row
    # Whole segments are held, of which the window may use a part of the oldest.
    assert predicted * held / window.window_rows == pytest.approx(
        window.rows.num_bytes, rel=0.05
    )
    assert window.describe()["window_bytes"] == window.rows.num_bytes


def test_a_window_that_does_not_fit_is_refused(tmp_path, monkeypatch):
    window = GameWindow("connect4", tmp_path, CONFIG, 0)
    check_window_memory("connect4", tmp_path, CONFIG, window.state())
    write_generation(tmp_path, 1, 30, name="connect4")
    window.refresh()
    needed = predicted_window_bytes("connect4", tmp_path, CONFIG, window.state())
    assert needed == predicted_window_bytes("connect4", tmp_path, CONFIG, None)
    free = needed
    name = "tengen.experience.rows.window.available_memory_bytes"
    monkeypatch.setattr(name, lambda: free)
    check_window_memory("connect4", tmp_path, CONFIG, window.state())
    free -= 1
    with refused(RunError, "window ("):
        check_window_memory("connect4", tmp_path, CONFIG, window.state())
