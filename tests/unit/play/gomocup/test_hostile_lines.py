"""Any input from a manager gets one response per command and never ends the session."""

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tengen.games.gomoku import read_cell

SIZE = 5
CELL = r"\d,\d"
ANSWER = re.compile(
    rf'OK|SWAP|{CELL}( {CELL} {CELL})?|(ERROR|UNKNOWN) .+|name="tengen".+'
)

numbers = st.integers(-3, 7) | st.integers(-(10**20), 10**20)
cells = st.builds("{},{}".format, st.integers(0, SIZE), st.integers(0, SIZE))
words = (
    st.sampled_from(
        ["", "5", "5,5", "1,1,3", "rule 4", "timeout_turn 1", "max_memory 9"]
    )
    | cells
    | st.builds("{},{}".format, numbers, numbers)
    | st.text(max_size=20)
)
names = st.sampled_from(
    ["START", "RECTSTART", "RESTART", "BEGIN", "TURN", "TAKEBACK", "ABOUT", "PLAY"]
)
keys = st.sampled_from(["timeout_turn", "time_left", "max_memory", "rule", "x", ""])
infos = st.builds("INFO {} {}".format, keys, numbers | words)
stones = st.builds("{},{}".format, cells, st.integers(0, 4)) | cells | words
boards = st.builds(
    lambda name, lines: "\n".join([name, *lines, "DONE"]),
    st.sampled_from(["BOARD", "SWAP2BOARD", "board x"]),
    st.lists(stones | infos, max_size=8),
)
single = st.builds("{} {}".format, names, words) | words | infos
asked = (
    (single | boards).map(lambda text: text.encode(errors="replace"))
    | st.binary(max_size=60)
    | st.sampled_from([b"A" * 70_000, b"TURN " + b"1" * 70_000, b"\x00\xff TURN 1,1"])
)


COMMANDS_SENT = {b"START", b"RECTSTART", b"RESTART", b"BEGIN", b"TURN", b"TAKEBACK"}
COMMANDS_SENT |= {b"ABOUT", b"END", b"DONE", b"BOARD", b"SWAP2BOARD", b"YXBOARD"}
BOARDS = {b"BOARD", b"SWAP2BOARD"}


def names(chunk):
    """Returns the first word of each nonempty line, as the protocol parses it."""
    lines = (line[: 1 << 16] for line in chunk.split(b"\n"))
    words = (re.sub(rb"[^\x21-\x7e]+", b" ", line).split() for line in lines)
    return [line[0].upper() for line in words if line]


def is_plain(chunk):
    """Returns whether ``chunk`` is one complete board, or has no board and no END."""
    said = names(chunk)
    if said and said[0] in BOARDS:
        return said[-1] == b"DONE" and not COMMANDS_SENT & set(said[1:-1])
    return not {b"END", b"YXBOARD", *BOARDS} & set(said)


def num_answers(chunk):
    """Returns the number of replies to a plain chunk."""
    said = names(chunk)
    is_board = bool(said) and said[0] in BOARDS
    return 1 if is_board else len(said) - said.count(b"INFO")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=60,
)
@given(chunks=st.lists(asked.filter(is_plain), max_size=12))
def test_every_line_has_one_answer(converse, chunks):
    talk = converse(task=f"gomoku/{SIZE}", simulations=2)
    for chunk in [b"START 5", *chunks, b"INFO rule 0", b"INFO max_memory 0"]:
        talk.say(chunk + b"\n")
    talk.say(b"RESTART\nINFO timeout_turn 0\nBEGIN\nABOUT\n")
    talk.say(b"")
    talk.engine.run()
    lines = [line for line in talk.text.split("\n") if not line.startswith("MESSAGE")]
    assert lines.pop() == ""
    assert all(ANSWER.fullmatch(line) for line in lines), lines
    assert len(lines) == 4 + sum(map(num_answers, chunks)), lines
    assert lines[0] == lines[-3] == "OK"
    assert read_cell(lines[-2], SIZE) is not None
    assert max(map(len, talk.text.split("\n"))) <= 400
