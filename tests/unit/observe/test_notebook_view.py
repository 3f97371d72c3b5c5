"""The progress bar of a call in a notebook."""

import io
import sys
import types

import pytest

from tengen.observe import Progress, View, make_view


class Display:
    """Stands in for IPython, which keeps the latest content of each output."""

    def __init__(self):
        self.outputs = []

    def display(self, content, *, raw, display_id):
        self.outputs.append(content)
        return self

    def update(self, content, *, raw):
        self.outputs[-1] = content


@pytest.fixture
def display(monkeypatch):
    shown = Display()
    package = types.ModuleType("IPython")
    package.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    inner = types.ModuleType("IPython.display")
    inner.display = shown.display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    return shown


def test_a_kernel_is_known_by_its_shell(display):
    assert type(make_view("train", io.StringIO())) is not View
    sys.modules["IPython"].get_ipython = lambda: None
    assert type(make_view("train", io.StringIO())) is View


def test_one_bar_is_redrawn_until_the_end(display):
    stream = io.StringIO()
    with make_view("train a<b", stream) as view:
        view.starting("making the network")
        assert "starting: making the network" in display.outputs[0]["text/plain"]
        assert "value" not in display.outputs[0]["text/html"]
        view.update(Progress(generation=1, elapsed_s=30.0, eta_s=90.0, num_games=5))
        view.message("a line")
        view.generation(Progress(generation=2, elapsed_s=60.0, eta_s=60.0, num_games=9))
    (shown,) = display.outputs
    assert 'value="0.500"' in shown["text/html"]
    assert "train a&lt;b" in shown["text/html"]
    assert "50%" in shown["text/plain"]
    assert "games 9" in shown["text/plain"]
    assert stream.getvalue() == "a line\n"


def test_the_bar_is_full_when_the_budget_is_spent(display):
    with make_view("train", io.StringIO()) as view:
        view.update(Progress(generation=1, elapsed_s=30.0, eta_s=10.0))
        view.update(Progress(generation=1, elapsed_s=45.0, stage="match"))
    assert 'value="1.000"' in display.outputs[0]["text/html"]
