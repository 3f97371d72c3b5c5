"""The utility of the score: by hand, and native against reference on games of Go."""

import numpy as np
import pytest

from tengen import _core
from tengen.errors import UsageError
from tengen.search import SearchConfig
from tests.oracle.search.score import ScoreUtility, expected_saturated
from tests.refusals import refused


@pytest.mark.parametrize("stdev", [0.0, 0.3, 0.7, 1.5, 4.0, 12.0])
def test_the_expectation_is_that_of_the_fine_grid(stdev):
    for mean in (-30.0, -2.0, -0.4, 0.0, 0.1, 1.0, 8.0):
        wanted = expected_saturated(mean, stdev)
        assert _core.expected_saturated(mean, stdev) == pytest.approx(wanted, abs=2e-4)
    # P(C < mean + stdev * Z) of a Cauchy variable C is (1 + E) / 2.
    rng = np.random.default_rng(3)
    normal, cauchy = rng.standard_normal(200_000), rng.standard_cauchy(200_000)
    share = np.mean(cauchy < 0.4 + stdev * normal)
    assert 2 * share - 1 == pytest.approx(expected_saturated(0.4, stdev), abs=0.01)


def test_a_point_is_worth_the_most_at_the_center():
    config = SearchConfig(score_weight=0.4, score_scale=0.5)
    width = 0.5 * 9
    worth = 0.4 * (
        expected_saturated(0.5 / width, 0) - expected_saturated(-0.5 / width, 0)
    )
    assert config.point_utility(81) == pytest.approx(worth, rel=0.01)
    assert SearchConfig().point_utility(81) == 0


def test_utility_by_hand():
    config = SearchConfig(score_weight=0.4)
    utility = ScoreUtility(config, board_side=9)  # one width is 4.5 points
    utility.center_on(12.0)  # three quarters of the score: 9
    assert utility.of(0.5, (9.0, 0.0), 0) == pytest.approx(0.5)
    assert utility.of(0.5, (13.5, 0.0), 0) == pytest.approx(0.5 + 0.4 * 0.5)
    assert utility.of(-0.5, (-13.5, 0.0), 1) == pytest.approx(-0.5 - 0.4 * 0.5)
    # atan(2) = 1.107149, which is 0.704833 of half pi.
    assert utility.of(0.0, (18.0, 0.0), 0) == pytest.approx(0.4 * 0.704833)
    utility.center_on(40.0)  # a quarter of the score would exceed one width
    assert utility.center_to_first == 35.5
    assert ScoreUtility(SearchConfig(), 9).of(0.5, (13.5, 3.0), 0) == 0.5


WEIGHTS = [
    {"score_weight": 0.4},
    {"score_weight": 1.0, "score_center_zero_weight": 0.9, "score_scale": 2.0},
]


@pytest.mark.parametrize("explore", [False, True])
@pytest.mark.parametrize("weights", WEIGHTS, ids=["usual", "other"])
@pytest.mark.parametrize("policy", ["puct", "gumbel"])
@pytest.mark.parametrize(
    ("name", "moves", "num_simulations"),
    [
        ("go/2/komi=0.5", [], 150),  # partly settled
        ("go/3/komi=-2", [4], 150),
        ("go/5", [12, 11, 7, 25], 100),  # after a pass: another pass ends the game
        ("go/7", [24, 23, 17], 60),
    ],
)
def test_native_trees(twin, name, moves, num_simulations, policy, weights, explore):
    result = twin(
        name,
        moves,
        SearchConfig(policy=policy, **weights),
        num_simulations=num_simulations,
        explore=explore,
    ).check()
    assert result.has_scores
    values = [result.root_value_to_play, *(a.value_to_play for a in result.actions)]
    assert max(map(abs, values)) <= 1.0


@pytest.mark.parametrize(
    "settings",
    [
        {"cpuct_stdev_scale": 0.85, "lcb_stdevs": 5.0},
        {"forced_playouts": 2.0, "noise_shaped": True},
    ],
    ids=["stdev", "forced"],
)
def test_native_trees_with_other_methods(twin, settings):
    twin(
        "go/5",
        [12, 11, 7],
        SearchConfig(score_weight=0.6, **settings),
        num_simulations=120,
        explore="forced_playouts" in settings,
    ).check()


@pytest.mark.parametrize("explore", [False, True])
def test_a_kept_tree_keeps_its_center(twin, explore):
    then = []
    for _ in range(4):
        result = twin(
            "go/5",
            config=SearchConfig(score_weight=0.4, cpuct_stdev_scale=0.5),
            then=then,
            num_simulations=100,
            explore=explore,
        ).check()
        assert not then or result.num_simulations < 100
        then.append(result.best_action)


def test_a_weight_of_nothing_in_a_kept_tree_is_none(twin):
    """In a reused tree, a negligible weight gives the same visits as weight 0."""
    then = []
    for _ in range(4):
        plain, light = (
            twin(
                "go/3",
                config=SearchConfig(score_weight=weight),
                then=then,
                num_simulations=300,
            ).check()
            for weight in (0.0, 1e-12)
        )
        assert light.best_action == plain.best_action
        assert light.root_value_to_play == plain.root_value_to_play
        visits = [[a.visits for a in result.actions] for result in (plain, light)]
        assert visits[0] == visits[1]
        then.append(plain.best_action)


def session_result(settings, num_simulations=80, *, keep_scores=False):
    """Searches go/5 with all values 0; the owner of the centre is 4 points ahead."""
    session = _core.make_session("go/5", settings.to_native())
    request = _core.SearchRequest()
    request.num_simulations = num_simulations
    request.keep_scores = keep_scores
    session.begin([], request)
    port = session.port(0)
    while port.next():
        own, other = port.planes[:, 1, 2, 2], port.planes[:, 2, 2, 2]
        port.policy[:] = 0.0
        port.value[:] = 0.0
        port.score[:, 0] = 4.0 * (own - other)
        port.score[:, 1] = 1.0
        port.done()
    return session.result


@pytest.mark.parametrize("policy", ["puct", "gumbel"])
def test_among_equal_values_the_greater_score_is_played(policy):
    num_considered = {"gumbel_considered": 26} if policy == "gumbel" else {}
    counts = SearchConfig(policy=policy, score_weight=0.4, **num_considered)
    result = session_result(counts)
    assert result.best_action == 12
    middle = result.actions[12]
    assert middle.visits > max(a.visits for a in result.actions if a is not middle) // 2
    assert middle.score_to_play == pytest.approx(4.0)
    assert middle.value_to_play == result.root_value_to_play == 0.0
    assert 0.0 < result.root_score_to_play < 4.0
    off = SearchConfig(policy=policy, **num_considered)
    plain = session_result(off)
    assert plain.best_action != 12
    assert not plain.has_scores
    kept = session_result(off, keep_scores=True)
    assert kept.has_scores
    assert [a.visits for a in kept.actions] == [a.visits for a in plain.actions]
    assert kept.actions[12].score_to_play == pytest.approx(4.0)


def test_a_game_without_a_score_is_refused():
    native = SearchConfig(score_weight=0.4).to_native()
    with refused(_core.CoreError, "search.score_weight (0.4"):
        _core.make_session("connect4", native)
    with refused(_core.CoreError, "search.score_weight (0.4"):
        _core.make_shared_session("connect4", native, num_threads=2, batch_rows=1)


def test_evaluations_without_scores_are_refused():
    config = SearchConfig(score_weight=0.4)
    config.check_scores(True)
    SearchConfig().check_scores(False)
    with refused(UsageError, "search.score_weight (0.4)"):
        config.check_scores(False)
