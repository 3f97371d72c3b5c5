"""Searches during the opponent's time."""

import threading

from tengen import _core
from tengen.play.session.searches import most_simulations

PONDERING = None
"""Marks a pause between texts in which the engine ponders."""


def converse(talk, *texts):
    """Sends texts without a delay, except that ``PONDERING`` waits for pondering.

    Returns the responses, and (plies, simulations) of every completed search.
    """
    has_pondered = threading.Semaphore(0)
    search, searches = talk.engine.search, []

    def noted(moves, *args, **rest):
        analysis = search(moves, *args, **rest)
        searches.append((len(moves), analysis.num_simulations))
        return analysis

    def watched(moves, limits, begun_s, between=None, **rest):
        if between is None:
            return noted(moves, limits, begun_s, **rest)
        slices = []

        def told(analysis):
            if not slices:
                has_pondered.release()
            slices.append(analysis)
            return between(analysis)

        try:
            return noted(moves, limits, begun_s, told, **rest)
        finally:
            if not slices:
                has_pondered.release()

    def say():
        for text in texts:
            if text is PONDERING:
                assert has_pondered.acquire(timeout=900)
            else:
                talk.say(text.encode())

    talk.engine.search = watched
    other = threading.Thread(target=say)
    other.start()
    answers = talk.listen()
    other.join()
    return answers, searches


def test_it_searches_on_in_the_time_of_the_other_side(make_player, talk_to):
    talk = talk_to(make_player("go/5", keeps_tree=True), simulations=50, ponders=True)
    answers, searches = converse(
        talk,
        "genmove b\n",
        PONDERING,
        "time_left w 30 0\n",
        PONDERING,
        "play w C3\ngenmove b\n",
        PONDERING,
        "quit\n",
    )
    assert [answer[0] for answer in answers] == ["="] * 5
    first, pondered, again, second, last = searches
    assert first == (0, 50)
    # The same position before and after the time command: the tree has grown.
    assert pondered[0] == again[0] == 1
    assert 0 < pondered[1] < again[1]
    # The reply is the centre of the board, which every search visits often.
    assert second[0] == 2
    assert second[1] >= 50
    assert last[0] == 3


def test_whatever_comes_meanwhile_is_answered(make_player, talk_to):
    talk = talk_to(make_player("go/5", keeps_tree=True), simulations=20, ponders=True)
    texts = ["genmove b\n", PONDERING, "undo\n", "nonsense\n", "clear_board\n"]
    more = ["play w A1\n", "komi 5.5\n", "genmove b\n", PONDERING, "quit\n"]
    texts += ["genmove b\n", PONDERING, *more]
    answers, searches = converse(talk, *texts)
    assert "".join(answer[0] for answer in answers) == "==?======"
    # Only after its own moves, and not after they have been undone.
    assert [plies for plies, _ in searches] == [0, 1, 0, 1, 2, 3]


def test_what_fails_in_the_other_sides_time_ends_nothing(make_player, talk_to, capsys):
    talk = talk_to(make_player("go/5", keeps_tree=True), simulations=8, ponders=True)

    search = talk.engine.search

    def failing(moves, limits, *rest, **kwargs):
        if limits.simulations > 8:
            raise _core.CoreError("the device is gone")
        return search(moves, limits, *rest, **kwargs)

    talk.engine.search = failing
    texts = ["genmove b\n", PONDERING, "genmove w\n", "quit\n"]
    answers, _ = converse(talk, *texts)
    assert [answer[0] for answer in answers] == ["="] * 3
    assert capsys.readouterr().err == "tengen: pondering stopped: the device is gone\n"


def test_a_full_tree_is_left_as_it_is(make_player, talk_to, monkeypatch):
    """A search limited by time also stops at a full tree, as do later searches."""
    monkeypatch.setattr("tengen.play.session.searches._MAX_TREE_BYTES", 60_000)
    player = make_player("go/5", keeps_tree=True)
    talk = talk_to(player, simulations=10_000, ponders=True)
    most = most_simulations(player.game)
    assert 100 < most < 200
    answers, searches = converse(
        talk,
        "time_settings 0 20 1\ngenmove b\n",
        PONDERING,
        "play w A1\n",
        "genmove b\n",
        PONDERING,
        "quit\n",
    )
    assert [answer[0] for answer in answers] == ["="] * 5
    assert len(searches) >= 4
    assert all(0 < simulations <= most for _, simulations in searches)
    assert searches[0] == (0, most)
