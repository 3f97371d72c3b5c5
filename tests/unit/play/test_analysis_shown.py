"""Analyses displayed in a notebook and in a terminal."""

import dataclasses
import pickle
import re
import xml.etree.ElementTree as ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"


def drawn(found):
    return ElementTree.fromstring(found._repr_html_())


def test_the_board_is_warm_where_the_search_would_move(make_player):
    with make_player("tictactoe") as player:
        found = player.analyse([4, 0], simulations=100)
    html = drawn(found)
    told = {group.findtext(f"{SVG}title"): group for group in html.iter(f"{SVG}g")}
    assert len(told) == 7
    best = found.actions[0]
    (title,) = [words for words in told if f"visits {best.visits}" in words]
    assert title.split(",")[0] == "abc"[best.action % 3] + "321"[best.action // 3]
    assert told[title].findtext(f"{SVG}text") == f"{100 * best.policy:.0f}"
    rings = [c for c in html.iter(f"{SVG}circle") if c.get("stroke-width") == "4"]
    assert len(rings) == 1
    rows = [[cell.text for cell in row] for row in html.iter("tr")]
    assert rows[0] == ["move", "visits", "policy", "prior", "value"]
    assert rows[1][1] == str(best.visits)


def test_a_terminal_has_a_table(make_player):
    with make_player("go/9") as player:
        found = player.analyse([40], simulations=60)
        with player.begin([40], simulations=60) as search:
            search.grow(59)
            grown = search.analysis()
    first, head, *rows = str(found).splitlines()
    best = found.actions[0]
    assert re.match(r"best move [A-J]\d, value [+-]\d\.\d\d to play, 60 sim", first)
    assert head.split() == ["move", "visits", "policy", "prior", "value"]
    assert len(rows) == 9
    assert rows[0].split()[1] == str(best.visits)
    assert rows[-1] == f"and {len(found.actions) - 8} more"
    assert grown.moves == found.moves == (40,)
    assert grown.task == found.task == "go/9"


def test_it_is_plain_data(make_player):
    with make_player("tictactoe") as player:
        found = player.analyse([4], simulations=8)
    fields = dataclasses.asdict(found)
    assert (fields["task"], fields["moves"]) == ("tictactoe", (4,))
    assert pickle.loads(pickle.dumps(found)) == found
    bare = dataclasses.replace(found, task="", moves=())
    assert bare == found
    assert "svg" not in bare._repr_html_()
    assert str(bare).splitlines()[0].startswith(f"best move {found.best_action},")


@pytest.mark.parametrize("task", ["tictactoe", "connect4"])
def test_it_needs_nothing_else(make_player, task):
    with make_player(task) as player:
        shown = player.analyse([1], simulations=20)._repr_html_()
    assert "<script" not in shown
    assert set(re.findall(r"https?://[^\"]*", shown)) == {"http://www.w3.org/2000/svg"}
