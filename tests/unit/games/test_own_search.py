"""Python games in the core: games, matches, sessions and rows equal native ones."""

import numpy as np
import pytest
from own_games import ConnectFour, TicTacToe

from tengen import _core, games
from tengen.actors import SelfplayConfig
from tengen.errors import UsageError
from tengen.evaluation import MctsPlayer, ModelPlayer, RandomPlayer, play_match
from tengen.evaluation.searcher import Searcher
from tengen.games.source import OwnGameSource
from tengen.inference import bind_port
from tengen.search import SearchConfig
from tests.refusals import refused
from tests.unit.conftest import PLAIN

PAIRS = [("own_games:TicTacToe", "tictactoe"), ("own_games:ConnectFour", "connect4")]


class Recorder(OwnGameSource):
    """Records the positions that the core opened, and the size of every batch."""

    def __init__(self, own):
        super().__init__(games.make(f"own_games:{type(own).__name__}"))
        self.opened = []
        self.batches = []

    def open(self):
        states = super().open()
        expand = states.expand

        def counted(moves):
            self.batches.append(len(moves))
            return expand(moves)

        states.expand = counted
        self.opened.append(states)
        return states


def neighbour_sum(plane):
    padded = np.pad(plane, ((0, 0), (1, 1), (1, 1)))
    return sum(
        padded[:, i : i + plane.shape[1], j : j + plane.shape[2]]
        for i in range(3)
        for j in range(3)
    )


class Neighbours:
    """A backend exactly equivariant to symmetries: small integers, no rounding."""

    signature = PLAIN

    def bind(self, inputs, outputs, state=None):
        self.planes = inputs["planes"]
        self.policy, self.value = outputs["policy"], outputs["value"]
        return self

    def run(self, num_rows):
        own, other = self.planes[:num_rows, 1], self.planes[:num_rows, 2]
        logits = 2 * neighbour_sum(own) + 3 * neighbour_sum(other)
        if self.policy.shape[1] < logits[0].size:
            logits = logits.sum(axis=1, keepdims=True)  # one value per column
        self.policy[:num_rows] = logits.reshape(num_rows, -1)
        crowded = neighbour_sum(own) * own - neighbour_sum(other) * other
        self.value[:num_rows] = crowded.sum(axis=(1, 2)) / 256


def selfplay(game, path, num_games=8, **settings):
    """Plays a generation; returns the encoded games in order, and the statistics."""
    settings = {"full_simulations": 24, "num_slots": 8, **settings}
    queue = _core.GameQueue(seed=5, generation=1, model=0, num_games=num_games)
    journal = _core.Journal(str(path), "{}")
    native = SelfplayConfig(**settings).to_native()
    port = _core.make_selfplay_worker(game, native, queue, _core.JournalSink(journal))
    runner = bind_port(Neighbours(), port)
    while num_rows := port.next():
        runner.run(num_rows)
        port.done()
    journal.close()
    frames = _core.read_journal(str(path))[1]
    return sorted(frames, key=lambda f: _core.decode_game(f).game_index), port.stats


@pytest.mark.parametrize(("own", "native"), PAIRS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"search": SearchConfig(policy="gumbel"), "max_opening_plies": 3},
        {"full_probability": 0.3, "num_slots": 1, "cache_mib": 0},
        {
            "policy_opening_plies": 2.0,
            "reduce_above": 0.01,
            "policy_surprise_share": 0.5,
            "value_surprise_share": 0.1,
            "full_probability": 0.5,
        },
    ],
    ids=["puct", "gumbel", "reuse", "methods"],
)
def test_self_play_is_that_of_the_native_game(own, native, settings, tmp_path):
    source = games.core_game(games.make(own))
    frames, _ = selfplay(source, tmp_path / "own", **settings)
    expected, _ = selfplay(native, tmp_path / "native", **settings)
    assert frames == expected
    assert len(frames) == 8


@pytest.mark.parametrize(("own", "native"), PAIRS)
@pytest.mark.parametrize("has_network", [False, True], ids=["mcts", "network"])
def test_a_match_is_that_of_the_native_game(own, native, has_network):
    players = (MctsPlayer(20), RandomPlayer())
    if has_network:
        # Not a test parameter, as a backend stays bound to its first match.
        players = (ModelPlayer("net", "", Neighbours()), MctsPlayer(20))
    reports = [
        play_match(games.make(name), *players, num_games=6, num_simulations=16, seed=2)
        for name in (own, native)
    ]
    assert reports[0].games == reports[1].games


def test_two_networks_share_the_positions_of_a_match():
    players = [ModelPlayer(name, "", Neighbours()) for name in "ab"]
    reports = [
        play_match(games.make(name), *players, num_games=4, num_simulations=16)
        for name in PAIRS[0]
    ]
    assert reports[0].games == reports[1].games


@pytest.mark.parametrize(("own", "native"), PAIRS)
def test_a_session_finds_what_the_native_one_finds(own, native):
    results = []
    for game in (games.core_game(games.make(own)), native):
        session = _core.make_session(game, SearchConfig().to_native())
        request = _core.SearchRequest()
        port = session.port(0)
        runner = bind_port(Neighbours(), port)
        for moves in ([], [3, 3]) if native == "connect4" else ([], [3, 4]):
            session.begin(moves, request)
            while port.next():
                runner.run(1)
                port.done()
            results.append([(a.action, a.visits) for a in session.result.actions])
    assert results[:2] == results[2:]


@pytest.mark.parametrize(("own", "native"), PAIRS)
def test_rows_are_those_of_the_native_game(own, native, tmp_path):
    frames, _ = selfplay(native, tmp_path / "games", max_opening_plies=2)
    skipped = ("game_index", "model", "num_simulations")
    columns = {
        name: column
        for name, column in _core.merge_games(frames, 1).items()
        if name not in skipped and "switch" not in name
    }
    found = []
    for game in (games.core_game(games.make(own)), native):
        rows = _core.GameRows(game)
        rows.add_segment(**columns)
        # Twice, so that stored positions are requested as well.
        keys = np.tile(np.arange(rows.num_rows), 2)
        symmetries = (keys % rows.num_symmetries).astype(np.uint8)
        found.append(rows.derive(keys, symmetries, False))
    for name, column in found[0].items():
        np.testing.assert_array_equal(column, found[1][name], name)


def test_moves_are_made_many_at_a_time(tmp_path):
    source = Recorder(TicTacToe())
    _, stats = selfplay(source, tmp_path / "games", num_games=32, num_slots=16)
    assert stats.num_games == 32
    # A call into Python makes at most one move per slot, and usually nearly as many.
    assert max(source.batches) == 16
    assert sum(source.batches) / len(source.batches) > 5


def test_positions_that_are_over_are_forgotten(tmp_path):
    most = []
    for num_games in (3, 8):
        source = Recorder(ConnectFour())
        settings = {"num_slots": 2, "full_simulations": 16, "num_games": num_games}
        selfplay(source, tmp_path / str(num_games), **settings)
        (states,) = source.opened
        assert sum(source.batches) > 8 * len(states)
        most.append(len(states))
    # A slot stores the positions of a few searches, however many games it plays.
    assert max(most) < 2 * 16 * 8


def test_one_tree_by_several_threads_is_refused():
    game = games.make("own_games:TicTacToe")
    with refused(UsageError, "threads (2)"):
        Searcher(game, Neighbours(), SearchConfig(), num_threads=2)


def test_minigo_searches_games_of_the_core_alone():
    native = SelfplayConfig(search=SearchConfig(policy="minigo")).to_native()
    source = games.core_game(games.make("own_games:TicTacToe"))
    queue = _core.GameQueue(seed=0, generation=0, model=0, num_games=1)
    line = "search.policy (minigo)"
    with refused(_core.CoreError, line):
        _core.make_selfplay_worker(source, native, queue, _core.GameFrames())
    player = _core.MatchPlayer()
    player.kind = _core.PlayerKind.NETWORK
    player.search = native.search
    with refused(_core.CoreError, line):
        _core.make_match(
            source, player, player, queue, num_slots=1, num_opening_plies=0
        )
