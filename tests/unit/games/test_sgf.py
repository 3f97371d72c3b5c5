"""Games of Go as SGF: worked files, rejected files, and round trips."""

import contextlib
import itertools
import string
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tengen import _core, games
from tengen.errors import UsageError
from tengen.games.sgf import GoRecord, read_sgf, replay, setup_moves, write_sgf
from tengen.games.sgf.tree import MAX_CHARACTERS
from tests.refusals import refused

GAME = (
    "(;FF[4]GM[1]CA[UTF-8]SZ[9]KM[6.5]RU[Tromp-Taylor]PB[Bo\\]b]PW[Wen]RE[W+R]C[a\n b]"
    ";B[ee];W[gc]C[hane \\\\ or\\\nder];B[];W[tt])"
)


def test_a_worked_game():
    record = read_sgf(GAME)
    assert record == GoRecord(
        game="go/9/komi=6.5",
        moves=(40, 24, 81, 81),
        result="W+R",
        black="Bo]b",
        white="Wen",
        comment="a\n b",
        comments=("", "hane \\ order", "", ""),
    )
    state, moves = replay(record)
    assert moves == [40, 24, 81, 81]
    assert state.is_terminal()
    assert read_sgf(write_sgf(record)) == record
    assert write_sgf(record) == (
        "(;FF[4]CA[UTF-8]GM[1]SZ[9]KM[6.5]RU[Tromp-Taylor]\nPB[Bo\\]b]\nPW[Wen]\n"
        "RE[W+R]\nC[a\n b]\n;B[ee];W[gc]C[hane \\\\ order];B[];W[])\n"
    )


@pytest.mark.parametrize(
    ("root", "name"),
    [
        ("", "go/19"),
        ("SZ[9]", "go/9"),
        ("SZ[13:9]", "go/9x13"),
        ("SZ[9]KM[7.5]", "go/9"),
        ("SZ[9]KM[0]", "go/9/komi=0"),
        ("SZ[9]KM[-3.50]", "go/9/komi=-3.5"),
        ("SZ[9]RU[Chinese]", "go/9/simple/nosuicide"),
        ("SZ[9]RU[NZ]", "go/9/situational"),
        ("SZ[9]RU[tromp_taylor]", "go/9"),
        ("SZ[9]RU[koPOSITIONALscoreAREAtaxNONEsui0]", "go/9/nosuicide"),
        ("SZ[9]RU[Japanese]", "go/9"),
        ("SZ[9]PLIES[50]", "go/9/plies=50"),
        ("SZ[9]HA[2]AB[cg][gc]", "go/9/handicap=2"),
        ("SZ[9]HA[0]", "go/9"),
        ("SiZe[9]GaMe[1]", "go/9"),
    ],
)
def test_the_root_says_the_game(root, name):
    record = read_sgf(f"(;{root.replace('GaMe', 'GM')})")
    assert record.game == name
    assert games.make(name).name == name
    assert read_sgf(write_sgf(record)) == record


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Handicap stones that the file does not list.
        (
            "(;GM[1]SZ[9]HA[2]KM[0];W[ee];B[aa])",
            {"game": "go/9/komi=0/handicap=2", "moves": (40, 0)},
        ),
        (
            "(;SZ[9]HA[2]AB[gc][cg]KM[0];W[ee];B[aa])",
            {"game": "go/9/komi=0/handicap=2", "moves": (40, 0), "first_player": 1},
        ),
        ("(;SZ[9]HA[3])", {"game": "go/9/handicap=3", "first_player": 1}),
        # If they are Black's first moves, they are read as moves.
        ("(;SZ[9]HA[2];B[gc];B[cg];W[ee];B[aa])", {"moves": (24, 81, 56, 40, 0)}),
        # Together with other setup stones, they are setup stones as well.
        (
            "(;SZ[9]HA[2]AW[ee];W[aa])",
            {"black_stones": (24, 56), "white_stones": (40,)},
        ),
        # Passes that the file does not list.
        (
            "(;SZ[5];B[aa]C[one];B[bb];W[cc]C[three];W[dd];B[])",
            {
                "moves": (0, 25, 6, 12, 25, 18, 25),
                "comments": ("one", "", "", "three", "", "", ""),
            },
        ),
        # Two passes before another stone are dropped, whoever plays it.
        ("(;SZ[5];B[aa];W[];B[];W[bb])", {"moves": (0, 6)}),
        ("(;SZ[5];B[aa];W[];B[];B[bb])", {"moves": (0, 25, 6)}),
        ("(;SZ[5];B[];W[];B[aa])", {"moves": (0,)}),
        # Some servers write three passes.
        ("(;SZ[5];B[aa];W[];B[];W[])", {"moves": (0, 25, 25)}),
        ("(;SZ[5];B[aa];W[];B[];W[];B[bb])", {"moves": (0, 25, 6)}),
        # A pass before a stone of the same side, and one out of turn.
        ("(;SZ[5];B[aa];W[];W[bb])", {"moves": (0, 6)}),
        ("(;SZ[5];B[aa];B[];W[bb])", {"moves": (0, 6)}),
        # Comments on dropped passes are kept.
        (
            "(;SZ[5];B[aa]C[a];W[]C[b];B[]C[c];W[]C[d];W[bb]C[e];W[]C[f];B[cc])",
            {"moves": (0, 6, 12), "comments": ("a", "b\nc\nd\ne\nf", "")},
        ),
        # A later node may repeat game properties; the root's values win.
        (
            "(;SZ[9];B[aa];KM[5.5]RU[Japanese]PB[x];W[bb]RE[W+R])",
            {"game": "go/9/komi=5.5", "black": "x", "result": "W+R"},
        ),
        ("(;SZ[9]KM[0];KM[5.5]SZ[9])", {"game": "go/9/komi=0"}),
        # Text around a game.
        ("From: a (b)\n\n(\n;SZ[9];B[aa])\n-- \n(c)", {"moves": (0,)}),
        ("hello (;-) (;SZ[9];B[aa]) bye (; - )", {"moves": (0,)}),
        # A single child is not a variation.
        ("(;SZ[9];B[aa](;W[bb](;B[cc])))", {"moves": (0, 10, 20)}),
    ],
)
def test_what_is_read(text, expected):
    record = read_sgf(text)
    assert {name: getattr(record, name) for name in expected} == expected
    assert read_sgf(write_sgf(record)) == record


def test_the_first_moves_of_a_file():
    # ``num_moves`` counts dropped passes of the file, but no inferred ones.
    text = "(;SZ[5]RE[B+R];B[bb];W[];B[]C[x];W[dd];W[cc]C[y])"
    moves = [read_sgf(text, num_moves=num).moves for num in range(7)]
    expected = [(), (6,), (6, 25), (6, 25, 25), (6, 18), (6, 18, 25, 12)]
    assert moves == [*expected, expected[-1]]
    assert read_sgf(text, num_moves=3).comments == ("", "", "x")
    record = read_sgf("(;SZ[9]HA[2];B[bb];B[dd];W[cc];B[cb])", num_moves=2)
    assert record.moves == (10, 81, 30)


@pytest.mark.parametrize("node", [";B[aa];W[bb]", ";B[ab]C[x];B[]", ";KM[]"])
def test_many_moves_are_no_hang(node):
    names = map("".join, itertools.product(string.ascii_uppercase[2:], repeat=3))
    root = ";SZ[5]" + "".join(f"{name}[]" for name in names)
    num_nodes = (MAX_CHARACTERS // 2 - len(root)) // len(node) - 4
    text = f"({root};B[ee]{node * num_nodes})"
    began = time.process_time()
    with contextlib.suppress(UsageError):
        read_sgf(text)
    # A reader that copies its text at every node takes over 11 s; this one 1 s.
    assert time.process_time() - began < 6


def test_stones_that_are_no_handicap_are_kept():
    record = read_sgf("(;SZ[5]AB[aa:ba][cc]AW[ee]PL[W];W[dd];B[de])")
    assert record.game == "go/5"
    assert record.black_stones == (0, 1, 12)
    assert record.white_stones == (24,)
    assert record.first_player == 1
    assert record.moves == (18, 23)
    assert read_sgf(write_sgf(record)) == record
    state, moves = replay(record)
    assert state.to_play == 1
    assert moves == [*setup_moves(record), 18, 23]


def board_after(name, moves):
    """Returns the stones of both sides, from the planes, and the state."""
    state = games.make(name).new_state()
    for move in moves:
        assert not state.is_terminal()
        state.apply(move)
    planes = state.observation()
    own, other = (set(planes[i].ravel().nonzero()[0].tolist()) for i in (1, 2))
    return (own, other) if state.to_play == 0 else (other, own), state


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(".XO"), min_size=16, max_size=16),
    st.integers(min_value=0, max_value=1),
)
def test_stones_become_moves(cells, first):
    black = tuple(i for i, cell in enumerate(cells) if cell == "X")
    white = tuple(i for i, cell in enumerate(cells) if cell == "O")
    record = GoRecord(
        game="go/4", first_player=first, black_stones=black, white_stones=white
    )
    if not all(has_liberty(cells, point) for point in (*black, *white)):
        with refused(UsageError, "SGF setup"):
            setup_moves(record)
        return
    moves = setup_moves(record)
    found, state = board_after("go/4", moves)
    assert found == (set(black), set(white))
    assert state.to_play == first
    # A side with stones makes the last turn with one, so that a pass now ends nothing.
    if (white, black)[first]:
        assert moves[-1] != 16
        state.apply(16)
        assert not state.is_terminal()


def has_liberty(cells, point):
    """Returns whether the chain at ``point`` has a liberty, by flood fill on 4x4."""
    seen, todo = {point}, [point]
    while todo:
        row, column = divmod(todo.pop(), 4)
        for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            y, x = row + down, column + right
            near = 4 * y + x
            if not (0 <= y < 4 and 0 <= x < 4) or near in seen:
                continue
            if cells[near] == ".":
                return True
            if cells[near] == cells[point]:
                seen.add(near)
                todo.append(near)
    return False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a complete game"),
        ("(;", "must be a complete game"),
        ("(;B[aa]", "must be a complete game"),
        ("(;;", "must be a complete game"),
        ("(;SZ[9];B[aa](;SZ[9];B[bb])", "must be a complete game"),
        ("(;SZ[9", "SGF line 1 ([9) must have a full value of SZ here"),
        ("(;SZ[9]C[x", "SGF line 1 ([x) must have a full value of C here"),
        ("(;SZ[9];AB[aa][b", "SGF line 1 ([aa][b) must have a full value of AB"),
        ("(;SZ[9];AdB", "SGF line 1 (the end) must have a full value of AdB"),
        ("()", "SGF text (()) must be a complete game"),
        ("(;(;)())", "SGF line 1 ())) must have ( or ; or ) here"),
        ("(;((;)))", "must have a node here"),
        ("(;x", "SGF line 1"),
        ("(;]", "SGF text ((;]) must be a complete game"),
        ("(;B[aa]]", "SGF line 1 (]) must have ( or ; or ) here"),
        ("hello", "SGF text (hello) must be a complete game"),
        ("(;\nB[aa)", "SGF line 2"),
        ("(;B)", "a value of B"),
        ("(;GM[2])", "SGF GM (2) must be 1"),
        ("(;SZ[20])", "SGF SZ (20) must be 2 to 19"),
        ("(;SZ[1])", "SGF SZ (1)"),
        ("(;SZ[9:])", "SGF SZ (9:)"),
        ("(;SZ[9][13])", "SGF SZ (13) must be one size"),
        ("(;SZ[9]SZ[13])", "SGF SZ (13) must be one size"),
        ("(;GM[1]GM[2])", "SGF GM (2) must be 1"),
        ("(;SZ[9];B[aa]B[bb])", "SGF B (several values)"),
        ("(;SZ[9];B[aa]B[])", "SGF B (several values)"),
        ("(;B[aa];SZ[9])", "SGF SZ (9) must be one size"),
        ("(;SZ[9]HA[2][3];W[aa])", "SGF HA (several values)"),
        ("(;SZ[5]HA[2])", "SGF HA (2) is too large for the board"),
        ("(;SZ[9]HA[2]AW[cg])", "SGF setup"),
        ("(;SZ[9]AB[zz])", "SGF AB (zz) must be two letters, a point of the 9x9"),
        ("(;SZ[9]AB[aa]AW[aa])", "must not list a point twice"),
        ("(;SZ[2]AB[aa:bb])", "SGF setup"),
        ("(;SZ[9];B[aa];B[aa])", "SGF move (A9, number 3) must be legal"),
        ("(;SZ[9];B[aa];B[];B[aa])", "SGF move (A9, number 3) must be legal"),
        ("(;SZ[9];B[aa];W[aa])", "SGF move (A9, number 2) must be legal"),
        ("(;SZ[9];B[jj])", "SGF B (jj) must be two letters"),
        ("(;SZ[9];B[aa]W[bb])", "must be in separate nodes"),
        (
            "(;SZ[9];B[aa];AW[bb])",
            "SGF AW (bb) must change no stones after",
        ),
        ("(;SZ[9](;B[aa])(;B[bb]))", "are not supported here"),
        ("(;SZ[9];SZ[13])", "SGF SZ (13) must be one size"),
        ("(;;GM[2])", "SGF GM (2) must be 1"),
        ("(;SZ[9]PLIES[1];B[aa];W[bb])", "number 2) must be legal"),
        ("(;" * 1001, "at most 1000"),
        ("(;C[" + "x" * (1 << 20), "at most 1048576 characters"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(UsageError) as caught:
        read_sgf(text.encode())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_main_line_is_read_where_it_is_asked_for():
    text = "(;SZ[9];B[aa](;W[bb](;B[cc])(;B[dd]))(;W[ee];B[ff]))"
    assert read_sgf(text, main_line=True).moves == (0, 10, 20)


@pytest.mark.parametrize(
    ("name", "moves", "result"),
    [
        ("go/3", [4, 9, 9], "B+1.5"),
        ("go/3/komi=9", [4, 9, 9], "0"),
        ("go/3/komi=20", [4, 9, 9], "W+11"),
        ("go/3", [4], "B+R"),
        ("go/3", [4, 0], "W+R"),
        ("go/9/handicap=2", [], "B+R"),
    ],
)
def test_results(name, moves, result):
    assert games.go_result(name, moves) == result


@pytest.mark.parametrize(
    "charset", ["", " ", "rot13", "UTF-16", "utf-7", "unicode_escape", "x" * 99, "\xe9"]
)
def test_a_charset_that_is_none_is_passed_over(charset):
    text = f"(;CA[{charset}]SZ[9]C[\\x41]PB[\u0416])"
    record = read_sgf(text.encode())
    assert (record.black, record.comment) == ("\u0416", "x41")


def random_game(name, seed, num_moves):
    game, rng = games.make(name), _core.Rng(seed)
    state, moves = game.new_state(), []
    while len(moves) < num_moves and not state.is_terminal():
        legal = state.legal_actions()
        moves.append(legal[rng.below(len(legal))])
        state.apply(moves[-1])
    return moves


LINES = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)
TEXTS = st.lists(LINES, max_size=3).map("\n".join)
NAMES = (
    "go/2",
    "go/5/nosuicide/komi=-1",
    "go/9x7/situational",
    "go/7x9/simple/nosuicide",
    "go/9/handicap=5",
    "go/19/simple/komi=0.5/handicap=9/plies=100",
)


@settings(max_examples=60)
@given(st.sampled_from(NAMES), st.integers(0, 1000), st.integers(0, 60), st.data())
def test_what_was_written_is_read_back(name, seed, num_moves, data):
    moves = random_game(name, seed, num_moves)
    comments = [data.draw(TEXTS) for _ in moves[:5]] + [""] * (len(moves) - 5)
    record = GoRecord(
        game=name,
        moves=tuple(moves),
        first_player=int("handicap" in name),
        result=data.draw(st.sampled_from(["", "B+0.5", "W+R", "0"])),
        black=data.draw(LINES).strip(" "),
        white=data.draw(LINES).strip(" "),
        comment=data.draw(TEXTS),
        comments=tuple(comments) if any(comments) else (),
    )
    text = write_sgf(record)
    assert read_sgf(text) == record
    assert read_sgf(text.encode()) == record
    assert write_sgf(record) == text


def test_planes_are_not_of_the_game():
    name = "go/7/nosuicide/komi=5.5/plies=60"
    moves = tuple(random_game(name, 1, 30))
    record = GoRecord(game=name, moves=moves)
    shown = write_sgf(GoRecord(game=f"{name}/planes=minigo", moves=moves))
    assert shown == write_sgf(record)
    assert read_sgf(shown) == record


def check_only_usage_errors(text):
    """Any exception except UsageError propagates and fails the test."""
    for main_line in (False, True):
        try:
            record = read_sgf(text, main_line=main_line)
        except UsageError as error:
            message = str(error)
        else:
            message = ""
            assert read_sgf(write_sgf(record)).moves == record.moves
        assert len(message.splitlines()) <= 1
        assert len(message) < 400


@settings(max_examples=100)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
@example(b"(;CA[punycode])")
@example("(;SZ[\u0663])")
def test_garbage_is_refused_in_one_line(text):
    check_only_usage_errors(text)


MARKS = "()[];:\\\n\0\xff"
WORDS = ("AB", "AW", "AE", "PL", "B", "W", "[aa]", "[tt]", "[]", "[ii]", "[aa:cc]")
PROPERTIES = ("SZ[9]", "KM[0.5]", "KM[375]", "HA[2]", "C[", "RU[chinese]")
PIECES = st.sampled_from((*MARKS, *WORDS, *PROPERTIES))


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(GAME)), PIECES), max_size=4), st.data())
def test_a_damaged_file_is_read_or_refused(edits, data):
    text = GAME
    for place, piece in edits:
        width = data.draw(st.integers(0, 3))
        text = text[:place] + piece + text[place + width :]
    check_only_usage_errors(text)
    check_only_usage_errors(text.encode("latin-1"))
