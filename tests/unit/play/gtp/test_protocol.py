"""Parsing of GTP lines and formatting of responses."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tengen.games.go_rules import read_vertex, write_vertex
from tengen.play.gtp.command import COMMANDS
from tengen.play.gtp.protocol import Command, parse_line


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (b"name", Command("", "name", ())),
        (b"  12 \t play\tb  D4 # a comment\r", Command("12", "play", ("b", "D4"))),
        (b"na\x01me\x07 \x0bx", Command("", "name", ("x",))),
        (b"", None),
        (b" \t\r", None),
        (b"# name", None),
        (b"7", Command("7", "", ())),
        (b"007 quit", Command("007", "quit", ())),
        (b"9" * 19 + b" name", Command("", "9" * 19, ("name",))),
        (b"\xff\xfe name", Command("", "\ufffd\ufffd", ("name",))),
    ],
)
def test_lines(line, command):
    assert parse_line(line) == command


def test_what_follows_a_command_keeps_its_blanks():
    assert parse_line(b" 7  loadsgf  a  b.sgf \t").text == "a  b.sgf"
    assert parse_line(b"loadsgf a").text == "a"
    assert parse_line(b"7 loadsgf").text == parse_line(b"name").text == ""


def test_vertices():
    assert write_vertex(0, 9, 9) == "A9"
    assert write_vertex(8, 9, 9) == "J9"
    assert write_vertex(360, 19, 19) == "T1"
    assert write_vertex(81, 9, 9) == "pass"
    for height, width in ((9, 9), (5, 19), (19, 2)):
        for action in range(height * width + 1):
            text = write_vertex(action, height, width)
            assert read_vertex(text, height, width) == action
            assert read_vertex(text.lower(), height, width) == action
    for text in ("", "I5", "A0", "A10", "K1", "AA", "5A", "A 5", "passes", "A05x"):
        assert read_vertex(text, 9, 9) is None


def test_what_it_says_of_itself(ask):
    version, listed = ask("2 version", "list_commands")
    assert re.fullmatch(r"=2 [0-9.]+\S* hash", version)
    assert listed.removeprefix("= ").split("\n") == list(COMMANDS)


def test_the_last_line_needs_no_end(converse):
    conversation = converse()
    conversation.say(b"1 na")
    conversation.say(b"me\n2 protocol_version")
    assert conversation.run() == ["=1 tengen", "=2 2"]


OTHER_WORDS = (
    "b w white B A1 e5 C3 pass PASS Z9 I1 0 1 2 5 -1 7.5 1e400 nan 999999999999 0.5 "
    "interval minmoves ownership true avoid byoyomi canadian none / . absolute dead "
    "alive dame tromp-taylor { # 9 genmove play undo 12"
)
WORDS = st.sampled_from([*COMMANDS, *OTHER_WORDS.split()])
# Numbers with thousands of digits, non-ASCII digits, binary data, very long lines.
HOSTILE = [
    *(b"\x00", b"1\x00 name", b"play b \xff\xfe", b"\xd9\xa3 name", b"9" * 5000),
    *(b"9" * 5000 + b" name", b"boardsize " + b"9" * 5000, b"komi " + b"9" * 5000),
    *(
        b"play b a" + b"1" * 5000,
        b"play b A" + "\u0663".encode(),
        b"undo " + b"9" * 5000,
    ),
    *(b"time_settings 1e999 -1 " + b"9" * 400, b"time_left b 99999999999999999999 1"),
    *(b"kata-set-rules {" * 3000, b"kata-set-rules " + b"[" * 60_000, b"gg-undo 0x1"),
    *(b"genmove b " + b"x" * 70_000, b"a" * 70_000, b"# " + b"b" * 70_000, b"\r\t\x7f"),
    *(b"lz-analyze b " + b"9" * 4400, b"kata-analyze interval " + b"1" * 4400),
    *(b"fixed_handicap " + b"9" * 4400, b"set_free_handicap " + b"A1 " * 500),
    *(b"loadsgf /dev/null", b"loadsgf . 1", b"loadsgf nowhere " + b"9" * 4400),
    *(b"komi -" + b"0" * 300 + b"7.5", b"kata-set-param x " + b"9" * 5000),
]
LINES = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(WORDS, max_size=6).map(lambda words: " ".join(words).encode()),
    st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")),
)


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(lines=st.lists(LINES, max_size=20))
def test_every_line_has_one_answer_whatever_it_is(converse, lines):
    conversation = converse(simulations=2)
    wanted = []
    for line in lines:
        command = parse_line(line)
        if command is None or (command.name == "printsgf" and command.words):
            continue
        wanted.append((command.id, line))
        if command.name == "quit":
            break
    conversation.say(b"".join(line + b"\n" for _, line in wanted))
    answers = conversation.run()
    assert len(answers) == len(wanted)
    for (number, _), answer in zip(wanted, answers, strict=True):
        assert re.match(rf"[=?]{number}( |\n|$)", answer)
