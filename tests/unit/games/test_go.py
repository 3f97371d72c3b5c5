"""Go compared with the slow rules, with OpenSpiel, and with known facts."""

import itertools
import random

import numpy as np
import pytest
from slow_games import EMPTY, STONES
from slow_go import SlowGo, chain_at, choose, eternal_chains, pass_alive, rows_of

from tengen import _core, games
from tests.refusals import refused

RULES = [
    ko + suicide
    for ko in ("", "/situational", "/simple")
    for suicide in ("", "/nosuicide")
]
# (Games, plies) per board, for every rule set: small boards repeat most positions,
# large ones show how chains grow. 0 plies: the default limit.
SHORT = {
    "2": (40, 100),
    "3": (30, 150),
    "2x5": (15, 150),
    "4x3": (15, 150),
    "5": (8, 0),
}
LONG = {
    "2": (130, 200),
    "3": (130, 300),
    "4": (40, 200),
    "2x7": (30, 200),
    "19x2": (6, 0),
    "5": (30, 150),
    "6x4": (20, 150),
    "7": (10, 0),
    "9": (4, 0),
    "9x13": (2, 0),
    "19": (1, 0),
}


def compare_games(name, num_games):
    """Compares both implementations ply by ply; returns the kinds of events seen."""
    game, seen = games.make(name), set()
    for index in range(num_games):
        rng = random.Random(f"{name} {index}")
        state, slow = game.new_state(), SlowGo(name)
        shown = rng.randrange(9)
        while True:
            legal, banned = slow.split_actions()
            assert state.legal_actions() == legal, slow.moves
            assert (state.to_play, state.ply) == (slow.to_play, slow.ply)
            if state.ply % 9 == shown or not legal:
                shown_planes = state.observation()
                np.testing.assert_array_equal(shown_planes[:18], slow.planes())
                position = _core.GoPosition(name, slow.moves)
                np.testing.assert_array_equal(shown_planes[18:], position.ladders())
            if banned:
                seen.add("banned")
            if len(slow.captured) > 1:
                seen.add("several captured")
            if slow.captured and slow.moves[-1] in slow.captured:
                seen.add("suicide")
            if not legal:
                break
            action = choose(rng, slow, legal, index % 3)
            state.apply(action)
            slow.apply(action)
        assert state.is_terminal()
        assert state.returns() == slow.returns()
        seen.add(
            "repeated"
            if slow.repeated
            else "passes"
            if slow.has_two_passes()
            else "limit"
        )
        position = _core.GoPosition(name, slow.moves)
        assert position.score() == slow.score()
        for owners, found in (
            (slow.owners(), position.area()),
            (
                [owner_of(slow, p) for p in range(game.num_actions - 1)],
                position.pass_alive(),
            ),
        ):
            wanted = [
                "OX".find(owner) * 2 - 1 if owner in "OX" else 0 for owner in owners
            ]
            assert found.ravel().tolist() == wanted
    return seen


def owner_of(slow, point):
    return next((s for s in STONES if point in slow.pass_alive(s)), EMPTY)


def name_of(board, rule, num_plies, komi=""):
    return f"go/{board}{rule}{komi}" + (f"/plies={num_plies}" if num_plies else "")


def check_seen(seen, rule):
    wanted = {"banned", "several captured", "passes", "limit"}
    wanted |= {"suicide"} if "nosuicide" not in rule else set()
    wanted |= {"repeated"} if "simple" in rule else set()
    assert seen == wanted


@pytest.mark.parametrize("rule", RULES)
def test_equals_the_slow_game(rule):
    seen = set()
    for board, (num_games, num_plies) in SHORT.items():
        seen |= compare_games(name_of(board, rule, num_plies, "/komi=0.5"), num_games)
    check_seen(seen, rule)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "share",
    [
        pytest.param(12, marks=pytest.mark.slow),
        pytest.param(1, marks=pytest.mark.soak),
    ],
)
def test_equals_the_slow_game_on_all_boards(rule, share):
    """Plays a twelfth of the games in the slow tests, and all of them in soak."""
    seen = set()
    for board, (num_games, num_plies) in LONG.items():
        name = name_of(board, rule, num_plies, "/komi=2")
        seen |= compare_games(name, -(-num_games // share))
    check_seen(seen, rule)


@pytest.mark.parametrize("name", ["go/9/handicap=4", "go/7/komi=0/handicap=3"])
def test_white_moves_first_after_a_handicap(name):
    game = games.make(name)
    state = game.new_state()
    assert state.to_play == 1
    assert state.observation()[2].sum() == int(name.split("handicap=")[1][0])
    compare_games(name, 1)


def compare_with_openspiel(size, num_games):
    """Compares with OpenSpiel's Go, where suicide is illegal and repetition is a draw.

    Its legal moves are therefore ours, and moves that immediately end the game without
    a pass. Its rows are numbered from the bottom.
    """
    pyspiel = pytest.importorskip("pyspiel", reason="needs pip install open_spiel")
    theirs = pyspiel.load_game(f"go(board_size={size})")
    ours = games.make(f"go/{size}/nosuicide")
    flip = [ours.transform_action(action, 2) for action in range(size * size + 1)]
    num_forbidden = 0
    for index in range(num_games):
        rng = random.Random(f"{size} {index}")
        state, other = ours.new_state(), theirs.new_initial_state()
        while not state.is_terminal():
            legal = state.legal_actions()
            more = set(other.legal_actions()) - {flip[action] for action in legal}
            assert len(other.legal_actions()) == len(legal) + len(more)
            for action in more:
                end = other.child(action)
                assert end.is_terminal()
                assert end.returns() == [0, 0]
                num_forbidden += 1
            stones = legal[:-1] if rng.random() < 0.99 else []
            action = rng.choice(stones or legal[-1:])
            state.apply(action)
            other.apply_action(flip[action])
        assert other.is_terminal()
        assert list(state.returns()) == other.returns()
    return num_forbidden


def test_equals_openspiel():
    assert sum(compare_with_openspiel(size, 24 - size) for size in range(5, 20)) > 0


@pytest.mark.slow
def test_equals_openspiel_in_many_games():
    assert sum(compare_with_openspiel(size, 250 // size) for size in range(5, 20)) > 0


def is_legal_board(text, width):
    return all(
        cell == EMPTY or chain_at(text, width, point)[1]
        for point, cell in enumerate(text)
    )


@pytest.mark.parametrize(
    ("board", "num_boards"),
    # Source: Tromp and Farneback 2007, "Combinatorics of Go".
    [("2", 57), ("2x3", 489), ("3x2", 489), ("3", 12675)],
)
def test_every_legal_board_is_reached_and_no_other(board, num_boards):
    """Adds stones one by one, with passes in between, to every board reached so far."""
    game = games.make(f"go/{board}/plies=60")
    num_points = game.num_actions - 1
    reached = {EMPTY * num_points: game.new_state()}
    for text in reached_in_turn(reached):
        state = reached[text]
        for _ in range(2):
            for action in state.legal_actions()[:-1]:
                then = state.clone()
                then.apply(action)
                reached.setdefault(text_of(then), then)
            state = state.clone()
            state.apply(num_points)
            if state.is_terminal():
                break
    cells = (EMPTY, *STONES)
    boards = {"".join(text) for text in itertools.product(cells, repeat=num_points)}
    assert set(reached) == {t for t in boards if is_legal_board(t, game.width)}
    assert len(reached) == num_boards


def reached_in_turn(reached):
    """Yields all keys of ``reached``, including those added during the iteration."""
    done = 0
    while done < len(reached):
        todo = list(itertools.islice(reached, done, None))
        done = len(reached)
        yield from todo


def text_of(state):
    planes = state.observation()
    own, opponent = STONES if state.to_play == 0 else STONES[::-1]
    return "".join(
        own if a else opponent if b else EMPTY
        for a, b in zip(planes[1].ravel(), planes[2].ravel(), strict=True)
    )


def perft(slow, depth):
    legal = slow.legal_actions()
    if depth == 1:
        return len(legal)
    count = 0
    for action in legal:
        child = SlowGo(slow.name)
        for move in [*slow.moves, action]:
            child.apply(move)
        count += perft(child, depth - 1)
    return count


@pytest.mark.parametrize("rule", ["", "/situational", "/simple"])
def test_perft_equals_the_slow_count(rule):
    for board, depth in (("2", 5), ("2x3", 4)):
        name = f"go/{board}{rule}/plies=60"
        assert games.make(name).perft(depth) == perft(SlowGo(name), depth)


def crowded_board(rng, height, width, suicide):
    """Returns a board from a random game in which one side passes often."""
    board = f"{height}" if height == width else f"{height}x{width}"
    slow = SlowGo(name_of(board, "" if suicide else "/nosuicide", 200))
    idle = rng.random()
    for _ in range(rng.randrange(8, 60)):
        legal = slow.legal_actions()
        if not legal:
            break
        rests = slow.to_play == 1 and rng.random() < idle
        may_rest = slow.moves and slow.moves[-1] != legal[-1]
        slow.apply(legal[-1] if rests and may_rest else rng.choice(legal[:-1] or legal))
    return slow


def test_pass_alive_is_what_nothing_can_take():
    """Benson's chains are those that no opponent's moves capture if the side passes."""
    rng = random.Random(1)
    num_alive = num_fought = 0
    while num_alive < 40 or num_fought < 40:
        height, width = rng.choice([(2, 4), (3, 3), (3, 4), (2, 5), (2, 6)])
        suicide = rng.random() < 0.5
        slow = crowded_board(rng, height, width, suicide)
        text = slow.text()
        if text.count(EMPTY) > 6:
            continue
        found = _core.GoPosition(slow.name, slow.moves).pass_alive().ravel()
        for stone, sign in zip(STONES, (1, -1), strict=True):
            own = {p for p, cell in enumerate(text) if cell == stone}
            kept = eternal_chains(text, width, stone, suicide)
            area = set(np.flatnonzero(found == sign).tolist())
            assert area & own == kept, rows_of(text, width)
            assert area == pass_alive(text, width, stone, suicide)
            num_alive += bool(kept)
            num_fought += bool(own) and not kept


def test_the_board_is_drawn_as_go_players_name_it():
    state = games.make("go/9x10").new_state()
    for action in (8, 89, 40):
        state.apply(action)
    lines = str(state).splitlines()
    assert lines[0] == "9 . . . . . . . . X ."
    assert lines[8] == "1 . . . . . . . . . O"
    assert lines[9:] == ["  A B C D E F G H J K", "O to play"]


def test_illegal_games_have_no_position():
    with refused(_core.CoreError, "action (4)"):
        _core.GoPosition("go/9", [4, 4])
    with refused(_core.CoreError, "gomoku/9"):
        _core.GoPosition("gomoku/9", [])
