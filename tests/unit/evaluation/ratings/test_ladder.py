import json

import pytest

from tengen import games
from tengen.errors import UsageError
from tengen.evaluation import (
    Anchor,
    LadderConfig,
    MatchStopped,
    MctsPlayer,
    ModelPlayer,
    Pairing,
    RandomPlayer,
    Tally,
    elo_of_score,
    measure_anchors,
    rate_generation,
    read_records,
    run_ratings,
    shipped_pairings,
)
from tengen.evaluation.ratings.anchors import fixed_players, rate_anchors
from tengen.evaluation.ratings.ladder import nearest_anchor, team_ratings
from tengen.evaluation.ratings.records import MatchRecord, publish_record
from tengen.games import Book
from tengen.run import RunDirectory
from tengen.search import PlayConfig, SearchConfig
from tests.refusals import refused

SHIPPED = ("tictactoe", "connect4", "gomoku/9", "gomoku/15")
WORDS = ("random", "mcts:4", "mcts:30")


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path / "run")


@pytest.fixture
def unknown(monkeypatch):
    """Hides the shipped tables of anchors for every game."""
    monkeypatch.setattr("tengen.evaluation.ratings.anchors._shipped", dict)


def test_a_ladder_begins_with_random():
    assert [p.name for p in fixed_players(WORDS)] == list(WORDS)
    with refused(UsageError, "random"):
        fixed_players(["mcts:4"])
    with refused(UsageError, "anchor (runs/x)"):
        fixed_players(["random", "runs/x"])


def test_anchors_are_rated_as_far_as_neighbours_met():
    players = fixed_players(WORDS)
    first = Pairing("mcts:4", "random", Tally(15, 0, 5))
    assert [a.elo for a in rate_anchors(players, [])] == [0.0]
    rated = rate_anchors(players, [first])
    assert [a.player.name for a in rated] == ["random", "mcts:4"]
    assert rated[1].elo == pytest.approx(elo_of_score(15.5 / 21))
    # A pairing with a model must not change the anchors' ratings.
    model = Pairing("000001", "mcts:4", Tally(0, 0, 50))
    assert rate_anchors(players, [first, model]) == rated


def test_neighbours_are_measured_once_and_kept(run, unknown):
    game = games.make("tictactoe")
    players = fixed_players(WORDS)
    ladder = measure_anchors(run, game, players, num_games=10)
    assert [a.player for a in ladder] == players
    assert ladder[0].elo == 0.0 < ladder[1].elo
    files = sorted(path.name for path in run.eval.iterdir())
    assert files == ["anchor-mcts30-1.json", "anchor-mcts4-1.json"]
    assert measure_anchors(run, game, players, num_games=10) == ladder
    assert sorted(path.name for path in run.eval.iterdir()) == files


def test_another_run_measures_the_same(run, tmp_path, unknown):
    game, players = games.make("tictactoe"), fixed_players(WORDS)
    other = RunDirectory.create_or_resume(tmp_path / "other")
    first = measure_anchors(run, game, players, num_games=6)
    assert measure_anchors(other, game, players, num_games=6, num_threads=3) == first


@pytest.mark.parametrize("task", SHIPPED)
def test_shipped_ladders_reach_the_top(task):
    players = fixed_players(LadderConfig().anchors)
    ladder = rate_anchors(players, shipped_pairings(task))
    assert [a.player for a in ladder] == players
    elos = [a.elo for a in ladder]
    assert elos[0] == 0.0
    assert max(elos) == pytest.approx(elos[-1], abs=10)
    assert elos[-1] > 400


def test_the_nearest_anchor():
    ladder = [Anchor(RandomPlayer(), 0.0), Anchor(MctsPlayer(9), 400.0)]
    assert nearest_anchor(ladder, -50.0) is ladder[0]
    assert nearest_anchor(ladder, 200.0) is ladder[0]  # a tie goes to the cheaper one
    assert nearest_anchor(ladder, 201.0) is ladder[1]


def test_a_generation_is_rated_and_recorded(run, unknown, hash_player):
    config = LadderConfig(
        num_games=9, round_games=4, num_simulations=8, anchors=WORDS, opening_plies=1
    )
    game = games.make("tictactoe")
    player = hash_player("tictactoe")
    rating = rate_generation(run, 3, player, game, config, seed=1)
    records = [r for r in read_records(run) if r.a == "000003"]
    sizes = [r.wins_a + r.draws + r.wins_b for r in records]
    assert sizes == [4, 5]  # a remaining single game joins the last round
    assert len({r.seed for r in records}) == 2
    assert rating.num_games == 9
    assert rating.error > 0.0
    assert run_ratings(run, "tictactoe", config) == {"000003": rating}
    # More games narrow the interval; another model starts from this rating.
    again = rate_generation(run, 3, player, game, config, seed=1)
    assert again.num_games == 18
    assert again.error < rating.error
    rate_generation(run, 12, player, game, config, seed=1)
    assert list(run_ratings(run, "tictactoe", config)) == ["000003", "000012"]


def test_time_is_up_after_one_round(run, unknown, hash_player):
    config = LadderConfig(num_games=40, round_games=2, num_simulations=4, anchors=WORDS)
    rating = rate_generation(
        run,
        1,
        hash_player("tictactoe"),
        games.make("tictactoe"),
        config,
        time_limit_s=0.0,
    )
    assert rating.num_games == 2


def test_a_stop_ends_a_rating_and_keeps_whole_rounds(run, hash_player):
    """Tic-tac-toe has shipped anchors, so the model's rounds come first."""
    config = LadderConfig(num_games=10**6, round_games=2, num_simulations=4)
    many = LadderConfig(num_games=10**6, round_games=10**6, num_simulations=4)
    game, player = games.make("tictactoe"), hash_player("tictactoe")
    with pytest.raises(MatchStopped):
        rate_generation(run, 1, player, game, many, stop=lambda: True)
    assert read_records(run) == []
    with pytest.raises(MatchStopped):
        rate_generation(
            run, 1, player, game, config, stop=lambda: len(read_records(run)) >= 3
        )
    assert all(r.wins_a + r.draws + r.wins_b == 2 for r in read_records(run))


def test_a_stop_ends_the_measurement_of_anchors(run, unknown):
    players = fixed_players(WORDS)
    with pytest.raises(MatchStopped):
        measure_anchors(
            run, games.make("connect4"), players, num_games=10**6, stop=lambda: True
        )
    assert read_records(run) == []


def test_rounds_move_to_the_anchor_that_tells_most(run, unknown, monkeypatch):
    """A model that always wins climbs, one that always loses stays at the bottom."""
    met, wins_always = [], True

    def play(game, a, b, *, num_games, **settings):
        met.append((a.name, b.name))
        is_anchor = a.name.startswith("mcts")
        wins = num_games * 3 // 4 if is_anchor else num_games * wins_always
        return type("R", (), {"tally": Tally(wins, 0, num_games - wins)})

    config = LadderConfig(num_games=12, round_games=4, anchors=WORDS)
    player = type("P", (), {"name": "model"})()
    game = games.make("tictactoe")
    for module in ("anchors", "ladder"):
        monkeypatch.setattr(f"tengen.evaluation.ratings.{module}.play_match", play)
    strong = rate_generation(run, 1, player, game, config)
    # The lowest anchor is measured first, the next when the model is above it.
    assert met == [
        ("mcts:4", "random"),
        ("model", "random"),
        ("mcts:30", "mcts:4"),
        ("model", "mcts:30"),
        ("model", "mcts:30"),
    ]
    assert strong.elo > 300
    met.clear()
    wins_always = False
    weak = rate_generation(run, 2, player, game, config)
    assert met[0] == ("model", "mcts:30")
    assert met[-1] == ("model", "random")
    assert weak.elo < strong.elo


def test_a_model_with_other_settings_is_another_player(run, unknown, hash_player):
    settings = {"num_games": 2, "anchors": WORDS, "opening_plies": 0}
    config = LadderConfig(num_simulations=4, **settings)
    game, player = games.make("tictactoe"), hash_player("tictactoe")
    play = PlayConfig(search=SearchConfig(policy="gumbel"), keeps_tree=True)
    book = Book(task="tictactoe", openings=((4, 0), (0, 4)), digest="abc")
    searched = ModelPlayer("000002", "tictactoe", player.backend, play)
    rate_generation(run, 1, player, game, config, seed=3)
    rate_generation(run, 2, searched, game, config, play=play)
    rate_generation(run, 3, player, game, config, book=book)
    assert list(run_ratings(run, "tictactoe", config)) == ["000001"]
    assert list(run_ratings(run, "tictactoe", config, play)) == ["000002"]
    assert list(run_ratings(run, "tictactoe", config, book=book)) == ["000003"]
    more = LadderConfig(num_simulations=5, **settings)
    assert run_ratings(run, "tictactoe", more) == {}
    assert run_ratings(run, "connect4", config) == {}
    # A record contains everything needed to replay its match.
    for number, digest in ((1, ""), (3, "abc")):
        record = json.loads((run.eval / f"{number:06d}-1.json").read_text())
        expected = ("tictactoe", 4, 0, digest)
        names = ("task", "num_simulations", "opening_plies", "book")
        assert tuple(record[name] for name in names) == expected
        assert record["seed"] >= 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_simulations", 0),
        ("num_simulations", 10**12),
        ("opening_plies", -1),
        ("opening_plies", 10**12),
        ("final_opponent", "runs/x"),
        ("anchors", ("mcts:3",)),
    ],
)
def test_settings_that_cannot_be_are_refused(field, value):
    with pytest.raises(UsageError):
        LadderConfig(**{field: value})


def test_neighbouring_models_share_what_their_games_say(run):
    def met(name, wins):
        record = MatchRecord(
            task="tictactoe",
            a=name,
            b="random",
            wins_a=wins,
            draws=0,
            wins_b=8 - wins,
            num_simulations=8,
            opening_plies=0,
            seed=0,
        )
        publish_record(run, name, record)

    config = LadderConfig(num_simulations=8, anchors=("random", "mcts:30"))
    met("000040", 5)
    alone = run_ratings(run, "tictactoe", config)["000040"]
    met("000041", 6)
    near = run_ratings(run, "tictactoe", config)["000040"]
    assert near.elo > alone.elo
    assert near.standard_error < 0.8 * alone.standard_error
    # Model 0 carries little information about model 40.
    met("000000", 0)
    assert run_ratings(run, "tictactoe", config)["000040"].elo > 0.9 * near.elo


def test_ratings_of_teams_begin_with_the_lowest_number():
    won = {"wins_a": 20, "draws": 0, "wins_b": 12, "seed": 1}
    won |= {"task": "duel", "num_simulations": 0, "opening_plies": 0}
    pairs = ("1000000", "999999"), ("1000001", "1000000")
    ratings = team_ratings([MatchRecord(a=a, b=b, **won) for a, b in pairs])
    assert ratings["999999"].elo == 0
    assert 0 < ratings["1000000"].elo < ratings["1000001"].elo
