"""Command sequences of front ends, and whether they can parse the responses.

The dialogues are taken from the sources of the programs: Sabaki 0.60, Lizzie 0.7.4,
LizzieYzy 2.5 and GoGui 1.6.
"""

import json
import re

import pytest

from tengen.play import load

VERTEX = re.compile(r"pass|[A-HJ-Z][0-9]+")


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "auxiliary"])
def player(request, tmp_path_factory, publish_run):
    """Returns a player of go/5, with or without ownership and score heads."""
    path = tmp_path_factory.mktemp("runs") / "go"
    run = publish_run(path, "go/5", auxiliary=request.param, exports=False)
    with load(run.path) as player:
        yield player


@pytest.fixture
def session(player, talk_to):
    """Returns a function that maps the lines of a session to their responses."""

    def session(*lines, **settings):
        answers = talk_to(player, **settings).ask(*lines)
        commands = [line for line in lines if not line.startswith("#")]
        return dict(zip(commands, answers, strict=True))

    return session


def words(text):
    """Splits commands separated by semicolons."""
    return text.split("; ")


def body(answer):
    """Returns the response of a successful command, without its status."""
    assert answer.startswith("="), answer
    return re.sub(r"^=[0-9]*", "", answer).strip()


def info_of(text, read_winrate):
    """Parses one move of an analysis: key-value pairs, then the variation."""
    pairs, _, variation = text.partition(" pv ")
    words = pairs.split()
    info = dict(zip(words[::2], words[1::2], strict=True))
    assert VERTEX.fullmatch(info["move"])
    assert all(VERTEX.fullmatch(word) for word in variation.split())
    assert variation.split()[0] == info["move"]
    assert int(info["visits"]) > 0
    for key in ("winrate", "prior", "lcb"):
        assert read_winrate(info[key]) >= 0
    return info


def infos(answer, read_winrate):
    """Returns the moves of an analysis's first report, and the ownership after them."""
    first = answer.split("\n")[1]
    assert first.startswith("info ")
    moves, _, owners = first.partition(" ownership ")
    parts = re.split(r"\s*info\s+", moves)[1:]
    return [info_of(part, read_winrate) for part in parts], owners


def test_sabaki(session, player):
    said = session(
        *words("name; version; protocol_version; list_commands; komi 6.5; boardsize 5"),
        *words("clear_board; play B C3; play W D2; undo; play W D4"),
        # The next command ends the analysis.
        *("kata-analyze B 50", "protocol_version  ", "kata-genmove_analyze B 50"),
        *("clear_board ", "set_free_handicap B2 D4", "kata-genmove_analyze W 50"),
        "quit",
    )
    assert body(said["protocol_version"]) == "2"
    commands = body(said["list_commands"]).split("\n")
    # Sabaki uses the first of these names that is known; "analyze" is another dialect.
    names = ("analyze", "kata-analyze", "lz-analyze")
    assert next(name for name in names if name in commands) == "kata-analyze"
    assert {"set_free_handicap", "undo", "loadsgf"} <= set(commands)
    moves, _ = infos(said["kata-analyze B 50"], float)
    # Sabaki reads a number without a decimal point as 1/10000ths.
    assert all("." in move["winrate"] for move in moves)
    for command in ("kata-genmove_analyze B 50", "kata-genmove_analyze W 50"):
        assert VERTEX.fullmatch(said[command].split("\n")[-1].removeprefix("play "))


def test_lizzie(session):
    said = session(
        *words("1 name; 2 version; 3 boardsize 5; 4 komi 7.5; 5 lz-analyze 10"),
        *words("6 play B C3; 7 lz-analyze 10; 8 undo"),
        "9 lz-analyze 10 avoid b C3,D4 2 avoid w C3,D4 2",
        *words("10 lz-analyze 10 allow b B2 1; 11 name; 12 time_settings 0 8 1"),
        *words("13 lz-genmove_analyze B 10; 14 fixed_handicap 2; 15 clear_board"),
        *words("16 komi 0; 17 quit"),
    )
    for command, answer in said.items():
        number = command.split()[0]
        assert re.match(rf"[=?]{number}(\s|$)", answer), answer
    assert re.match(r"[0-9]+\.[0-9]+", body(said["2 version"]))
    best, _ = infos(said["5 lz-analyze 10"], int)
    assert len(best) > 0
    avoiding, _ = infos(said["9 lz-analyze 10 avoid b C3,D4 2 avoid w C3,D4 2"], int)
    assert not {"C3", "D4"} & {move["move"] for move in avoiding}
    allowed, _ = infos(said["10 lz-analyze 10 allow b B2 1"], int)
    assert [move["move"] for move in allowed] == ["B2"]
    assert said["13 lz-genmove_analyze B 10"].split("\n")[-1].startswith("play ")
    # A board without handicap points.
    assert said["14 fixed_handicap 2"].startswith("?14 ")


def test_lizzie_takes_owners_from_a_katago(session, player):
    analyze = "3 kata-analyze 10 ownership true"
    said = session("1 name", "2 boardsize 5", analyze, "4 quit", name="KataGo")
    assert said["1 name"] == "=1 KataGo"
    _, owners = infos(said[analyze], float)
    numbers = [float(word) for word in owners.split()]
    assert len(numbers) == (0 if player.forecast([]) is None else 25)


def test_lizzieyzy(session, player):
    kata = "kata-analyze B 10 ownership true pvVisits true movesOwnership true"
    allow = "kata-analyze W 10 allow b B2,C2 1 allow w B2,C2 1 ownership true"
    genmove = "kata-genmove_analyze W 10 ownership true pvVisits true"
    rules = json.dumps({"ko": "POSITIONAL", "suicide": True, "scoring": "AREA"})
    said = session(
        *words("name; version; list_commands"),
        *("kata-get-param playoutDoublingAdvantage", "kata-get-rules"),
        *("kata-get-param analysisWideRootNoise", f"kata-set-rules {rules}"),
        *words("boardsize 5; komi 7.5; clear_board"),
        *(kata, "stop", "play B C3", allow, "stop-ponder", "kata-raw-nn 3"),
        *("time_settings 0 8 1", "time_left w 7.50 1", genmove, "quit"),
        name="KataGo",
    )
    has_owners = player.forecast([]) is not None
    for command in (kata, allow, genmove):
        _, owners = infos(said[command], float)
        numbers = [float(word) for word in owners.split()]
        assert len(numbers) == (25 if has_owners else 0)
        assert all(-1 <= number <= 1 for number in numbers)
    moves, _ = infos(said[allow], float)
    assert {move["move"] for move in moves} == {"B2", "C2"}
    # Settings specific to KataGo, whose responses the program ignores.
    for command in ("kata-get-param analysisWideRootNoise", "stop-ponder"):
        assert said[command] == "? unknown command"
    assert json.loads(body(said["kata-get-rules"]))["ko"] == "POSITIONAL"
    lines = said["kata-raw-nn 3"].split("\n")
    first = lines[0].split(" ")
    assert first[1] == "symmetry"
    assert int(first[2]) >= 0
    assert 0 <= float(lines[1].removeprefix("whiteWin ")) <= 1
    start = lines.index("policy") + 1
    policy = " ".join(lines[start : start + 5]).split()
    assert len(policy) == 25
    assert policy[12] == "NAN"
    if has_owners:
        float(next(line for line in lines if line.startswith("whiteLead ")).split()[1])
        start = lines.index("whiteOwnership") + 1
        assert len(" ".join(lines[start:]).split()) == 25


def test_gogui(session):
    said = session(
        *words("name; protocol_version; list_commands; version; gogui-interrupt"),
        *words("gogui-analyze_commands; boardsize 5; clear_board; komi 6.5"),
        *words("time_settings 600 0 0; play B C3; time_left w 600 0; genmove w; undo"),
        *words("play W D2; play B D3; final_status_list dead; final_score; showboard"),
        "quit",
    )
    assert int(body(said["protocol_version"])) == 2
    commands = body(said["list_commands"]).split()
    assert {"undo", "set_free_handicap", "time_left", "final_score"} <= set(commands)
    assert body(said["gogui-interrupt"]) == ""
    assert VERTEX.fullmatch(body(said["genmove w"]))
    # Each line is "TYPE/Label/command arguments" with a known command.
    for line in body(said["gogui-analyze_commands"]).split("\n"):
        kind, label, command = line.split("/")
        assert kind in ("string", "plist", "dboard")
        assert label
        assert command.split()[0] in commands
        answer = body(session("play B C3", "play W D2", command)[command])
        if kind == "plist":
            assert all(VERTEX.fullmatch(word) for word in answer.split())
        if kind == "dboard":
            rows = [[float(word) for word in row.split()] for row in answer.split("\n")]
            assert [len(row) for row in rows] == [5] * 5


def test_gogui_interrupts_a_move(session):
    lines = ("genmove b", "# interrupt", "name")
    said = session(*lines, simulations=1 << 24)
    assert VERTEX.fullmatch(body(said["genmove b"]))
    assert said["name"] == "= tengen"


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        (b"# interrupt\n", True),
        (b"  # interrupt \r\n", True),
        (b"7 stop\n", True),
        (b"# interrupted\n", False),
        (b"name # interrupt\n", False),
        (b"\n", False),
    ],
)
def test_what_ends_the_search_of_a_move(player, talk_to, line, ends):
    conversation = talk_to(player)
    conversation.say(line)
    conversation.say(b"")
    lines = conversation.engine.lines
    lines.start()
    lines.peek(wait=True)
    assert conversation.engine.is_stopped() == ends
