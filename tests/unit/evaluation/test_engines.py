"""Matches against GTP and Gomocup engines: correct, broken, and refusing moves."""

import contextlib
import dataclasses
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tengen import _core, cli, games
from tengen.config import from_dict
from tengen.errors import RunError, UsageError
from tengen.evaluation import (
    GomocupPlayer,
    GtpPlayer,
    MatchJournal,
    MatchStopped,
    MctsPlayer,
    PlayedGame,
    RandomPlayer,
    Tally,
    fixed_player,
    open_player,
    play_match,
)
from tengen.evaluation.engines.process import EngineRefusal
from tengen.evaluation.engines.protocols import GomocupEngine, GtpEngine
from tengen.evaluation.engines.side import check_engine
from tengen.games.go_rules import read_vertex
from tengen.games.sgf import read_sgf
from tests.refusals import refused

ORACLES = Path(__file__).parents[2] / "oracle"
PLAYERS = {"go": GtpPlayer, "gomoku": GomocupPlayer}
PROGRAMS = {"go": "slow_gtp.py", "gomoku": "slow_gomocup.py"}
TASKS = {"go": "go/4", "gomoku": "gomoku/6"}
NUM_GAMES = 12


def command(kind, *words):
    return " ".join([sys.executable, str(ORACLES / PROGRAMS[kind]), *map(str, words)])


def gtp(*words):
    return GtpPlayer(command("go", *words))


def gomocup(*words):
    return GomocupPlayer(command("gomoku", *words))


def match(a, b, task=None, num_games=2, **settings):
    if task is None:
        task = TASKS["gomoku" if GomocupPlayer in map(type, (a, b)) else "go"]
    settings = {"opening_plies": 1, "seed": 5, **settings}
    return play_match(games.make(task), a, b, num_games=num_games, **settings)


def wait_for(condition):
    """Waits for a condition, long enough for a slow machine."""
    until = time.monotonic() + 600.0
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


def has_begun(note):
    return note.exists() and note.read_text() != ""


def is_gone(note):
    """Returns whether the process whose ID is in the file ``note`` has ended."""
    with contextlib.suppress(FileNotFoundError):
        stat = Path(f"/proc/{note.read_text()}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] in "ZX"
    return True


@pytest.mark.parametrize(("prefix", "kind"), [("gtp", "go"), ("gomocup", "gomoku")])
def test_a_word_names_a_command(prefix, kind):
    found = open_player(f"{prefix}:./x --mode 1")
    assert found == PLAYERS[kind]("./x --mode 1")
    assert found.name == f"{prefix}:./x --mode 1"
    with refused(UsageError, f"player ({prefix}: )"):
        open_player(f"{prefix}: ")
    with refused(UsageError, f"player ({prefix}:x)"):
        fixed_player(f"{prefix}:x")


@pytest.mark.parametrize("task", ["go/3", "go/4x3/komi=0", "go/7/handicap=3/plies=60"])
def test_an_engine_with_slow_rules_agrees_on_every_score(task):
    report = match(gtp(), RandomPlayer(), task, 6, num_threads=2)
    assert [game.index for game in report.games] == list(range(6))
    rules = _core.parse_go_name(task)
    num_points = rules.height * rules.width
    num_ended = sum(game.moves[-2:] == (num_points,) * 2 for game in report.games)
    seen = report.engines["a"]
    assert seen.num_scored == num_ended > 0
    assert (seen.num_disagreements, seen.num_illegal) == (0, 0)
    for even, odd in zip(report.games[::2], report.games[1::2], strict=True):
        assert (even.a_moves_first, odd.a_moves_first) == (True, False)
        assert even.moves[:1] == odd.moves[:1]


def test_either_side_or_both_may_be_engines(hash_player):
    for other in (RandomPlayer(), gtp(), hash_player("go/4")):
        report = match(other, gtp(), num_simulations=4)
        assert report.tally.num_games == 2
        assert report.engines["b"].num_disagreements == 0
        assert ("a" in report.engines) == isinstance(other, GtpPlayer)


def test_threads_do_not_change_the_games(hash_player):
    network = hash_player("go/4")
    for a, b in ((network, gtp()), (gtp("refuse", "C3"), RandomPlayer())):
        one, three = (
            match(a, b, num_games=4, num_simulations=4, num_threads=n) for n in (1, 3)
        )
        assert one == three


@pytest.mark.parametrize("fault", ["score", "seki"])
def test_another_score_is_counted_and_shown(fault):
    report = match(gtp(fault), RandomPlayer(), "go/4/komi=0.5", num_games=8)
    seen = report.engines["a"]
    assert seen.num_disagreements == seen.num_scored > 0
    ended = [game for game in report.games if game.moves[-2:] == (16, 16)]
    # The engine scores every game as won by White, so Black's wins disagree.
    won_by_black = [game for game in ended if game.a_moves_first == (game.score_a == 1)]
    assert seen.num_other_winners == len(won_by_black)
    assert 0 < len(won_by_black) < len(ended)
    assert f"game {ended[0].index} is " in seen.first_disagreement
    assert "W+99.5" in seen.first_disagreement
    assert ("3 stones in seki" in seen.first_disagreement) == (fault == "seki")
    content = json.loads(json.dumps(report.to_json()))
    assert content["engines"]["a"]["num_disagreements"] == seen.num_disagreements


@pytest.mark.parametrize("words", [(), ("talk",), ("suggest",), ("restart",)])
def test_messages_and_suggestions_do_not_change_the_games(words):
    report = match(gomocup(*words), MctsPlayer(30), num_games=6, num_threads=2)
    assert report.games == match(gomocup(), MctsPlayer(30), num_games=6).games
    assert (report.engines["a"].num_scored, report.engines["a"].num_illegal) == (0, 0)


@pytest.mark.parametrize("opening_plies", [0, 3])
def test_a_gomocup_engine_is_told_the_game(tmp_path, opening_plies):
    log = tmp_path / "log"
    words = command("gomoku", "log", log)
    engine = GomocupPlayer(words, turn_s=0.25, turn_nodes=200)
    task, plies = "gomoku/6/exact", opening_plies
    (game,) = match(engine, RandomPlayer(), task, 1, opening_plies=plies).games
    told = log.read_text().splitlines()
    assert told[0] == "START 6"
    infos = dict(line.split()[1:] for line in told if line.startswith("INFO"))
    expected = {"timeout_turn": "250", "rule": "1", "time_left": str(2**31 - 1)}
    expected["max_node"] = "200"
    assert infos.items() >= expected.items()
    cells = [f"{move % 6},{move // 6}" for move in game.moves]
    # The engine moves first without an opening, and second after three plies.
    if opening_plies == 0:
        assert "BEGIN" in told
        turns = cells[1::2]
    else:
        board = [line.rpartition(",") for line in told if line.count(",") == 2]
        assert [cell for cell, _, _ in board] == cells[: len(board)]
        assert [owner for *_, owner in board] == ["1", "2"] * (len(board) // 2)
        turns = cells[5::2]
    said = [line.split()[1] for line in told if line.startswith("TURN")]
    assert said == turns[: len(said)]
    assert len(turns) - len(said) in (0, 1)  # the game's last move is not sent


@pytest.mark.parametrize(
    ("engine", "why"),
    [
        (gtp("resign"), ""),
        (gtp("taken"), "the point is occupied"),
        (gtp("vertex"), "Z99, is not legal in go/4: it is not a vertex"),
        (gomocup("taken"), "the cell is occupied"),
        (gomocup("off"), "it is not a cell"),
        (gomocup("word"), "it is no"),
    ],
)
def test_resignations_and_illegal_moves_lose(engine, why):
    report = match(engine, RandomPlayer(), num_games=4)
    # Four engines play one game each, and each fails at its second move.
    assert [game.score_a for game in report.games] == [0.0] * 4
    seen = report.engines["a"]
    assert seen.num_illegal == (4 if why else 0)
    assert why in seen.first_illegal
    assert report.games[0].illegal == seen.first_illegal
    for game in report.games:
        assert bool(game.illegal) == bool(why)
        assert from_dict(PlayedGame, game.to_json(), where="game") == game


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (gtp("die"), '"genmove |"out of order"'),
        (gtp("garbage"), '"genmove |hello|GTP'),
        (gtp("flood"), '"genmove '),
        (gtp("deny"), '"genmove |not now'),
        (gomocup("die"), '"out of order"'),
        (gomocup("flood"), "engine ("),
        (gomocup("deny"), "ERROR not now"),
        (gomocup("size"), '"START 6": ERROR 20 alone'),
        (gomocup("stranger"), '"START 6"|hello|Gomocup'),
    ],
)
def test_a_broken_engine_ends_the_match_and_finished_games_are_kept(engine, message):
    kept = []
    with refused(RunError, *message.split("|")):
        match(engine, RandomPlayer(), num_games=40, keep=kept.extend)
    assert all(played.score_a in (0.0, 0.5, 1.0) for played in kept)


def test_a_slow_engine_is_ended_with_its_children(tmp_path):
    note = tmp_path / "child"
    engine = GtpPlayer(command("go", "hang", note), 5.0)
    with refused(RunError, '"genmove ', "5 s"):
        match(engine, RandomPlayer(), num_games=1)
    assert has_begun(note)
    assert wait_for(lambda: is_gone(note))


@pytest.mark.parametrize("how", [MatchStopped, KeyboardInterrupt])
def test_a_watcher_or_an_interrupt_ends_a_match_while_an_engine_thinks(tmp_path, how):
    note = tmp_path / "child"

    def watch(tally):
        if has_begun(note):
            if how is MatchStopped:
                raise MatchStopped
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(how):
        match(gtp("hang", note), RandomPlayer(), num_games=1, watch=watch)
    assert wait_for(lambda: is_gone(note))


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        (command("go", "version"), UsageError, "GTP 2, not 3"),
        (command("go", "commands"), UsageError, "must know genmove"),
        ("no-such-program-at-all --gtp", UsageError, "engine ("),
        ("'", UsageError, "engine ("),
        (f"{sys.executable} -c pass", RunError, '"protocol_version"'),
    ],
)
def test_a_program_that_is_no_engine_is_refused(line, error, message):
    with refused(error, message):
        GtpEngine(line, 60.0)


def test_an_engine_is_asked_and_closed():
    with GtpEngine(command("go"), 60.0) as engine:
        engine.ask("boardsize 5")
        assert engine.ask("play b A1") == ""
        assert engine.ask("final_score") == "B+17.5"
        with pytest.raises(EngineRefusal):
            engine.ask("komi x")
        engine.close()
    engine.kill()
    with GomocupEngine(command("gomoku"), 60.0) as engine:
        engine.open(games.make("gomoku/5"))
        engine.tell("INFO rule 0")
        assert engine.ask("PLAY 0,0") == "0,0"
        engine.close()
    engine.kill()


def test_an_engine_is_tried_out():
    check_engine(gomocup(), "gomoku/6")
    with refused(RunError, "ERROR 20 alone"):
        check_engine(gomocup("size"), "gomoku/6")


def test_superko_is_told_from_other_reasons():
    rng, told = _core.Rng(3), set()
    with gtp().start(games.make("go/3")) as engine:
        while told != {"superko", "other"}:
            state, moves = games.make("go/3").new_state(), []
            while not state.is_terminal():
                for action in set(range(9)) - set(state.legal_actions()):
                    why = engine.why_illegal(moves, action)
                    stands = state.observation()[1:3].reshape(2, 9)[:, action].any()
                    told.add("superko" if "superko" in why else "other")
                    assert not ("superko" in why and stands)
                legal = state.legal_actions()
                moves.append(legal[rng.below(len(legal))])
                state.apply(moves[-1])


# Disputed games.


def to_engine(game, engine_is_a):
    """Returns the plies sent to the engine: the opening's and the opponent's."""
    parity = int(engine_is_a == game.a_moves_first)
    return [
        ply
        for ply in range(len(game.moves))
        if ply < game.num_opening_plies or ply % 2 == parity
    ]


@pytest.fixture(scope="module")
def disputed():
    """A match in which the engine refuses moves at C3."""
    return match(gtp("refuse", "C3"), RandomPlayer(), num_games=NUM_GAMES)


@pytest.mark.parametrize("engine_is_a", [True, False])
def test_a_refused_move_is_one_game_without_a_result(disputed, engine_is_a):
    report = disputed
    if not engine_is_a:
        report = match(RandomPlayer(), gtp("refuse", "C3"), num_games=NUM_GAMES)
    assert [game.index for game in report.games] == list(range(NUM_GAMES))
    counted = [game for game in report.games if game.disputed is None]
    assert 0 < len(counted) < NUM_GAMES
    refused = read_vertex("C3", 4, 4)
    for game in report.games:
        plies = to_engine(game, engine_is_a)
        at = [ply for ply in plies if game.moves[ply] == refused]
        if game.disputed is None:
            # A game's last move is never sent to the engine.
            assert at in ([], [len(game.moves) - 1])
            assert game.score_a in (0.0, 1.0)
            continue
        assert game.score_a is None
        assert game.disputed.side == ("a" if engine_is_a else "b")
        assert (game.disputed.move, game.disputed.vertex) == (at[0] + 1, "C3")
        assert game.disputed.words == "illegal move"
    scores = [game.score_a for game in counted]
    assert report.tally == Tally(scores.count(1), scores.count(0.5), scores.count(0))
    assert list(report.disputes) == [g.index for g in report.games if g.disputed]
    content = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert content["games"] == len(counted)
    first = min(report.disputes)
    fields = dataclasses.asdict(report.disputes[first])
    assert content["disputed"][0] == {"game": first, **fields}
    assert len(content["disputed"]) == NUM_GAMES - len(counted)
    for game in report.games:
        line = json.loads(json.dumps(game.to_json()))
        assert ("disputed" in line) == (game.index in report.disputes)
        assert from_dict(PlayedGame, line) == game


def test_games_that_are_not_disputed_are_the_same_without_the_refusal(disputed):
    sound = match(gtp(), RandomPlayer(), num_games=NUM_GAMES)
    for game, whole in zip(disputed.games, sound.games, strict=True):
        if game.disputed is None:
            assert game == whole
        else:
            assert game.moves == whole.moves[: len(game.moves)]
    assert sound.to_json()["disputed"] == []


def test_a_game_whose_last_pass_is_refused_counts_but_is_not_scored():
    report = match(gtp("refuse", "PASS"), RandomPlayer(), num_games=24)
    counted = [game for game in report.games if game.disputed is None]
    assert {dispute.vertex for dispute in report.disputes.values()} <= {"pass"}
    assert report.tally.num_games == len(counted)
    assert any(game.moves[-2:] == (16, 16) for game in counted)
    # The opponent passed last: the engine would have refused a first pass.
    assert report.engines["a"].num_scored == 0


def test_a_journal_keeps_disputed_games_and_they_are_not_replayed(tmp_path, disputed):
    first = min(disputed.disputes)
    journal = MatchJournal(tmp_path, {"seed": 5})
    journal.keep(disputed.games[: first + 1])
    journal.close()
    journal = MatchJournal(tmp_path, {"seed": 5})
    assert journal.played == disputed.games[: first + 1]
    kept = []
    settings = {"played": journal.played, "keep": kept.extend, "num_games": NUM_GAMES}
    report = match(gtp("refuse", "C3"), RandomPlayer(), **settings)
    journal.close()
    assert (report.games, report.tally) == (disputed.games, disputed.tally)
    assert sorted(game.index for game in kept) == list(range(first + 1, NUM_GAMES))
    # If no games are left to play, no engine is started and the report is the same.
    settings = {"played": disputed.games, "num_games": NUM_GAMES}
    again = match(GtpPlayer("no-such-program"), RandomPlayer(), **settings)
    assert again.to_json()["disputed"] == disputed.to_json()["disputed"]
    assert again.tally == disputed.tally


# The command.


def test_the_command_prints_scores_and_writes_sgf(tmp_path, capsys):
    folder = tmp_path / "games"
    words = ["match", f"gtp:{command('go')}", "random", "--game", "go/4"]
    words += ["--games", "3", "--threads", "1", "--keep", str(folder)]
    assert cli.main(words) == 0
    assert "A scored" in capsys.readouterr().out
    *paths, _ = sorted(folder.iterdir())
    assert [path.name for path in paths] == ["000000.sgf", "000001.sgf", "000002.sgf"]
    records = [read_sgf(path.read_bytes()) for path in paths]
    assert [record.white for record in records].count("random") == 2
    assert records[1].black == "random"
    for record in records:
        score = _core.GoPosition("go/4", list(record.moves)).score()
        assert record.result == f"{'B' if score > 0 else 'W'}+{abs(score):g}"
    assert cli.main(words) == 2
    assert "must be new or empty" in capsys.readouterr().err


def test_the_command_counts_illegal_moves(capsys):
    words = ["match", "random", f"gomocup:{command('gomoku', 'taken')}"]
    words += ["--game", "gomoku/6", "--games", "2", "--threads", "1", "--json"]
    assert cli.main(words[:-1]) == 0
    out = capsys.readouterr().out
    assert "B lost 2 games with an illegal move" in out
    assert "scores" not in out.replace("score of A", "")
    assert cli.main(words) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["engines"]["b"]["num_illegal"] == 2


def test_the_command_shows_disputed_games(tmp_path, capsys, disputed):
    folder = tmp_path / "games"
    words = ["match", f"gtp:{command('go', 'refuse', 'C3')}", "random"]
    words += ["--game", "go/4", "--games", "12", "--seed", "5", "--opening-plies", "1"]
    assert cli.main([*words, "--keep", str(folder)]) == 0
    text = capsys.readouterr().out
    num_disputed, first = len(disputed.disputes), min(disputed.disputes)
    move = disputed.disputes[first].move
    assert f"in {NUM_GAMES - num_disputed} games" in text
    assert f"{num_disputed} of 12 games are disputed, and do not count" in text
    assert f"first: in game {first} A refused move {move}, C3: illegal move" in text
    records = [read_sgf(path.read_bytes()) for path in sorted(folder.glob("*.sgf"))]
    for game, record in zip(disputed.games, records, strict=True):
        assert record.moves == game.moves
        assert (record.result == "Void") == (game.disputed is not None)
        says = f"refused move {game.disputed.move}, C3" if game.disputed else ""
        assert says in record.comment
        assert bool(record.comment) == bool(says)


@pytest.mark.parametrize(
    ("kind", "fault", "words", "code", "message"),
    [
        ("go", [], ["--game", "connect4"], 2, "plays Go, not connect4"),
        ("go", [], ["--answer-seconds", "0"], 2, "answer-seconds (0.0)"),
        ("go", [], ["--game", "go/30"], 2, "task (go/30)"),
        ("go", ["die"], [], 1, "engine ("),
        ("go", ["refuse"], ["--games", "3"], 1, "games (3) were all disputed"),
        ("gomoku", [], ["--game", "go/6"], 2, "plays gomoku, not go/6"),
        ("gomoku", [], ["--game", "gomoku/4"], 2, "task (gomoku/4)"),
        ("gomoku", [], ["--turn-seconds", "-1"], 2, "turn-seconds (-1.0)"),
        ("gomoku", [], ["--turn-seconds", "90"], 2, "turn-seconds (90.0)"),
        ("gomoku", ["hang"], ["--answer-seconds", "2"], 1, "within 2 s"),
    ],
)
def test_errors_are_one_line(tmp_path, capsys, kind, fault, words, code, message):
    if fault == ["hang"]:
        fault = ["hang", tmp_path / "child"]
    prefix = {"go": "gtp", "gomoku": "gomocup"}[kind]
    line = ["match", f"{prefix}:{command(kind, *fault)}", "random"]
    line += ["--game", TASKS[kind], "--games", "1", "--json", *words]
    if fault == ["refuse"]:
        line += ["--keep", str(tmp_path / "games")]
    assert cli.main(line) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1
    if fault == ["refuse"]:
        assert len(list((tmp_path / "games").glob("*.sgf"))) == 3


@pytest.mark.parametrize("game", ["tictactoe", "go/4"])
def test_games_are_not_kept_in_a_file(tmp_path, capsys, game):
    path = tmp_path / "file"
    path.write_text("")
    words = ["match", "random", "random", "--game", game, "--keep", str(path)]
    assert cli.main(words) == 2
    assert f"keep ({path})" in capsys.readouterr().err
