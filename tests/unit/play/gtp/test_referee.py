"""``benchmarks/engines/gtp_referee.py``: its own rules and clock, and its games."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).parents[4] / "benchmarks" / "engines"


@pytest.fixture
def referee(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("gtp_referee")


def engine(tmp_path, name, **answers):
    """A program that says OK to all and passes, but for what is said."""
    path = tmp_path / f"{name}.py"
    known = "boardsize clear_board komi play genmove undo time_settings time_left"
    said = {"protocol_version": "2", "list_commands": known.replace(" ", "\\n")}
    said |= {"genmove": "pass"} | answers
    path.write_text(
        f"import sys, time\nsaid = {said!r}\n"
        "for line in sys.stdin:\n"
        "    word = said.get(line.split()[0], '')\n"
        "    if word.startswith('wait '):\n"
        "        time.sleep(float(word[5:]))\n"
        "        word = 'pass'\n"
        "    if word == 'die' or line.strip() == 'quit':\n"
        "        break\n"
        "    print('=', word.replace('\\\\n', '\\n'), end='\\n\\n', flush=True)\n"
    )
    return f"{sys.executable} {path}"


def without_processor_ms(waits):
    """What is said of an engine's waits: none of the bad one's, long ones of others."""
    line = Path(f"/proc/{waits._pid}/cmdline").read_text()
    return 0.0 if "bad.py" in line else 60_000.0


@pytest.fixture
def judge(referee, tmp_path, monkeypatch, capsys):
    """Returns the lines of games between two programs, by one control."""

    def judge(a, b, control, *words):
        out = tmp_path / "games.jsonl"
        monkeypatch.setattr(referee, "draw_control", lambda rng, args: control)
        argv = ["gtp_referee.py", "--a", a, "--b", b, "--out", str(out), "--size", "5"]
        monkeypatch.setattr(sys, "argv", [*argv, "--games", "2", *words])
        referee.main()
        capsys.readouterr()
        return [json.loads(line) for line in out.read_text().splitlines()]

    return judge


@pytest.mark.parametrize(
    ("faulty", "end"),
    [
        ({"genmove": "Z9"}, "illegal"),
        ({"genmove": "wait 1.3"}, "time"),
        ({"genmove": "die"}, "crash"),
    ],
)
def test_who_is_at_fault_loses(referee, judge, tmp_path, monkeypatch, faulty, end):
    good, bad = engine(tmp_path, "good"), engine(tmp_path, "bad", **faulty)
    # However busy the machine of this test is, it is the sleep that comes too late: a
    # game that the other one was late in is played again.
    monkeypatch.setattr(referee.Waits, "ms", without_processor_ms)
    control = referee.Control("every move", period_s=1.0)
    lines = judge(bad, good, control)
    assert {line["end"] for line in lines} == {end}
    assert {line["winner"] for line in lines} == {"b"}


def test_a_starved_game_is_played_again(referee, judge, tmp_path, monkeypatch):
    line = engine(tmp_path, "slow", genmove="wait 0.1")
    monkeypatch.setattr(referee.Waits, "ms", lambda self: 60_000.0)
    control = referee.Control("every move", period_s=0.01)
    first, second = judge(line, line, control, "--tries", "2")
    assert (first["end"], first["winner"]) == ("starved", None)
    assert first["starved_tries"] == second["starved_tries"] == 2
    # Without a result it is played once more by the next call.
    again = judge(line, line, referee.Control("none"), "--tries", "2")
    assert [line["end"] for line in again[2:]] == ["score", "score"]
    assert judge(line, line, control) == again


def test_a_drawn_game_has_no_winner(referee, judge, tmp_path, monkeypatch):
    monkeypatch.setattr(referee.Board, "score", lambda self, komi: 0.0)
    line = engine(tmp_path, "drawn", final_score="0")
    lines = judge(line, line, referee.Control("none"), "--scores")
    assert [(line["end"], line["winner"]) for line in lines] == [("score", None)] * 2
    assert referee.write_score(-1.5) == "W+1.5"
    assert referee.write_score(3.0) == "B+3"


@pytest.mark.slow
def test_two_processes_play_by_the_clock(referee, judge, publish_run, tmp_path):
    run = publish_run(tmp_path / "go", "go/5", exports=False).path
    line = f"{sys.executable} -m tengen gtp {run} --threads 1 --simulations 2"
    control = referee.Control("byo-yomi", 60.0, 60.0, 3)
    lines = judge(line, line, control, "--scores", "--plies", "30", "--games", "1")
    assert {line["end"] for line in lines} <= {"score", "long"}
    assert all(line["slack_ms_a"] > 0 for line in lines)


def test_the_referee_has_rules(referee):
    board = referee.Board(5, allows_suicide=True)
    for colour, cell in ((0, (1, 0)), (0, (0, 1)), (1, (4, 4))):
        board.play(colour, cell)
    with pytest.raises(referee.Fault, match="A1 is suicide"):
        board.after(1, (0, 0))
    with pytest.raises(referee.Fault, match="is taken"):
        board.after(1, (1, 0))
    assert board.score(komi=0.5) == 3 - 1 - 0.5
    # A ko: the stone that takes is not taken back at once.
    board = referee.Board(5, allows_suicide=True)
    stones = [(0, (1, 0)), (1, (2, 0)), (0, (0, 1)), (1, (3, 1)), (0, (1, 2))]
    for colour, cell in (*stones, (1, (2, 2)), (0, (2, 1)), (1, (1, 1))):
        board.play(colour, cell)
    assert (2, 1) not in board.stones
    with pytest.raises(referee.Fault, match="repeats a position"):
        board.after(0, (2, 1))
    board.undo()
    assert board.stones[(2, 1)] == 0
    # Suicide of two stones, where that is allowed and where not.
    for allows in (True, False):
        board = referee.Board(5, allows_suicide=allows)
        for cell in ((0, 1), (1, 1), (2, 0)):
            board.play(0, cell)
        for cell in ((0, 0), (4, 4)):
            board.play(1, cell)
        assert ((1, 0) in board.legal(1)) == allows
    assert referee.read("j9", 9) == (8, 8)
    for text in ("i5", "J0", "A10", "resigned"):
        with pytest.raises(referee.Fault, match="is no point"):
            referee.read(text, 9)


def test_the_referee_has_a_clock(referee):
    def clock(kind, *numbers):
        return referee.Clock(referee.Control(kind, *numbers))

    absolute = clock("absolute", 10.0)
    assert [absolute.spend(4), absolute.spend(4)] == [6, 2]
    assert absolute.left == (2, 0)
    assert absolute.spend(3) < 0
    canadian = clock("canadian", 5.0, 10.0, 2)
    assert canadian.spend(6) == 9
    assert canadian.left == (9, 1)
    assert canadian.spend(2) == 7
    assert canadian.left == (10, 2)
    assert canadian.spend(11) < 0
    byoyomi = clock("byo-yomi", 5.0, 3.0, 2)
    assert byoyomi.spend(6) == 5
    assert byoyomi.left == (3, 2)
    assert byoyomi.spend(4) == 2
    assert byoyomi.left == (3, 1)
    assert byoyomi.spend(3.5) < 0
    fischer = clock("fischer", 5.0, 2.0)
    assert fischer.spend(4) == 1
    assert fischer.left == (3, 0)
    assert clock("every move", 0.0, 2.0).spend(1.5) == 0.5
    assert clock("none").spend(1e6) > 0


def test_whose_thread_waited_is_read(referee):
    process = SimpleNamespace(pid=1 << 30)
    assert referee.Waits(process.pid).ms() == 0.0
