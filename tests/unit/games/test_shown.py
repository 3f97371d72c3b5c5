"""Positions displayed in notebooks."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tengen import games

EXAMPLES = Path(__file__).parents[3] / "examples"


class Printer:
    """A printer with IPython's interface."""

    def __init__(self):
        self.shown = ""

    def text(self, obj):
        self.shown += obj


def shown(state):
    printer = Printer()
    state._repr_pretty_(printer, False)
    return ElementTree.fromstring(state._repr_html_()), printer.shown


@pytest.mark.parametrize("task", ["tictactoe", "go/9", "own_game:Hex"])
def test_a_position_is_drawn_and_printed(task, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    state = games.make(task).new_state()
    state.apply(4)
    html, text = shown(state)
    assert text == str(state)
    (svg,) = html.iter("{http://www.w3.org/2000/svg}svg")
    assert svg.get("aria-label") == "position at ply 1"
    assert len(list(svg.iter("{http://www.w3.org/2000/svg}circle"))) == 1
    assert len(shown(state.clone())[1]) == len(text)
