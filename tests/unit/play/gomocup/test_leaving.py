"""END and the end of the input, in any state of the session."""

import pytest

LONG = 1 << 24


def leave(talk, *chunks):
    """Sends chunks in the middle of a long search."""
    found, is_stopped = [], talk.engine.is_stopped

    def spy():
        if not found:
            found.append(True)
            for chunk in chunks:
                talk.say(chunk)
        # Waits until the reader has passed on the last chunk.
        while len(talk.lines.waiting()) < sum(c.count(b"\n") or 1 for c in chunks):
            pass
        return is_stopped()

    talk.engine.is_stopped = spy
    talk.say(b"START 6\nBEGIN\n")
    talk.engine.run()
    return [line for line in talk.text.splitlines() if not line.startswith("MESSAGE")]


@pytest.mark.parametrize(
    "chunks", [[b"END\r\n"], [b"INFO evaluate 1,1\n", b"INFO rule 0\nend\n"]]
)
def test_end_ends_a_search_at_once_without_a_word(converse, chunks):
    talk = converse(simulations=LONG)
    assert leave(talk, *chunks) == ["OK"]
    assert talk.engine.is_over


def test_the_end_of_the_input_ends_a_search_with_what_it_has(converse):
    answers = leave(converse(simulations=LONG), b"INFO evaluate 1,1\n", b"")
    assert answers[0] == "OK"
    assert len(answers) == 2


def test_a_search_that_is_followed_by_commands_is_made(converse):
    told = converse(simulations=64).ask("START 6", "BEGIN")[1]
    # A search does not end early before half of its simulations.
    assert int(told.split("simulations ")[1].split(",")[0]) > 32


@pytest.mark.parametrize("lines", [b"SWAP2BOARD\nEND\n", b"BOARD\n1,1,1\nEND\n"])
def test_end_inside_a_board(converse, lines):
    talk = converse()
    talk.say(b"START 6\n" + lines)
    talk.engine.run()
    assert talk.text == "OK\n"


def test_the_input_ends_inside_a_board(converse):
    talk = converse()
    talk.say(b"START 6\nBOARD\n1,1,1")
    talk.say(b"")
    talk.engine.run()
    assert talk.text == "OK\nERROR the stones must end with DONE\n"


def test_end_ends_pondering(converse):
    talk = converse(keeps_tree=True, ponders=True)
    talk.say(b"START 6\nBEGIN\n")
    left = talk.when_written(",", b"TURN 0,0\n")
    found, moves_to_ponder = [], talk.engine.moves_to_ponder

    def spy():
        moves = moves_to_ponder()
        if moves is not None:
            found.append(len(moves))
            if len(found) == 2:
                talk.say(b"END\n")
        return moves

    talk.engine.moves_to_ponder = spy
    talk.engine.run()
    left.join()
    assert found == [1, 3]
