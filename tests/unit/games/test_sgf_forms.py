"""The forms of SGF that servers and editors write; docs/reference/sgf.md lists them.

Each sample is synthetic, in the form that its program writes.
"""

import pytest

from tengen import _core, games
from tengen.errors import UsageError
from tengen.games.sgf import read_sgf, replay, write_sgf
from tests.refusals import refused

FORMS = {
    "KGS": (
        "(;GM[1]FF[4]CA[UTF-8]AP[CGoban:3]ST[2]\nRU[Japanese]SZ[9]KM[0.50]TM[600]"
        "OT[5x30 byo-yomi]\nPW[w]PB[b]WR[2k]BR[5k]DT[2020-01-01]PC[The KGS Go Server]"
        "RE[W+Resign]\n;B[ee]BL[590.1]\n;W[cc]WL[598]OW[5]\n;B[gg]BL[580]CR[gg]\n)"
    ),
    "OGS": (
        "(;FF[4]\nCA[UTF-8]\nGM[1]\nDT[2020-01-01]\nPC[OGS: https://example.org/1]\n"
        "GN[a game]\nPB[b]\nPW[w]\nBR[5k]\nWR[2k]\nTM[259200]OT[86400 fischer]\n"
        "RE[W+R]\nSZ[9]\nKM[0.5]\nRU[Japanese]\n;B[ee]\n(;W[cc]\n(;B[gg]\n)))"
    ),
    "Fox": (
        "(;GM[1]FF[4]\nSZ[9]\nGN[]\nDT[2020-01-01]\nPB[b]\nPW[w]\nBR[5k]\nWR[2k]\n"
        "KM[50]HA[0]RU[Japanese]AP[foxwq]RN[3]RE[W+R]TM[60]TC[3]TT[20]\n"
        ";B[ee];W[cc];B[gg])"
    ),
    "IGS": (
        "(;\nGM[1]FF[3]\nRU[Japanese]SZ[9]HA[0]KM[0.5]\nPW[w]\nPB[b]\nGN[w-b]\n"
        "DT[2020-01-01]\nPC[IGS-PandaNet]RE[W+Resign]\nCoPyright[free]\n"
        ";B[ee]BL[590];W[cc]WL[600];B[gg]BL[580]\n)\n"
    ),
    "Tygem": (
        "(;GM[1]FF[3]SZ[9]HA[0]KM[0.5]PB[b]PW[w]RE[White wins by resignation]"
        "US[tygem];B[ee];W[cc];B[gg];)"
    ),
    "Sabaki": (
        "(;GM[1]FF[4]CA[UTF-8]AP[Sabaki:0.52.2]KM[0.5]SZ[9]DT[2020-01-01]PB[b]PW[w]\n"
        ";B[ee];W[cc];B[gg]SBKV[51.2];)"
    ),
    "GoGui": (
        "(;FF[4]CA[UTF-8]AP[GoGui:1.5.1]SZ[9]KM[0.5]RU[Chinese]DT[2020-01-01]\n"
        "PB[b]PW[w]HA[0]\n;B[ee];W[cc];B[gg]\n)"
    ),
    "CGoban 1": (
        "(;\nGaMe[1]FileFormat[3]\nVieW[]\nSiZe[9]\nKoMi[0.5]\nPlayerBlack[b]\n"
        "PlayerWhite[w]\nAPplication[CGoban:1]\n;\nBlack[ee]\n;\nWhite[cc]\n;\n"
        "Black[gg]\n)"
    ),
    "MultiGo": (
        "(;AP[MultiGo:4.4.4]SZ[9]AB[]AW[]MULTIGOGM[1]KM[0.5]PB[b]PW[w]\n"
        ";B[ee]N[one];W[cc];B[gg])"
    ),
    "Drago": (
        "(;FF[4]GM[1]CA[UTF-8]AP[Drago:4.22]ST[2]SZ[9]KM[0.5]PB[b]PW[w]LB[aa:1]"
        "LB[bb:2];B[ee]LB[cc:a][dd:b]LB[ff:c];W[cc];B[gg])"
    ),
    "GNU Go": (
        "(;GM[1]FF[4]\nSZ[9]\nGN[GNU Go 3.8 Random Seed 1 level 10]\nDT[2020-01-01]\n"
        "KM[0.5]HA[0]RU[Japanese]AP[GNU Go:3.8]\nPB[b]PW[w]\n"
        ";B[ee]C[load and analyze mode];W[cc];B[gg])"
    ),
    "KataGo": (
        "(;FF[4]GM[1]SZ[9]HA[0]KM[0.5]PB[b]PW[w]RU[koSIMPLEscoreAREAtaxNONEsui0]"
        "RE[W+R]C[startTurnIdx=0];B[ee]C[0.5 0.5 0.0 0.1];W[cc];B[gg])"
    ),
    "LizzieYzy": (
        "(;GM[1]FF[4]SZ[9]KM[0.5]PB[b]PW[w]CA[UTF-8]AP[Lizzie: Yzy2.5.3];"
        "B[ee]LZ[KataGo 50.0 1]LZ2[KataGo 50.0 1 0.1];W[cc];B[gg])"
    ),
    "Leela Zero": (
        "(;GM[1]FF[4]RU[Chinese]DT[2020-01-01]SZ[9]KM[0.5]PB[b]PW[w]\n"
        ";B[ee];W[cc];B[gg]\n\n)"
    ),
}


@pytest.mark.parametrize("program", FORMS)
def test_what_programs_write(program):
    text = FORMS[program]
    for data in (text, text.encode(), text.replace("\n", "\r\n").encode()):
        record = read_sgf(data, main_line=True)
        assert record.moves == (40, 20, 60)
        assert (record.black, record.white) == ("b", "w")
        assert _core.parse_go_name(record.game).komi == 0.5
        assert record.notes == ()
        assert read_sgf(write_sgf(record)) == record


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        # GoGui writes HA as requested, whatever stones are on the board.
        ("(;SZ[9]HA[3]AB[aa][bb];W[cc])", (20,)),
        ("(;SZ[9]HA[3]AB[aa];B[cc])", (20,)),
        ("(;SZ[5]HA[2];B[aa])", (0,)),
        ("(;SZ[9]HA[none]AB[aa];W[cc])", (20,)),
        ("(;SZ[9]HA[two];B[cc])", (20,)),
        # A repeated property.
        ("(;SZ[9]SZ[9]KM[0]KM[0];B[cc])", (20,)),
        ("(;SZ[9]PB[x]PB[y][z]C[a]C[b];B[cc]C[x]C[y])", (20,)),
        ("(;SZ[9];B[cc]LB[aa:1]LB[bb:2]TR[dd]TR[dd])", (20,)),
        ("(;SZ[9];B[cc]B[cc])", (20,)),
        ("(;SZ[9]AB[aa]AB[bb][aa];W[cc])", (20,)),
        # Setup stones before the first move, in any node.
        ("(;SZ[9];AB[aa][bb];W[cc])", (20,)),
        ("(;SZ[9];C[x];AB[aa]AW[dd];AE[dd]AB[bb];W[cc])", (20,)),
        ("(;SZ[9];AB[aa]B[cc];W[dd])", (20, 30)),
        ("(;SZ[9]AB[bb:aa];W[cc])", (20,)),
        ("(;SZ[9];B[cc];AB[]AE[])", (20,)),
        # Setup after a move that changes nothing: stones already there, empty points.
        ("(;SZ[9];B[cc];AB[cc]AE[dd:ee];W[dd])", (20, 30)),
        ("(;SZ[9]AW[aa];B[cc];W[dd];AW[dd][aa]AB[cc])", (20, 30)),
        ("(;SZ[9]HA[2];W[cc];AB[gc][cg]AW[cc])", (20,)),
        ("(;SZ[9];B[cc]C[one];W[dd]AB[cc]AW[dd])", (20, 30)),
        ("(;SZ[9];B[cc];W[dd]AE[dd])", (20, 30)),
        ("(;SZ[9]AW[ba];W[aa];B[ca];W[bb];B[cc]AE[dd])", (0, 2, 10, 20)),
        ("(;SZ[9]AW[ba];B[aa];W[ab]AE[aa];AE[aa])", (0, 9)),
        ("(;SZ[9];B[cc];B[dd];AB[dd])", (20, 81, 30)),
        # The moves decide whose turn it is.
        ("(;SZ[9]PL[W];B[cc])", (20,)),
        ("(;SZ[9]PL[?];B[cc])", (20,)),
        ("(;SZ[9];B[cc];PL[B];W[dd])", (20, 30)),
        ("(;SZ[9];B[cc];PL[W])", (20,)),
        ("(;SZ[9];B[cc];W[dd]PL[W];PL[B])", (20, 30)),
        ("(;SZ[9];B[];W[];PL[W])", (81, 81)),
        # The size in the node before the moves, or repeated.
        ("(;C[x];GM[1]SZ[9];B[cc])", (20,)),
        ("(;SZ[9]SZ[9:9][]GM[];GM[1]SZ[];B[cc];SZ[+9]GM[+1])", (20,)),
        ("(;;SZ[19];B[cc];GM[Go])", (40,)),
        # Private properties of programs.
        ("(;_1[x]SZ[9]X1[foo]_X[foo];B[cc]B1[dd])", (20,)),
        # Several games, with or without text between them.
        ("(;SZ[9];B[cc])(;SZ[9];B[dd])", (20,)),
        ("(;SZ[9];B[cc])\n\n(;GM[2])", (20,)),
        ("(;SZ[9];B[cc]) and (;SZ", (20,)),
        # Content that only matters to readers of other versions.
        ("(;FF[5]SZ[9];B[cc])", (20,)),
        ("(;FF[x]SZ[9x9];B[cc])", (20,)),
        ("(;SZ[9]PLIES[0];B[cc])", (20,)),
        ("(;SZ[9]XX[a\\]b]RU[?]RE[?]KM[?];B[cc];W[pass])", (20, 81)),
    ],
)
def test_what_leaves_the_position_as_it_is_refuses_no_file(text, moves):
    record = read_sgf(text)
    assert record.moves == moves
    assert read_sgf(write_sgf(record)) == record


@pytest.mark.parametrize(
    ("end", "moves"),
    [
        ("", (20, 30)),
        ("\n\0\0", (20, 30)),
        (";", (20, 30)),
        ("(", (20, 30)),
        ("(;B[ee]", (20, 30, 40)),
        ("(;B[ee]\n)", (20, 30, 40)),
    ],
)
def test_a_text_that_ends_before_its_game_is_read_up_to_there(end, moves):
    record = read_sgf(f"(;SZ[9];B[cc];W[dd]{end}".encode())
    assert record.moves == moves
    assert record.notes == ("the text ends within the game",)
    assert read_sgf(write_sgf(record)) == record


@pytest.mark.parametrize(
    "end", ["B", "B[", "B[e", "C[x\\", "LB[aa:1][b", "_X1", "Black["]
)
def test_a_value_in_which_a_text_ends_is_dropped(end):
    ends = (end, f"{end})\n") if "[" in end else (end,)
    for last in (f"{node}{end}" for node in (";", "(;") for end in ends):
        record = read_sgf(f"(;SZ[9];B[cc];W[dd]{last}")
        assert record.moves == (20, 30)
        name = end.partition("[")[0]
        note = f"the text ends within the game; its last value, of {name}, is dropped"
        assert record.notes == (note,)


@pytest.mark.parametrize("program", FORMS)
def test_a_text_that_is_cut_anywhere_has_the_first_moves_or_is_refused(program):
    text = FORMS[program].encode().replace(b"[b]", b"[\xe5\x8f\xa4]")
    nums_moves = set()
    for length in range(len(text)):
        try:
            record = read_sgf(text[:length], main_line=True)
        except UsageError:
            assert text[:length].count(b"ee]") == 0
            continue
        assert record.game.startswith("go/9")
        assert record.moves == (40, 20, 60)[: len(record.moves)]
        nums_moves.add(len(record.moves))
    assert nums_moves == {0, 1, 2, 3}


def test_a_variation_in_which_a_text_ends_leaves_the_main_line_whole():
    record = read_sgf("(;SZ[9];B[cc](;W[dd])(;AB[a", main_line=True)
    assert record.moves == (20, 30)


@pytest.mark.parametrize(
    ("moves", "actions"),
    [
        ("B[cc];PL[B]", (20, 81)),
        ("B[cc]C[x];W[dd];PL[White]", (20, 30, 81)),
        ("B[cc];PL[B];PL[W]", (20,)),
        # A pass after which the same side is to move is dropped.
        ("B[cc]C[x];W[]C[y];PL[W]", (20,)),
        ("B[]C[x];PL[B]", ()),
    ],
)
def test_a_side_that_is_to_move_though_it_moved_last_was_passed_to(moves, actions):
    record = read_sgf(f"(;SZ[9];{moves})")
    assert record.moves == actions
    assert record.notes == ()
    assert read_sgf(write_sgf(record)) == record
    state, _ = replay(record)
    assert state.to_play == len(actions) % 2


def test_what_is_passed_over_is_noted():
    def notes(text):
        return read_sgf(text).notes

    several = "has several values; the first"
    assert notes("(;SZ[9]KM[6.5]KM[7.5])") == (f"KM {several}, 6.5, is used",)
    assert notes("(;SZ[9]RU[NZ]RU[Chinese])") == (f"RU {several}, NZ, is used",)
    assert notes("(;SZ[9]PL[W][B])") == (f"PL {several}, W, is used",)
    assert notes("(;SZ[9]PL[1])") == ("PL (1) is neither B nor W",)
    assert notes("(;SZ[9];B[aa];PL[1])") == ("PL (1) is neither B nor W",)
    assert notes("(;SZ[9]KM[]KM[6.5][6.5]HA[+2][]RU[]PL[1];W[aa])") == ()
    assert notes("(;SZ[9])(;SZ[9])") == ("only the first of several games is read",)
    assert notes("(;SZ[9]HA[3]AB[aa])") == ("HA (3) differs from the number of AB, 1",)
    assert notes("(;SZ[9]HA[x];B[aa])") == ("HA (x) is not a number",)
    assert notes("(;SZ[9]HA[2]AB[cg][gc])") == ()


def test_stones_before_the_first_move_are_those_of_the_last_word():
    text = "(;SZ[9]AB[aa][cc]AW[bb];AB[bb]AE[aa]PL[B];AW[dd]PL[W])"
    record = read_sgf(text)
    assert record.black_stones == (10, 20)
    assert record.white_stones == (30,)
    assert record.first_player == 1


def test_properties_that_stand_twice_keep_what_they_say():
    record = read_sgf("(;SZ[9]PB[]PB[y]C[a]C[b]KM[]KM[5.5][6.5];B[cc]C[x]C[y])")
    assert record.black == "y"
    assert record.game == "go/9/komi=5.5"
    assert record.comment == "a\nb"
    assert record.comments == ("x\ny",)


def test_stones_after_the_moves_that_are_read_are_nobodys_business():
    text = "(;SZ[9];B[cc];W[dd];AB[ee];B[zz])"
    for num_moves, moves in ((0, ()), (1, (20,)), (2, (20, 30))):
        assert read_sgf(text, num_moves=num_moves).moves == moves
    with refused(UsageError, "SGF AB (ee)"):
        read_sgf(text)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("(;SZ[9];B[cc];AW[cc])", "AW (cc)"),
        ("(;SZ[9];B[cc];AE[cc])", "AE (cc)"),
        ("(;SZ[9];B[cc];AB[cc]AE[cc])", "AE (cc)"),
        ("(;SZ[9]AW[ba];B[aa];W[ab];AB[aa])", "AB (aa)"),
        ("(;SZ[9];B[cc];W[dd]AW[ee])", "AW (ee)"),
        ("(;SZ[9];B[cc];AB[cc];W[dd];AB[cc]AW[ee])", "AW (ee)"),
    ],
)
def test_stones_after_a_move_that_change_the_position_refuse_a_file(text, changes):
    with refused(UsageError, changes):
        read_sgf(text)


def a_game_that_only_simple_ko_allows():
    """Returns moves whose last one repeats an older position without retaking a ko."""
    rng = _core.Rng(1)
    while True:
        simple, superko = (
            games.make(name).new_state() for name in ("go/2/simple", "go/2")
        )
        moves = []
        while not simple.is_terminal() and len(moves) < 30:
            legal = [int(move) for move in simple.legal_actions() if move < 4]
            if not legal:
                break
            moves.append(legal[rng.below(len(legal))])
            if moves[-1] not in superko.legal_actions():
                return moves
            simple.apply(moves[-1])
            superko.apply(moves[-1])


def test_a_move_that_superko_forbids_is_read_where_no_superko_is_said():
    moves = a_game_that_only_simple_ko_allows()
    points = ["".join("ab"[i] for i in divmod(move, 2)[::-1]) for move in moves]
    line = "".join(f";{'BW'[n % 2]}[{point}]" for n, point in enumerate(points))
    for said in ("", "RU[Japanese]", "RU[Korean]"):
        record = read_sgf(f"(;SZ[2]{said}{line})")
        assert record.moves == tuple(moves)
        assert record.game == "go/2/simple"
        assert read_sgf(write_sgf(record)) == record
    with refused(UsageError, "legal"):
        read_sgf(f"(;SZ[2]RU[Tromp-Taylor]{line})")
    with refused(UsageError, "legal"):
        read_sgf("(;SZ[9];B[aa];W[aa])")
