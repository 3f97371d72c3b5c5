"""OpenSpiel's games through the adapter and the engine, compared with pyspiel."""

import json
import random
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

from tengen import _core, cli, games
from tengen.actors import SelfplayConfig
from tengen.errors import UsageError
from tengen.evaluation import MctsPlayer, RandomPlayer, play_match
from tengen.games.openspiel import RULES, OpenSpielGame, list_openspiel
from tengen.play.board import make_board_text
from tengen.recipes import make_config
from tengen.search import SearchConfig

pyspiel = pytest.importorskip("pyspiel", reason="needs pip install 'open_spiel>=2.0'")

# Cover every layout and tensor form, passes, draws, and two moves in a row.
GAMES = (
    "tic_tac_toe",
    "connect_four",
    "breakthrough",
    "hex(board_size=5)",
    "othello",
    "mnk(m=5,n=4,k=4)",
    "gomoku(size=7)",
    "go(board_size=5)",
    "dots_and_boxes",
    "mancala",
    "amazons",
    "ultimate_tic_tac_toe",
    "clobber",
    "nim",
    "pentago",
    "chess",
)
TWICE_IN_A_ROW = {"dots_and_boxes", "mancala", "amazons", "ultimate_tic_tac_toe"}
ROOT = Path(__file__).parents[3]
OUTCOMES = {1: (1, -1), 2: (-1, 1), 3: (0, 0)}


@pytest.mark.parametrize("name", GAMES)
def test_it_is_the_game_of_openspiel(name):
    rng = random.Random(name)
    game, theirs = games.make(f"openspiel/{name}"), pyspiel.load_game(name)
    assert game.name == f"openspiel/{name}"
    assert game.num_actions == theirs.num_distinct_actions()
    assert game.max_plies == theirs.max_game_length()
    movers = []
    for _ in range(3):
        ours, state = game.new_state(), theirs.new_initial_state()
        before = -1
        while not state.is_terminal():
            assert not ours.is_terminal()
            assert ours.to_play == state.current_player()
            assert ours.legal_actions() == state.legal_actions()
            assert str(ours) == str(state)
            planes = ours.observation()
            seen = state.observation_tensor(state.current_player())
            assert planes.shape == (game.num_planes, game.height, game.width)
            assert planes[2:].ravel().tolist() == seen
            assert (planes[0] == 1).all()
            assert (planes[1] == (ours.to_play == 0)).all()
            movers.append(ours.to_play == before)
            before = ours.to_play
            action = rng.choice(state.legal_actions())
            ours.apply(action)
            state.apply_action(action)
        assert ours.is_terminal()
        assert ours.legal_actions() == []
        assert list(ours.returns()) == state.returns()
    assert any(movers) == (name in TWICE_IN_A_ROW)


def test_what_a_tensor_leaves_out_is_warned_of(capsys):
    """The tensor of quoridor does not show where a wall begins."""
    words = ["game", "check", "openspiel/quoridor", "--games", "4"]
    assert cli.main(words) == 0
    line, *_ = capsys.readouterr().out.splitlines()
    assert line.startswith("warning  observation (equal at plies 1 and 1, ")
    assert "is legal in only one of them) should determine" in line


@pytest.mark.parametrize("name", GAMES)
def test_games_of_the_engine_are_games_of_openspiel(name):
    game = games.make(f"openspiel/{name}")
    settings = SelfplayConfig(full_simulations=8, num_slots=4, max_opening_plies=2)
    if game.max_plies > 300:
        settings = SelfplayConfig(full_simulations=2, num_slots=4)
    queue = _core.GameQueue(seed=3, generation=1, model=0, num_games=4)
    frames = _core.GameFrames()
    source = games.core_game(game)
    worker = _core.make_selfplay_worker(source, settings.to_native(), queue, frames)
    while worker.next():
        worker.done()
    played = [_core.decode_game(frame) for frame in frames.take()]
    assert len(played) == 4
    for record in played:
        state = pyspiel.load_game(name).new_initial_state()
        for action in [*record.opening, *(ply.action for ply in record.plies)]:
            assert action in state.legal_actions()
            state.apply_action(action)
        assert state.is_terminal()
        assert tuple(state.returns()) == OUTCOMES[record.outcome]


@pytest.mark.parametrize("name", ["connect_four", "mancala", "hex(board_size=5)"])
def test_playouts_in_place_are_those_of_new_states(name, monkeypatch):
    """Copying the state once per playout, not per ply, leaves the choices unchanged."""
    moves = [0, 1] if name != "mancala" else [1]

    def choices():
        source = games.core_game(games.make(f"openspiel/{name}"))
        return [
            _core.mcts_choose(source, moves[:played], 40, seed)
            for seed in range(3)
            for played in range(len(moves) + 1)
        ]

    in_place = choices()
    monkeypatch.delattr(OpenSpielGame, "play_out")
    assert choices() == in_place
    assert len(set(in_place)) > 1


def test_a_player_who_moves_again_keeps_the_value():
    """In a game of two boxes, closing one gives another move; proofs match a solver."""
    name = "dots_and_boxes(num_rows=1,num_cols=2)"

    @cache
    def solve(moves):
        state = pyspiel.load_game(name).new_initial_state()
        for move in moves:
            state.apply_action(move)
        if state.is_terminal():
            return state.returns()[0]
        values = [solve((*moves, a)) for a in state.legal_actions()]
        return max(values) if state.current_player() == 0 else min(values)

    game = games.make(f"openspiel/{name}")
    rng = random.Random(1)
    values = []
    for _ in range(20):
        state, moves = game.new_state(), []
        for _ in range(rng.randrange(1, 6)):
            moves.append(rng.choice(state.legal_actions()))
            state.apply(moves[-1])
        session = _core.make_session(games.core_game(game), SearchConfig().to_native())
        request = _core.SearchRequest()
        request.num_simulations = 20_000
        session.begin(moves, request)
        port = session.port(0)
        while port.next():
            port.done()
        first = session.result.root_value_to_play * (1 - 2 * state.to_play)
        assert first == solve(tuple(moves)), moves
        values.append(first)
    assert len(set(values)) > 1


@pytest.mark.parametrize(
    ("name", "layout", "shape"),
    [
        ("tic_tac_toe", "cells", (5, 3, 3)),
        ("hex", "cells", (11, 11, 11)),
        ("gomoku", "cells", (5, 15, 15)),  # a board in one row of cells
        ("go(board_size=9)", "cells_and_pass", (6, 9, 9)),
        ("othello", "cells_and_pass", (5, 8, 8)),
        ("connect_four", "columns", (5, 6, 7)),
        ("misere(game=connect_four())", "columns", (5, 6, 7)),
        ("breakthrough", "flat", (5, 8, 8)),
        ("dots_and_boxes", "flat", (5, 9, 3)),
        ("mancala", "flat", (18, 1, 1)),
        # As many actions as cells, but the actions are not these cells.
        ("quoridor", "flat", (7, 17, 17)),
    ],
)
def test_actions_lie_on_the_board_where_games_show_it(name, layout, shape):
    game = games.make(f"openspiel/{name}")
    assert game.policy_layout == layout
    assert (game.num_planes, game.height, game.width) == shape


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("kuhn_poker(players=3)", "for two players"),
        ("matrix_mp", "played in turn"),
        ("pig", "without chance"),
        ("dark_hex", "of perfect information"),
        ("sheriff", "zero-sum"),
        ("catch", "for two players"),
        ("cribbage", "rewarded at the end only"),
        ("battleship", "won, drawn or lost"),
        ("liars_dice_ir", "seen by an observation tensor"),
        ("colored_trails", "of at most 65535 actions"),
        ("cursor_go", "of at most 65535 plies"),
    ],
)
def test_a_game_that_does_not_fit_is_refused_by_the_rule(name, rule):
    assert rule in RULES
    with pytest.raises(UsageError) as refused:
        games.make(f"openspiel/{name}")
    message = str(refused.value)
    assert message.startswith(f"task (openspiel/{name}) must be a game ")
    assert rule in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "must name a game"),
        ("hexx", 'did you mean "hex"?'),
        ("misere", "Missing parameter game"),
        ("othello(a", "Missing closing bracket"),
        ("connect_four(rows=x)", "Wrong type for parameter rows"),
        ("connect_four(foo=1)", "Unknown parameter 'foo'"),
        ("connect_four(rows=0)", "must have rows at least 1"),
        ("go(board_size=99)", "board size up to 19"),
    ],
)
def test_bad_names_are_one_line(name, words, capfd):
    with pytest.raises(UsageError) as refused:
        games.make(f"openspiel/{name}")
    message = str(refused.value)
    assert f"openspiel/{name}" in message
    assert words in message
    assert "\n" not in message
    assert capfd.readouterr().err == ""  # OpenSpiel prints the errors that it raises


def test_every_game_that_fits_keeps_the_protocol_to_its_end():
    fitting = [name for name, verdict in list_openspiel() if verdict == "fits"]
    assert len(fitting) >= 30
    for name in fitting:
        facts = games.check_own_game(OpenSpielGame(f"openspiel/{name}"), name, 1)
        assert facts.num_plies[0] > 2


def test_threads_see_their_own_positions():
    name = "openspiel/connect_four"
    reports = []
    for num_threads in (1, 4):
        players = (MctsPlayer(20), RandomPlayer())
        report = play_match(
            games.make(name), *players, num_games=8, num_threads=num_threads
        )
        reports.append(report.games)
    assert reports[0] == reports[1]


def test_a_person_sees_the_board_of_openspiel():
    game = games.make("openspiel/hex(board_size=3)")
    board = make_board_text(game)
    assert board.draw(game.new_state(), None, False) == str(game.new_state())
    assert board.read("4") == 4


def test_the_table_in_the_docs_is_what_openspiel_has():
    pinned = re.search(r"open_spiel==(.*)", (ROOT / "constraints.txt").read_text())
    if version("open_spiel") != pinned[1]:
        pytest.skip(f"the table is of OpenSpiel {pinned[1]}")
    page = (ROOT / "docs/howto/train/openspiel.md").read_text()
    assert f"OpenSpiel {pinned[1]}" in page
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.M)
    assert rows == list_openspiel()


def test_the_command_lists_them_and_their_recipe(capsys):
    assert cli.main(["recipes", "--openspiel", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["openspiel"]
    assert listed == dict(list_openspiel())
    config = make_config("openspiel/hex(board_size=5)", None, None)
    assert (config.recipe, config.agent.kind) == ("openspiel", "alphazero")
    assert config.task == "openspiel/hex(board_size=5)"
